"""Moves an operation on: pure functions from a record and what happened to the new record and its messages.

The engine stores the result and the messages in one write, then stops; no coroutine waits in memory, the reply wakes
it, a restart changes nothing. The only thing taken from outside is the time, as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from kubevnfm_events import CancelStep, Command, CommandFailed, Envelope, Event, Message
from kubevnfm_events.infra import CancelK8sStep, CancelOpenstackStep
from kubevnfm_events.lcm import AdvanceOperation, CancelLcmStep, OperationChanged, Problem, StepChanged
from kubevnfm_events.mgmt import CancelMgmtStep
from kubevnfm_events.vim import CancelVimStep
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing, without_secrets
from kubevnfm_sol.lcm import TERMINAL
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.domain.news import state_of
from kubevnfm_lcm_api.lifecycle.domain.occurrence import OccurrenceRecord, PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.domain.plans import STEPS, AnyStep, read_draft, write_draft
from kubevnfm_lcm_api.lifecycle.domain.states import (
    CancelPending,
    RollbackUnsupported,
    Task,
    allowed_tasks,
    next_state,
)

CANCELLED = "cancelled"
"""The code with which a service ends a command that was cancelled."""
CancelModeName = Literal["GRACEFUL", "FORCEFUL"]
STOP_SIGNS: Final[Mapping[str, type[CancelStep]]] = {
    kind.service: kind for kind in (CancelOpenstackStep, CancelK8sStep, CancelMgmtStep, CancelVimStep, CancelLcmStep)
}
"""By the service that is to stop."""
SILENCE_S = 120.0
"""How long after its deadline a step is given up by the engine: the service's own failure event comes long before."""


@dataclass(frozen=True)
class Move:
    """A new record, the messages it caused, and whether the instance must be written first."""

    record: OccurrenceRecord
    messages: tuple[Envelope[Message], ...] = field(default=())

    @property
    def ends(self) -> bool:
        """Whether the operation reached a terminal state: the instance is written before the occurrence."""
        return self.record.occ.operation_state in TERMINAL


class Saga:
    """The moves. Holds the key ring only because drafts are stored with sealed secrets."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    # --- triggers -----------------------------------------------------------------------------------------------------

    def announce(self, record: OccurrenceRecord) -> Envelope[Message]:
        """Return the event of an occurrence's first state."""
        return self._news(record, is_first=True)

    def grant(self, record: OccurrenceRecord, grant_id: str, now: datetime) -> Move:
        """STARTING to PROCESSING, and the first steps are asked; ROLLED_BACK when it was cancelled meanwhile.

        Raises IllegalTransition.
        """
        if record.occ.is_cancel_pending:
            return self._cancelled(record, [], now)
        granted = self._enter(record.with_occ(grant_id=grant_id), "granted", now)
        return self._advance(granted, [self._news(granted)], now)

    def take_reply(self, record: OccurrenceRecord, reply: Envelope[Message], now: datetime) -> Move | None:
        """Fold a service's answer in and go on; None when it answers nothing that is waited for (a repeat)."""
        planned = record.step(reply.stepid)
        if planned is None or planned not in record.running or planned.attempt != reply.attempt:
            return None
        if isinstance(reply.data, CommandFailed):
            if planned.state is StepState.ASKED and reply.data.remains is not None:
                draft = read_draft(record.plan, record.draft)
                record = self._known(record, STEPS[planned.name].keep_remains(draft, reply.data.remains))
            return self._failed(record, planned, _problem(reply.data, planned, record), now)
        step = STEPS[planned.name]
        if planned.state is StepState.UNDOING:
            return self._undone(record, planned, step, reply.data, now)
        if not isinstance(reply.data, step.reply):
            return None
        draft = step.fold(read_draft(record.plan, record.draft), reply.data)
        done = planned.model_copy(update={"state": StepState.DONE, "ended_at": rfc3339(now), "error": None})
        record = self._known(record, draft).with_steps([done])
        news = self._step_news(record, done, "finished", now)
        return self._advance(record, [news], now)

    def overdue(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Fail a step that nobody answered: its service is gone for good. None when none is overdue.

        A service that lives fails its steps itself; so it gets ``SILENCE_S`` more than the deadline.
        """
        limit = rfc3339(now - timedelta(seconds=SILENCE_S))
        late = next((step for step in record.running if step.deadline is not None and step.deadline < limit), None)
        if late is None:
            return None
        problem = ProblemDetails(
            type="step-unanswered",
            title="Step not answered",
            status=504,
            detail=f"{late.name}: no answer within {STEPS[late.name].timeout_s:g} s; is its service running?",
            instance=record.occ.id,
        )
        return self._failed(record, late, problem, now)

    def retry(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to PROCESSING, from the first step that is not done. Raises IllegalTransition."""
        record = self._enter(record, "retry", now)
        again = [
            step.model_copy(update={"state": StepState.WAITING, "started_at": None, "ended_at": None})
            for step in record.steps
            if step.state in {StepState.FAILED, StepState.UNDONE}
        ]
        record = record.with_steps(again)
        return self._advance(record, [self._news(record)], now)

    def rollback(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to ROLLING_BACK: compensations run backwards over what was asked.

        Raises: IllegalTransition; RollbackUnsupported for operations without a way back.
        """
        entered = self._enter(record, "rollback", now)
        occ = record.occ
        if "rollback" not in allowed_tasks(occ.operation_state, occ.operation, has_way_back=record.has_way_back):
            raise RollbackUnsupported(record.occ.operation)
        return self._undo_next(entered, [self._news(entered)], now)

    def clean_up(self, record: OccurrenceRecord, occurrence_id: str, now: datetime) -> Move:
        """Return a new internal operation that runs the compensations of a FAILED one."""
        fresh = record.model_copy(update={"is_internal": True}).with_occ(
            id=occurrence_id, operation_state=S.FAILED_TEMP, start_time=rfc3339(now), state_entered_time=rfc3339(now)
        )
        entered = self._enter(fresh, "rollback", now)
        return self._undo_next(entered, [], now)

    def fail(self, record: OccurrenceRecord, now: datetime) -> Move:
        """FAILED_TEMP to FAILED. Raises IllegalTransition."""
        failed = self._enter(record, "fail", now)
        return Move(failed, (self._news(failed),))

    def decide(self, record: OccurrenceRecord, task: Task, now: datetime) -> Move:
        """Note that a person's task ends the operation; nothing else can be asked of it from now on.

        The end is written in two documents, and nobody asks again after a crash. So this comes first, with a message
        that has `end` done by whoever lives.
        """
        wake_up: Envelope[Message] = Envelope(
            data=AdvanceOperation(occurrence=record.document(self._ring)),
            source=SOURCE,
            id=derived_id("end", record.occ.id),
            time=now,
            subject=record.occ.vnf_instance_id,
            operationid=record.occ.id,
        )
        return Move(record.model_copy(update={"ending": task}), (wake_up,))

    def end(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Do what was decided; None when nothing was, or it is done."""
        if record.ending is None or record.occ.operation_state in TERMINAL:
            return None
        return self.task(record, record.ending, now)

    def task(self, record: OccurrenceRecord, task: Task, now: datetime) -> Move:
        """Do what a person asks. Raises IllegalTransition, RollbackUnsupported."""
        tasks: dict[Task, Callable[[OccurrenceRecord, datetime], Move]] = {
            "retry": self.retry,
            "rollback": self.rollback,
            "fail": self.fail,
        }
        return tasks[task](record, now)

    def begin(self, record: OccurrenceRecord, now: datetime) -> Move | None:
        """Go on with an operation that needs no grant and so began PROCESSING; None when it has begun."""
        if record.occ.operation_state is not S.PROCESSING or any(
            s.state is not StepState.WAITING for s in record.steps
        ):
            return None
        return self._advance(record, [], now)

    def cancel(self, record: OccurrenceRecord, mode: CancelModeName, now: datetime) -> Move:
        """Note that the operation is cancelled, and stop it: GRACEFUL after what runs, FORCEFUL that too (api.md 4.4).

        Raises: IllegalTransition; CancelPending unless it is FORCEFUL after GRACEFUL.
        """
        next_state(record.occ.operation_state, "cancelled")
        if record.occ.is_cancel_pending and (record.occ.cancel_mode, mode) != ("GRACEFUL", "FORCEFUL"):
            raise CancelPending(record.occ.cancel_mode)
        record = record.with_occ(is_cancel_pending=True, cancel_mode=mode)
        if record.occ.operation_state is S.STARTING:
            wake_up: Envelope[Message] = Envelope(
                data=AdvanceOperation(occurrence=record.document(self._ring)),
                source=SOURCE,
                id=derived_id("cancel", record.occ.id, mode),
                time=now,
                subject=record.occ.vnf_instance_id,
                operationid=record.occ.id,
            )
            return Move(record, (wake_up,))
        if not record.running:
            return self._cancelled(record, [], now)
        if mode == "GRACEFUL":
            return Move(record)
        return Move(record, tuple(self._stop_signs(record)))

    def _stop_signs(self, record: OccurrenceRecord) -> Iterator[Envelope[Message]]:
        """Yield for each running step the command that has its service end it."""
        draft = read_draft(record.plan, record.draft)
        for planned in record.running:
            step = STEPS[planned.name]
            command = step.undo(draft) if planned.state is StepState.UNDOING else step.ask(draft)
            assert command is not None
            started = datetime.fromisoformat(planned.started_at or record.occ.state_entered_time)
            sent = self._command(record, planned, step, command, started)
            sign = STOP_SIGNS[command.service](command=sent.document(self._ring))
            yield Envelope(
                data=sign,
                source=SOURCE,
                id=derived_id("cancel", sent.id),
                subject=record.occ.vnf_instance_id,
                operationid=record.occ.id,
            )

    def _cancelled(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """Leave the state: nothing runs any more."""
        stopped = self._enter(record, "cancelled", now).with_occ(error=_cancellation(record))
        return Move(stopped, (*messages, self._news(stopped)))

    def withdraw(self, record: OccurrenceRecord, now: datetime) -> Move:
        """STARTING to ROLLED_BACK: cancelled before it was granted."""
        return self._cancelled(record, [], now)

    def refuse(self, record: OccurrenceRecord, problem: ProblemDetails, now: datetime) -> Move:
        """STARTING to ROLLED_BACK: the grant was refused or no plan can be made."""
        refused = self._enter(record, "refused", now).with_occ(error=problem)
        return Move(refused, (self._news(refused),))

    # --- forwards -----------------------------------------------------------------------------------------------------

    def _advance(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """Ask every step that can be asked; complete when all are done; stop when one failed and none runs."""
        failed = next((step for step in record.steps if step.state is StepState.FAILED), None)
        while failed is None and not record.occ.is_cancel_pending:
            done = {step.name for step in record.steps if step.state is StepState.DONE}
            ready = next((s for s in record.steps if s.state is StepState.WAITING and done.issuperset(s.after)), None)
            if ready is None:
                break
            asked = _asked(ready, StepState.ASKED, now)
            step = STEPS[ready.name]
            try:
                command = step.ask(read_draft(record.plan, record.draft))
            except VnfmError as error:
                problem = _problem_of(error, step, record)
                failed = asked.model_copy(
                    update={"state": StepState.FAILED, "ended_at": rfc3339(now), "error": problem}
                )
                record = record.with_steps([failed])
                messages.append(self._step_news(record, failed, "failed", now))
                break
            record = record.with_steps([asked])
            messages += [
                self._step_news(record, asked, "started", now),
                self._command(record, asked, step, command, now),
            ]
        if failed is not None:
            return self._stop(record, messages, now)
        if all(step.state is StepState.DONE for step in record.steps):
            told = read_draft(record.plan, record.draft).told_at_end()
            completed = self._enter(record, "steps_done", now).with_occ(error=None, **told)
            return Move(completed, (*messages, self._news(completed)))
        if record.occ.is_cancel_pending and not record.running:
            return self._cancelled(record, messages, now)
        return Move(record, tuple(messages))

    def _failed(self, record: OccurrenceRecord, planned: PlannedStep, problem: ProblemDetails, now: datetime) -> Move:
        was_undoing = planned.state is StepState.UNDOING
        failed = planned.model_copy(update={"state": StepState.FAILED, "ended_at": rfc3339(now), "error": problem})
        record = record.with_steps([failed])
        messages = [self._step_news(record, failed, "failed", now)]
        if was_undoing:
            return self._stop(record, messages, now)
        return self._advance(record, messages, now)

    def _stop(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """FAILED_TEMP once nothing runs any more; until then the others may end."""
        if record.running:
            return Move(record, tuple(messages))
        problems = [step.error for step in record.steps if step.state is StepState.FAILED]
        problem = next((one for one in problems if one is not None and one.type != CANCELLED), None)
        if problem is None:
            return self._cancelled(record, messages, now)
        stopped = self._enter(record, "step_failed", now).with_occ(error=problem)
        return Move(stopped, (*messages, self._news(stopped)))

    # --- backwards ----------------------------------------------------------------------------------------------------

    def _undo_next(self, record: OccurrenceRecord, messages: list[Envelope[Message]], now: datetime) -> Move:
        """Ask for the compensation of the last step that was asked, done or not; one at a time, backwards."""
        for planned in reversed(record.steps):
            if planned.state in {StepState.WAITING, StepState.UNDONE}:
                continue
            step = STEPS[planned.name]
            command = step.undo(read_draft(record.plan, record.draft))
            if command is None:
                undone = planned.model_copy(update={"state": StepState.UNDONE, "ended_at": rfc3339(now)})
                record = record.with_steps([undone])
                continue
            if record.occ.is_cancel_pending:
                return self._cancelled(record, messages, now)
            undoing = _asked(planned, StepState.UNDOING, now)
            record = record.with_steps([undoing])
            messages += [
                self._step_news(record, undoing, "undoing", now),
                self._command(record, undoing, step, command, now),
            ]
            return Move(record, tuple(messages))
        rolled_back = self._enter(record, "steps_undone", now)
        return Move(rolled_back, (*messages, self._news(rolled_back)))

    def _undone(self, record: OccurrenceRecord, planned: PlannedStep, step: AnyStep, reply: Any, now: datetime) -> Move:
        undone = planned.model_copy(update={"state": StepState.UNDONE, "ended_at": rfc3339(now), "error": None})
        draft = step.undone(read_draft(record.plan, record.draft), reply)
        record = self._known(record, draft).with_steps([undone])
        return self._undo_next(record, [self._step_news(record, undone, "undone", now)], now)

    def _known(self, record: OccurrenceRecord, draft: Any) -> OccurrenceRecord:
        """Return the record with a new draft; ``resourceChanges`` are what the draft has added or removed in sum.

        Cumulative with the error handling (SOL003 5.5.2.13): what was added and rolled back is no change any more.
        """
        changes = draft.changes()
        return record.model_copy(update={"draft": write_draft(draft, self._ring)}).with_occ(
            resource_changes=None if changes.is_empty else changes,
            changed_ext_connectivity=draft.changed_connectivity() or None,
        )

    # --- messages -----------------------------------------------------------------------------------------------------

    def _enter(self, record: OccurrenceRecord, trigger: str, now: datetime) -> OccurrenceRecord:
        """States are entered at different milliseconds: subscribers get them in the order of these times."""
        state = next_state(record.occ.operation_state, trigger)
        earliest = datetime.fromisoformat(record.occ.state_entered_time) + timedelta(milliseconds=1)
        return record.model_copy(update={"follows": state_of(record.occ)}).with_occ(
            operation_state=state,
            state_entered_time=rfc3339(max(now, earliest)),
            is_cancel_pending=False,
            cancel_mode=None,
        )

    def _command(
        self, record: OccurrenceRecord, planned: PlannedStep, step: AnyStep, command: Command, now: datetime
    ) -> Envelope[Message]:
        """The id is derived, so that a move that was computed twice sends one command."""
        return Envelope(
            data=command,
            source=SOURCE,
            id=derived_id("command", record.occ.id, planned.name, str(planned.attempt)),
            time=now,
            subject=record.occ.vnf_instance_id,
            operationid=record.occ.id,
            stepid=planned.name,
            attempt=planned.attempt,
            deadline=now + timedelta(seconds=step.timeout_s),
        )

    def _event(self, record: OccurrenceRecord, data: Event, now: datetime) -> Envelope[Message]:
        return Envelope(
            data=data, source=SOURCE, time=now, subject=record.occ.vnf_instance_id, operationid=record.occ.id
        )

    def _step_news(
        self, record: OccurrenceRecord, planned: PlannedStep, state: Any, now: datetime
    ) -> Envelope[Message]:
        started = datetime.fromisoformat(planned.started_at) if planned.started_at else None
        ended = state in {"finished", "failed", "undone"}
        names = [step.name for step in record.steps]
        news = StepChanged(
            vnf_lcm_op_occ_id=record.occ.id,
            step=planned.name,
            title=STEPS[planned.name].title,
            state=state,
            attempt=planned.attempt,
            number=names.index(planned.name) + 1,
            of=len(names),
            duration_s=round((now - started).total_seconds(), 3) if started and ended else None,
            detail=planned.error.detail if planned.error is not None and state == "failed" else "",
        )
        return self._event(record, news, now)

    def _news(self, record: OccurrenceRecord, *, is_first: bool = False) -> Envelope[Message]:
        occ, facts = record.occ, record.facts
        changes = occ.resource_changes
        dump: dict[str, Any] = (
            changes.model_dump(mode="json", by_alias=True, exclude_none=True) if changes is not None else {}
        )
        moment = datetime.fromisoformat(occ.state_entered_time)
        problem = None
        if occ.error is not None and occ.operation_state in {S.FAILED_TEMP, S.FAILED, S.ROLLED_BACK}:
            problem = Problem(
                type=occ.error.type, title=occ.error.title or "", status=occ.error.status, detail=occ.error.detail
            )
        data = OperationChanged(
            vnf_lcm_op_occ_id=occ.id,
            vnf_instance_id=occ.vnf_instance_id,
            **facts.model_dump(),
            operation=occ.operation.value,
            state=occ.operation_state.value,
            state_entered_time=moment,
            is_automatic_invocation=occ.is_automatic_invocation,
            is_first=is_first,
            follows=record.follows.id if record.follows is not None else "",
            follows_at=datetime.fromisoformat(record.follows.at) if record.follows is not None else None,
            error=problem,
            affected_vnfcs=tuple(dump.get("affectedVnfcs", ())),
            affected_virtual_links=tuple(dump.get("affectedVirtualLinks", ())),
            affected_virtual_storages=tuple(dump.get("affectedVirtualStorages", ())),
            affected_ext_link_ports=tuple(dump.get("affectedExtLinkPorts", ())),
            changed_info=without_secrets(occ.changed_info) if occ.changed_info is not None else None,
            changed_ext_connectivity=tuple(
                link.model_dump(mode="json", by_alias=True, exclude_none=True)
                for link in occ.changed_ext_connectivity or ()
            ),
            modifications_triggered_by_vnf_pkg_change=(
                without_secrets(occ.modifications_triggered_by_vnf_pkg_change)
                if occ.modifications_triggered_by_vnf_pkg_change is not None
                else None
            ),
        )
        return replace(self._event(record, data, moment), id=state_of(occ).id)


def _asked(planned: PlannedStep, state: StepState, now: datetime) -> PlannedStep:
    return planned.model_copy(
        update={
            "state": state,
            "attempt": planned.attempt + 1,
            "started_at": rfc3339(now),
            "ended_at": None,
            "deadline": rfc3339(now + timedelta(seconds=STEPS[planned.name].timeout_s)),
        }
    )


def _problem(failure: CommandFailed, planned: PlannedStep, record: OccurrenceRecord) -> ProblemDetails:
    """Return the failure with its step, and with its node and task unless the service has named them itself."""
    place = " on node ".join(part for part in (failure.task, failure.node) if part)
    detail = f"{place}: {failure.detail}" if place and failure.node not in failure.detail else failure.detail
    return ProblemDetails(
        type=failure.code,
        title=failure.title,
        status=failure.status,
        detail=f"{planned.name}: {detail}",
        instance=record.occ.id,
    )


def _cancellation(record: OccurrenceRecord) -> ProblemDetails:
    """Return the error of an operation that somebody has stopped (api.md 4.4)."""
    occ = record.occ
    waiting = [step.name for step in record.steps if step.state is not StepState.DONE]
    place = f" before {waiting[0]} was done" if waiting and occ.operation_state is S.PROCESSING else ""
    return ProblemDetails(
        type=CANCELLED,
        title="Operation cancelled",
        status=409,
        detail=f"cancelled ({occ.cancel_mode or 'FORCEFUL'}) while {occ.operation_state}{place}",
        instance=occ.id,
    )


def _problem_of(error: VnfmError, step: AnyStep, record: OccurrenceRecord) -> ProblemDetails:
    return ProblemDetails(
        type=error.code, title=error.title, status=error.status, detail=f"{step.name}: {error}", instance=record.occ.id
    )


def step_views(record: OccurrenceRecord) -> Sequence[dict[str, Any]]:
    """Return the plan as people see it: name, title, state, times, error."""
    return [
        {
            "name": step.name,
            "title": STEPS[step.name].title,
            "state": step.state.value,
            "attempt": step.attempt,
            "after": list(step.after),
            **({"startedAt": step.started_at} if step.started_at else {}),
            **({"endedAt": step.ended_at} if step.ended_at else {}),
            **({"error": step.error.model_dump(by_alias=True, exclude_none=True)} if step.error else {}),
        }
        for step in record.steps
    ]
