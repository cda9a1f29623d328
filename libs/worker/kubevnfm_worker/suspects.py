"""Finds the command whose handling ends the process, among all that were handled when the process ended.

A claim that has no outcome says that its process ended, not which of its commands was the reason. The inbox records such claims in
a row. After one of them a command is handled again as any other. After two it is a *suspect*: it is handled while no other command
with such a claim begins, so that a third end points at it alone, and the others lose nothing but time. A suspect that survives
its time alone no longer keeps the others waiting; its next end counts, but does not point at it. The time doubles with each end, so
that one which takes long to end the process is found too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError

SUSPECT_AFTER: Final = 2
"""Claims in a row without an outcome, after which a command is handled alone."""
PARKED_AFTER: Final = 3
"""Claims in a row without an outcome, the last of them alone, after which a command is not handled any more."""
PARKED_AT_LAST: Final = 10
"""The same, whether or not the last of them was alone."""
_ALONE_S: Final = 60.0
_ALONE: Final = BackOff(_ALONE_S, 3600.0)


class HandlerEndedProcess(
    VnfmError, code="handler-ended-process", title="The service ended while it worked on this", status=500
):
    """The process has ended each time that it handled the command, so it is not handled any more."""

    def __init__(self, command: str, service: str, ends: int) -> None:
        super().__init__(
            f"{service} has ended {ends} times in a row while it handled {command}, without an outcome and without progress "
            f"(a crash, or killed for want of memory), so it does not handle it any more; a retry of the operation tries again"
        )


@dataclass
class _Run:
    """A command that is handled, and had claims without an outcome before."""

    ends: int
    began: float


class Suspects:
    """Which commands of one process may be handled at the same time: one object for all its workers."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """``now``: seconds of a clock that never goes back."""
        self._now = now
        self._runs: dict[str, _Run] = {}
        self._alone: str | None = None
        """The suspect that the others wait for."""
        self._changed = asyncio.Event()

    def enter(self, message_id: str, ends: int) -> bool:
        """Return whether the command may be handled now; it is counted as handled until `leave`.

        ``ends``: its claims in a row without an outcome.
        """
        if not ends:
            return True
        if self._alone is not None:
            return False
        if ends >= SUSPECT_AFTER and any(self._now() - run.began < _ALONE_S for run in self._runs.values()):
            return False
        self._runs[message_id] = _Run(ends, self._now())
        if ends >= SUSPECT_AFTER:
            self._alone = message_id
        return True

    def is_alone(self, message_id: str) -> bool:
        """Return whether an end of the process now would point at this command."""
        if self._alone != message_id or len(self._runs) > 1:
            return False
        run = self._runs[message_id]
        return self._now() - run.began < _ALONE.after(run.ends - SUSPECT_AFTER + 1)

    def share(self, message_id: str) -> None:
        """Let others begin beside the command: its record says that it is not alone."""
        if self._alone == message_id:
            self._alone = None
            self._wake()

    def leave(self, message_id: str) -> None:
        """Forget the command, which is not handled any more."""
        if self._runs.pop(message_id, None) is not None:
            self.share(message_id)
            self._wake()

    async def change(self, *, until: float) -> None:
        """Return when a command may have its turn; at the latest at that time of the event loop."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._changed.wait()

    def _wake(self) -> None:
        # A new event each time: those that wait for the next change must not see this one.
        self._changed.set()
        self._changed = asyncio.Event()
