"""Compares values with a JSON Schema. Everything here may take any time, and runs in a process that can be killed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind

Violation = tuple[Sequence[str | int], str]
"""The path of a value, and the rule that it breaks: never with the value."""

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=100_000, size_limit=4 * 2**20, dfa_size_limit=4 * 2**20
)
_LONGEST: Final = 200
"""Characters of a part of a schema in a message."""
_EXPECTED: Final = {
    "const": "{} expected",
    "enum": "one of {} expected",
    "exclusiveMaximum": "less than {} expected",
    "exclusiveMinimum": "more than {} expected",
    "format": "format {} expected",
    "maxItems": "at most {} items expected",
    "maxLength": "at most {} characters expected",
    "maxProperties": "at most {} members expected",
    "maximum": "at most {} expected",
    "minItems": "at least {} items expected",
    "minLength": "at least {} characters expected",
    "minProperties": "at least {} members expected",
    "minimum": "at least {} expected",
    "multipleOf": "a multiple of {} expected",
    "pattern": "a text that matches {} expected",
    "type": "{} expected",
}
"""Texts by rule, with its value in the schema."""


class NoSchema(Exception):
    """A document is no JSON Schema, or one that refers to another file; the text says where and why."""


def compiled(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return what compares values with a schema. Raises NoSchema."""
    try:
        return jsonschema_rs.validator_for(dict(schema), pattern_options=_PATTERNS, offline=True)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, ValidationErrorKind.Referencing):
            raise NoSchema(f"a $ref to a place in this file expected: {error.message[:_LONGEST]}") from None
        place = "/".join(map(str, error.instance_path))[:_LONGEST]
        raise NoSchema(f"no JSON Schema: {place or 'the document'}: {error.message[:_LONGEST]}") from None


def violations(schema: Mapping[str, Any], values: Mapping[str, Any], most: int) -> Sequence[Violation]:
    """Return the first ``most`` places at which values are not as a schema says. Raises NoSchema."""
    found = compiled(schema).iter_errors(dict(values))
    return list(islice((violation for error in found for violation in _of(error)), most))


def _of(error: jsonschema_rs.ValidationError) -> Iterator[Violation]:
    kind, path = error.kind, error.instance_path
    match kind:
        case ValidationErrorKind.Required():
            yield [*path, kind.property], "a value expected"
        case ValidationErrorKind.AdditionalProperties() | ValidationErrorKind.UnevaluatedProperties():
            yield from (([*path, name], "no such member") for name in kind.unexpected)
        case _:
            expected = _EXPECTED.get(kind.name)
            yield path, f"the rule {kind.name} of the schema is broken" if expected is None else _filled(expected, kind)


def _filled(expected: str, kind: ValidationErrorKind) -> str:
    if isinstance(kind, ValidationErrorKind.Type | ValidationErrorKind.Enum):
        separator = " or " if isinstance(kind, ValidationErrorKind.Type) else ", "
        text = separator.join(each if isinstance(each, str) else json.dumps(each, default=str) for each in kind.value)
    else:
        text = kind.value if isinstance(kind.value, str) else json.dumps(kind.value, default=str)
    return expected.format(text[:_LONGEST])
