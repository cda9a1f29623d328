"""Facts of the moves of operations: which begin one, which messages they send, what the log says."""

from __future__ import annotations

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import OperationChanged, StepChanged
from kubevnfm_sol.lcm import OperationState, OperationType

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.saga import Move

log = structlog.get_logger()


def begins(before: OccurrenceRecord, after: OccurrenceRecord) -> bool:
    """Return whether the operation begins: it is granted, or needs no grant and sends its first steps or ends."""
    states = (before.occ.operation_state, after.occ.operation_state)
    if states[0] is OperationState.STARTING:
        return states[1] is OperationState.PROCESSING
    if before.occ.operation is not OperationType.MODIFY_INFO or _has_sent(before):
        return False
    return states[1] is OperationState.COMPLETED or (states[1] is OperationState.PROCESSING and _has_sent(after))


def _has_sent(record: OccurrenceRecord) -> bool:
    return any(step.state is not StepState.WAITING for step in record.steps)


def internal_messages(move: Move) -> list[Envelope[Message]]:
    """Return the messages of a clean-up: its commands. It publishes no events, as no caller asked for it."""
    return [m for m in move.messages if not isinstance(m.data, OperationChanged | StepChanged)]


def log_change(before: OccurrenceRecord, after: OccurrenceRecord) -> None:
    occ = after.occ
    if occ.operation_state is before.occ.operation_state:
        return
    facts = {"operation": occ.operation.value, "vnf_instance_id": occ.vnf_instance_id, "operation_id": occ.id}
    if occ.operation_state in {OperationState.FAILED_TEMP, OperationState.FAILED} and occ.error is not None:
        log.error("operation_failed", state=occ.operation_state.value, detail=occ.error.detail, **facts)
    else:
        log.info("operation_changed", state=occ.operation_state.value, **facts)
