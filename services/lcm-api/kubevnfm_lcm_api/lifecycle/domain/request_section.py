"""Reads one JSON object of a request, attribute by attribute; every mistake names the field and what was expected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import KeyRing, Secret

_NO_KEYS: Final = KeyRing([bytes(32)])
"""A request's secrets are plain in memory: revealing one needs no key."""


class Section:
    """An object of a request. Absent, null and empty texts are the same: not given."""

    def __init__(self, given: Mapping[str, Any], *, path: str) -> None:
        self._given, self.path = given, path
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.value(name) is not None

    def field(self, name: str) -> str:
        """Return how errors name an attribute."""
        return f"{self.path}/{name}"

    def value(self, name: str) -> Any:
        """Return an attribute as it is; None when it is not given."""
        self._read.add(name)
        value = self._given.get(name)
        return None if value == "" or value == Secret("") else value

    def missing(self, name: str, expected: str) -> InvalidInput:
        """Return the error of an attribute that must be given (400)."""
        return InvalidInput(self.field(name), f"missing: {expected} expected")

    def malformed(self, name: str, expected: str) -> InvalidInput:
        """Return the error of an attribute of the wrong type or form (400). The value is not quoted: it may be secret."""
        return InvalidInput(self.field(name), f"{expected} expected")

    def contradiction(self, name: str, reason: str) -> Unprocessable:
        """Return the error of a well-formed attribute that does not fit package, VNFD or another value (422)."""
        return Unprocessable(self.field(name), reason)

    def text(self, name: str, *, expected: str, pattern: str | None = None) -> str | None:
        """Return a text that matches the pattern in full; None when not given."""
        value = self.value(name)
        if value is None:
            return None
        clear = value.reveal(_NO_KEYS) if isinstance(value, Secret) else value
        if not isinstance(clear, str) or (pattern is not None and not re.fullmatch(pattern, clear)):
            raise self.malformed(name, expected)
        return clear

    def needed_text(self, name: str, *, expected: str, pattern: str | None = None) -> str:
        """As ``text``, of an attribute that must be given."""
        found = self.text(name, expected=expected, pattern=pattern)
        if found is None:
            raise self.missing(name, expected)
        return found

    def whole(self, name: str, *, low: int, high: int) -> int | None:
        """Return a whole number within bounds; None when not given."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.malformed(name, f"a whole number from {low} to {high}")
        return value

    def flag(self, name: str) -> bool | None:
        """Return a boolean; None when not given."""
        value = self.value(name)
        if value is not None and not isinstance(value, bool):
            raise self.malformed(name, "true or false")
        return value

    def choice(self, name: str, known: Sequence[str]) -> str | None:
        """Return one of the known texts; None when not given."""
        value = self.value(name)
        if value is not None and value not in known:
            raise self.malformed(name, " or ".join(known))
        return None if value is None else str(value)

    def section(self, name: str) -> Section | None:
        """Return an object inside this one; None when not given."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.malformed(name, "an object")
        return Section(value, path=self.field(name))

    def needed_section(self, name: str) -> Section:
        """As ``section``, of an attribute that must be given."""
        found = self.section(name)
        if found is None:
            raise self.missing(name, "an object")
        return found

    def sections(self, name: str) -> list[Section]:
        """Return the objects of an array; none when not given."""
        value = self.value(name)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise self.malformed(name, "an array of objects")
        found = []
        for index, item in enumerate(value):
            if not isinstance(item, Mapping):
                raise self.malformed(f"{name}/{index}", "an object")
            found.append(Section(item, path=self.field(f"{name}/{index}")))
        return found

    def needed_sections(self, name: str) -> list[Section]:
        """As ``sections``, of an array that must have at least one."""
        found = self.sections(name)
        if not found:
            raise self.missing(name, "an array of at least one object")
        return found

    def pair(self, first: str, second: str) -> bool:
        """Return whether both attributes are given; one alone is an error."""
        given = (first in self, second in self)
        if given[0] != given[1]:
            raise self.missing(second if given[0] else first, f"both of {first} and {second}, or none,")
        return given[0]

    def refuse_unknown(self) -> None:
        """Refuse attributes that nobody has read. Raises InvalidInput."""
        for name in self._given:
            if name not in self._read:
                raise InvalidInput(self.field(name), f"unknown; known are {', '.join(sorted(self._read))}")
