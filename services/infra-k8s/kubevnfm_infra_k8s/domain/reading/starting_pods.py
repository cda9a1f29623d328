"""Reads from the status of a pod that complains of nothing what it waits for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubevnfm_infra_k8s.domain.objects import Body, condition, field_at

_LONGEST: Final = 300
"""Characters of what a container said when it ended."""


def standing_of_pod(pod: Body) -> str:
    """Return what the pod waits for, by its status: its first container that is not as it is to be; "" if nothing shows it."""
    gates = [str(each.get("name")) for each in field_at(pod, "spec", "schedulingGates") or ()]
    if gates:
        return f"SchedulingGated: {', '.join(gates)}"
    if not field_at(pod, "spec", "nodeName"):
        if condition(pod, "PodScheduled"):
            return ""
        # There is no such scheduler, or it is busy, or it waits for the volume of a claim.
        return f"Unscheduled: by {field_at(pod, 'spec', 'schedulerName')}"
    return next(_waits(pod), "")


def _waits(pod: Body) -> Iterator[str]:
    # A side-car is an init container that goes on.
    sidecars = {
        str(each.get("name"))
        for each in field_at(pod, "spec", "initContainers") or ()
        if each.get("restartPolicy") == "Always"
    }
    for container in field_at(pod, "status", "initContainerStatuses") or ():
        name, state = str(container.get("name")), container.get("state") or {}
        yield from _ended(container)
        if name not in sidecars and state.get("running"):
            yield f"container {name}: InitContainerRunning"
    listed = field_at(pod, "status", "containerStatuses") or ()
    for container in listed:
        yield from _ended(container)
    for container in listed:
        waiting = field_at(container, "state", "waiting", "reason")
        if waiting:
            yield f"container {container.get('name')}: {waiting}"
        elif field_at(container, "state", "running") and not container.get("ready"):
            yield f"container {container.get('name')}: RunningNotReady"
    for gate in field_at(pod, "spec", "readinessGates") or ():
        wanted = str(gate.get("conditionType"))
        if str((condition(pod, wanted) or {}).get("status")) != "True":
            yield f"ReadinessGate: {wanted}"


def _ended(container: Body) -> Iterator[str]:
    if field_at(container, "state", "terminated", "exitCode"):
        yield f"container {container.get('name')}: Terminated{end_of(container, 'state')}"


def end_of(container: Body, state: str = "lastState") -> str:
    """Return how a container ended: its code, the reason, and the last line that it has left about it; ``state``: or ``state``, its present one."""
    code, reason, message = (
        field_at(container, state, "terminated", name) for name in ("exitCode", "reason", "message")
    )
    if not isinstance(code, int):
        return ""
    lines = str(message or "").strip().splitlines()
    said = f": {lines[-1].strip()[:_LONGEST]}" if lines else ""
    return f"; it last ended with exit code {code}" + (f" ({reason})" if isinstance(reason, str) else "") + said
