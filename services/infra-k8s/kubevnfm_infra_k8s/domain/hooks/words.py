"""The last words of a hook that has failed: the end of its pod's log, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.printable import quoted_end

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, PODS, Body, ObjectKey, field_at, name_of
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.vdus import owner_uid

_MOST: Final = 3000
"""Bytes. An error has at most 4 KiB, and what fails is named before."""


async def last_words(cluster: Cluster, hook: PlannedHook, uid: str, *, vnf_instance_id: str) -> str:
    """Return the end of the log of the newest pod of a hook, as a quotation; "" if it has none, or if it cannot be read."""
    if not hook.runs_to_an_end:
        return ""
    try:
        pod = await _pod(cluster, hook, uid, vnf_instance_id)
        if pod is None:
            return ""
        key = ObjectKey("v1", "Pod", hook.key.namespace, name_of(pod))
        text = await cluster.pod_log(key, container=_container(pod))
    except VnfmError:  # no log is no reason to hide why the hook has failed
        return ""
    # Masked first: a part of a secret would not be found.
    return quoted_end(cluster.masked(text), _MOST) if text.strip() else ""


async def _pod(cluster: Cluster, hook: PlannedHook, uid: str, vnf_instance_id: str) -> Body | None:
    if hook.key.kind == "Pod":
        return await cluster.get(PODS, hook.key)
    selector = f"{INSTANCE_LABEL}={vnf_instance_id}"
    pods = await cluster.list(PODS, namespace=hook.key.namespace, labels=selector)
    mine = [each for each in pods if owner_uid(each) == uid]
    return max(mine, key=lambda each: str(field_at(each, "metadata", "creationTimestamp") or ""), default=None)


def _container(pod: Body) -> str:
    """Return the container that has failed, or the first one."""
    statuses: Sequence[Body] = [
        each for name in ("initContainerStatuses", "containerStatuses") for each in field_at(pod, "status", name) or []
    ]
    failed = next((each for each in statuses if field_at(each, "state", "terminated", "exitCode")), None)
    containers = field_at(pod, "spec", "containers") or [{}]
    return str((failed or containers[0]).get("name") or "")
