"""Long lists of names, written as text so that they stay readable."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in their order."""
    return tuple(text.split())
