"""Why the work on a volume does not go on. No I/O."""

from __future__ import annotations


class Broken(Exception):
    """Something stands in the way that the work cannot change; the text says what. The next round looks again."""
