"""After a restore from a backup: asks again for everything that unfinished operations wait for.

A backup has no queues. Messages that were published before it, and not handled, are in no outbox any more: the command of a running
step, the command that begins or ends an operation, or the answer to one of them. All of these are derived from the occurrence, under the same
ids: a service that has done the work publishes the outcome that it has stored, any other one does what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_store.restoring import DONE, LAST, PENDING, RESTORES

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.messages import Messages, removal_of_remains
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES, Sequences

log = structlog.get_logger()

_PAGE: Final = 100
_AGAIN_S: Final = 2.0
_UNFINISHED: Final = (
    OperationState.STARTING,
    OperationState.PROCESSING,
    OperationState.ROLLING_BACK,
    # A person may have decided its end.
    OperationState.FAILED_TEMP,
)


class AfterRestore:
    """Looks once, at the start, whether a restore is to be completed."""

    def __init__(
        self, store: DocumentStore, bus: MessageBus, ring: KeyRing, clock: Clock, sequences: Sequences = SEQUENCES
    ) -> None:
        self._store, self._bus, self._clock = store, bus, clock
        self._sequences, self._messages = sequences, Messages(ring, sequences)
        self._ring = ring

    async def complete(self) -> None:
        """Return when all was asked for. A process that is killed meanwhile begins again at its next start."""
        while True:
            try:
                await self.ask_again()
            except VnfmError as error:
                log.warning("restore_not_completed_yet", reason=str(error))
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def ask_again(self) -> int:
        """Ask for what each unfinished operation waits for; return how many there are, 0 if nothing was restored."""
        restored = await self._store.get(RESTORES, LAST)
        if restored is None or restored.body["state"] != PENDING:
            return 0
        asked = 0
        for state in _UNFINISHED:
            after: tuple[str, str] | None = None
            while True:
                page = await self._store.find(
                    occurrences.COLLECTION,
                    Query(
                        Compare("operationState", Op.EQ, [state.value]),
                        sort=Sort("startTime"),
                        after=after,
                        limit=_PAGE,
                        exclude=("internal/draft",),
                    ),
                )
                for each in page:
                    await self._ask(each.id, is_queue_lost=bool(restored.body["isQueueLost"]))
                asked += len(page)
                if len(page) < _PAGE:
                    break
                after = (str(page[-1].body["startTime"]), page[-1].id)
        await self._store.update(RESTORES, LAST, {"state": DONE})
        log.info("documents_restored", cut_at=restored.body["cutAt"], unfinished_operations=asked)
        return asked

    async def _ask(self, occurrence_id: str, *, is_queue_lost: bool) -> None:
        record = await self._prolonged(occurrence_id)
        # In one process the outboxes have all that was not handled.
        if record is None or not is_queue_lost:
            return
        for message in self._missing(record):
            await self._bus.publish(message)
        if record.is_internal:
            await self._look_at_clean_up(record)

    @repeat_lost_writes
    async def _prolonged(self, occurrence_id: str) -> OccurrenceRecord | None:
        """Give the running steps their whole time from now on; return the record as it is then, None if there is none."""
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        if stored is None:
            return None
        record, now = OccurrenceRecord.from_document(stored.body), self._clock.now()
        if not record.running:
            return record
        again = [
            step.model_copy(update={"deadline": rfc3339(now + timedelta(seconds=step.timeout_s))})
            for step in record.running
        ]
        prolonged = record.with_steps(again)
        await self._store.replace(
            occurrences.COLLECTION, occurrence_id, prolonged.document(self._ring), if_revision=stored.revision
        )
        return prolonged

    def _missing(self, record: OccurrenceRecord) -> Iterator[Envelope[Message]]:
        """Yield the messages that continue the operation, whatever of it was lost."""
        now = self._clock.now()
        draft = self._sequences.draft(record.plan, record.draft)
        for planned in record.running:
            command = self._sequences.running_command(planned, draft)
            # Its id is that of the first sending; time and deadline are new.
            yield self._messages.command(record, planned, command, now)
        if not record.running and not record.is_internal:
            moment = record.occ.state_entered_time
            yield self._messages.wake_up(record, now, "after-restore", record.occ.id, moment)

    async def _look_at_clean_up(self, record: OccurrenceRecord) -> None:
        """Ask again for a clean-up: the command that repeats it if it fails is kept by the broker alone."""
        failed = await self._store.find(
            occurrences.COLLECTION,
            Query(
                AllOf(
                    [
                        Compare("vnfInstanceId", Op.EQ, [record.occ.vnf_instance_id]),
                        Compare("operationState", Op.EQ, [OperationState.FAILED.value]),
                    ]
                ),
                sort=Sort("startTime"),
                exclude=("internal/draft",),
                limit=_PAGE,
            ),
        )
        for each in failed:
            if clean_up_id(each.id) == record.occ.id:
                again = derived_id("clean-up-after-restore", each.id, rfc3339(self._clock.now()))
                await self._bus.publish(removal_of_remains(record.occ.vnf_instance_id, each.id, again))
                return
