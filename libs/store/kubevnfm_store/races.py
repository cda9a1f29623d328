"""Writes that are computed again if another caller has written the document in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from kubevnfm_store.port import RevisionConflict

_ATTEMPTS: Final = 100
"""Lost races on one document before a fault is reported. Only a handful of processes write one document."""
P = ParamSpec("P")
T = TypeVar("T")


def repeat_lost_writes(write: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a function that reads, changes and writes a document, called again for as long as it raises RevisionConflict."""

    @wraps(write)
    async def repeat(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_ATTEMPTS):
            with suppress(RevisionConflict):
                return await write(*args, **kwargs)
        raise RuntimeError(f"{write.__qualname__}: {_ATTEMPTS} writes lost in a row")

    return repeat
