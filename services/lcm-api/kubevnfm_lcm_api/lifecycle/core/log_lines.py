"""The lines about an operation as a whole: its begin, its state, its end."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import structlog
from kubevnfm_sol.lcm import OperationState as S

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord

log = structlog.get_logger()

_FAILED: Final = frozenset({S.FAILED_TEMP, S.FAILED})
_ENDS: Final = _FAILED | {S.COMPLETED, S.ROLLED_BACK}


def say_begun(record: OccurrenceRecord) -> None:
    """Say that an operation was accepted: it is stored, and will be carried out."""
    log.info("operation_begun", **record.log_facts)


def say_change(before: OccurrenceRecord, after: OccurrenceRecord) -> None:
    """Say the state of an operation, if it is another one; with the cause if it has failed."""
    occ, state = after.occ, after.occ.operation_state
    if state is before.occ.operation_state:
        return
    if state not in _ENDS:
        log.info("operation_changed", state=state.value, **after.log_facts)
        return
    # In FAILED_TEMP nothing more is done until a caller decides, so that is an end too.
    lasted = datetime.fromisoformat(occ.state_entered_time) - datetime.fromisoformat(occ.start_time)
    cause = occ.error if state in _FAILED else None
    say = log.error if state in _FAILED else log.info
    say(
        "operation_ended",
        state=state.value,
        duration_s=round(lasted.total_seconds(), 3),
        code=cause.type if cause is not None else None,
        detail=cause.detail if cause is not None else None,
        **after.log_facts,
    )
