"""Shows the fields of a JSON Schema to people: names, types, bounds, defaults, texts."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.terminal import LINE, printable

Schema = Mapping[str, Any]
_DEEPEST: Final = 12
_MOST_VALUES: Final = 20
_BOUNDS: Final = {
    "minimum": "at least {}", "maximum": "at most {}", "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} items", "maxItems": "at most {} items", "pattern": "matches {}",
}  # fmt: skip


def resolved(schema: Any, root: Schema) -> Schema:
    """Return a schema with its references followed; what stands beside a reference wins."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            return {}
        name = schema.get("$ref")
        if not isinstance(name, str):
            return schema
        target: Any = root
        for step in name.removeprefix("#/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {}


def found(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the part of a schema that names lead to; a map of entries is passed through. Raises UsageFault."""
    here = resolved(schema, schema)
    for index, name in enumerate(names):
        here = _inner(here, schema)
        known = _properties(here)
        if name in known:
            here = resolved(known[name], schema)
        elif isinstance(here.get("additionalProperties"), Mapping):
            here = resolved(here["additionalProperties"], schema)
        else:
            way = ".".join(names[: index + 1])
            raise UsageFault(f"{printable(way)} is not a field{did_you_mean(name, known)}")
    return here


def _inner(schema: Schema, root: Schema) -> Schema:
    """Return the schema of the entries, if a schema is about a list, or about a map of entries by name."""
    for _ in range(_DEEPEST):
        if schema.get("type") == "array":
            schema = resolved(schema.get("items", {}), root)
        elif not _properties(schema) and isinstance(schema.get("additionalProperties"), Mapping):
            schema = resolved(schema["additionalProperties"], root)
        else:
            break
    return schema


def _properties(schema: Schema) -> Mapping[str, Any]:
    known = schema.get("properties")
    return known if isinstance(known, Mapping) else {}


def lines(schema: Schema, root: Schema, title: str, *, depth: int, width: int) -> Iterator[str]:
    """Yield the lines about a field and what is in it, so many levels deep."""
    yield f"{printable(title)} <{type_of(schema, root)}>"
    text = schema.get("description") or schema.get("title")
    if text:
        yield from _wrapped(str(text), "  ", width)
    facts = _facts(schema)
    if facts:
        yield from _wrapped(facts, "  ", width)
    inner = _inner(schema, root)
    if _properties(inner):
        yield ""
        yield "fields:"
        yield from _fields(inner, root, "  ", depth, width)


def _fields(schema: Schema, root: Schema, indent: str, depth: int, width: int) -> Iterator[str]:
    required = schema.get("required") or ()
    for name, value in sorted(_properties(schema).items(), key=lambda each: _place(each[1])):
        field = resolved(value, root)
        mark = ", required" if name in required else ""
        yield f"{indent}{printable(name)} <{type_of(field, root)}{mark}>"
        text = ". ".join(
            str(each).rstrip(".") for each in (field.get("description") or field.get("title"), _facts(field)) if each
        )
        if text:
            yield from _wrapped(f"{text}.", f"{indent}    ", width)
        inner = _inner(field, root)
        if depth > 1 and _properties(inner):
            yield from _fields(inner, root, f"{indent}  ", depth - 1, width)


def _place(field: Any) -> float:
    order = field.get("x-order") if isinstance(field, Mapping) else None
    return float(order) if isinstance(order, int | float) else 0.0


def type_of(schema: Schema, root: Schema, depth: int = 0) -> str:
    """Return the type of a field in words."""
    if depth > _DEEPEST:
        return "any"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return " or ".join(dict.fromkeys(type_of(resolved(each, root), root, depth + 1) for each in choices))
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = " or ".join(map(str, kind))
    if kind == "array":
        return f"list of {type_of(resolved(schema.get('items', {}), root), root, depth + 1)}"
    if kind == "object":
        others = schema.get("additionalProperties")
        if not _properties(schema) and isinstance(others, Mapping):
            return f"map of {type_of(resolved(others, root), root, depth + 1)}"
        return "map"
    if kind is None:
        return "value" if "enum" in schema or "const" in schema else "any"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
        str(kind), str(kind)
    )


def _facts(schema: Schema) -> str:
    """Return the bounds, the allowed values and the default."""
    facts = []
    values = schema.get("enum")
    if isinstance(values, list):
        titles = schema.get("x-enum-titles")
        named = titles if isinstance(titles, list) and len(titles) == len(values) else values
        pairs = zip(values[:_MOST_VALUES], named, strict=False)
        shown = ", ".join(_value(each) if each == name else f"{_value(each)} ({_value(name)})" for each, name in pairs)
        facts.append(f"one of {shown}{' ...' if len(values) > _MOST_VALUES else ''}")
    if "const" in schema:
        facts.append(f"always {_value(schema['const'])}")
    facts += [text.format(_value(schema[name])) for name, text in _BOUNDS.items() if name in schema]
    if schema.get("writeOnly"):
        facts.append("a secret")
    elif "default" in schema:
        facts.append(f"default {_value(schema['default'])}")
    return "; ".join(facts)


def _value(value: object) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _wrapped(text: str, indent: str, width: int) -> Iterator[str]:
    plain = printable(text, LINE)
    yield from textwrap.wrap(plain, max(width, 40), initial_indent=indent, subsequent_indent=indent) or [
        indent.rstrip()
    ]
