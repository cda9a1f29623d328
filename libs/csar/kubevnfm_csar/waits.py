"""The conditions on the objects of an artifact under which those that come after it are applied (multicloud.md MC-011)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubevnfm_csar.json_path import Path, as_text, value_at

LONGEST_EXPRESSION: Final = 4096
"""Bytes."""
_SHOWN: Final = 200
"""Characters."""


class Wait(StrEnum):
    """The condition on an artifact's objects under which the next priority starts."""

    NONE = "none"
    """The API server has accepted them."""
    EXISTS = "exists"
    """They exist and are not being deleted."""
    READY = "ready"
    PATH = "jsonpath"
    """A path of each object has a value."""
    EXPRESSION = "cel"
    """An expression holds for each object."""


@dataclass(frozen=True)
class WantedValue:
    """The value that a path of an object must have."""

    path: Path
    written: str
    """The path as the order has it."""
    value: str | None = None
    """None: any."""

    def holds(self, body: object) -> bool:
        """Return whether an object has the value."""
        found = as_text(value_at(body, self.path))
        return found is not None and self.value in (None, found)

    def __str__(self) -> str:
        return self.written if self.value is None else f"{self.written} to be {self.value}"


@dataclass(frozen=True)
class WantedResult:
    """The expression in CEL that must hold for an object, which it names ``object``."""

    expression: str
    failed: str | None = None
    """The expression that ends the wait at once if it holds."""

    def __str__(self) -> str:
        return shown(self.expression)


def shown(expression: str) -> str:
    """Return an expression as a message shows it: its beginning, on one line."""
    return " ".join(expression.split())[:_SHOWN]


WORDS: Final = (Wait.NONE, Wait.EXISTS, Wait.READY)
