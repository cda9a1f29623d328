"""Checks that an answer has the members that all code here relies on, with their types.

Other code reads these members without a check of its own. Members that only one rule reads, of custom resources too, are not
checked here: `objects.field_at` and `objects.conditions` return nothing for them if their type is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_infra_k8s.domain.objects import BUILT_IN_GROUPS, OBJECT, Body, field_at, group_of


class Malformed(Exception):
    """The answer is not as the Kubernetes API defines it; the text names the member and what was expected."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, OBJECT)


def _is_time(value: Any) -> bool:
    """Return whether it is a moment with a zone, which has a form in UTC: those of the years 1 and 9999 may have none."""
    try:
        moment = datetime.fromisoformat(value)
        moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return False
    return moment.tzinfo is not None


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, OBJECT) for each in value)


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, OBJECT) and all(isinstance(each, str) for each in value.values())


def _is_absent_or(is_right: Callable[[Any], bool], value: Any) -> bool:
    return value is None or is_right(value)


def _have(each_is: Callable[[Any], bool], listed: Any, *path: str) -> bool:
    """Return whether the objects of a list have the member at the path, or lack it."""
    return all(_is_absent_or(each_is, field_at(one, *path)) for one in listed or [])


def _are_container_statuses(value: Any) -> bool:
    return (
        _are_objects(value)
        and all(_have(_is_object, value, *path) for path in (("state",), ("state", "waiting")))
        and _have(_is_text, value, "state", "waiting", "reason")
        and _have(_is_number, value, "restartCount")
    )


def _are_owners(value: Any) -> bool:
    return _are_objects(value) and all(_have(_is_text, value, name) for name in ("uid", "kind", "name"))


def _are_managers(value: Any) -> bool:
    return _are_objects(value) and all(_have(_is_text, value, name) for name in ("manager", "apiVersion"))


def _are_templates(value: Any) -> bool:
    return _are_objects(value) and all(
        _have(_is_map_of_texts, value, "metadata", name) for name in ("labels", "annotations")
    )


def _are_ports(value: Any) -> bool:
    return _are_objects(value) and _have(_is_number, value, "nodePort")


def _is_pod_spec(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not all(_is_absent_or(_are_objects, value.get(name)) for name in _LISTS):
        return False
    for container in [each for name in ("initContainers", "containers") for each in value.get(name) or []]:
        sources, variables = container.get("envFrom"), container.get("env")
        if not (_is_absent_or(_are_objects, sources) and _is_absent_or(_are_objects, variables)):
            return False
        if sources and not all(_have(_is_object, sources, ref) for ref in _REFERENCES):
            return False
        if variables and not (
            _have(_is_object, variables, "valueFrom")
            and all(_have(_is_object, variables, "valueFrom", ref) for ref in _REFERENCES)
        ):
            return False
    volumes = value.get("volumes")
    if not volumes:
        return True
    if not _have(_are_objects, volumes, "projected", "sources"):
        return False
    inner = [each for volume in volumes or [] for each in field_at(volume, "projected", "sources") or []]
    return all(_have(_is_object, [*(volumes or []), *inner], ref) for ref in _REFERENCES)


_LISTS: Final = ("initContainers", "containers", "volumes", "schedulingGates", "readinessGates")
_REFERENCES: Final = ("configMap", "secret", "configMapRef", "secretRef", "configMapKeyRef", "secretKeyRef")
_Check = tuple[tuple[str, ...], Callable[[Any], bool], str]
_EVERY: Final[tuple[_Check, ...]] = (
    (("apiVersion",), _is_text, "a text"),
    (("kind",), _is_text, "a text"),
    (("metadata",), _is_object, "an object"),
    (("metadata", "name"), _is_text, "a text"),
    (("metadata", "namespace"), _is_text, "a text"),
    (("metadata", "uid"), _is_text, "a text"),
    (("metadata", "resourceVersion"), _is_text, "a text"),
    (("metadata", "generation"), _is_number, "a number"),
    (("metadata", "creationTimestamp"), _is_time, "a time"),
    (("metadata", "deletionTimestamp"), _is_time, "a time"),
    (("metadata", "labels"), _is_map_of_texts, "an object of texts"),
    (("metadata", "annotations"), _is_map_of_texts, "an object of texts"),
    (("metadata", "finalizers"), _are_texts, "a list of texts"),
    (("metadata", "ownerReferences"), _are_owners, "a list of owners"),
    (("metadata", "managedFields"), _are_managers, "a list of managers"),
)
"""Members of each object (ObjectMeta)."""
_BUILT_IN: Final[tuple[_Check, ...]] = (
    (("metadata", "deletionGracePeriodSeconds"), _is_number, "a number"),
    (("data",), _is_object, "an object"),
    (("binaryData",), _is_object, "an object"),
    (("involvedObject",), _is_object, "an object"),
    (("spec",), _is_object, "an object"),
    (("spec", "replicas"), _is_number, "a number"),
    (("spec", "template"), _is_object, "an object"),
    (("spec", "template", "metadata"), _is_object, "an object"),
    (("spec", "template", "metadata", "annotations"), _is_map_of_texts, "an object of texts"),
    (("spec", "template", "spec"), _is_pod_spec, "the specification of a pod"),
    (("spec", "updateStrategy"), _is_object, "an object"),
    (("spec", "updateStrategy", "rollingUpdate", "partition"), _is_number, "a number"),
    (("spec", "claimRef"), _is_object, "an object"),
    (("spec", "storageClassName"), _is_text, "a text"),
    (("status", "replicas"), _is_number, "a number"),
    (("status", "desiredNumberScheduled"), _is_number, "a number"),
    (("status", "phase"), _is_text, "a text"),
    (("status", "conditions"), _are_objects, "a list of objects"),
    (("status", "initContainerStatuses"), _are_container_statuses, "a list of container statuses"),
    (("status", "containerStatuses"), _are_container_statuses, "a list of container statuses"),
    (("status", "podIPs"), _are_objects, "a list of objects"),
)
"""Members of the kinds of Kubernetes itself."""
_OF_KIND: Final[Mapping[str, tuple[_Check, ...]]] = {
    "Pod": ((("spec",), _is_pod_spec, "the specification of a pod"),),
    "Service": ((("spec", "ports"), _are_ports, "a list of ports"),),
    "StatefulSet": ((("spec", "volumeClaimTemplates"), _are_templates, "a list of claims"),),
    "CustomResourceDefinition": ((("spec", "versions"), _are_objects, "a list of objects"),),
}


_EXACT: Final[Mapping[Callable[[Any], bool], type]] = {_is_text: str, _is_number: int, _is_object: dict}


@dataclass
class _Member:
    """A member of an object: what is right for it, and the members of its own that are checked."""

    path: str
    is_right: Callable[[Any], bool] | None = None
    exact: type | None = None
    """A type whose values are right, as most are: a call for each takes longer."""
    expected: str = ""
    members: dict[str, _Member] = field(default_factory=dict)


def _tree(*checks: _Check) -> Mapping[str, _Member]:
    """Return the checks as a tree, in which an object is walked once, and no further than it has members."""
    root = _Member("")
    for path, is_right, expected in checks:
        member = root
        for depth, name in enumerate(path, start=1):
            member = member.members.setdefault(name, _Member(".".join(path[:depth])))
        member.is_right, member.exact, member.expected = is_right, _EXACT.get(is_right), expected
    return root.members


_CUSTOM_TREE: Final = _tree(*_EVERY)
_BUILT_IN_TREE: Final = _tree(*_EVERY, *_BUILT_IN)
_TREES: Final = {kind: _tree(*_EVERY, *_BUILT_IN, *checks) for kind, checks in _OF_KIND.items()}


def checked(body: Any) -> Body:
    """Return the object. Raises Malformed."""
    if not isinstance(body, OBJECT):
        raise Malformed("an object expected")
    is_built_in = group_of(str(body.get("apiVersion") or "")) in BUILT_IN_GROUPS
    _check(body, _TREES.get(str(body.get("kind")), _BUILT_IN_TREE) if is_built_in else _CUSTOM_TREE)
    return body


def _check(value: Mapping[str, Any], members: Mapping[str, _Member]) -> None:
    for name, member in members.items():
        inner = value.get(name)
        if inner is None:
            continue
        if type(inner) is not member.exact and member.is_right is not None and not member.is_right(inner):
            raise Malformed(f"{member.path}: {member.expected} expected")
        if member.members and isinstance(inner, OBJECT):
            _check(inner, member.members)


def named(body: Any, known: Mapping[str, str] | None = None) -> Body:
    """Return the object with the ``known`` members, which items of lists lack. Raises Malformed, also without a name."""
    found = checked({**body, **(known or {})} if isinstance(body, OBJECT) else body)
    if not field_at(found, "metadata", "name"):
        raise Malformed("metadata.name: a text expected")
    return found


def part_of(body: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Return the metadata of an object and what it has at these paths: a check of all containers of a pod takes longer than its JSON."""
    if not isinstance(body, OBJECT):
        return body
    part: dict[str, Any] = {name: body[name] for name in ("apiVersion", "kind", "metadata") if name in body}
    for *outer, last in paths:
        value = field_at(body, *outer, last)
        if value is not None:
            inner = part
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[last] = value
    return part


def version_of(body: Body) -> str:
    """Return the version of an object or a list. Raises Malformed."""
    version = field_at(body, "metadata", "resourceVersion")
    if not _is_absent_or(_is_text, version):
        raise Malformed("metadata.resourceVersion: a text expected")
    return str(version or "")


def name_in(body: Body, namespace: str) -> str:
    """Return the name by which `follow` shows an object: with its namespace if all namespaces are followed."""
    name, own = str(body["metadata"]["name"]), body["metadata"].get("namespace")
    return f"{own}/{name}" if own and not namespace else name


def without_owners(body: Body) -> Body:
    """Return an object without its managedFields, a third of it, which no caller of `follow` reads."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": metadata}
