"""Keeps a command while its handler runs, and follows how far it has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from kubevnfm_events import Event
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_store.port import StoreUnavailable

from kubevnfm_worker.inbox import Claim, CommandCancelled, Inbox, LeaseLost
from kubevnfm_worker.suspects import Suspects


@dataclass
class Course:
    """The tasks that a handler has completed under one claim."""

    nudge: asyncio.Event
    """Set if the record must be written at once."""
    completed: set[tuple[str, str]] = field(default_factory=set)
    """Node and task."""

    def follow(self, event: Event) -> bool:
        """Return whether the event reports a completed task for the first time."""
        if not isinstance(event, TaskProgressed) or event.state not in ("finished", "skipped"):
            return False
        before = len(self.completed)
        self.completed.add((event.node, event.task))
        return len(self.completed) > before


async def keep_lease(
    inbox: Inbox,
    suspects: Suspects,
    claim: Claim,
    course: Course,
    lease_s: float,
    silent_since: Callable[[], datetime | None],
) -> bool:
    """Renew the lease until it is lost (False), or the command was cancelled (True); at once when nudged."""
    loop = asyncio.get_running_loop()
    held_until = loop.time() + lease_s
    while True:
        # At a third of the lease, two renewals in a row may fail before the lease is lost.
        with suppress(TimeoutError):
            async with asyncio.timeout(lease_s / 3):
                await course.nudge.wait()
        course.nudge.clear()
        is_alone = suspects.is_alone(claim.message_id)
        # Counted from before the call: the database may have written the lease at any moment during it.
        asked_at = loop.time()
        try:
            async with asyncio.timeout_at(held_until):
                # With the silence: if this process is killed, the next one must not count a try that had answers.
                await inbox.renew(
                    claim,
                    unavailable_since=silent_since(),
                    completed=len(course.completed),
                    is_alone=is_alone,
                )
            held_until = asked_at + lease_s
            if not is_alone:
                # Not before the record says so: the end of the process would point at it, with others beside it.
                suspects.share(claim.message_id)
        except CommandCancelled:
            return True
        except LeaseLost:
            return False
        except (StoreUnavailable, TimeoutError):
            if loop.time() >= held_until:
                return False
