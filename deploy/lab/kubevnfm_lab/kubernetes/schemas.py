"""Structural schemas of custom resources: defaults, pruning of unknown fields, validation.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions"; CEL rules are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import FieldProblem, required, unsupported, wrong, wrong_type
from kubevnfm_lab.kubernetes.objects import Obj, copy_of

_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value with the schema's defaults where a field is absent."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        result: Obj = {name: with_defaults(item, _of_field(schema, name)) for name, item in value.items()}
        for name, inner in properties.items():
            # A null counts as absent, unless the schema permits it.
            if result.get(name) is None and "default" in inner and not (name in result and inner.get("nullable")):
                result[name] = with_defaults(copy_of(inner["default"]), inner)
        return result
    if isinstance(value, list):
        return [with_defaults(item, _of_items(schema)) for item in value]
    return value


def pruned(value: Any, schema: Mapping[str, Any], *, path: str = "", top: bool = True) -> tuple[Any, Sequence[str]]:
    """Return the value without the fields that the schema lacks, and the paths of those."""
    unknown: list[str] = []
    return _prune(value, schema, path, unknown, top=top), unknown


def _prune(value: Any, schema: Mapping[str, Any], path: str, unknown: list[str], *, top: bool) -> Any:
    if isinstance(value, list):
        items = _of_items(schema)
        return [_prune(item, items, f"{path}[{i}]", unknown, top=False) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    embedded = top or bool(schema.get("x-kubernetes-embedded-resource"))
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    open_ended = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or more is True
    result: Obj = {}
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        # Kubernetes drops such nulls before it applies defaults.
        if item is None and name in properties and not properties[name].get("nullable"):
            continue
        # These three are defined by Kubernetes, not by the schema, at the top and in embedded resources.
        if embedded and name in _EVERY_OBJECT:
            result[name] = item
        elif name in properties or isinstance(more, dict):
            result[name] = _prune(item, _of_field(schema, name), inner, unknown, top=False)
        elif open_ended:
            result[name] = item
        else:
            unknown.append(inner)
    return result


def _of_field(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else {}


def _of_items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("items")
    return found if isinstance(found, dict) else {}


def problems(value: Any, schema: Mapping[str, Any], *, path: str = "") -> Iterator[FieldProblem]:
    """Yield every problem of the value, worded as the API server words it."""
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield wrong_type(path, value, f'{path} in body must be of type integer,string: "{_type_of(value)}"')
        return
    if wanted in _TYPES and not _has_type(value, str(wanted)):
        yield wrong_type(path, value, f'{path} in body must be of type {wanted}: "{_type_of(value)}"')
        return
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(path, value, schema["enum"])
    if isinstance(value, dict):
        yield from _map_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _text_problems(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, schema, path)
    yield from _combined_problems(value, schema, path)


def _has_type(value: Any, wanted: str) -> bool:
    # bool is a subclass of int in Python, but not in JSON.
    if isinstance(value, bool):
        return wanted == "boolean"
    # JSON does not distinguish 1 from 1.0, and some clients send the latter.
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    return next(
        name for name in ("boolean", "integer", "number", "string", "array", "object") if _has_type(value, name)
    )


def _map_problems(value: Obj, schema: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    for name, item in value.items():
        # The registry validates these fields itself.
        if not path and name in _EVERY_OBJECT:
            continue
        yield from problems(item, _of_field(schema, name), path=f"{path}.{name}" if path else name)
    count = len(value)
    if count > schema.get("maxProperties", count):
        yield wrong(path, count, f"{path} in body should have at most {schema['maxProperties']} properties")
    if count < schema.get("minProperties", 0):
        yield wrong(path, count, f"{path} in body should have at least {schema['minProperties']} properties")


def _list_problems(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for index, item in enumerate(value):
        yield from problems(item, _of_items(schema), path=f"{path}[{index}]")
    if len(value) > schema.get("maxItems", len(value)):
        yield wrong(path, len(value), f"{path} in body should have at most {schema['maxItems']} items")
    if len(value) < schema.get("minItems", 0):
        yield wrong(path, len(value), f"{path} in body should have at least {schema['minItems']} items")


def _text_problems(value: str, schema: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if len(value) > schema.get("maxLength", len(value)):
        yield wrong(path, value, f"{path} in body should be at most {schema['maxLength']} chars long")
    if len(value) < schema.get("minLength", 0):
        yield wrong(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    # Patterns are unanchored in OpenAPI, hence search rather than match.
    if pattern and not re.search(pattern, value):
        yield wrong(path, value, f"{path} in body should match '{pattern}'")


def _number_problems(value: float, schema: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if "minimum" in schema and value < schema["minimum"]:
        yield wrong(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
    if "maximum" in schema and value > schema["maximum"]:
        yield wrong(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")


def _combined_problems(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for inner in schema.get("allOf") or ():
        yield from problems(value, inner, path=path)
    any_of, one_of, none_of = schema.get("anyOf"), schema.get("oneOf"), schema.get("not")
    if any_of and all(any(problems(value, inner, path=path)) for inner in any_of):
        yield wrong(path, value, f"{path or '<nil>'} in body must validate at least one schema (anyOf)")
    if one_of and sum(not any(problems(value, inner, path=path)) for inner in one_of) != 1:
        yield wrong(path, value, f"{path or '<nil>'} in body must validate one and only one schema (oneOf)")
    if none_of and not any(problems(value, none_of, path=path)):
        yield wrong(path, value, f"{path or '<nil>'} in body must not validate the schema (not)")
