"""Reads members of an order artifact, and collects what is wrong with their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from kubevnfm_kit.foreign_yaml.reader import Lines

from kubevnfm_csar.manifest_limits import LONGEST_PROBLEM, MOST_PROBLEMS

T = TypeVar("T")
MOST_ARTIFACTS: Final = 1000
ON_IN_YAML: Final = "true"
"""The member ``on``: YAML 1.1 has that word, without quotes, for true."""


class OrderMembers:
    """The members of one order artifact, as far as they were read."""

    def __init__(self, name: str, lines: Lines) -> None:
        self._name, self._lines = name, lines
        self.problems: list[str] = []

    def check_names(self, body: dict[str, Any], known: Sequence[str]) -> None:
        """Name the members that are not known."""
        for name in body:
            if name not in known and not (name == ON_IN_YAML and "on" in known):
                self.wrong(self.line(body, name), f"{name}: no such member; {', '.join(known)} expected")

    def whole(self, body: dict[str, Any], name: str, least: int, most: int) -> int | None:
        """Return a whole number; None if there is none."""
        if name not in body:
            return None
        value = body[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(self.line(body, name), f"{name}: a whole number from {least} to {most} expected")
            return None
        return value

    def flag(self, body: dict[str, Any], name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = body.get(name, default)
        if not isinstance(value, bool):
            self.wrong(self.line(body, name), f"{name}: true or false expected")
            return default
        return value

    def read(self, body: dict[str, Any], name: str, reader: Callable[[object], T], default: T) -> T:
        """Return what a reader makes of a member; its ValueError says what is wrong."""
        if name not in body:
            return default
        try:
            return reader(body[name])
        except ValueError as error:
            self.wrong(self.line(body, name), f"{name}: {error}")
            return default

    def bounded(self, listed: list[Any], line: int | None) -> list[Any]:
        """Return a list as far as it may be long."""
        if len(listed) > MOST_ARTIFACTS:
            self.wrong(line, f"at most {MOST_ARTIFACTS} artifacts expected")
        return listed[:MOST_ARTIFACTS]

    def line(self, body: dict[str, Any], name: str | None = None) -> int | None:
        """Return the line of a member, or of an object."""
        return self._lines.line_of(body, name)

    def place(self, line: int | None) -> str:
        """Return the name of a line for people."""
        return f"{self._name}:{line}" if line is not None else self._name

    def wrong(self, line: int | None, problem: str) -> None:
        """Add a wrong place."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{self.place(line)}: {problem}"[:LONGEST_PROBLEM])
