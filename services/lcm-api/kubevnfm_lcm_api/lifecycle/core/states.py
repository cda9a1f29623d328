"""The states of an operation occurrence as one table (SOL003 clause 5.6.2; api.md 4.1); no other code decides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from kubevnfm_kit.errors import Conflict, VnfmError
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.lcm import OperationType

Task = Literal["retry", "rollback", "fail"]
"""The tasks of an occurrence that a caller can request (SOL003 5.4.14 to 5.4.16)."""

TRANSITIONS: Final[Mapping[tuple[S, str], S]] = {
    (S.STARTING, "granted"): S.PROCESSING,
    (S.STARTING, "refused"): S.ROLLED_BACK,
    (S.STARTING, "cancelled"): S.ROLLED_BACK,
    (S.PROCESSING, "steps_done"): S.COMPLETED,
    (S.PROCESSING, "step_failed"): S.FAILED_TEMP,
    # Not ROLLED_BACK: the steps so far have created resources, and the caller decides what becomes of them.
    (S.PROCESSING, "cancelled"): S.FAILED_TEMP,
    (S.FAILED_TEMP, "retry"): S.PROCESSING,
    (S.FAILED_TEMP, "rollback"): S.ROLLING_BACK,
    (S.FAILED_TEMP, "fail"): S.FAILED,
    (S.ROLLING_BACK, "steps_undone"): S.ROLLED_BACK,
    (S.ROLLING_BACK, "step_failed"): S.FAILED_TEMP,
    (S.ROLLING_BACK, "cancelled"): S.FAILED_TEMP,
}

CAN_BE_ROLLED_BACK: Final[Mapping[OperationType, bool]] = {
    OperationType.INSTANTIATE: True,
    OperationType.TERMINATE: False,
    OperationType.HEAL: True,
    OperationType.SCALE: True,
    OperationType.SCALE_TO_LEVEL: True,
    OperationType.CHANGE_FLAVOUR: True,
    OperationType.CHANGE_VNFPKG: True,
    OperationType.CHANGE_EXT_CONN: True,
    OperationType.OPERATE: True,
    OperationType.MODIFY_INFO: True,
    OperationType.CREATE_SNAPSHOT: True,
    # The earlier content of the disks is not kept.
    OperationType.REVERT_TO_SNAPSHOT: False,
}
"""api.md 4.3. A scale-in cannot be rolled back, although SCALE can: its draft's `is_reversible` is False. The same is true of
most heals."""


class IllegalTransition(Conflict, code="illegal-transition"):
    """The occurrence's state does not allow the task (SOL003 5.4.14 ff.: 409)."""

    def __init__(self, state: S, trigger: str) -> None:
        task = "cancel" if trigger == "cancelled" else trigger
        super().__init__(f"{task} is not possible while the operation occurrence is {state}")
        self.state, self.trigger = state, trigger


class CancelPending(Conflict, code="cancel-pending"):
    """The operation is being cancelled already; only FORCEFUL after GRACEFUL is accepted (api.md 4.2)."""

    def __init__(self, mode: str | None) -> None:
        super().__init__(f"the operation is being cancelled already ({mode})")


class RollbackUnsupported(VnfmError, code="rollback-unsupported", title="Rollback not supported", status=404):
    """The operation cannot be rolled back; retry and fail remain (SOL003 5.4.15.3.1: 404)."""

    def __init__(self, operation: OperationType) -> None:
        super().__init__(f"{operation} cannot be rolled back: use retry or fail")


def next_state(state: S, trigger: str) -> S:
    """Return the state after ``trigger``; raise IllegalTransition if there is none."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransition(state, trigger) from None


def allowed_tasks(
    state: S, operation: OperationType, *, is_reversible: bool = True, cancel_mode: str | None = None
) -> frozenset[str]:
    """Return which of cancel, retry, rollback and fail are allowed now (api.md 4.2).

    ``is_reversible``: the draft's answer; ``cancel_mode``: the mode of a pending cancel, None without one.
    """
    tasks: set[str] = {task for task in get_args(Task) if (state, task) in TRANSITIONS}
    if not (is_reversible and CAN_BE_ROLLED_BACK.get(operation, False)):
        tasks.discard("rollback")
    if (state, "cancelled") in TRANSITIONS and cancel_mode != "FORCEFUL":
        tasks.add("cancel")
    return frozenset(tasks)
