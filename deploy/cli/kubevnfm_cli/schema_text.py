"""Shows the fields of a JSON Schema to people: names, types, bounds, defaults, texts."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.terminal import LINE, printable, printable_json

Schema = Mapping[str, Any]
_DEEPEST: Final = 12
_MOST_VALUES: Final = 20
_COMMENT: Final = 200
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BOUNDS: Final = {
    "minimum": "at least {}", "maximum": "at most {}", "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "minItems": "at least {} items", "maxItems": "at most {} items", "pattern": "matches {}",
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A whole schema, and the values for which its conditions are decided."""

    schema: Schema
    chosen: Mapping[str, str] = field(default_factory=dict)
    """By the name of the field; a field that is not chosen has its default."""

    def resolved(self, schema: Any, depth: int = 0) -> Schema:
        """Return a schema with its references followed, and all parts that apply put together."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return {}
        if isinstance(schema.get("$ref"), str):
            target: Any = self.schema
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target.get(step, {}) if isinstance(target, Mapping) else {}
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self.resolved(self._merged(self.resolved(target, depth + 1), beside), depth + 1)
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return schema
        whole: Schema = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            if not isinstance(part, Mapping):
                continue
            if "if" in part:
                part = part.get("then" if self._holds(part["if"], whole) else "else", {})
            whole = self._merged(whole, self.resolved(part, depth + 1))
        return whole

    def _merged(self, one: Schema, other: Schema) -> Schema:
        """Return a schema that says what both say; the second one where they differ."""
        together = {**one, **other}
        if "properties" in one and "properties" in other:
            known, more = one["properties"], other["properties"]
            together["properties"] = {
                **known,
                **{
                    name: self._merged(self.resolved(known[name]), self.resolved(value)) if name in known else value
                    for name, value in more.items()
                },
            }
        if "required" in one and "required" in other:
            together["required"] = [*one["required"], *other["required"]]
        return together

    def _holds(self, condition: Any, schema: Schema) -> bool:
        wanted = condition.get("properties") if isinstance(condition, Mapping) else None
        if not isinstance(wanted, Mapping) or not wanted:
            return False
        known = properties_of(schema)
        return all(self._is_so(name, each, known) for name, each in wanted.items())

    def _is_so(self, name: str, wanted: Any, known: Mapping[str, Any]) -> bool:
        return _fits(self.chosen.get(name, self.resolved(known.get(name)).get("default")), wanted)

    def choices(self) -> list[str]:
        """Return ``NAME=VALUE`` for each part of a condition that does not hold now."""
        whole = self.resolved(self.schema)
        conditions = [
            part["if"] for part in self.schema.get("allOf") or () if isinstance(part, Mapping) and "if" in part
        ]
        return [
            f"{name}={_value(each['const'])}"
            for condition in conditions
            if isinstance(condition, Mapping)
            for name, each in properties_of(condition).items()
            if isinstance(each, Mapping) and "const" in each and not self._is_so(name, each, properties_of(whole))
        ]


def _fits(value: object, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping) or value is None:
        return False
    allowed = [wanted["const"]] if "const" in wanted else wanted.get("enum") or ()
    return value in allowed or str(value) in map(str, allowed)


def found(form: Form, names: Sequence[str]) -> Schema:
    """Return the part of a schema that names lead to; a map of entries is passed through. Raises UsageFault."""
    here = form.resolved(form.schema)
    for index, name in enumerate(names):
        here = _inner(here, form)
        known = properties_of(here)
        if name in known:
            here = form.resolved(known[name])
        elif isinstance(here.get("additionalProperties"), Mapping):
            here = form.resolved(here["additionalProperties"])
        else:
            way = ".".join(names[: index + 1])
            raise UsageFault(f"{printable(way)} is not a field{did_you_mean(name, known)}")
    return here


def _inner(schema: Schema, form: Form) -> Schema:
    """Return the schema of the entries, if a schema is about a list, or about a map of entries by name."""
    for _ in range(_DEEPEST):
        if schema.get("type") == "array":
            schema = form.resolved(schema.get("items", {}))
        elif not properties_of(schema) and isinstance(schema.get("additionalProperties"), Mapping):
            schema = form.resolved(schema["additionalProperties"])
        else:
            break
    return schema


def properties_of(schema: Schema) -> Mapping[str, Any]:
    """Return the schemas of an object's fields by name."""
    known = schema.get("properties")
    return known if isinstance(known, Mapping) else {}


def lines(schema: Schema, form: Form, title: str, *, depth: int, width: int) -> Iterator[str]:
    """Yield the lines about a field and what is in it, so many levels deep."""
    yield f"{printable(title)} <{type_of(schema, form)}>"
    text = schema.get("description") or schema.get("title")
    if text:
        yield from _wrapped(str(text), "  ", width)
    facts = facts_of(schema)
    if facts:
        yield from _wrapped(facts, "  ", width)
    inner = _inner(schema, form)
    if properties_of(inner):
        yield ""
        yield "fields:"
        yield from _fields(inner, form, "  ", depth, width)
    for index, choice in enumerate(dict.fromkeys(form.choices())):
        if index == 0:
            yield ""
        yield f"with {printable(choice)} some fields differ: --with {printable(choice)}"


def _fields(schema: Schema, form: Form, indent: str, depth: int, width: int) -> Iterator[str]:
    required = schema.get("required") or ()
    for name, value in sorted(properties_of(schema).items(), key=lambda each: _place(each[1])):
        inside = form.resolved(value)
        mark = ", required" if name in required else ""
        yield f"{indent}{printable(name)} <{type_of(inside, form)}{mark}>"
        text = ". ".join(
            str(each).rstrip(".")
            for each in (inside.get("description") or inside.get("title"), facts_of(inside))
            if each
        )
        if text:
            yield from _wrapped(f"{text}.", f"{indent}    ", width)
        inner = _inner(inside, form)
        if depth > 1 and properties_of(inner):
            yield from _fields(inner, form, f"{indent}  ", depth - 1, width)


def template(form: Form) -> str:
    """Return a request as YAML with a line for each field: those that are required are there, the others are comments."""
    whole = form.resolved(form.schema)
    others = [
        f"# with {printable(one)} some fields differ: --with {printable(one)}" for one in dict.fromkeys(form.choices())
    ]
    lines = [*others, *_template(whole, form, is_active=True, depth=1)]
    return "".join(f"{line}\n" for line in lines) or "{}\n"


def _template(schema: Schema, form: Form, *, is_active: bool, depth: int) -> Iterator[str]:
    """Yield the lines of an object's fields; those of a comment begin with its sign once, so that a block is taken in as a whole."""
    required = schema.get("required") or ()
    for name, value in sorted(properties_of(schema).items(), key=lambda each: _place(each[1])):
        inner = form.resolved(value)
        is_there = is_active and name in required
        mark = "# " if is_active and not is_there else ""
        title = inner.get("description") or inner.get("title")
        text = ". ".join(str(each).rstrip(".") for each in (title, facts_of(inner)) if each)
        label = f"{'required; ' if name in required else ''}{type_of(inner, form)}"
        comment = printable(f"{label}. {text}" if text else label, _COMMENT)
        key = name if _PLAIN.fullmatch(str(name)) else _json(str(name))
        entry = _inner(inner, form) if depth < _DEEPEST and (not is_there or properties_of(inner)) else {}
        has_fields = bool(properties_of(entry)) and "default" not in inner
        yield f"{mark}{key}:{'' if has_fields else f' {_example(inner)}'}  # {comment}"
        if not has_fields:
            continue
        indent = "  "
        if entry is not inner:
            yield f"{mark}  {'-' if inner.get('type') == 'array' else 'NAME:'}"
            indent = "    "
        for line in _template(entry, form, is_active=is_there, depth=depth + 1):
            yield f"{mark}{indent}{line}"


def _example(schema: Schema) -> str:
    """Return a value for a field: its default, the only one, or an empty one of its type."""
    if "const" in schema:
        return _json(schema["const"])
    if "default" in schema and not schema.get("writeOnly"):
        return _json(schema["default"])
    return {"string": '""', "array": "[]", "object": "{}", "boolean": "false"}.get(str(schema.get("type")), "~")


def _json(value: object) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False))


def _place(field: Any) -> float:
    order = field.get("x-order") if isinstance(field, Mapping) else None
    return float(order) if isinstance(order, int | float) else 0.0


def type_of(schema: Schema, form: Form, depth: int = 0) -> str:
    """Return the type of a field in words."""
    if depth > _DEEPEST:
        return "any"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return " or ".join(dict.fromkeys(type_of(form.resolved(each), form, depth + 1) for each in choices))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(dict.fromkeys(type_of({**schema, "type": each}, form, depth + 1) for each in kind))
    if kind == "array":
        return f"list of {type_of(form.resolved(schema.get('items', {})), form, depth + 1)}"
    if kind == "object" or (kind is None and properties_of(schema)):
        others = schema.get("additionalProperties")
        if not properties_of(schema) and isinstance(others, Mapping):
            return f"map of {type_of(form.resolved(others), form, depth + 1)}"
        return "map"
    if kind is None:
        return "value" if "enum" in schema or "const" in schema else "any"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
        str(kind), str(kind)
    )


def facts_of(schema: Schema) -> str:
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
    facts += [
        text.removesuffix("s" if schema[name] == 1 else "").format(_value(schema[name]))
        for name, text in _BOUNDS.items()
        if name in schema
    ]
    if schema.get("writeOnly"):
        facts.append("a secret")
    elif "default" in schema:
        facts.append(f"default {_value(schema['default'])}")
    text = "; ".join(facts)
    return text[:1].upper() + text[1:]


def _value(value: object) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _wrapped(text: str, indent: str, width: int) -> Iterator[str]:
    plain = printable(text, LINE)
    yield from textwrap.wrap(plain, max(width, 40), initial_indent=indent, subsequent_indent=indent) or [
        indent.rstrip()
    ]
