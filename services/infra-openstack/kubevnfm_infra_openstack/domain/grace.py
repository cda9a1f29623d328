"""The graceful part of a termination or stop: a wait that occupies no worker and survives a restart."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_worker.outcome import NotYet, StepContext

COLLECTION = "graceful_terminations"


class GracePeriods:
    """Stores when the graceful wait of each step ends."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def wait(self, context: StepContext, grace: timedelta) -> NotYet | None:
        """Return the wait until the end of the step's grace period, which begins with the first call; None once it is over."""
        if grace <= timedelta(0):
            return None
        ends_at = self._clock.now() + grace
        try:
            await self._store.insert(COLLECTION, _id(context), {"endsAt": ends_at.isoformat()})
        except AlreadyExists:
            stored = await self._store.get(COLLECTION, _id(context))
            if stored is not None:
                ends_at = datetime.fromisoformat(stored.body["endsAt"])
        left_s = (ends_at - self._clock.now()).total_seconds()
        if left_s <= 0:
            return None
        return NotYet(left_s, waits_for=f"the graceful timeout of the request ends at {rfc3339(ends_at)}")

    async def end(self, context: StepContext) -> None:
        """Delete the record; the step is done."""
        await self._store.delete(COLLECTION, _id(context))


def _id(context: StepContext) -> str:
    # Without the attempt: a retry does not wait for a period that has passed already.
    return f"{context.operation_id}/{context.step_id}"
