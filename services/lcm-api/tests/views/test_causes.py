"""Why an operation waits or failed, in the words of an engineer, and what one can do."""

from __future__ import annotations

from typing import Any

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.views.causes import Situation, cause_of, next_of
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.problem import ProblemDetails
from worlds.lcm_builders import NOW, a_terminate_draft, an_instantiate_draft
from worlds.lcm_moves import SAGA, granted

ROOT = "https://vnfm.example"
HREF = f"{ROOT}/vnflcm/v2/vnf_lcm_op_occs/op-1"


def failed(record: OccurrenceRecord, code: str, detail: str) -> OccurrenceRecord:
    """Return the operation after the failure of its running step."""
    step = record.running[0]
    problem = ProblemDetails(type=code, status=422, detail=f"{step.id}: {detail}")
    ended = step.model_copy(
        update={"state": StepState.FAILED, "error": problem, "ended_at": "2026-11-20T12:00:09.000Z"}
    )
    return record.with_steps([ended]).with_occ(operation_state=OperationState.FAILED_TEMP, error=problem)


def wait(record: OccurrenceRecord, reason: str) -> dict[str, Any]:
    """Return the task by which a worker reports that the command of the running step waits."""
    return {
        "step": record.running[0].id,
        "attempt": record.running[0].attempt,
        "node": "",
        "task": "wait",
        "state": "progressed",
        "message": f"waiting since 2026-11-20T12:00:05.000Z: {reason}",
    }


def test_the_error_of_the_failed_step_is_the_cause_and_retry_comes_first() -> None:
    record = failed(granted(an_instantiate_draft()).record, "stack-refused", "the template has no\nresource VDU1")
    situation = Situation(record, (), NOW)
    cause = cause_of(situation)
    assert cause is not None
    assert cause.code == "stack-refused"
    assert cause.text == "The template has no resource VDU1."
    assert (cause.step, cause.since, cause.isWait) == ("create_resources", "2026-11-20T12:00:09.000Z", False)
    tasks = next_of(situation, cause, ROOT)
    assert [each.task for each in tasks] == ["retry", "rollback", "fail"]
    assert tasks[0].href == f"{HREF}/retry"
    assert tasks[0].command == "kubevnfm retry op-1"
    assert '"Create the virtual resources"' in tasks[0].text


def test_what_a_running_step_waits_for_is_the_cause_and_needs_no_task() -> None:
    record = granted(a_terminate_draft()).record
    situation = Situation(record, [wait(record, "Keystone does not answer")], NOW)
    cause = cause_of(situation)
    assert cause is not None
    assert cause.text == "Keystone does not answer."
    assert (cause.since, cause.isWait) == ("2026-11-20T12:00:05.000Z", True)
    assert [each.task for each in next_of(situation, cause, ROOT)] == ["wait", "cancel"]
    assert cause_of(Situation(record, [{**wait(record, "Keystone is away"), "state": "finished"}], NOW)) is None


def test_an_operation_that_has_ended_has_nothing_to_do() -> None:
    record = granted(an_instantiate_draft()).record.with_occ(operation_state=OperationState.COMPLETED)
    assert cause_of(Situation(record, (), NOW)) is None
    assert next_of(Situation(record, (), NOW), None, ROOT) == ()
    cut = failed(granted(an_instantiate_draft()).record, "vnfm-error", "x" * 4000)
    ended = SAGA.fail(cut, NOW).record
    cause = cause_of(Situation(ended, (), NOW))
    assert cause is not None
    assert len(cause.text) <= 300
