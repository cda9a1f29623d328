"""Collects what is wrong with a request over several checks, for one answer (multicloud.md MC-006)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kubevnfm_kit.errors import ConflictingInput, InvalidInput, Unprocessable

T = TypeVar("T")
_MOST: Final = 100


@dataclass
class Faults:
    """The faults of the checks so far."""

    _found: list[InvalidInput] = field(default_factory=list)

    async def collected(self, check: Awaitable[T]) -> T | None:
        """Return the result of a check; None if it has found a fault."""
        with self.noted():
            return await check
        return None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Take note of the fault that the block raises, which ends the block alone."""
        try:
            yield
        except InvalidInput as error:
            self._found.append(error)

    def check(self) -> None:
        """Raise what the checks have found, if there is anything: all places, with the class of the gravest one.

        Input of another form (400) counts before what does not fit the package or region (422), and this before conflicts (409).
        """
        if self._found:
            gravest = min(self._found, key=_gravity)
            first, *more = list(dict.fromkeys(place for each in self._found for place in each.places))[:_MOST]
            raise type(gravest)(first[0], first[1], *more) from gravest


def _gravity(error: InvalidInput) -> int:
    return 2 if isinstance(error, ConflictingInput) else 1 if isinstance(error, Unprocessable) else 0
