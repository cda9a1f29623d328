"""Names in paths whose parts are joined by ``/`` (RFC 6901, clause 3)."""

from __future__ import annotations


def escaped(name: str) -> str:
    """Return a name as a part of a path."""
    return name.replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    """Return the name that a part of a path stands for."""
    return part.replace("~1", "/").replace("~0", "~")
