"""Replaces pods and virtual machines of an instance, and waits for as many new ones (capi.md CR-034, multicloud.md MC-062).

Those to replace are known by uid. The cluster shows which of them are gone, so that a call that was interrupted anywhere can
be repeated: a pod of the same name with another uid is the new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog
from kubevnfm_events.objects import PodFacts
from kubevnfm_kit.clock import machine_now

from kubevnfm_infra_k8s.domain.changing.handing_over import apply_left
from kubevnfm_infra_k8s.domain.changing.relabelling import is_ours
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, MachineAtRest, ObjectMissing, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import (
    MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Body,
    ObjectKey,
    Resource,
    Wanted,
    field_at,
    uid_of,
)
from kubevnfm_infra_k8s.domain.ports import Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.kubevirt import (
    needs_restart_request,
    obstacle_to_replacement,
    obstacle_to_restart,
)
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.reading.vdus import controller_of, is_own_workload, is_running, owned_parts, resource_of
from kubevnfm_infra_k8s.domain.release import Entry, Release, Written
from kubevnfm_infra_k8s.domain.removing.deletion_state import pod_obstacle
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

log = structlog.get_logger()

_OF_MACHINES: Final = frozenset({VIRTUAL_MACHINES.kind, "VirtualMachinePool"})
"""The workloads whose instances belong to VirtualMachines."""


@dataclass(frozen=True)
class HealRun:
    """The replacement of some of one instance's pods and machines in one step."""

    wait: ReadinessWait
    releases: Releases
    progress: Progress
    pods: Sequence[PodFacts]
    """The pods and machines to replace."""

    async def check(self, release: Release) -> None:
        """Find out whether each machine would be started again; nothing is changed. Raises MachineAtRest, ObjectMissing."""
        workloads = {entry.vdu_id: entry.key for entry in release.entries}
        for pod in self.pods:
            if resource_of(pod) != MACHINE_INSTANCES or is_own_workload(pod):
                continue
            workload = workloads.get(pod.vdu_id)
            if pod.owner_kind in _OF_MACHINES:
                # An instance has the name of its VirtualMachine.
                await self._check_machine(ObjectKey(*VIRTUAL_MACHINES.api_kind, pod.namespace, pod.name), pod)
            elif workload is not None:
                body = await self.wait.cluster.get(await self._resource_of(workload), workload)
                if reason := obstacle_to_replacement(body or {}):
                    raise MachineAtRest(workload, reason)

    async def _check_machine(self, machine: ObjectKey, pod: PodFacts) -> None:
        cluster = self.wait.cluster
        there = await cluster.get(MACHINE_INSTANCES, replace(machine, kind=MACHINE_INSTANCES.kind))
        body = await cluster.get(VIRTUAL_MACHINES, machine)
        if body is None and pod.owner_kind == VIRTUAL_MACHINES.kind:
            raise ObjectMissing(machine)
        if body is not None and (reason := obstacle_to_restart(body, is_there=there is not None)):
            raise MachineAtRest(machine, reason)

    async def end(self) -> bool:
        """Begin to end the pods and machines; return whether all are gone. Raises ObjectsNotReady at the deadline."""
        left: dict[str, str] = {}
        for pod in self.pods:
            resource = resource_of(pod)
            key = ObjectKey(*resource.api_kind, pod.namespace, pod.name)
            body = await self.wait.cluster.get(resource, key)
            if body is None or uid_of(body) != pod.uid:
                continue
            if not field_at(body, "metadata", "deletionTimestamp"):
                await self._end(resource, key, body)
            left[str(key)] = pod_obstacle(body, self.wait.clock.now()) or "ends"
        await self.progress.on_all(left, done=len(self.pods) - len(left), total=len(self.pods))
        if left and self.wait.left_s() <= 0:
            raise ObjectsNotReady(f"did not end in time: {'; '.join(f'{key}: {said}' for key, said in left.items())}")
        return not left

    async def _end(self, resource: Resource, key: ObjectKey, body: Body) -> None:
        machine = await self._machine_of(body) if resource == MACHINE_INSTANCES else None
        there = await self.wait.cluster.get(VIRTUAL_MACHINES, machine) if machine is not None else None
        if machine is not None and there is not None and needs_restart_request(there):
            await self.wait.cluster.restart_machine(machine)
        else:
            await self.wait.cluster.delete(resource, key, uid=uid_of(body))
        log.info("vnfc_ended", object=str(key))

    async def _machine_of(self, instance: Body | None) -> ObjectKey | None:
        """Return the VirtualMachine of an instance; None if a set, or nothing, has made it."""
        owner = controller_of(instance or {})
        if owner.get("kind") != VIRTUAL_MACHINES.kind:
            return None
        namespace = str(field_at(instance, "metadata", "namespace") or "")
        return ObjectKey(*VIRTUAL_MACHINES.api_kind, namespace, str(owner.get("name")))

    async def create_bare(self, wanted: Mapping[ObjectKey, Wanted], release: Release) -> Release:
        """Create what was deleted and no workload creates again; return the release with the uids.

        ``wanted``: the objects of the manifests. Raises ObjectMissing if the manifests no longer have one of them.
        """
        created: dict[ObjectKey, Written] = {}
        given = {key.identity: key for key in wanted}
        for pod in self.pods:
            if not is_own_workload(pod):
                continue
            resource = resource_of(pod)
            key = ObjectKey(*resource.api_kind, pod.namespace, pod.name)
            key = given.get(key.identity, key)
            body = await self.wait.cluster.get(resource, key)
            if body is None:
                if key not in wanted:
                    raise ObjectMissing(key)
                body = await apply_left(self.wait.cluster, wanted[key], wanted[key].body, None)
            created[key] = Written.from_body(body, wanted.get(key))
        after = release.written(created)
        return release if after == release else await self.releases.save(after)

    async def is_whole(self, release: Release, *, within_s: float) -> bool:
        """Return whether the workloads of the pods are ready and have as many ready pods as they want.

        Raises: ObjectMissing for a workload that does not exist; ObjectFailed, ObjectsNotReady.
        """
        vdu_ids = {pod.vdu_id for pod in self.pods}
        entries = [entry for entry in release.entries if entry.vdu_id in vdu_ids]
        awaited = [Awaited(entry.key, await self._resource(entry, release)) for entry in entries]
        bodies = await self.wait.until_ready(awaited, self.progress, within_s=within_s)
        if bodies is None:
            return False
        # A workload's own status can still count the pods that were deleted just now.
        lacking = await self._lacking(entries, bodies)
        return await self.wait.is_complete(lacking, self.progress, total=len(entries))

    async def _resource(self, entry: Entry, release: Release) -> Resource:
        cluster, key = self.wait.cluster, entry.key
        resource = await self._resource_of(key)
        body = await cluster.get(resource, key)
        if body is None:
            raise ObjectMissing(key)
        if not await is_ours(cluster, resource, key, body, release):
            raise ForeignObjects([key])
        return resource

    async def _resource_of(self, key: ObjectKey) -> Resource:
        resource = await self.wait.cluster.resource(*key.api_kind)
        if resource is None:
            raise ObjectMissing(key)
        return resource

    async def _lacking(self, entries: Sequence[Entry], bodies: Mapping[ObjectKey, Body]) -> Sequence[tuple[str, str]]:
        found = await running_parts(self.wait.cluster, self.wait.vnf_instance_id, [entry.key for entry in entries])
        uids = {uid_of(bodies[entry.key]): entry.key for entry in entries}
        ready = dict.fromkeys(uids.values(), 0)
        seen = Observation(now=machine_now(self.wait.clock))
        for pod, owner in owned_parts(uids, found):
            ready[uids[owner]] += is_running(pod) and judge(pod, seen).is_current
        counts = [(key, count, _wanted(bodies[key])) for key, count in ready.items()]
        return [(str(key), f"{count} of {wanted} ready") for key, count, wanted in counts if count < wanted]


def _wanted(body: Body) -> int:
    """Return the number of pods or machines that a workload wants."""
    if body.get("kind") == "DaemonSet":
        return int(field_at(body, "status", "desiredNumberScheduled") or 0)
    replicas = field_at(body, "spec", "replicas")
    return replicas if isinstance(replicas, int) else 1
