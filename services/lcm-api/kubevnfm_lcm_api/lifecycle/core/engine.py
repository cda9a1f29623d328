"""The engine: stores each move of an operation with its messages in one write. All I/O of the saga is here.

An operation changes two documents, and no transaction covers both. So the order of writes is fixed: the instance is
claimed before the occurrence is inserted, and the result is written to the instance before the occurrence ends. A crash
between the two writes is repaired by a message that is delivered again:

- after the claim, by the AdvanceOperation in the instance's outbox;
- after the result, by the reply that the broker redelivers; if a task of a caller ends the operation, by the
  AdvanceOperation that is stored with that decision.

Each handler finds by ids whether its write was done already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import AdvanceOperation, OperationChanged, RemainsRemoved, RemoveRemains, StepChanged
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.request_ids import present_request_id
from kubevnfm_secrets import KeyRing, sealed
from kubevnfm_sol.lcm import InstantiationState, OperationState
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Compare, Op, Query, Sort, Stored
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core import problems
from kubevnfm_lcm_api.lifecycle.core.claim_errors import InstanceChanged, OperationRunning, wrong_state
from kubevnfm_lcm_api.lifecycle.core.dependencies import without_mark
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.drift import after_operation
from kubevnfm_lcm_api.lifecycle.core.event_refs import state_event
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instance_events import creation, deletion
from kubevnfm_lcm_api.lifecycle.core.log_lines import say_begun, say_change
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.core.operation_metrics import OperationMetrics
from kubevnfm_lcm_api.lifecycle.core.orphan_marks import Dependencies
from kubevnfm_lcm_api.lifecycle.core.outputs import change_events, with_outputs
from kubevnfm_lcm_api.lifecycle.core.ports import Grants
from kubevnfm_lcm_api.lifecycle.core.rotation import Rotation
from kubevnfm_lcm_api.lifecycle.core.saga import REPLY_GRACE_S, CancelModeName, Move, Saga
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES, Sequences
from kubevnfm_lcm_api.lifecycle.core.server_notifier import server_events
from kubevnfm_lcm_api.lifecycle.core.states import IllegalTransition, Task, allowed_tasks
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span

log = structlog.get_logger()

_OVERDUE_BATCH = 100
"""Overdue operations that one run of the watch handles; the next run takes the others."""
_CLEAN_UP_LONGEST_PAUSE_S = 300.0
_ROTATION_POLL_S = 1.0
"""Between two looks at a rotation of credentials that an operation waits for; it usually takes less."""


class Engine:
    """Accepts, advances and ends operations."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        ring: KeyRing,
        clock: Clock,
        clean_up_poll_s: float = 0.5,
        grants: Grants | None = None,
        sequences: Sequences = SEQUENCES,
        counts: OperationMetrics | None = None,
    ) -> None:
        """``grants``: None under the local policy, which grants everything.

        ``clean_up_poll_s``: how often a running clean-up is checked. It is also the pause after the first failure of a
        clean-up; the pause doubles with each further failure.
        """
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock
        self._saga, self._sequences = Saga(ring, sequences), sequences
        self._clean_up_poll_s = clean_up_poll_s
        self._grants, self._counts = grants, counts
        self._dependencies = Dependencies(store)
        self._accepting: dict[str, asyncio.Event] = {}
        """The occurrences that this process is accepting; each event is set when the occurrence is stored.

        The wake-up can arrive before `accept` has inserted the occurrence. It waits for the event then, as both would
        insert the same document otherwise.
        """

    # --- from the gateway ---------------------------------------------------------------------------------------------

    async def accept(self, stored: Stored, record: OccurrenceRecord, claims: Mapping[str, Any]) -> None:
        """Claim the instance and store the occurrence: when this returns, the operation will be carried out.

        ``stored`` is the instance as the request was checked against it; ``claims`` are further fields of it that are
        true from this moment. Raises InstanceChanged, OperationRunning.
        """
        try:
            async with self._accepted(record, InstanceRecord.from_document(stored.body)) as wake_up:
                # The revision makes the claim exclusive: of two requests that read the same instance, one write fails.
                await self._outbox.update(
                    instances.COLLECTION,
                    stored.id,
                    {**claims, "internal/currentOperation": record.occ.id},
                    if_revision=stored.revision,
                    events=[wake_up],
                )
        except RevisionConflict:
            # Read again for the reason: the caller gets the id of the operation that was faster.
            raise await self._claim_error(stored.id) from None

    async def accept_new(self, instance: InstanceRecord, record: OccurrenceRecord, claims: Mapping[str, Any]) -> None:
        """Store a new instance, and its first operation: it exists with the operation or not at all."""
        body = instance.with_internals(current_operation=record.occ.id).document(self._ring)
        body["internal"] |= {path.removeprefix("internal/"): value for path, value in claims.items()}
        async with self._accepted(record, instance) as wake_up:
            events = [creation(instance), wake_up]
            await self._outbox.insert(instances.COLLECTION, instance.vnf.id, body, events=events)

    @asynccontextmanager
    async def _accepted(
        self, record: OccurrenceRecord, instance: InstanceRecord
    ) -> AsyncIterator[Envelope[AdvanceOperation]]:
        """Yield the message to store with the claim, and store the occurrence afterwards."""
        occ = record.occ
        document = record.model_copy(update={"follows": instance.internals.last_news}).document(self._ring)
        accepted = self._accepting[occ.id] = asyncio.Event()
        try:
            yield Envelope(
                data=AdvanceOperation(occurrence=document, may_rotate=instance.internals.rotation is not None),
                source=SOURCE,
                id=derived_id("advance", occ.id),
                subject=occ.vnf_instance_id,
                operationid=occ.id,
                traceparent=str(operation_span(record)),
                requestid=record.request_id,
            )
            await self._insert(occ.id, document)
        finally:
            accepted.set()
            del self._accepting[occ.id]

    async def check_free(self, instance: InstanceRecord, expected: InstantiationState) -> None:
        """Raise OperationRunning if an operation has claimed the instance, Conflict if it is not in this state."""
        running = await self._running_operation(instance)
        if running is not None:
            raise running
        if instance.vnf.instantiation_state is not expected:
            raise wrong_state(instance, expected)

    async def refusal(self, draft: Draft) -> Conflict | None:
        """Return why the operation must not begin, because of what other instances use or delete; None if it may."""
        return await self._dependencies.refusal(draft)

    async def retry(self, occurrence_id: str, *, change: Callable[[Draft], Draft] | None = None) -> None:
        """Run the failed steps again, and those after them. Raises NotFound, IllegalTransition.

        ``change``: what the caller wants otherwise from now on; what it raises refuses the retry.
        """
        await self._apply_task(occurrence_id, "retry", change)

    async def rollback(self, occurrence_id: str, *, change: Callable[[Draft], Draft] | None = None) -> None:
        """Run the compensations; ``change`` as of `retry`. Raises NotFound, IllegalTransition, RollbackUnsupported."""
        await self._apply_task(occurrence_id, "rollback", change)

    async def fail(self, occurrence_id: str) -> OccurrenceRecord:
        """End the operation as FAILED; return the occurrence. Raises NotFound, IllegalTransition."""
        return await self._apply_task(occurrence_id, "fail")

    async def cancel(self, occurrence_id: str, mode: CancelModeName) -> None:
        """Stop the operation. Raises NotFound, IllegalTransition, CancelPending."""

        def cancel(record: OccurrenceRecord, now: datetime) -> Move | None:
            if record.is_internal:
                return None
            if record.ending is not None:
                raise IllegalTransition(record.occ.operation_state, "cancel")
            return self._saga.cancel(record.moved_by(present_request_id()), mode, now)

        record = await self._change(occurrence_id, cancel)
        if record is None or record.is_internal:
            raise NotFound(f"VNF LCM operation occurrence {occurrence_id} does not exist")

    # --- from the bus -------------------------------------------------------------------------------------------------

    async def advance_operation(self, delivery: Delivery) -> Verdict:
        """Insert the occurrence if the accepting process could not; grant it; carry out a stored decision to end it."""
        command = delivery.envelope.data
        assert isinstance(command, AdvanceOperation)
        occurrence_id = delivery.envelope.operationid
        # The bus in the same process can be quicker than the store.
        if occurrence_id in self._accepting:
            await self._accepting[occurrence_id].wait()

        def grant(record: OccurrenceRecord, now: datetime) -> Move | None:
            if record.occ.operation_state is not OperationState.STARTING:
                return self._saga.end(record, now) or self._saga.begin(record, now)
            # With an NFVO only `pursue` grants.
            if self._grants is not None:
                return None
            return self._saga.grant(record, derived_id("grant", occurrence_id), now)

        while True:
            rotating_s = await self._rotating_s(delivery.envelope.subject) if command.may_rotate else 0.0
            if rotating_s:
                # Its caller has its id, and asks for it meanwhile.
                await self._insert(occurrence_id, sealed(command.occurrence, self._ring))
                return Again(min(rotating_s, _ROTATION_POLL_S))
            # `Again` holds no worker: the bus delivers the command once more after the pause.
            if self._grants is not None:
                pause_s = await self._pursue_grant(self._grants, occurrence_id)
                if pause_s is not None:
                    return Again(pause_s)
            if await self._change(occurrence_id, grant) is not None:
                return Ack()
            await self._insert(occurrence_id, sealed(command.occurrence, self._ring))

    async def _rotating_s(self, instance_id: str) -> float:
        """Return for how long credentials of the instance's cluster may still be sent: the operation begins afterwards."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        found = stored.body.get("internal", {}).get("rotation") if stored is not None else None
        return Rotation.model_validate(found).seconds_left(self._clock.now()) if found is not None else 0.0

    async def _pursue_grant(self, grants: Grants, occurrence_id: str) -> float | None:
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        if stored is None:
            return None
        return await grants.pursue(OccurrenceRecord.from_document(stored.body), self._change)

    async def resume_operation(self, delivery: Delivery) -> Verdict:
        """Handle a service's reply: store its facts, then send the next commands or end the operation."""
        reply = delivery.envelope
        # Events of the same types that belong to no operation, such as a VIM that a person registered.
        if not reply.operationid or not reply.stepid:
            return Ack()
        await self._change(reply.operationid, lambda record, now: self._saga.handle_reply(record, reply, now))
        return Ack()

    async def remove_remains(self, command: RemoveRemains, context: StepContext) -> Outcome:
        """Run the compensations of a FAILED instantiate as an operation of its own; done when nothing is left.

        A clean-up that fails is repeated without a limit: resources must not remain on the VIM without an owner.
        """
        occurrence_id: str | None = command.vnf_lcm_op_occ_id
        # A FAILED instantiate may have failed before it removed the remains of an earlier one: follow the chain.
        while occurrence_id is not None:
            stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
            if stored is None:
                break
            failed = OccurrenceRecord.from_document(stored.body)
            if (pause_s := await self._clean_up(failed)) is not None:
                return NotYet(again_in_s=pause_s)
            occurrence_id = failed.draft.get("remains_of")
        return Done(RemainsRemoved(vnf_instance_id=command.vnf_instance_id))

    async def _clean_up(self, failed: OccurrenceRecord) -> float | None:
        """Start, check or repeat the clean-up of a FAILED occurrence.

        Returns: the seconds after which to check again; None if nothing is left.
        """
        # The id is derived from the failed occurrence, so a redelivered command finds the clean-up that it started.
        own_id = clean_up_id(failed.occ.id)
        stored = await self._store.get(occurrences.COLLECTION, own_id)
        if stored is None:
            move = self._saga.clean_up(failed, own_id, self._clock.now())
            try:
                await self._outbox.insert(
                    occurrences.COLLECTION,
                    own_id,
                    move.record.document(self._ring),
                    events=_internal_messages(move),
                )
            # Another process handles the same command after a lease expired; its clean-up is the one.
            except AlreadyExists:
                return self._clean_up_poll_s
            return None if move.ends else self._clean_up_poll_s
        record = OccurrenceRecord.from_document(stored.body)
        if record.occ.operation_state is OperationState.ROLLED_BACK:
            return None
        if record.occ.operation_state is not OperationState.FAILED_TEMP:
            return self._clean_up_poll_s
        # Attempts and time come from the stored record, so a restart does not shorten the pause.
        attempts = max(step.attempt for step in record.steps)
        waited = self._clock.now() - datetime.fromisoformat(record.occ.state_entered_time)
        pause_s = BackOff(self._clean_up_poll_s, _CLEAN_UP_LONGEST_PAUSE_S).after(attempts + 1)
        left_s = pause_s - waited.total_seconds()
        if left_s > 0:
            return left_s
        log.warning("clean_up_again", occurrence_id=own_id, error=record.occ.error and record.occ.error.detail)
        await self._change(own_id, self._repeat_clean_up)
        return self._clean_up_poll_s

    def _repeat_clean_up(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        if record.occ.operation_state is not OperationState.FAILED_TEMP:
            return None
        return self._saga.rollback(record, now)

    # --- watching -----------------------------------------------------------------------------------------------------

    async def fail_overdue(self) -> None:
        """Fail the steps whose reply is `REPLY_GRACE_S` overdue; one batch, the oldest first."""
        limit = rfc3339(self._clock.now() - timedelta(seconds=REPLY_GRACE_S))
        overdue = Query(
            Compare("internal/deadline", Op.LT, [limit]),
            sort=Sort("internal/deadline"),
            limit=_OVERDUE_BATCH,
            # The drafts are large, and only the ids are used: `_change` reads each document again.
            exclude=("internal/draft",),
        )
        for stored in await self._store.find(occurrences.COLLECTION, overdue):
            try:
                await self._change(stored.id, self._saga.overdue)
            except StoreUnavailable:
                raise
            except Exception:  # one occurrence that cannot be read must not end the watch of all others
                log.exception("deadline_not_watched", operation_id=stored.id)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _insert(self, occurrence_id: str, document: dict[str, object]) -> None:
        """Insert the occurrence with its first event, unless another process has done so."""
        record = OccurrenceRecord.from_document(document)
        started = self._saga.announce(record)
        try:
            await self._outbox.insert(occurrences.COLLECTION, occurrence_id, document, events=[started])
        except AlreadyExists:
            return
        say_begun(record)

    async def _apply_task(
        self, occurrence_id: str, task: Task, change: Callable[[Draft], Draft] | None = None
    ) -> OccurrenceRecord:
        """Carry out a task of a caller. A task that ends the operation takes two writes: the decision, then the end."""

        def apply(record: OccurrenceRecord, now: datetime) -> Move | None:
            if record.is_internal:
                return None
            if record.ending is not None:
                raise IllegalTransition(record.occ.operation_state, task)
            record = record.moved_by(present_request_id())
            move = self._saga.task(record if change is None else self._saga.changed(record, change), task, now)
            return self._saga.decide(record, task, now) if move.ends else move

        # If the process dies between the two writes, the AdvanceOperation of the first one carries out the second.
        record = await self._change(occurrence_id, apply)
        if record is None or record.is_internal:
            raise NotFound(f"VNF LCM operation occurrence {occurrence_id} does not exist")
        return (await self._change(occurrence_id, self._saga.end)) or record

    @repeat_lost_writes
    async def _change(
        self, occurrence_id: str, move: Callable[[OccurrenceRecord, datetime], Move | None]
    ) -> OccurrenceRecord | None:
        """Read, apply the move, write; repeat if another process wrote in between. Return the record as it is then.

        ``move`` may run several times, each time on the stored record; it returns None if there is nothing to change.
        """
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        if stored is None:
            return None
        before = OccurrenceRecord.from_document(stored.body)
        moved = move(before, self._clock.now())
        if moved is None:
            return before
        if occurrences.begins(before, moved.record):
            moved = await self._checked_again(before, moved)
        record = moved.record
        # The instance first: once the occurrence is in a terminal state, no message repeats this write.
        if moved.ends and not record.is_internal:
            await self._release_instance(record)
        events = _internal_messages(moved) if record.is_internal else list(moved.messages)
        document = record.document(self._ring)
        await self._outbox.replace(
            occurrences.COLLECTION, occurrence_id, document, if_revision=stored.revision, events=events
        )
        say_change(before, record)
        if self._counts is not None:
            self._counts.moved(before, record, self._clock.now())
        return record

    async def _checked_again(self, before: OccurrenceRecord, granted: Move) -> Move:
        """Return the move, or one that refuses the operation because of another that was accepted at the same time."""
        record = granted.record
        # Written first: vim-registry must refuse to delete the VIM before a command creates anything on it, and an
        # operation that takes the VIM away must see who begins to use it.
        if record.granting is not None:
            await self._record_granted_vim(record)
        refusal = await self.refusal(self._sequences.draft(record.plan, record.draft))
        if refusal is None:
            return granted
        return self._saga.refuse(before, problems.refusal(refusal, before), self._clock.now())

    @repeat_lost_writes
    async def _release_instance(self, record: OccurrenceRecord) -> None:
        """Write the operation's result to the instance and clear its claim; do nothing if that was done before."""
        occ = record.occ
        stored = await self._store.get(instances.COLLECTION, occ.vnf_instance_id)
        if stored is None:
            return
        before = instance = InstanceRecord.from_document(stored.body)
        # Released by an earlier attempt of the same move; another operation may have claimed it since.
        if instance.internals.current_operation != occ.id:
            return
        draft = self._sequences.draft(record.plan, record.draft)
        if draft.removes_instance(occ.operation_state):
            gone = [deletion(instance.with_internals(last_news=state_event(occ))), *server_events(before)]
            await self._outbox.delete(instances.COLLECTION, stored.id, if_revision=stored.revision, events=gone)
            return
        if occ.operation_state is OperationState.COMPLETED:
            instance = draft.completed(instance)
            if isinstance(draft, ScriptedDraft):
                instance = draft.with_changes(instance)
        elif occ.operation_state is OperationState.ROLLED_BACK:
            instance = draft.rolled_back(instance)
        elif occ.operation_state is OperationState.FAILED:
            instance = draft.failed(instance, occ.id)
        instance = with_outputs(without_mark(after_operation(instance.with_its_vims(), occ), occ))
        instance = instance.with_internals(
            current_operation=None,
            is_withdrawing=False,
            dst_vnfd_id=None,
            rotation=None,
            last_news=state_event(occ),
            ended_revision=record.ended_revision or instance.internals.ended_revision,
        )
        instance = instance.model_copy(update={"updated_at": occ.state_entered_time})
        await self._outbox.replace(
            instances.COLLECTION,
            stored.id,
            instance.document(self._ring),
            if_revision=stored.revision,
            events=[*change_events(before, instance), *server_events(before, instance)],
        )

    @repeat_lost_writes
    async def _record_granted_vim(self, record: OccurrenceRecord) -> None:
        """Record on the instance, until the operation ends, that the VIM which the grant names is in use."""
        vim_id = self._sequences.draft(record.plan, record.draft).vim_id
        stored = await self._store.get(instances.COLLECTION, record.occ.vnf_instance_id)
        if stored is None:
            return
        internals = InstanceRecord.from_document(stored.body).internals
        if internals.current_operation != record.occ.id or vim_id is None or vim_id in internals.vim_ids:
            return
        in_use = {"internal/vimIds": [*internals.vim_ids, vim_id]}
        await self._store.update(instances.COLLECTION, stored.id, in_use, if_revision=stored.revision)

    async def _running_operation(self, instance: InstanceRecord) -> OperationRunning | None:
        """Return the error that names the operation which has claimed the instance; None if it is free."""
        occurrence_id = instance.internals.current_operation
        if occurrence_id is None:
            return None
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        if stored is None:  # between the two writes of `accept`
            return OperationRunning("(just accepted)", occurrence_id, OperationState.STARTING)
        record = OccurrenceRecord.from_document(stored.body)
        state, operation = record.occ.operation_state, record.occ.operation
        tasks = allowed_tasks(state, operation, is_reversible=record.is_reversible)
        return OperationRunning(operation, occurrence_id, state, tasks)

    async def _claim_error(self, instance_id: str) -> Exception:
        """Return why the claim failed: the instance was deleted, claimed or changed since the request read it."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is None:
            return NotFound(f"VNF instance {instance_id} does not exist")
        running = await self._running_operation(InstanceRecord.from_document(stored.body))
        return running or InstanceChanged()


def _internal_messages(move: Move) -> list[Envelope[Message]]:
    """Return the messages of a clean-up: its commands. It publishes no events, as no caller asked for it."""
    return [m for m in move.messages if not isinstance(m.data, OperationChanged | StepChanged)]
