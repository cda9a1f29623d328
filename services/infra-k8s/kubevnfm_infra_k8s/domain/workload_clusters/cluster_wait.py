"""Waits for a workload cluster: each phase has its own time limit, and progress is published once a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kubevnfm_events.capi import ClusterStage, ClusterTimeouts
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.clock import Clock, machine_now

from kubevnfm_infra_k8s.domain.beginning import deadline_of
from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE, CORE
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ClusterFailed, ClusterNotReady, UnknownKinds
from kubevnfm_infra_k8s.domain.objects import Body, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import (
    NO_NETWORK,
    Assessment,
    ClusterObjects,
    Goal,
    Phase,
    assess,
    lacks_network,
)
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterView, Listed

_SHORTEST_REPORT_S: Final = 1.0
"""capi.md CR-056."""


@dataclass(frozen=True)
class ClusterKinds:
    """How the management cluster serves the kinds of one workload cluster, in the versions of its package (CR-037)."""

    cluster: Resource
    machines: Resource
    workers: Sequence[Resource]
    sets: Resource | None
    control_plane: Resource | None
    infrastructure: Resource | None

    @property
    def all(self) -> Sequence[Resource]:
        """All of them."""
        some = [each for each in (self.sets, self.control_plane, self.infrastructure) if each is not None]
        return [self.cluster, self.machines, *self.workers, *some]


async def kinds_of(cluster: Cluster, workload: WorkloadCluster, release: Release | None) -> ClusterKinds:
    """Return the kinds of the workload cluster. Raises UnknownKinds if Cluster API is not there."""
    version = workload.api_version.rpartition("/")[2]
    packaged = {
        (entry.key.group, entry.key.kind): entry.key.api_version for entry in (release.entries if release else ())
    }

    async def find(group: str, kind: str) -> Resource | None:
        # A kind that the package does not have is made by the class of the cluster, whose version it then shares.
        return await cluster.resource(packaged.get((group, kind), f"{group}/{version}"), kind)

    core = {kind: await find(CORE, kind) for kind in ("Cluster", "Machine", "MachineDeployment", "MachinePool")}
    if core["Cluster"] is None or core["Machine"] is None:
        raise UnknownKinds([f"Cluster and Machine in {workload.api_version}"])
    providers = [key for key in packaged if key[0].startswith("infrastructure.") and key[1].endswith("Cluster")]
    infrastructure = await find(*providers[0]) if providers else None
    return ClusterKinds(
        core["Cluster"],
        core["Machine"],
        [found for kind in ("MachineDeployment", "MachinePool") if (found := core[kind]) is not None],
        await find(CORE, "MachineSet"),
        await find(CONTROL_PLANE, "KubeadmControlPlane"),
        infrastructure,
    )


async def objects_now(cluster: Cluster, kinds: ClusterKinds, workload: WorkloadCluster) -> ClusterObjects:
    """Return the objects of the workload cluster as the API server has them now; a watch may lag behind a change."""
    listed = await each_of(kinds.all, lambda each: cluster.list(each, namespace=workload.namespace))
    now = Listed(dict(zip(kinds.all, listed, strict=True)), workload.name)
    return objects_in(now, kinds, workload.name)


def objects_in(view: ClusterView | Listed, kinds: ClusterKinds, name: str) -> ClusterObjects:
    """Return the objects of the workload cluster as last seen."""
    body = view.named(kinds.cluster, name)

    def referred(kind: Resource | None, field: str) -> Body | None:
        wanted = field_at(body, "spec", field, "name")
        return view.named(kind, str(wanted)) if kind is not None and wanted else None

    return ClusterObjects(
        cluster=body,
        infrastructure=referred(kinds.infrastructure, "infrastructureRef"),
        control_plane=referred(kinds.control_plane, "controlPlaneRef"),
        workers=[each for kind in kinds.workers for each in view.objects(kind)],
        machines=view.objects(kinds.machines),
        sets=view.objects(kinds.sets) if kinds.sets is not None else (),
    )


@dataclass(frozen=True)
class ClusterWait:
    """The wait of one step for one workload cluster."""

    view: ClusterView
    kinds: ClusterKinds
    workload: WorkloadCluster
    clock: Clock
    timeouts: ClusterTimeouts
    began: Callable[[Phase], Awaitable[datetime]]
    """Returns the time at which this attempt of the step first saw the phase."""
    of_class: Callable[[ClusterObjects], Awaitable[str]]
    """Returns which object is of an earlier form of the Cluster's class; "" if none is."""
    limit: datetime | None
    """The deadline of the command."""

    async def until(self, goal: Goal, progress: Progress, *, within_s: float) -> ClusterObjects | None:
        """Return the objects when the cluster has come to ``goal``; None after ``within_s``.

        Raises ClusterFailed for a permanent failure, and ClusterNotReady when the time of a phase is over.
        """
        loop = asyncio.get_running_loop()
        look_until, reported = loop.time() + within_s, -_SHORTEST_REPORT_S
        while True:
            objects = objects_in(self.view, self.kinds, self.workload.name)
            now = assess(objects, goal, Observation(now=machine_now(self.clock)))
            # Asked only here, because it costs requests, and awaited by the changes that follow.
            behind = await self.of_class(objects) if now.is_done and goal.is_settled else ""
            if now.is_done and not behind:
                return objects
            now = replace(now, message=behind or now.message)
            if now.failure:
                raise ClusterFailed(f"Cluster {self.workload.namespace}/{self.workload.name}: {now.failure}")
            left_s = await self._left_s(now)
            if left_s <= 0:
                raise ClusterNotReady(self._late(now, objects, goal.stage))
            next_report_s = reported + _SHORTEST_REPORT_S - loop.time()
            if next_report_s <= 0:
                reported = loop.time()
                await progress.on(f"Cluster {self.workload.name}", now.message, done=now.ready, total=now.wanted)
            patience = [
                left_s,
                look_until - loop.time(),
                now.again_in_s or left_s,
                *([next_report_s] * (next_report_s > 0)),
            ]
            if not await self.view.change(within_s=min(patience)) and loop.time() >= look_until:
                return None

    async def _left_s(self, now: Assessment) -> float:
        limit = deadline_of(self.limit, await self.began(now.phase), getattr(self.timeouts, now.phase))
        return (limit - self.clock.now()).total_seconds()

    def _late(self, now: Assessment, objects: ClusterObjects, stage: ClusterStage) -> str:
        seconds = f"{getattr(self.timeouts, now.phase):g}"
        text = (
            f"Cluster {self.workload.namespace}/{self.workload.name}: phase {now.phase.replace('_', ' ')} not done in "
            f"{seconds} s, {now.ready} of {now.wanted} Machines ready: {now.message}"
        )
        if stage == "available" and lacks_network(objects):
            return f"{text}. {NO_NETWORK}"
        return text
