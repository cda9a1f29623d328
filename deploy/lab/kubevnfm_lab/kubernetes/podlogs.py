"""The simulated logs of a pod's containers."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.kubernetes.errors import bad_request
from kubevnfm_lab.kubernetes.objects import Obj, pod_containers, value_at


def pod_log(pod: Obj, query: Mapping[str, str]) -> str:
    """Return the log of the container asked for, or of the only one.

    Raises: ApiError 400 when the container is unknown, ambiguous or has not started.
    """
    name = pod["metadata"]["name"]
    containers = [container["name"] for container in pod_containers(pod["spec"])]
    wanted = query.get("container") or (containers[0] if len(containers) == 1 else "")
    if not wanted:
        listed = " ".join(containers)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    if wanted not in containers:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    for status in value_at(pod, "status", "containerStatuses") or []:
        if status["name"] == wanted and "running" in status["state"]:
            return f"{status['state']['running']['startedAt']} {wanted} started from {status['image']}\n"
        if status["name"] == wanted and "terminated" in status["state"]:
            return f"{status['state']['terminated']['startedAt']} {wanted} ran and ended\n"
        if status["name"] == wanted and "terminated" in status["lastState"]:
            return f"{status['lastState']['terminated']['message']}\n"
        if status["name"] == wanted:
            reason = status["state"].get("waiting", {}).get("reason", "ContainerCreating")
            raise bad_request(f'container "{wanted}" in pod "{name}" is waiting to start: {reason}')
    raise bad_request(f'container "{wanted}" in pod "{name}" is waiting to start: ContainerCreating')
