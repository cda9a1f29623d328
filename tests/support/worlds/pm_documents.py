"""Stored PM jobs, thresholds and automatic actions, as their own code has written them: tests of lists need no Prometheus for them."""

from __future__ import annotations

from typing import Any, Final

from kubevnfm_lcm_api.automation.domain.action import COLLECTION as ACTIONS
from kubevnfm_lcm_api.automation.domain.action import Action, ActionInternals, AskedBy
from kubevnfm_lcm_api.performance.job_record import COLLECTION as JOBS
from kubevnfm_lcm_api.performance.job_record import SAMPLES
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLDS
from kubevnfm_store.port import DocumentStore

LATER: Final = "2999-01-01T00:00:00.000Z"
METRIC: Final = "VCpuUsageMeanVnf"


async def store_job(store: DocumentStore, job_id: str, *instance_ids: str, **internal: Any) -> None:
    """Store a job with the values of two periods in a report, and of a third one that lacks a metric."""
    report = {"id": "r1", "readyTime": "2026-11-28T10:02:00.000Z", "expiryTime": LATER, "begin": _at(0), "end": _at(2)}
    body = {
        "id": job_id,
        "objectType": "Vnfc",
        "objectInstanceIds": list(instance_ids),
        "criteria": {
            "performanceMetric": [METRIC], "performanceMetricGroup": ["VirtualisedComputeResource"], "collectionPeriod": 60,
            "reportingPeriod": 120,
        },
        "callbackUri": "https://login:word@nfvo.example/reports",
        "createdAt": "2026-11-28T10:00:00.000Z",
        "reports": [report],
        "internal": {
            "updatedAt": _at(2), "shown": 2, "address": 1, "sources": ["http://prometheus"], "begin": _at(0), "measured": 3,
            "dueAt": LATER, **internal,
        },
    }  # fmt: skip
    await store.insert(JOBS, job_id, body)
    for minute in (1, 2, 3):
        parts = ("web-0", "web-1") if minute < 3 else ("web-0",)
        values = [
            {"instance": instance_ids[0], "part": part, "metric": METRIC, "value": 10.0 * minute + number}
            for number, part in enumerate(parts)
        ]
        gap = {"gap": {"from": _at(2), "to": _at(3), "reason": "no value of web-1"}} if minute == 3 else {}
        sample = {"jobId": job_id, "at": _at(minute), "values": values, **gap}
        await store.insert(SAMPLES, f"{job_id}-{minute}", sample)


async def store_threshold(store: DocumentStore, threshold_id: str, instance_id: str, **internal: Any) -> None:
    """Store a threshold that one part is above of, and one below."""
    sides = [{"part": "web-0", "side": "DOWN", "at": _at(1)}, {"part": "web-1", "side": "UP", "at": _at(2)}]
    body = {
        "id": threshold_id,
        "objectType": "Vnfc",
        "objectInstanceId": instance_id,
        "criteria": {
            "performanceMetric": METRIC, "thresholdType": "SIMPLE",
            "simpleThresholdDetails": {"thresholdValue": 80.0, "hysteresis": 5.0},
        },
        "callbackUri": "https://nfvo.example/crossings",
        "createdAt": "2026-11-28T10:01:00.000Z",
        "metadata": {"automation": {"aspectId": "web", "onUp": "SCALE_OUT"}},
        "internal": {
            "updatedAt": _at(2), "shown": 1, "address": 1, "sources": ["http://prometheus"], "sides": sides, "events": 3,
            "dueAt": LATER, **internal,
        },
    }  # fmt: skip
    await store.insert(THRESHOLDS, threshold_id, body)


async def store_action(store: DocumentStore, action_id: str, instance_id: str, **changes: Any) -> None:
    """Store a scaling that was not done, or one with these changes."""
    asked = AskedBy(kind="threshold", id="t", text="VCpuUsageMeanVnf is 91.", at=_at(2))
    action = Action(
        id=action_id, vnf_instance_id=instance_id, vnf_instance_name="web", operation="SCALE", aspect_id="web",
        direction="SCALE_OUT", state="NOT_DONE", created_at=_at(2), state_since=_at(3), ended_at=_at(3), triggers=(asked,),
        reason="aspect web is at its highest level", internal=ActionInternals(key="k", number=1, collects_until=_at(2)),
    )  # fmt: skip
    stored = action.model_copy(update=changes)
    await store.insert(ACTIONS, action_id, stored.body)


def _at(minute: int) -> str:
    return f"2026-11-28T10:{minute:02}:00.000Z"
