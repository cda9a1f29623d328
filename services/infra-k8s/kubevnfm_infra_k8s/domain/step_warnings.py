"""The warnings of a step about objects: what API servers say of what it writes (deprecated versions, Pod Security), and what it assumes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

_MOST: Final = 30
"""Different texts."""
_NAMED: Final = 3
"""The objects that each text names."""
_LONGEST: Final = 500
_LONGEST_IN_ALL: Final = 8000


@dataclass
class StepWarnings:
    """The warnings of one attempt of a step, each text once."""

    count: int = 0
    """Those that were new, with the objects that they are about."""
    _subjects: dict[str, set[str]] = field(default_factory=dict)
    _has_more: bool = False

    def note(self, subject: str, text: str) -> None:
        """Note a warning about an object; it has been before if the object was rehearsed."""
        text = text[:_LONGEST]
        if text not in self._subjects and len(self._subjects) >= _MOST:
            self._has_more = True
            return
        subjects = self._subjects.setdefault(text, set())
        if subject not in subjects:
            subjects.add(subject)
            self.count += 1

    def __str__(self) -> str:
        found = []
        for text, subjects in self._subjects.items():
            more = len(subjects) - _NAMED
            named = ", ".join(sorted(subjects)[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            found.append(f"{named}: {text}")
        shown = "; ".join(found)
        has_more = self._has_more or len(shown) > _LONGEST_IN_ALL
        return shown[:_LONGEST_IN_ALL] + ("; ..." if has_more else "")


_LISTENING: ContextVar[StepWarnings | None] = ContextVar("step_warnings", default=None)


@contextmanager
def listening(to: StepWarnings) -> Iterator[None]:
    """Have the warnings of the block, and of the tasks that it starts, noted."""
    before = _LISTENING.get()
    _LISTENING.set(to)
    try:
        yield
    finally:
        _LISTENING.set(before)


def note(subject: str, text: str) -> None:
    """Note a warning about an object, if a step listens."""
    if (found := _LISTENING.get()) is not None:
        found.note(subject, text)
