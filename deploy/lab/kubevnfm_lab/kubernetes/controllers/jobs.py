"""Jobs: pods that run until enough have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import create_pod, delete_pod, is_active, is_ready, new_pod, owned_pods
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    condition_is_true,
    is_terminating,
    key_of,
    now,
    value_at,
    with_condition,
)

_COMPONENT: Final = "job-controller"
_JOBS: Final = "jobs.batch"


class Jobs:
    """Runs every Job to completion or failure."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_JOBS: itself, "pods": its_controller("Job")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        job = self._plane.store.get(_JOBS, key)
        if job is None or is_terminating(job):
            return
        spec, pods = job["spec"], owned_pods(self._plane, job)
        succeeded = sum(value_at(pod, "status", "phase") == "Succeeded" for pod in pods)
        failed = sum(value_at(pod, "status", "phase") == "Failed" for pod in pods)
        active = [pod for pod in pods if is_active(pod)]
        # If no number of completions is given, one success is enough, and no further pod starts after it.
        wanted = spec.get("completions") or 1
        over = condition_is_true(job, "Complete") or condition_is_true(job, "Failed")
        conditions = value_at(job, "status", "conditions") or []
        if not over and succeeded >= wanted:
            conditions = self._finish(
                job, "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
        elif not over and failed > spec["backoffLimit"]:
            message = "Job has reached the specified backoff limit"
            conditions = self._finish(job, "Failed", "BackoffLimitExceeded", message)
        elif not over and not spec["suspend"]:
            for _ in range(min(spec["parallelism"], wanted - succeeded) - len(active)):
                pod = new_pod(job)
                pod["metadata"]["generateName"] = f"{job['metadata']['name']}-"
                create_pod(self._plane, job, pod, component=_COMPONENT)
        # A job that ends, or is suspended, ends its remaining pods.
        if over or spec["suspend"] or conditions != (value_at(job, "status", "conditions") or []):
            for pod in active:
                delete_pod(self._plane, job, pod, component=_COMPONENT)
        self._write_status(job, conditions)
        if over and spec.get("ttlSecondsAfterFinished") is not None:
            self._plane.later(spec["ttlSecondsAfterFinished"], lambda: self._collect(key, job["metadata"]["uid"]))

    def _collect(self, key: Key, uid: str) -> None:
        """Delete a Job that has ended, unless another one has its name by now."""
        job = self._plane.store.get(_JOBS, key)
        if job is not None and job["metadata"]["uid"] == uid and not is_terminating(job):
            self._plane.delete(_JOBS, job)

    def _finish(self, job: Obj, kind: str, reason: str, message: str) -> list[Obj]:
        event = "Completed" if kind == "Complete" else reason
        self._plane.record(
            job,
            "Normal" if kind == "Complete" else "Warning",
            event,
            "Job completed" if kind == "Complete" else message,
            component=_COMPONENT,
        )
        conditions = value_at(job, "status", "conditions") or []
        # Since 1.31 a terminal condition is preceded by one that announces it.
        promise = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        conditions = with_condition(conditions, promise, status=True, reason=reason, message=message)
        return with_condition(conditions, kind, status=True, reason=reason, message=message)

    def _write_status(self, job: Obj, conditions: list[Obj]) -> None:
        pods = owned_pods(self._plane, job)
        active = [pod for pod in pods if is_active(pod)]
        counts = {
            "active": len(active),
            "ready": sum(is_ready(pod) for pod in active),
            "succeeded": sum(value_at(pod, "status", "phase") == "Succeeded" for pod in pods),
            "failed": sum(value_at(pod, "status", "phase") == "Failed" for pod in pods),
        }
        # "ready" is always present in a Job's status, the other counts only if they are not zero.
        status: Obj = {name: count for name, count in counts.items() if count or name == "ready"}
        old = job.get("status") or {}
        if not job["spec"]["suspend"]:
            status["startTime"] = old.get("startTime") or now()
        if conditions:
            status["conditions"] = conditions
        if any(c["type"] == "Complete" for c in conditions):
            status["completionTime"] = old.get("completionTime") or now()
        self._plane.registry.set_status(_JOBS, key_of(job), status)
