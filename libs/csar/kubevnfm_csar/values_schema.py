"""``values.schema.json`` beside an order artifact (multicloud.md MC-022, MC-029): reading it, and the defaults in it.

Whether values are as it says is not decided here: a schema can make that take any time.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.json_pointer import unescaped

from kubevnfm_csar.manifest_values import NAME, RESERVED

LARGEST: Final = 2**20
"""Bytes."""
_FILE: Final = "values.schema.json"
_DRAFTS: Final = frozenset(
    f"json-schema.org/{draft}"
    for draft in (
        "draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema",
    )
)  # fmt: skip
_MOST_STEPS: Final = 100_000
"""Members of objects that are read for defaults: a schema of 1 MiB can refer to itself without end."""
_MOST_REFERENCES: Final = 32
"""References and parts of ``allOf`` one inside another."""
_DEEPEST: Final = 64
"""Objects one inside another: the body of a request has no more levels."""
_NOTHING: Final = object()
_MEMBER: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A name behind a dot."""


@dataclass(frozen=True)
class ValuesSchema:
    """The schema of an order's values."""

    name: str
    """Its path in the package."""
    body: Mapping[str, Any] = field(repr=False)


class SchemaRefused(Exception):
    """The file is no schema that can be used; the text says why."""


def schema_path(order: str) -> str:
    """Return the path of the schema that belongs to an order artifact."""
    return posixpath.join(posixpath.dirname(order), _FILE)


def read_schema(name: str, text: str) -> ValuesSchema:
    """Return the schema in a file. Raises SchemaRefused for what is JSON of another form, or of an unknown draft."""
    if len(text.encode()) > LARGEST:
        raise SchemaRefused(f"at most {LARGEST} bytes expected")
    try:
        body = read_foreign(text)
    except ValueError as error:
        raise SchemaRefused(f"not JSON that can be read: {error}") from None
    if not isinstance(body, dict):
        raise SchemaRefused("a JSON object expected")
    draft = body.get("$schema")
    if draft is not None and not (isinstance(draft, str) and _is_known(draft)):
        raise SchemaRefused("$schema: a draft of JSON Schema from 4 to 2020-12 expected")
    return ValuesSchema(name, body)


def _is_known(draft: str) -> bool:
    scheme, _, rest = draft.removesuffix("#").partition("://")
    return scheme in {"http", "https"} and rest in _DRAFTS


def with_defaults(schema: ValuesSchema, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values, and the defaults of the schema for those that are missing (MC-029).

    An object that is missing is made of the defaults of its members, unless it would lack a member that it must have.
    Raises SchemaRefused for a schema with too many of them.
    """
    reading = _Reading(schema)
    named = {
        name: parts
        for name, parts in reading.properties(list(reading.parts(schema.body))).items()
        if NAME.fullmatch(name) and name not in RESERVED
    }
    return reading.filled(named, values, frozenset())


@dataclass(frozen=True)
class Described:
    """A variable in a schema."""

    parts: Sequence[Mapping[str, Any]] = field(repr=False)
    """All schemas that hold for it."""
    is_required: bool
    """Whether each request needs it, as far as the schema says."""


def described(schema: ValuesSchema) -> Mapping[str, Described]:
    """Return the variables that a schema describes, by name (``db.port``), objects beside their members.

    Raises SchemaRefused for a schema with too many of them.
    """
    reading, found = _Reading(schema), dict[str, Described]()
    root = list(reading.parts(schema.body))
    waiting = [("", root, True, frozenset[int]())]
    while waiting:
        inside, parts, is_needed, above = waiting.pop()
        _check_depth(inside.count("."))
        # A tree has trees in it: these are not described again.
        above |= frozenset(map(id, parts))
        required = reading.required(parts)
        for name, members in reading.properties(parts).items():
            is_variable = _MEMBER.fullmatch(name) if inside else NAME.fullmatch(name) and name not in RESERVED
            if not is_variable or above & frozenset(map(id, members)):
                continue
            path = f"{inside}.{name}" if inside else name
            found[path] = Described(members, is_needed and name in required)
            waiting.append((path, members, found[path].is_required, above))
    return found


def described_root(schema: ValuesSchema) -> Described:
    """Return what a schema says of all values together. Raises SchemaRefused as `described`."""
    return Described(list(_Reading(schema).parts(schema.body)), is_required=True)


class _Reading:
    """The reading of one schema, within limits."""

    def __init__(self, schema: ValuesSchema) -> None:
        self._schema, self._steps = schema, 0

    def filled(
        self,
        properties: Mapping[str, list[Mapping[str, Any]]],
        values: Mapping[str, Any],
        making: frozenset[int],
        depth: int = 0,
    ) -> Mapping[str, Any]:
        """Return the values with the defaults of these members.

        ``making``: the schemas of the objects around that are made of defaults; ``depth``: of these and others.
        """
        _check_depth(depth)
        found: dict[str, Any] = {}
        for name, parts in properties.items():
            given = values.get(name, _NOTHING)
            value = given
            if given is _NOTHING:
                value = self._default(parts, making, depth + 1)
            elif isinstance(given, Mapping):
                value = self.filled(self.properties(parts), given, making, depth + 1)
            if value is not given:
                found[name] = value
        if not found:
            return values
        self._spend(len(values))
        return {**values, **found}

    def _default(self, parts: Sequence[Mapping[str, Any]], making: frozenset[int], depth: int) -> Any:
        ids = frozenset(map(id, parts))
        # A tree has trees in it: these are not made of nothing.
        if ids & making:
            return _NOTHING
        own = next((part["default"] for part in parts if "default" in part), _NOTHING)
        if own is not _NOTHING and not isinstance(own, Mapping):
            return own
        made = self.filled(self.properties(parts), own if isinstance(own, Mapping) else {}, making | ids, depth)
        if own is _NOTHING and (not made or not self.required(parts) <= made.keys()):
            return _NOTHING
        return made

    def properties(self, parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
        """Return the parts of each member's schema."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for part in parts:
            members = part.get("properties")
            for name, subschema in members.items() if isinstance(members, Mapping) else ():
                self._spend(1)
                found.setdefault(name, []).extend(self.parts(subschema))
        return found

    def required(self, parts: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        """Return the names of the members that an object must have."""
        found: set[str] = set()
        for part in parts:
            listed = part.get("required")
            if isinstance(listed, list):
                self._spend(len(listed))
                found.update(name for name in listed if isinstance(name, str))
        return frozenset(found)

    def parts(self, schema: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
        """Yield a schema, what it refers to in its file, and the members of its ``allOf``: all of them hold."""
        if not isinstance(schema, Mapping) or depth > _MOST_REFERENCES:
            return
        self._spend(1)
        yield schema
        if "$ref" in schema:
            yield from self.parts(self._target(schema["$ref"]), depth + 1)
        listed = schema.get("allOf")
        for each in listed if isinstance(listed, list) else ():
            yield from self.parts(each, depth + 1)

    def _target(self, reference: object) -> object:
        """Return what a JSON pointer names in the file; None for another reference."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node: Any = self._schema.body
        names = reference[1:].split("/")[1:]
        # Many places may name the same long reference.
        self._spend(len(names))
        for part in names:
            node = node.get(unescaped(part)) if isinstance(node, Mapping) else None
        return node

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise SchemaRefused(f"it has more than {_MOST_STEPS} members and references")


def _check_depth(levels: int) -> None:
    if levels > _DEEPEST:
        raise SchemaRefused(f"it has objects nested deeper than {_DEEPEST} levels")
