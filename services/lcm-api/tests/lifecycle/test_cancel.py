"""Cancel at each step of every plan, in each state (api.md 4.2, 4.4)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events import CancelStep, CommandFailed, Envelope, Message, from_document
from kubevnfm_events.lcm import AdvanceOperation
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.saga import CancelModeName, Move, Saga
from kubevnfm_lcm_api.lifecycle.core.states import CancelPending, IllegalTransition
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_secrets import sealed
from kubevnfm_sol.lcm import OperationState as S
from worlds.lcm_builders import (
    NOW,
    RING,
    a_change_draft,
    a_terminate_draft,
    an_instantiate_draft,
    an_operation,
    answer_to,
    later,
)

SAGA = Saga(RING)
MODES: tuple[CancelModeName, ...] = ("GRACEFUL", "FORCEFUL")


def commands_of(move: Move) -> list[Envelope[Message]]:
    return [message for message in move.messages if message.is_command]


def reread(record: OccurrenceRecord) -> OccurrenceRecord:
    return OccurrenceRecord.from_document(record.document(RING))


def answered(move: Move, reply: Envelope[Message]) -> Move:
    moved = SAGA.handle_reply(reread(move.record), reply, later(3))
    assert moved is not None
    return moved


def stopped(cancel: Envelope[Message]) -> Envelope[Message]:
    """Return the service's reply to the command that ``cancel`` stops."""
    assert isinstance(cancel.data, CancelStep)
    command = from_document(sealed(cancel.data.command, RING))
    failure = CommandFailed(
        command=command.type, code="cancelled", title="Operation cancelled", detail="cancelled", status=409
    )
    return command.follow_up(failure, source="/kubevnfm/twin")


def begun(draft: Any) -> Move:
    return SAGA.grant(an_operation(draft), "grant-1", NOW)


@pytest.mark.parametrize("mode", MODES)
def test_before_the_grant_it_ends_rolled_back(mode: CancelModeName) -> None:
    """API-052."""
    move = SAGA.cancel(an_operation(an_instantiate_draft()), mode, NOW)
    assert (move.record.occ.operation_state, move.record.occ.is_cancel_pending) == (S.STARTING, True)
    (wake_up,) = commands_of(move)
    assert isinstance(wake_up.data, AdvanceOperation)
    ended = SAGA.grant(reread(move.record), "grant-1", later(1))
    assert ended.record.occ.operation_state is S.ROLLED_BACK
    assert ended.record.occ.error is not None
    assert ended.record.occ.error.status == 409
    assert not commands_of(ended)


def test_graceful_sends_no_further_step_and_ends_after_the_running_ones() -> None:
    """API-052."""
    move = begun(an_instantiate_draft())
    (running,) = commands_of(move)
    move = SAGA.cancel(reread(move.record), "GRACEFUL", later(1))
    assert not move.messages
    assert (move.record.occ.operation_state, move.record.occ.cancel_mode) == (S.PROCESSING, "GRACEFUL")
    move = answered(move, answer_to(running))
    occ = move.record.occ
    assert (occ.operation_state, occ.is_cancel_pending, occ.cancel_mode) == (S.FAILED_TEMP, False, None)
    assert occ.error is not None
    assert (occ.error.status, occ.error.title) == (409, "Operation cancelled")
    assert not commands_of(move)
    again = SAGA.retry(reread(move.record), later(5))
    assert [command.stepid for command in commands_of(again)] == ["instantiate_end"]


def test_forceful_stops_the_running_step_and_waits_for_its_end() -> None:
    """API-052."""
    move = begun(an_instantiate_draft())
    (running,) = commands_of(move)
    move = SAGA.cancel(reread(move.record), "FORCEFUL", later(1))
    (cancel,) = commands_of(move)
    assert type(cancel.data).service == type(running.data).service  # type: ignore[attr-defined]  # both are commands
    assert move.record.occ.operation_state is S.PROCESSING
    answer = stopped(cancel)
    assert (answer.operationid, answer.stepid, answer.attempt) == (running.operationid, running.stepid, running.attempt)
    assert answer.causationid == running.id, "the cancel carries the id of the command that was sent"
    move = answered(move, answer)
    assert move.record.occ.operation_state is S.FAILED_TEMP
    assert move.record.occ.error is not None
    assert move.record.occ.error.title == "Operation cancelled"


def test_forceful_stops_every_running_step() -> None:
    move = begun(a_terminate_draft())
    move = answered(move, answer_to(commands_of(move)[0]))
    assert len(commands_of(move)) == 2
    move = SAGA.cancel(reread(move.record), "FORCEFUL", later(1))
    first, second = commands_of(move)
    move = answered(move, stopped(first))
    assert move.record.occ.operation_state is S.PROCESSING
    move = answered(move, stopped(second))
    assert move.record.occ.operation_state is S.FAILED_TEMP


@pytest.mark.parametrize("mode", MODES)
def test_the_operation_completes_if_its_last_step_ends_before_the_cancel(mode: CancelModeName) -> None:
    move = begun(a_change_draft(ScaleVmDraft))
    (running,) = commands_of(move)
    move = SAGA.cancel(reread(move.record), mode, later(1))
    move = answered(move, answer_to(running))
    assert (move.record.occ.operation_state, move.record.occ.is_cancel_pending) == (S.COMPLETED, False)


def test_a_step_that_fails_during_a_cancel_reports_its_own_error() -> None:
    move = begun(an_instantiate_draft())
    (running,) = commands_of(move)
    move = SAGA.cancel(reread(move.record), "GRACEFUL", later(1))
    failure = CommandFailed(command=running.type, code="stack-failed", title="Stack", detail="no host", status=422)
    move = answered(move, running.follow_up(failure, source="/kubevnfm/twin"))
    assert move.record.occ.operation_state is S.FAILED_TEMP
    assert move.record.occ.error is not None
    assert move.record.occ.error.title == "Stack"


@pytest.mark.parametrize("mode", MODES)
def test_a_rollback_can_be_cancelled_and_started_again(mode: CancelModeName) -> None:
    move = begun(an_instantiate_draft())
    move = answered(move, answer_to(commands_of(move)[0]))
    cancel = commands_of(SAGA.cancel(reread(move.record), "FORCEFUL", later(1)))[0]
    move = answered(SAGA.cancel(reread(move.record), "FORCEFUL", later(1)), stopped(cancel))
    rolling = SAGA.rollback(reread(move.record), later(4))
    (undoing,) = commands_of(rolling)
    move = SAGA.cancel(reread(rolling.record), mode, later(5))
    cancels = commands_of(move)
    assert bool(cancels) == (mode == "FORCEFUL")
    move = answered(move, stopped(cancels[0]) if cancels else answer_to(undoing))
    assert move.record.occ.operation_state is S.FAILED_TEMP
    rolling = SAGA.rollback(reread(move.record), later(6))
    following = "create_resources" if mode == "GRACEFUL" else undoing.stepid
    assert [one.stepid for one in commands_of(rolling)] == [following]


def test_a_second_cancel_is_accepted_only_if_it_is_forceful_after_graceful() -> None:
    """API-041."""
    move = begun(an_instantiate_draft())
    graceful = SAGA.cancel(reread(move.record), "GRACEFUL", later(1)).record
    with pytest.raises(CancelPending):
        SAGA.cancel(reread(graceful), "GRACEFUL", later(2))
    forceful = SAGA.cancel(reread(graceful), "FORCEFUL", later(2))
    assert len(commands_of(forceful)) == 1
    for mode in MODES:
        with pytest.raises(CancelPending):
            SAGA.cancel(reread(forceful.record), mode, later(3))


@pytest.mark.parametrize("state", [S.COMPLETED, S.FAILED, S.FAILED_TEMP, S.ROLLED_BACK])
def test_an_operation_that_does_not_run_cannot_be_cancelled(state: S) -> None:
    """API-041."""
    with pytest.raises(IllegalTransition):
        SAGA.cancel(an_operation(an_instantiate_draft(), state=state), "FORCEFUL", NOW)
