"""The head of an operation: what its summary in lists and its own view have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.lcm import TERMINAL
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.views.causes import Situation, cause_of, next_of
from kubevnfm_lcm_api.views.earlier_runs import Run, estimated, usual_s

_MOST_CURRENT: Final = 10


def head_of(body: JsonMapping, root: str) -> JsonObject:
    """Return what the document of an operation says of it, without what is found out."""
    operation_id, state = body["id"], body["operationState"]
    name = body["internal"]["facts"].get("vnfInstanceName")
    return {
        "id": operation_id,
        "vnfInstanceId": body["vnfInstanceId"],
        **({"vnfInstanceName": name} if name else {}),
        "operation": body["operation"],
        "state": state,
        "startTime": body["startTime"],
        "stateEnteredTime": body["stateEnteredTime"],
        **({"endTime": body["stateEnteredTime"]} if state in TERMINAL else {}),
        **({"error": body["error"]} if body.get("error") else {}),
        **({"automatic": _reason(automatic)} if (automatic := body["internal"].get("automatic")) else {}),
        "_links": {
            "self": {"href": f"{root}/kubevnfm/v1/operations/{operation_id}"},
            "log": {"href": f"{root}/kubevnfm/v1/operations/{operation_id}/log"},
            "vnfLcmOpOcc": {"href": f"{root}/vnflcm/v2/vnf_lcm_op_occs/{operation_id}"},
            "vnfInstance": {"href": f"{root}/vnflcm/v2/vnf_instances/{body['vnfInstanceId']}"},
        },
    }


def _reason(automatic: JsonMapping) -> JsonObject:
    return {to_camel(name): value for name, value in automatic.items()}


def found_of(
    record: OccurrenceRecord,
    tasks: Sequence[JsonObject],
    runs: Sequence[Run],
    now: datetime,
    root: str,
    *,
    vim_names: Mapping[str, str],
    is_broker_away: bool,
) -> JsonObject:
    """Return why the operation is as it is, what can be done, and how long it will still take, as far as that is known."""
    situation = Situation(
        record, tasks, now, usual_s=usual_s(runs, record), vim_names=vim_names, is_broker_away=is_broker_away
    )
    cause, left = cause_of(situation), estimated(runs, record, now)
    return {
        **({"cause": cause.model_dump(exclude_none=True)} if cause is not None else {}),
        "next": [each.model_dump(exclude_none=True) for each in next_of(situation, cause, root)],
        **({"estimate": {"remainingS": ceil(left.remaining_s), "fromRuns": left.runs}} if left is not None else {}),
    }


def counts_of(steps: Sequence[Mapping[str, Any]], record: OccurrenceRecord | None) -> JsonObject:
    """Return how far a stored plan is; ``record``: of an operation that may have running steps."""
    running = [] if record is None else record.running[:_MOST_CURRENT]
    return {
        "done": sum(step["state"] == StepState.DONE for step in steps),
        "total": len(steps),
        "current": [SEQUENCES.step(step).title for step in running],
    }
