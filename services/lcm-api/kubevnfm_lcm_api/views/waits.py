"""Finds what an operation waits for at this moment: reports of its running steps, and the grant of the NFVO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import OperationState

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.progress import OPEN, obstacles_of

_MOST: Final = 100
"""Each of 200 machines may name ten objects that it waits for; the view is read again whenever something happens."""
_GRANT: Final = "The NFVO has not decided about the grant yet."


def waits_of(record: OccurrenceRecord, tasks: Sequence[JsonObject]) -> JsonObject:
    """Return ``waits``: what waits, for what and since when, the longest first; and ``moreWaits``, the number of the rest if there is one.

    ``tasks``: as `Progress.operation_tasks` returns them.
    """
    found = sorted((*_grant(record), *_steps(record, tasks)), key=lambda each: str(each["since"]))
    return {"waits": found[:_MOST], **({"moreWaits": len(found) - _MOST} if len(found) > _MOST else {})}


def _grant(record: OccurrenceRecord) -> Iterator[JsonObject]:
    granting = record.granting
    if record.occ.operation_state is not OperationState.STARTING or granting is None:
        return
    fault = {"lastError": granting.last_fault, "attempts": granting.faults} if granting.last_fault else {}
    yield {"text": _GRANT, "since": granting.asked_at, **fault}


def _steps(record: OccurrenceRecord, tasks: Sequence[JsonObject]) -> Iterator[JsonObject]:
    attempts = {step.id: step.attempt for step in record.running}
    for task in tasks:
        if task["state"] not in OPEN or attempts.get(task["step"]) != task.get("attempt", 0) or not task["message"]:
            continue
        for text, since in obstacles_of(task):
            yield {
                "step": task["step"],
                **({"node": task["node"]} if task["node"] else {}),
                "task": task["task"],
                "text": text,
                "since": since,
                **({"lastError": text, "code": task["code"]} if task.get("code") else {}),
                **({"attempts": task["tries"]} if task.get("tries") else {}),
            }
