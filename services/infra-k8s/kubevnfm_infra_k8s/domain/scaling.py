"""Sets the number of replicas of objects of any kind that has a ``scale`` subresource (capi.md CR-033, CR-086).

The counts are absolute and the cluster keeps them, so that a call that was interrupted anywhere can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_events.infra import ObjectCount, ObjectFacts

from kubevnfm_infra_k8s.domain.capi.autoscaling import Limits
from kubevnfm_infra_k8s.domain.errors import (
    ForeignObjects,
    MachinesMissing,
    NotScalable,
    ObjectMissing,
    ObjectsNotReady,
    OutsideAutoscaler,
    UnknownKinds,
)
from kubevnfm_infra_k8s.domain.facts import instance_pods
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.ready_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.relabelling import is_ours
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.together import each_of
from kubevnfm_infra_k8s.domain.vdus import owned_pods
from kubevnfm_infra_k8s.domain.waiting import Awaited

log = structlog.get_logger()

DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
"""Cluster API deletes Machines with this annotation first when their number goes down."""


@dataclass(frozen=True)
class Scaled:
    """An object and its wanted number of replicas."""

    key: ObjectKey
    resource: Resource
    uid: str
    count: int


@dataclass(frozen=True)
class ScaleRun:
    """The scaling of one instance's objects in one step."""

    wait: ReadinessWait
    progress: Progress

    async def find(self, counts: Sequence[ObjectCount], release: Release) -> Sequence[Scaled]:
        """Return the objects to scale; nothing is changed.

        Raises: NotScalable, UnknownKinds, ObjectMissing, ForeignObjects, OutsideAutoscaler naming the object.
        """
        return await each_of(counts, lambda each: self._find(each, release))

    async def _find(self, wanted: ObjectCount, release: Release) -> Scaled:
        key = ObjectKey(wanted.api_version, wanted.kind, wanted.namespace or "", wanted.name)
        resource = await self.wait.cluster.resource(key.api_version, key.kind)
        if resource is None:
            raise UnknownKinds([f"{key.api_version} {key.kind}"])
        if not resource.is_scalable:
            raise NotScalable(key)
        body = await self.wait.cluster.get(resource, key)
        if body is None:
            raise ObjectMissing(key)
        if not await is_ours(self.wait.cluster, resource, key, body, release):
            raise ForeignObjects([key])
        limits = Limits.from_object(body)
        if not limits.allow(wanted.count):
            raise OutsideAutoscaler(key, wanted.count, limits.in_words)
        return Scaled(key, resource, uid_of(body), wanted.count)

    async def scale(self, objects: Sequence[Scaled], *, within_s: float, leaving: Sequence[ObjectFacts] = ()) -> bool:
        """Set the counts and return True once they are reached and all is ready; False: call again.

        ``leaving``: Machines that Cluster API is to choose first (capi.md CR-090). Raises ObjectFailed, ObjectsNotReady;
        MachinesMissing for one that is gone although no count was set yet, as another one would leave in its place.
        """
        left_to_scale = [each for each in objects if _replicas(await self._scale_of(each), "spec") != each.count]
        if left_to_scale:
            for machine in leaving:
                await self._choose(machine, is_begun=len(left_to_scale) < len(objects))
        for each in objects:
            if each in left_to_scale:
                await self.wait.cluster.scale(each.resource, each.key, replicas=each.count)
                log.info("object_scaled", object=str(each.key), replicas=each.count)
                await self.progress.on(str(each.key), f"{each.count} replicas wanted", done=0, total=len(objects))
        awaited = [Awaited(each.key, each.resource) for each in objects]
        if await self.wait.until_ready(awaited, self.progress, within_s=within_s) is None:
            return False
        left = [*await self._uncounted(objects), *await self._ending(objects)]
        for subject, message in left:
            await self.progress.on(subject, message, done=0, total=len(left))
        if left and self.wait.left_s() <= 0:
            raise ObjectsNotReady("; ".join(f"{subject}: {message}" for subject, message in left))
        return not left

    async def _choose(self, machine: ObjectFacts, *, is_begun: bool) -> None:
        key = ObjectKey(machine.api_version, machine.kind, machine.namespace or "", machine.name)
        resource = await self.wait.cluster.resource(key.api_version, key.kind)
        if resource is None:
            raise UnknownKinds([f"{key.api_version} {key.kind}"])
        body = await self.wait.cluster.get(resource, key)
        if body is not None and uid_of(body) == machine.uid:
            change = {"metadata": {"uid": machine.uid, "annotations": {DELETE_MACHINE: ""}}}
            body = await self.wait.cluster.patch(resource, key, change)
        if (body is None or uid_of(body) != machine.uid) and not is_begun:
            raise MachinesMissing([machine.name])

    async def _uncounted(self, objects: Sequence[Scaled]) -> Sequence[tuple[str, str]]:
        """Return the objects whose controller has not reached the count; kinds of others have no other common sign."""
        there = [(each, _replicas(await self._scale_of(each), "status")) for each in objects]
        return [(str(each.key), f"{now} of {each.count} replicas") for each, now in there if now != each.count]

    async def _ending(self, objects: Sequence[Scaled]) -> Sequence[tuple[str, str]]:
        """Return the pods that still end: until then they occupy what the scaling is to release."""
        found = await instance_pods(self.wait.cluster, self.wait.vnf_instance_id, [each.key for each in objects])
        pods = owned_pods({each.uid for each in objects}, pods=found.pods, replica_sets=found.replica_sets)
        return [
            (f"Pod {field_at(pod, 'metadata', 'namespace')}/{field_at(pod, 'metadata', 'name')}", "ends")
            for pod, _ in pods
            if field_at(pod, "metadata", "deletionTimestamp")
        ]

    async def _scale_of(self, each: Scaled) -> Body:
        scale = await self.wait.cluster.scale(each.resource, each.key)
        if scale is None:
            raise ObjectMissing(each.key)
        return scale


def _replicas(scale: Body, part: str) -> int:
    # A count of 0 is left out of the Scale's JSON.
    return int(field_at(scale, part, "replicas") or 0)
