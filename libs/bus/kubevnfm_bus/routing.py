"""How AMQP topic patterns fit routing keys, and which service a queue belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=4096)
def fits(pattern: str, routing_key: str) -> bool:
    """Return whether an AMQP topic pattern (``*`` one word, ``#`` any number) fits a routing key."""
    return _fits(pattern.split("."), routing_key.split("."))


def _fits(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_fits(pattern[1:], words[taken:]) for taken in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _fits(pattern[1:], words[1:])


def owner_of(queue: str) -> str:
    """Return the service that an event queue belongs to: its name up to the first dot.

    Its dead messages are kept with those of that service's commands.
    """
    return queue.partition(".")[0]
