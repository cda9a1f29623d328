"""The three patch formats other than server-side apply: JSON Patch, JSON Merge Patch, strategic merge.

Source: RFC 6902, RFC 7386; strategic merge: Kubernetes' "Update API objects in place using kubectl patch".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import ApiError, bad_request
from kubevnfm_lab.kubernetes.objects import Obj, copy_of
from kubevnfm_lab.kubernetes.shapes import Shape

_DIRECTIVE: Final = "$patch"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_DIRECTIVES: Final = ("$setElementOrder/", "$retainKeys", _DELETE_PRIMITIVES)


def merge_patch(target: Any, patch: Any) -> Any:
    """Return ``target`` after a JSON Merge Patch: null deletes, lists are replaced."""
    if not isinstance(patch, dict):
        return copy_of(patch)
    result: Obj = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def strategic_merge(target: Any, patch: Any, shape: Shape) -> Any:
    """Return ``target`` after a strategic merge patch: as a merge patch, but lists with keys merge item by item."""
    if isinstance(patch, dict):
        return _merge_map(target, patch, shape)
    if isinstance(patch, list):
        return _merge_list(target, patch, shape)
    return patch


def _merge_map(target: Any, patch: Obj, shape: Shape) -> Any:
    # kubectl edit and replace use these directives of strategic merge.
    if patch.get(_DIRECTIVE) == "replace":
        return {name: copy_of(value) for name, value in patch.items() if name != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    result: Obj = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith(_DELETE_PRIMITIVES):
            field = name.removeprefix(_DELETE_PRIMITIVES)
            # Lists of primitive values have no keys, so deletions name the values.
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif name.startswith(_DIRECTIVES) or name == _DIRECTIVE:
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = strategic_merge(result.get(name), value, shape.child(name))
    return result


def _merge_list(target: Any, patch: Sequence[Any], shape: Shape) -> Any:
    kind = shape.list_type
    replaces = any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch)
    if kind.is_atomic or replaces:
        return [copy_of(item) for item in patch if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "replace")]
    result = list(target) if isinstance(target, list) else []
    if kind.is_set:
        return [*result, *(item for item in patch if item not in result)]
    key = kind.keys[0]
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        # Strategic merge knows one key per list; the lab uses all keys, as server-side apply does, if there are more.
        same = [index for index, old in enumerate(result) if all(old.get(k) == item[k] for k in kind.keys if k in item)]
        if item.get(_DIRECTIVE) == "delete":
            result = [old for index, old in enumerate(result) if index not in same]
        elif same:
            result[same[0]] = strategic_merge(result[same[0]], item, shape.item())
        else:
            result.append(strategic_merge({}, item, shape.item()))
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Return ``target`` after a JSON Patch; raise ApiError 400 or 422 that names the failed operation."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    # All operations apply or none does, so they run on a copy.
    result = copy_of(target)
    for operation in operations:
        try:
            result = _operate(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            name = operation.get("op") if isinstance(operation, dict) else operation
            path = operation.get("path") if isinstance(operation, dict) else ""
            message = f"the server rejected our request due to an error in our request: {name} operation does not apply: path {path}"
            raise ApiError(422, message, details={}) from error
    return result


def _operate(document: Any, operation: Obj) -> Any:
    op, path = operation["op"], _pointer(operation["path"])
    if op == "test":
        if _read(document, path) != operation.get("value"):
            raise ValueError("test failed")
        return document
    if op in {"move", "copy"}:
        source = _pointer(operation["from"])
        value = copy_of(_read(document, source))
        if op == "move":
            document = _write(document, source, None, op="remove")
        return _write(document, path, value, op="add")
    if op not in {"add", "replace", "remove"}:
        raise ValueError(f"unknown operation {op}")
    return _write(document, path, copy_of(operation.get("value")), op=op)


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError("a pointer starts with a slash")
    # The order matters: "~01" means "~1" (RFC 6901).
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _read(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _write(document: Any, path: Sequence[str], value: Any, *, op: str) -> Any:
    if not path:
        return value
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        # "-" is the position after the last item (RFC 6902).
        index = len(parent) if last == "-" else int(last)
        if op == "add":
            if index > len(parent):
                raise IndexError(last)
            parent.insert(index, value)
        elif op == "replace":
            parent[index] = value
        else:
            del parent[index]
        return document
    if op != "add" and last not in parent:
        raise KeyError(last)
    if op == "remove":
        del parent[last]
    else:
        parent[last] = value
    return document
