"""Finds the pods that hold the deletion of their workloads: Kubernetes deletes a workload last."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.objects import WORKLOADS, Body, ObjectKey, name_of, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.readiness import age_s
from kubevnfm_infra_k8s.domain.reading.vdus import owned_parts
from kubevnfm_infra_k8s.domain.removing.deletion_state import pod_obstacle, silence_of_node

LOOK_EVERY_S: Final = 5.0
"""A pod that stays changes nothing in its workload. Most pods end sooner than this."""
_JOB: Final = ("batch", "Job")


@dataclass
class EndingPods:
    """The obstacles to the end of the pods of an instance's workloads that are being deleted, as last read."""

    cluster: Cluster
    vnf_instance_id: str
    clock: Clock
    _reasons: Mapping[ObjectKey, str] = field(default_factory=dict)
    _read_at: float | None = None

    async def reasons(self, deleted: Mapping[ObjectKey, Body], *, is_last: bool) -> Mapping[ObjectKey, str]:
        """Return why a pod of each workload does not end, of those whose deletion takes long; the pods are read now and then."""
        now = self.clock.now()
        late = {
            key: body
            for key, body in deleted.items()
            if key.group_kind in WORKLOADS | {_JOB} and age_s(body, now, "deletionTimestamp") >= LOOK_EVERY_S
        }
        looked = asyncio.get_running_loop().time()
        if late and (is_last or self._read_at is None or looked - self._read_at >= LOOK_EVERY_S):
            self._reasons, self._read_at = await self._read(late), looked
        return {key: reason for key, reason in self._reasons.items() if key in late}

    async def _read(self, late: Mapping[ObjectKey, Body]) -> Mapping[ObjectKey, str]:
        try:
            found = await running_parts(self.cluster, self.vnf_instance_id, late)
        except VnfmError:  # credentials may not permit to read pods; the deletion goes on without a reason too
            return {}
        by_uid, now = {uid_of(body): key for key, body in late.items()}, self.clock.now()
        obstacles: dict[ObjectKey, str] = {}
        for pod, owner in owned_parts(by_uid, found):
            # The finalizers of a pod that is an object of the VNF itself are said already.
            is_itself = owner == uid_of(pod)
            obstacle = silence_of_node(pod, now) if is_itself else pod_obstacle(pod, now)
            if obstacle:
                obstacles[by_uid[owner]] = obstacle if is_itself else f"pod {name_of(pod)}: {obstacle}"
        return obstacles
