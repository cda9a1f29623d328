"""Collects what is wrong with a request over several checks, for one answer (multicloud.md MC-006)."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kubevnfm_kit.errors import Unprocessable

T = TypeVar("T")
_MOST: Final = 100


@dataclass
class Faults:
    """The faults of the checks so far."""

    _found: list[Unprocessable] = field(default_factory=list)

    async def collected(self, check: Awaitable[T]) -> T | None:
        """Return the result of a check; None if it has found a fault."""
        try:
            return await check
        except Unprocessable as error:
            self._found.append(error)
            return None

    def check(self) -> None:
        """Raise Unprocessable with the places of all checks, and the class of the first one, if there is any."""
        if self._found:
            first, *more = [place for each in self._found for place in each.places][:_MOST]
            raise type(self._found[0])(*first, *more) from self._found[0]
