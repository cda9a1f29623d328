"""Differences between an object as it is and as it would be (multicloud.md MC-033). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.pod_templates import POD_TEMPLATES
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_secrets import MASK

from kubevnfm_infra_k8s.domain.objects import OPERATION_ANNOTATION, Body, ObjectKey

LONGEST_TEXT: Final = 4096
"""Characters of a value that are shown."""
_OF_SERVER: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}
)
_MERGE_KEYS: Final = ("name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "key", "type")
"""Members by one of which an element of a list is known, as the types of Kubernetes say; the first that all elements have."""
_SECRET_PARTS: Final = ("data", "stringData")

Path = tuple[str, ...]
Difference = tuple[Path, Any, Any]
ABSENT: Final = object()


def differences(before: Body, after: Body) -> Iterator[Difference]:
    """Yield the fields that differ, with their values; ABSENT: there is none. Fields of the API server itself do not count."""
    yield from _differing((), comparable(before), comparable(after))


def comparable(body: Body) -> Mapping[str, Any]:
    """Return an object without its status, and without what belongs to the API server or names the operation."""
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in _OF_SERVER}
    annotations = metadata.pop("annotations", None) or {}
    left = {name: value for name, value in annotations.items() if name != OPERATION_ANNOTATION}
    if left:
        metadata["annotations"] = left
    return {**{name: value for name, value in body.items() if name != "status"}, "metadata": metadata}


def is_secret(key: ObjectKey) -> bool:
    """Return whether data of the object are secret."""
    return key.api_kind == ("v1", "Secret")


def masked(key: ObjectKey, body: Body) -> Mapping[str, Any]:
    """Return an object to be shown: without the data of a Secret."""
    shown = dict(body)
    if is_secret(key):
        for part in _SECRET_PARTS:
            if isinstance(shown.get(part), Mapping):
                shown[part] = dict.fromkeys(shown[part], MASK)
        # It repeats the data of a Secret that kubectl has applied.
        metadata = dict(shown.get("metadata") or {})
        annotations = metadata.get("annotations")
        if isinstance(annotations, Mapping):
            metadata["annotations"] = {
                name: MASK if name == "kubectl.kubernetes.io/last-applied-configuration" else value
                for name, value in annotations.items()
            }
        shown["metadata"] = metadata
    return shown


def is_hidden(key: ObjectKey, path: Path) -> bool:
    """Return whether a field must not be shown."""
    return is_secret(key) and (path[0] in _SECRET_PARTS or path[-1].endswith("last-applied-configuration"))


def shown_value(value: Any) -> tuple[Any, bool]:
    """Return a value with its long texts cut, and whether one was cut."""
    if isinstance(value, str):
        return (f"{value[:LONGEST_TEXT]}...", True) if len(value) > LONGEST_TEXT else (value, False)
    if isinstance(value, Mapping):
        parts = {name: shown_value(each) for name, each in value.items()}
        return {name: each for name, (each, _) in parts.items()}, any(is_cut for _, is_cut in parts.values())
    if isinstance(value, list):
        items = [shown_value(each) for each in value]
        return [each for each, _ in items], any(is_cut for _, is_cut in items)
    return value, False


def is_in_pod_template(key: ObjectKey, path: Path) -> bool:
    """Return whether a field is one by whose change a controller starts pods again."""
    template = POD_TEMPLATES.get((key.group, key.kind))
    return bool(template) and path[: len(template or ())] == template


def pointer(path: Path) -> str:
    """Return the JSON Pointer of a field."""
    return "".join(f"/{escaped(each)}" for each in path)


def _differing(path: Path, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(each for each in after if each not in before)]:
            yield from _differing((*path, str(name)), before.get(name, ABSENT), after.get(name, ABSENT))
    elif isinstance(before, list) and isinstance(after, list) and before != after:
        yield from _of_lists(path, before, after)
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def _of_lists(path: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[Difference]:
    key = next((each for each in _MERGE_KEYS if _is_key(each, before) and _is_key(each, after)), None)
    if key is None:
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else ABSENT
            other = after[index] if index < len(after) else ABSENT
            yield from _differing((*path, str(index)), one, other)
        return
    by_key = {each[key]: each for each in before}
    for index, each in enumerate(after):
        yield from _differing((*path, str(index)), by_key.pop(each[key], ABSENT), each)
    for index, each in enumerate(before):
        if each[key] in by_key:
            yield (*path, str(index)), each, ABSENT


def _is_key(name: str, items: Sequence[Any]) -> bool:
    """Return whether each element has the member, and no two the same one."""
    values = [each.get(name) for each in items if isinstance(each, Mapping)]
    return len(values) == len(items) == len({each for each in values if isinstance(each, str | int)})
