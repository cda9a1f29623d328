"""Adds to the verdicts on workloads why a pod of theirs does not start, or cannot be made (capi.md CR-025).

The pod says the first, an event of the workload's controller the second: a quota, Pod Security, a missing ServiceAccount.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.objects import MACHINE_OWNERS, WORKLOADS, Body, ObjectKey, condition, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.readiness import trouble_of_pod
from kubevnfm_infra_k8s.domain.reading.vdus import is_running, owned_parts
from kubevnfm_infra_k8s.domain.verdicts import Verdict
from kubevnfm_infra_k8s.domain.watching.not_ready_report import age_order, warnings_in

LOOK_EVERY_S: Final = 5.0
"""A pod that fails changes nothing in its Deployment, so the watch of that shows nothing."""
_SILENT: Final = frozenset({("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")})
"""The kinds without a condition for it; `readiness` reads that of the others."""
_OWNERS: Final = WORKLOADS - MACHINE_OWNERS - {("", "Pod")} | {("batch", "Job")}


@dataclass
class StuckPods:
    """The reasons of the pods of an instance that do not start, as last read."""

    cluster: Cluster
    vnf_instance_id: str
    _reasons: Mapping[ObjectKey, str] = field(default_factory=dict)
    _read_at: float | None = None

    async def explain(
        self, verdicts: Mapping[ObjectKey, Verdict], bodies: Mapping[ObjectKey, Body], *, is_last: bool
    ) -> Mapping[ObjectKey, Verdict]:
        """Return the verdicts on workloads that are not ready, each with a pod that does not start and its reason.

        The pods are read every `LOOK_EVERY_S` seconds, and when this is the last look.
        """
        waiting = {
            key: bodies[key]
            for key, verdict in verdicts.items()
            if key.group_kind in _OWNERS and not verdict.is_current and key in bodies
        }
        now = asyncio.get_running_loop().time()
        if waiting and (is_last or self._read_at is None or now - self._read_at >= LOOK_EVERY_S):
            self._reasons, self._read_at = await self._read(waiting), now
        return {
            key: replace(verdicts[key], message=f"{verdicts[key].message or verdicts[key].status}, {reason}")
            for key, reason in self._reasons.items()
            if key in waiting
        }

    async def _read(self, workloads: Mapping[ObjectKey, Body]) -> Mapping[ObjectKey, str]:
        try:
            found = await running_parts(self.cluster, self.vnf_instance_id, workloads)
        except VnfmError:  # credentials may not permit to read pods; the verdict is useful without them too
            return {}
        by_uid = {uid_of(body): key for key, body in workloads.items()}
        owned = owned_parts(by_uid, found)
        # The newest pod shows what is wrong now; older ones can belong to an earlier version of the workload.
        reasons: dict[ObjectKey, str] = {}
        for pod, owner in sorted(owned, key=lambda each: _created(each[0]), reverse=True):
            trouble = trouble_of_pod(pod) if is_running(pod) else None
            if trouble is not None:
                reasons.setdefault(by_uid[owner], f"pod {pod['metadata']['name']}: {trouble}")
        return {**await self._without_pods(workloads, owned, reasons.keys()), **reasons}

    async def _without_pods(
        self, workloads: Mapping[ObjectKey, Body], owned: Sequence[tuple[Body, str]], explained: Collection[ObjectKey]
    ) -> Mapping[ObjectKey, str]:
        """Return why controllers cannot make the next pod, for workloads of which all pods that exist are ready."""
        starting = {owner for pod, owner in owned if is_running(pod) and not _is_ready(pod)}
        lacking = {
            uid_of(body): key
            for key, body in workloads.items()
            if key.group_kind in _SILENT and key not in explained and uid_of(body) not in starting
        }
        if not lacking:
            return {}
        newest = {owner: max(_created(pod) for pod, each in owned if each == owner) for _, owner in owned}
        reasons: dict[ObjectKey, str] = {}
        events = await warnings_in(self.cluster, sorted({key.namespace for key in lacking.values()}))
        for event in sorted(events, key=age_order):
            uid = str(field_at(event, "involvedObject", "uid"))
            # One from before the newest pod is over.
            if uid in lacking and event.get("reason") == "FailedCreate" and age_order(event)[0] >= newest.get(uid, ""):
                reasons[lacking[uid]] = f"FailedCreate: {event.get('message', '')}"
        return reasons


def _is_ready(pod: Body) -> bool:
    return str((condition(pod, "Ready") or {}).get("status")) == "True"


def _created(pod: Body) -> str:
    return str(field_at(pod, "metadata", "creationTimestamp") or "")
