"""Reads forms: their faults with a body, the body that a page fills in, and bodies with one thing that it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jsonschema_rs


def validator(form: dict[str, Any]) -> Any:
    jsonschema_rs.meta.validate(form)
    return jsonschema_rs.Draft202012Validator(form, validate_formats=False)


def faults(form: dict[str, Any], body: Any) -> list[str]:
    return [f"{each.instance_path}: {each.message}" for each in validator(form).iter_errors(body)]


def filled_in(form: Mapping[str, Any], schema: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the defaults of the form where it says nothing, as a page fills them in."""
    for rules in rules_of(form, schema, body):
        for name, found in rules.get("properties", {}).items():
            each = resolved(form, found) if isinstance(found, dict) else {}
            if isinstance(body.get(name), dict):
                filled_in(form, each, body[name])
            elif name not in body and "default" in each:
                body[name] = copy.deepcopy(each["default"])
            elif (
                name not in body
                and isinstance(found, dict)
                and "$ref" not in found
                and (inner := filled_in(form, each, {}))
            ):
                body[name] = inner
    return body


def rules_of(form: Mapping[str, Any], schema: Mapping[str, Any], body: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that hold for a body; the rules come after what they depend on."""
    yield schema
    for rule in schema.get("allOf", ()):
        if "if" not in rule:
            yield rule
        elif jsonschema_rs.is_valid(rule["if"], body) and isinstance(rule["then"], dict):
            yield rule["then"]


def resolved(form: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return form["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def broken(form: dict[str, Any], schema: Mapping[str, Any], body: Any) -> Iterator[tuple[str, Any]]:
    """Yield bodies with one value that the form refuses, each with its place."""
    whole = validator(form)

    def inside(node: Mapping[str, Any], value: Any, put: Callable[[Any], Any], place: str) -> Iterator[tuple[str, Any]]:
        for wrong in _wrong_values(node):
            if wrong != value:
                yield place, put(wrong)
        if isinstance(value, list) and isinstance(node.get("items"), dict):
            for index, each in enumerate(value):
                inner = resolved(form, node["items"])
                yield from inside(inner, each, partial(_with, put, value, index), f"{place}[{index}]")
        if isinstance(value, dict):
            if node.get("additionalProperties") is False:
                yield f"{place}/no_such", put({**value, "no_such": 1})
            for rules in rules_of(form, node, value):
                for name in rules.get("required", ()):
                    yield f"{place}/{name}", put({key: each for key, each in value.items() if key != name})
                for name, each in rules.get("properties", {}).items():
                    inner = resolved(form, each) if isinstance(each, dict) else {"not": {}}
                    given = value.get(name, None if "properties" not in inner else {})
                    if name in value or "$ref" not in (each if isinstance(each, dict) else {}):
                        yield from inside(inner, given, partial(_with, put, value, name), f"{place}/{name}")

    for place, wrong in inside(schema, body, lambda changed: changed, ""):
        if not whole.is_valid(wrong):
            yield place, wrong


def _with(put: Callable[[Any], Any], value: Any, name: Any, changed: Any) -> Any:
    copied = copy.copy(value)
    copied[name] = changed
    return put(copied)


def _wrong_values(node: Mapping[str, Any]) -> Iterator[Any]:
    if "enum" in node or "const" in node or "not" in node:
        yield "no-such"
    if "propertyNames" in node:
        yield {"no_such": 1}
    if "minimum" in node:
        yield node["minimum"] - 1
    if "maximum" in node:
        yield node["maximum"] + 1
    if "pattern" in node:
        yield "\n"
    if "maxLength" in node:
        yield "x" * (node["maxLength"] + 1)
    if node.get("minItems"):
        yield []
    if node.get("type") in ("integer", "boolean", "array", "object"):
        yield "text"
    if node.get("type") == "integer":
        yield True
    # A number is taken for the text of a secret.
    if node.get("type") == "string" and not node.get("writeOnly"):
        yield 7
