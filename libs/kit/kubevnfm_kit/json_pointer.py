"""Names in paths whose parts are joined by ``/`` (RFC 6901, clause 3)."""

from __future__ import annotations

from typing import NamedTuple


def escaped(name: str) -> str:
    """Return a name as a part of a path."""
    return name.replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    """Return the name that a part of a path stands for."""
    return part.replace("~1", "/").replace("~0", "~")


class Place(NamedTuple):
    """A place in a foreign document. Its text is made where it is needed: a name may have megabytes, a list many values."""

    above: Place | None
    part: str

    def __str__(self) -> str:
        return "".join(reversed(self._parts()))

    def start(self, characters: int) -> str:
        """Return the beginning of the text."""
        return "".join(part[:characters] for part in reversed(self._parts()))[:characters]

    def _parts(self) -> list[str]:
        parts: list[str] = []
        here: Place | None = self
        while here is not None:
            parts.append(here.part)
            here = here.above
        return parts
