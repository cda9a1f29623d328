"""The transitions of an operation: pure functions from a record and a trigger to the new record and its messages.

The engine stores the result and the messages in one write and returns. No coroutine waits in memory: the reply to a
command triggers the next transition, so a restart changes nothing. The time is an argument, never read from a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from kubevnfm_events import CommandFailed, Envelope, Event, Message
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import TERMINAL
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.lifecycle.core import problems
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.event_refs import state_event
from kubevnfm_lcm_api.lifecycle.core.messages import Messages
from kubevnfm_lcm_api.lifecycle.core.occurrence import MOST_GONE, OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlanInvalid, PlannedStep, StepState, ready, undoable
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES, Sequences
from kubevnfm_lcm_api.lifecycle.core.states import CancelPending, RollbackUnsupported, Task, allowed_tasks, next_state
from kubevnfm_lcm_api.lifecycle.core.step import extended
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span

CancelModeName = Literal["GRACEFUL", "FORCEFUL"]
REPLY_GRACE_S: Final = 120.0
"""How long after a step's deadline the engine fails it. A live service reports its own failure long before."""


@dataclass(frozen=True)
class Move:
    """A new record, and the messages that are stored and sent with it."""

    record: OccurrenceRecord
    messages: tuple[Envelope[Message], ...] = field(default=())

    @property
    def ends(self) -> bool:
        """Whether the operation reached a terminal state: the instance is written before the occurrence."""
        return self.record.occ.operation_state in TERMINAL


class Saga:
    """The transitions. It holds the key ring only because drafts are stored with sealed secrets."""

    def __init__(self, ring: KeyRing, sequences: Sequences = SEQUENCES) -> None:
        self._ring, self._sequences = ring, sequences
        self._messages = Messages(ring, sequences)

    # --- triggers -----------------------------------------------------------------------------------------------------

    def announce(self, record: OccurrenceRecord) -> Envelope[Message]:
        """Return the event of an occurrence's first state."""
        return self._messages.operation_changed(record, is_first=True)

    def grant(self, record: OccurrenceRecord, grant_id: str, now: datetime) -> Move:
        """STARTING to PROCESSING, and the first steps are sent; ROLLED_BACK if it was cancelled meanwhile.

        Raises IllegalTransition.
        """
        # A cancel may arrive between the request for the grant and its answer; no command was sent yet.
        if record.occ.is_cancel_pending:
            return self._cancelled(record, [], now)
        granted = self._enter(record.with_occ(grant_id=grant_id), "granted", now)
        return self._advance(granted, [self._messages.operation_changed(granted)], now)

    def handle_reply(self, record: OccurrenceRecord, reply: Envelope[Message], now: datetime) -> Move | None:
        """Store the facts of a service's reply and continue; None if no step waits for it (a repeat)."""
        planned = record.step(reply.stepid)
        # A reply to an older attempt is ignored: the step was sent again since, and that attempt's reply counts.
        if planned is None or not planned.is_running or planned.attempt != reply.attempt:
            return None
        step, draft = self._sequences.step(planned), self._sequences.draft(record.plan, record.draft)
        if isinstance(reply.data, CommandFailed):
            is_of_step = planned.state is StepState.ASKED
            if reply.data.remains is not None:
                fold = step.fold_remains if is_of_step else step.fold_undo_remains
                record = self._with_draft(record, fold(draft, reply.data.remains))
            problem = problems.failure(reply.data, planned, record)
            return self._failed(record, planned, problem, now, made_nothing=is_of_step and reply.data.made_nothing)
        if not isinstance(reply.data, Event):
            return None
        if planned.state is StepState.UNDOING:
            return self._undone(record, planned, step.undone(draft, reply.data), now)
        # An event of another class is not the answer to this step's command.
        if not step.is_answered_by(reply.data):
            return None
        folded = step.fold_reply(draft, reply.data)
        return self._done(self._with_draft(record, folded), planned, folded or draft, now)

    def overdue(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Fail a step without a reply ``REPLY_GRACE_S`` after its deadline; None if no step is overdue.

        A live service fails its steps itself, so this happens only if the service is down or has lost the command.
        """
        limit = rfc3339(now - timedelta(seconds=REPLY_GRACE_S))
        late = next((step for step in record.running if step.deadline is not None and step.deadline < limit), None)
        return None if late is None else self._failed(record, late, problems.unanswered(late, record), now)

    def retry(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to PROCESSING, from the first steps that are not done. Raises IllegalTransition."""
        record = self._enter(record, "retry", now)
        again = [
            step.model_copy(
                update={
                    "state": StepState.WAITING,
                    "started_at": None,
                    "ended_at": None,
                    "undo_failed": False,
                    "earlier": step.kept_attempts,
                }
            )
            for step in record.steps
            # UNDONE too: a rollback that failed half-way may be followed by a retry.
            if step.state in {StepState.FAILED, StepState.UNDONE}
        ]
        record = record.with_steps(again)
        return self._advance(record, [self._messages.operation_changed(record)], now)

    def changed(self, record: OccurrenceRecord, change: Callable[[Draft], Draft]) -> OccurrenceRecord:
        """Return the record with what a caller wants otherwise; what ``change`` raises refuses it."""
        return self._with_draft(record, change(self._sequences.draft(record.plan, record.draft)))

    def rollback(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to ROLLING_BACK: compensations run backwards over the steps that were sent.

        Raises: IllegalTransition; RollbackUnsupported for operations that cannot be rolled back.
        """
        entered = self._enter(record, "rollback", now)
        occ = record.occ
        if "rollback" not in allowed_tasks(occ.operation_state, occ.operation, is_reversible=record.is_reversible):
            raise RollbackUnsupported(record.occ.operation)
        again = [step.model_copy(update={"undo_failed": False}) for step in record.steps if step.undo_failed]
        # Never sent, yet its compensation comes first. After a rollback that failed half-way it is no longer waiting.
        first = [
            _ended(step, StepState.DONE, now)
            for step in record.steps
            if step.state is StepState.WAITING and self._sequences.step(step).begins_rollback
        ]
        entered = entered.with_steps([*again, *first])
        return self._undo_next(entered, [self._messages.operation_changed(entered)], now)

    def clean_up(self, record: OccurrenceRecord, occurrence_id: str, now: datetime) -> Move:
        """Return a new internal operation that runs the compensations of a FAILED one.

        A new one, because FAILED is final for the caller and the failed occurrence must not change any more.
        """
        # A compensation that failed in the operation's own rollback gets a new chance.
        # Scripts of the package for a rollback are none: the operation was not rolled back.
        steps = tuple(
            _ended(step, StepState.UNDONE, now) if self._sequences.step(step).only_undo else step
            for step in (
                each.model_copy(update={"undo_failed": False, "earlier": (), "foreign_attempts": each.attempt})
                for each in record.steps
            )
        )
        trace = str(operation_span(record))  # it follows from the operation
        changes = {"is_internal": True, "steps": steps, "gone_steps": (), "traceparent": trace, "states": ()}
        fresh = record.model_copy(update=changes).with_occ(
            id=occurrence_id, operation_state=S.FAILED_TEMP, start_time=rfc3339(now), state_entered_time=rfc3339(now)
        )
        entered = self._enter(fresh, "rollback", now)
        return self._undo_next(entered, [], now)

    def fail(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to FAILED. Raises IllegalTransition."""
        failed = self._enter(record, "fail", now)
        return Move(failed, (self._messages.operation_changed(failed),))

    def decide(self, record: OccurrenceRecord, task: Task, now: datetime) -> Move:
        """Record that a caller's task ends the operation; no other task is possible from now on.

        The end is written to two documents, and after a crash no request repeats it. So the decision is stored first,
        with a message that makes any live process carry out `end`.
        """
        decided = record.model_copy(update={"ending": task})
        return Move(decided, (self._messages.wake_up(record, now, "end", record.occ.id),))

    def end(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Carry out a stored decision; None if there is none, or if it was carried out."""
        if record.ending is None or record.occ.operation_state in TERMINAL:
            return None
        return self.task(record, record.ending, now)

    def task(self, record: OccurrenceRecord, task: Task, now: datetime) -> Move:
        """Carry out a caller's task. Raises IllegalTransition, RollbackUnsupported."""
        tasks: dict[Task, Callable[[OccurrenceRecord, datetime], Move]] = {
            "retry": self.retry,
            "rollback": self.rollback,
            "fail": self.fail,
        }
        return tasks[task](record, now)

    def begin(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Send the first steps of an operation that needs no grant and was stored as PROCESSING; None if they were sent."""
        if record.occ.operation_state is not S.PROCESSING or any(
            s.state is not StepState.WAITING for s in record.steps
        ):
            return None
        return self._advance(record, [], now)

    def cancel(self, record: OccurrenceRecord, mode: CancelModeName, now: datetime) -> Move:
        """Record the cancellation and stop: GRACEFUL after the running steps, FORCEFUL at once (api.md 4.4).

        Raises: IllegalTransition; CancelPending unless it is FORCEFUL after GRACEFUL.
        """
        next_state(record.occ.operation_state, "cancelled")
        if record.occ.is_cancel_pending and (record.occ.cancel_mode, mode) != ("GRACEFUL", "FORCEFUL"):
            raise CancelPending(record.occ.cancel_mode)
        record = record.with_occ(is_cancel_pending=True, cancel_mode=mode)
        # Only the handler of AdvanceOperation leaves STARTING, and it may be waiting for the NFVO's next poll: wake it.
        if record.occ.operation_state is S.STARTING:
            return Move(record, (self._messages.wake_up(record, now, "cancel", record.occ.id, mode),))
        if not record.running:
            return self._cancelled(record, [], now)
        # GRACEFUL sends nothing: the reply of the running step finds the flag and stops the operation.
        if mode == "GRACEFUL":
            return Move(record)
        return Move(record, tuple(self._messages.cancellations(record)))

    def withdraw(self, record: OccurrenceRecord, now: datetime) -> Move:
        """STARTING to ROLLED_BACK: cancelled before it was granted."""
        return self._cancelled(record, [], now)

    def refuse(self, record: OccurrenceRecord, problem: ProblemDetails, now: datetime) -> Move:
        """STARTING to ROLLED_BACK: the grant was refused or no plan can be made.

        An operation that needs no grant is PROCESSING before its first step, and becomes FAILED_TEMP; after a retry too.
        """
        messages: list[Envelope[Message]] = []
        if record.occ.operation_state is S.FAILED_TEMP:
            record = self._enter(record, "retry", now).model_copy(update={"ending": None})
            messages.append(self._messages.operation_changed(record))
        trigger = "refused" if record.occ.operation_state is S.STARTING else "step_failed"
        refused = self._enter(record, trigger, now).with_occ(error=problem)
        return Move(refused, (*messages, self._messages.operation_changed(refused)))

    # --- forwards -----------------------------------------------------------------------------------------------------

    def _advance(
        self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime, draft: Draft | None = None
    ) -> Move:
        """Send every step that can be sent; complete when all are done; stop if one failed and none runs.

        ``draft``: the record's, if it was read already.
        """
        has_failed = any(step.state is StepState.FAILED for step in record.steps)
        draft = draft or self._sequences.draft(record.plan, record.draft)
        # Again after each round: a step that is done at once makes others ready.
        while not has_failed and not record.occ.is_cancel_pending and (found := list(ready(record.steps))):
            for planned in found:
                asked = _sent(planned, StepState.ASKED, now)
                try:
                    command = self._sequences.step(planned).ask(draft)
                # A name in the request that refers to nothing in the stack shows only now: it is the step's failure.
                except VnfmError as error:
                    problem = problems.error_of_step(error, planned, record)
                    failed = _ended(asked, StepState.FAILED, now, problem, made_nothing=True)
                    record, has_failed = record.with_steps([failed]), True
                    messages.append(self._messages.step_changed(record, failed, "failed", now))
                    break
                if command is None:
                    record = record.with_steps([_ended(planned, StepState.DONE, now)])
                    continue
                record = record.with_steps([asked])
                messages += [
                    self._messages.step_changed(record, asked, "started", now),
                    self._messages.command(record, asked, command, now),
                ]
        if has_failed:
            return self._stop(record, messages, now)
        # Before the check for a cancel: if all steps are done, nothing is left to cancel.
        if all(step.state is StepState.DONE for step in record.steps):
            completed = self._enter(record, "steps_done", now).with_occ(error=None, **draft.final_attributes())
            return Move(completed, (*messages, self._messages.operation_changed(completed)))
        if record.occ.is_cancel_pending and not record.running:
            return self._cancelled(record, messages, now)
        return Move(record, tuple(messages))

    def _done(self, record: OccurrenceRecord, planned: PlannedStep, draft: Draft, now: datetime) -> Move:
        """``record`` and ``draft`` have the reply's facts; the steps that the reply adds are stored with them."""
        # In one write: a redelivered reply finds the step DONE and adds nothing a second time.
        done = _ended(planned, StepState.DONE, now)
        plan = extended(record.with_steps([done]).steps, done, record.gone_steps)
        try:
            self._sequences.step(planned).extend(draft, plan)
        except PlanInvalid as error:
            return self._failed(record, planned, problems.error_of_step(error, planned, record), now)
        known = {step.id for step in plan.steps}
        gone = [step for step in record.steps if step.id not in known and step.attempts]
        gone_steps = (*(step for step in record.gone_steps if step.id not in known), *gone)[-MOST_GONE:]
        record = record.model_copy(update={"steps": plan.steps, "gone_steps": gone_steps})
        return self._advance(record, [self._messages.step_changed(record, done, "finished", now)], now, draft)

    def _failed(
        self,
        record: OccurrenceRecord,
        planned: PlannedStep,
        problem: ProblemDetails,
        now: datetime,
        *,
        made_nothing: bool = False,
        earlier: Sequence[Envelope[Message]] = (),
    ) -> Move:
        """``earlier``: the messages of the same move so far."""
        failed = _ended(planned, StepState.FAILED, now, problem, made_nothing=made_nothing)
        if planned.state is StepState.UNDOING:
            failed = failed.model_copy(update={"undo_failed": True})
        record = record.with_steps([failed])
        messages = [*earlier, self._messages.step_changed(record, failed, "failed", now)]
        return self._stop(record, messages, now) if failed.undo_failed else self._advance(record, messages, now)

    def _stop(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """FAILED_TEMP once no step runs any more; until then the running steps may end."""
        # Tasks are allowed in FAILED_TEMP: a step that still ran would create resources after a rollback passed it.
        if record.running:
            return Move(record, tuple(messages))
        failed = [step for step in record.steps if step.state is StepState.FAILED]
        # The failed compensation is what the caller must repair; the error that led to the rollback is known already.
        errors = [step.error for step in failed if step.undo_failed] or [step.error for step in failed]
        problem = next((one for one in errors if one is not None and one.type != problems.CANCELLED), None)
        if problem is None:
            return self._cancelled(record, messages, now)
        stopped = self._enter(record, "step_failed", now).with_occ(error=problem)
        return Move(stopped, (*messages, self._messages.operation_changed(stopped)))

    def _cancelled(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """Leave the state by the cancellation, once no step runs any more."""
        stopped = self._enter(record, "cancelled", now).with_occ(error=problems.cancellation(record))
        return Move(stopped, (*messages, self._messages.operation_changed(stopped)))

    # --- backwards ----------------------------------------------------------------------------------------------------

    def _undo_next(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """Send, side by side, the compensations of all steps that no touched step comes after; ROLLED_BACK at the end.

        Once a compensation has failed, the running ones may end and no other is sent.
        """
        draft = self._sequences.draft(record.plan, record.draft)
        found = list(undoable(record.steps))
        while found:
            for planned in found:
                # A compensation for nothing would meet the error that has stopped the step, such as a rejected log-in.
                try:
                    command = None if planned.made_nothing else self._sequences.step(planned).undo(draft)
                except VnfmError as error:
                    problem = problems.error_of_step(error, planned, record)
                    return self._failed(record, _sent(planned, StepState.UNDOING, now), problem, now, earlier=messages)
                if command is None:
                    undone = _ended(planned, StepState.UNDONE, now, planned.error, made_nothing=planned.made_nothing)
                    record = record.with_steps([undone])
                    continue
                # A step without a compensation is undone all the same, as that sends nothing.
                if record.occ.is_cancel_pending:
                    continue
                undoing = _sent(planned, StepState.UNDOING, now)
                record = record.with_steps([undoing])
                messages += [
                    self._messages.step_changed(record, undoing, "undoing", now),
                    self._messages.command(record, undoing, command, now),
                ]
            # A step without a compensation frees the ones before it at once.
            found = [step for step in undoable(record.steps) if step not in found]
        if record.running:
            return Move(record, tuple(messages))
        if record.occ.is_cancel_pending and any(undoable(record.steps)):
            return self._cancelled(record, messages, now)
        rolled_back = self._enter(record, "steps_undone", now)
        return Move(rolled_back, (*messages, self._messages.operation_changed(rolled_back)))

    def _undone(self, record: OccurrenceRecord, planned: PlannedStep, draft: Draft | None, now: datetime) -> Move:
        undone = _ended(planned, StepState.UNDONE, now)
        record = self._with_draft(record, draft).with_steps([undone])
        messages = [self._messages.step_changed(record, undone, "undone", now)]
        # A compensation at the side has failed: end, and let the caller repair the cause before the others run.
        if any(step.undo_failed for step in record.steps):
            return self._stop(record, messages, now)
        return self._undo_next(record, messages, now)

    # --- the record ---------------------------------------------------------------------------------------------------

    def _with_draft(self, record: OccurrenceRecord, draft: Draft | None) -> OccurrenceRecord:
        """Return the record with a new draft; ``resourceChanges`` is the sum of what was added and removed.

        The sum includes error handling (SOL003 5.5.2.13): a resource that was added and rolled back is no change.
        """
        if draft is None:
            return record
        changes = draft.changes()
        # A reply may show that there is no way back; none shows the contrary.
        is_reversible = record.is_reversible and draft.is_reversible
        facts = {"draft": draft.document(self._ring), "is_reversible": is_reversible}
        return record.model_copy(update=facts).with_occ(
            resource_changes=None if changes.is_empty else changes,
            changed_ext_connectivity=draft.changed_connectivity() or None,
        )

    def _enter(self, record: OccurrenceRecord, trigger: str, now: datetime) -> OccurrenceRecord:
        """Return the record in the next state. Raises IllegalTransition.

        Two states never have the same time: subscribers sort by it, and the ids of the events are derived from it.
        """
        state = next_state(record.occ.operation_state, trigger)
        earliest = datetime.fromisoformat(record.occ.state_entered_time) + timedelta(milliseconds=1)
        entered = rfc3339(max(now, earliest))
        facts = {
            "follows": state_event(record.occ),
            "states": record.kept_states,
            "trace_due": entered if state in TERMINAL else None,
        }
        return record.model_copy(update=facts).with_occ(
            operation_state=state,
            state_entered_time=entered,
            is_cancel_pending=False,
            cancel_mode=None,
        )


def _sent(planned: PlannedStep, state: StepState, now: datetime) -> PlannedStep:
    return planned.model_copy(
        update={
            "state": state,
            # Compensations count too: each command of a step has an id of its own.
            "attempt": planned.attempt + 1,
            "is_undo": state is StepState.UNDOING,
            "earlier": planned.kept_attempts,
            "started_at": rfc3339(now),
            "ended_at": None,
            "deadline": rfc3339(now + timedelta(seconds=planned.timeout_s)),
        }
    )


def _ended(
    planned: PlannedStep,
    state: StepState,
    now: datetime,
    error: ProblemDetails | None = None,
    *,
    made_nothing: bool = False,
) -> PlannedStep:
    """Return the step after its present attempt; ``made_nothing``: whether this attempt is known to have made nothing."""
    # That is no proof for the attempts before it.
    is_known = planned.attempt == 1 or planned.made_nothing
    return planned.model_copy(
        update={
            "state": state,
            "ended_at": rfc3339(now),
            "error": error,
            "made_nothing": made_nothing and is_known,
            # Undone without a command: the end of the attempt before stays what it was.
            "earlier": planned.earlier if planned.is_running else planned.kept_attempts,
        }
    )
