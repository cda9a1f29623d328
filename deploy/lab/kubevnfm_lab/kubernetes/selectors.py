"""Label and field selectors, in a request's text form and in a workload's object form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kubevnfm_lab.kubernetes.errors import bad_request
from kubevnfm_lab.kubernetes.objects import Obj, labels_of, value_at

Predicate: TypeAlias = Callable[[Obj], bool]

_SET_BASED: Final = re.compile(r"^(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALITY: Final = re.compile(r"^(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)$")
_EXISTENCE: Final = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s!=,()]+)$")
# Commas inside parentheses belong to a set, not between requirements.
_BETWEEN: Final = re.compile(r",(?![^(]*\))")


def _requirement(text: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET_BASED.match(text):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: labels.get(key) in values
        # "notin" and "!=" also select objects that lack the label.
        return lambda labels: labels.get(key) not in values
    if found := _EQUALITY.match(text):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTENCE.match(text):
        key = found["key"]
        if found["absent"]:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise bad_request(f"unable to parse requirement: {text!r} is no label selector requirement")


def label_selector(text: str) -> Predicate:
    """Return the predicate of ``labelSelector=...``; raise 400 if it cannot be parsed."""
    requirements = [_requirement(part.strip()) for part in _BETWEEN.split(text) if part.strip()]
    return lambda obj: all(holds(labels_of(obj)) for holds in requirements)


FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    ),
}  # fmt: skip
"""The fields that clients can select by, per resource, in addition to metadata.name and metadata.namespace."""


def field_selector(text: str, resource: str) -> Predicate:
    """Return the predicate of ``fieldSelector=...``; raise 400 for a field that the resource does not support."""
    known = {"metadata.name", "metadata.namespace", *FIELDS.get(resource, ())}
    tests: list[tuple[tuple[str, ...], str, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, operator, value = _split_field(part)
        if name not in known:
            raise bad_request(f'field label not supported: "{name}"')
        tests.append((tuple(name.split(".")), value, operator != "!="))
    return lambda obj: all((_field(obj, path) == value) is wanted for path, value, wanted in tests)


def _split_field(part: str) -> tuple[str, str, str]:
    # The longest operators first: "!=" and "==" contain "=".
    for operator in ("!=", "==", "="):
        name, found, value = part.partition(operator)
        if found:
            return name.strip(), operator, value.strip()
    raise bad_request(f"invalid field selector: {part!r}; can't understand it")


def _field(obj: Obj, path: tuple[str, ...]) -> str:
    if path == ("source",):
        return str(value_at(obj, "source", "component") or "")
    value = value_at(obj, *path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def matches_selector(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a ``metav1.LabelSelector`` selects the labels; None selects nothing, an empty one everything."""
    if selector is None:
        # A workload without a selector selects nothing; an empty selector would select every pod.
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _expression_holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or []
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(expression.get("operator", ""), False)


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return a LabelSelector in the text form of ``labelSelector=``; Scale objects contain it."""
    parts = [f"{key}={value}" for key, value in sorted((value_at(dict(selector or {}), "matchLabels") or {}).items())]
    for expression in (selector or {}).get("matchExpressions") or []:
        key, values = expression["key"], ",".join(expression.get("values") or [])
        form = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(form.get(expression["operator"], f"!{key}"))
    return ",".join(parts)
