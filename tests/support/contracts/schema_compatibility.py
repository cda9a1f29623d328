"""Finds changes of a JSON Schema that break readers or writers of the older one.

Within ``v1`` only optional attributes are added: no attribute is removed, becomes required or optional, or accepts less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

Schema = JsonMapping

_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_EXACT: Final = ("pattern", "format", "multipleOf", "uniqueItems")


def breaks(old: Schema, new: Schema) -> Sequence[str]:
    """Return a sentence for each break, starting with the attribute's path; none if ``new`` is compatible."""
    return _Comparison(old, new).compare("", old, new)


class _Comparison:
    """Walks two schemas side by side; a reference is resolved in its own document."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._walking: set[tuple[int, int]] = set()

    def compare(self, path: str, old: Schema, new: Schema) -> list[str]:
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        pair = (id(old), id(new))
        if pair in self._walking:  # a type that contains itself
            return []
        self._walking.add(pair)
        try:
            return self._alternatives(path, old, new)
        finally:
            self._walking.discard(pair)

    def _alternatives(self, path: str, old: Schema, new: Schema) -> list[str]:
        """Compare alternatives: a new one must still accept each of the old ones."""
        found: list[str] = []
        choices = [_resolved(self._new, choice) for choice in new.get("anyOf", [new])]
        for was in old.get("anyOf", [old]):
            answers = [self._one(path, _resolved(self._old, was), choice) for choice in choices]
            answers.sort(key=len)  # the alternative that comes closest is the one that was meant
            found += answers[0]
        return found

    def _one(self, path: str, old: Schema, new: Schema) -> list[str]:
        name = path or "the message"
        # With another type, limits and attributes cannot be compared.
        if not _accepts_type(old.get("type"), new.get("type")):
            return [f"{name}: type {old.get('type', 'any')} became {new.get('type')}"]
        return [
            *self._values(name, old, new),
            *_limits(name, old, new),
            *self._attributes(path, old, new),
            *self._contents(path, old, new),
        ]

    def _values(self, name: str, old: Schema, new: Schema) -> list[str]:
        was, now = _values(old), _values(new)
        if now is None:
            return []
        if was is None:
            return [f"{name}: only {', '.join(map(str, now))} are accepted now"]
        gone = [value for value in was if value not in now]
        return [f"{name}: {', '.join(map(str, gone))} no longer accepted"] if gone else []

    def _attributes(self, path: str, old: Schema, new: Schema) -> list[str]:
        found: list[str] = []
        were, are = old.get("properties", {}), new.get("properties", {})
        required_once, required_now = set(old.get("required", ())), set(new.get("required", ()))
        for name, was in were.items():
            below = f"{path}.{name}" if path else name
            if name not in are:
                found.append(f"{below}: removed")
                continue
            found += self.compare(below, was, are[name])
            if name in required_now - required_once:
                found.append(f"{below}: became required")
            # Required attributes of an event are what its older readers rely on.
            if name in required_once - required_now:
                found.append(f"{below}: became optional")
        for name in required_now - set(were):
            found.append(f"{path}.{name}: new and required" if path else f"{name}: new and required")
        return found

    def _contents(self, path: str, old: Schema, new: Schema) -> list[str]:
        """Compare items of arrays and values of maps."""
        found: list[str] = []
        for keyword, place in (("items", "[]"), ("additionalProperties", ".*")):
            was, now = old.get(keyword, True), new.get(keyword, True)
            if now is True or was is False:
                continue
            if now is False or not isinstance(was, Mapping):
                found.append(f"{path}{place}: accepts less")
            else:
                found += self.compare(f"{path}{place}", was, now)
        return found


def _resolved(document: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        target: Any = document
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[step]
        schema = target
    return schema


def _accepts_type(old: Any, new: Any) -> bool:
    if new is None or old == new:
        return True
    # Every integer is a number too (JSON Schema 2020-12), so this change accepts more.
    return bool(old == "integer" and new == "number")


def _values(schema: Schema) -> Sequence[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, Sequence) else None


def _limits(name: str, old: Schema, new: Schema) -> list[str]:
    lower = [key for key in _UPPER if key in new and (key not in old or new[key] < old[key])]
    higher = [key for key in _LOWER if key in new and (key not in old or new[key] > old[key])]
    changed = [key for key in _EXACT if key in new and new[key] != old.get(key)]
    return [f"{name}: {key} {new[key]} is stricter" for key in (*lower, *higher)] + [
        f"{name}: {key} became {new[key]}" for key in changed
    ]
