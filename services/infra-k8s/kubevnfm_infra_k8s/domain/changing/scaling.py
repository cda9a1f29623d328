"""Sets the number of replicas of objects of any kind that has a ``scale`` subresource (capi.md CR-033, CR-086).

The objects that Cluster API makes from the topology of a Cluster get theirs from there (chapter 12). The counts are absolute and the
cluster keeps them, so that a call that was interrupted anywhere can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog
from kubevnfm_csar.claimed_volumes import ALONE, mounted_claims
from kubevnfm_events.objects import ObjectCount, ObjectFacts
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_k8s.domain.autoscalers import Autoscalers, Limits
from kubevnfm_infra_k8s.domain.capi.topology import limits_of_part, owner_of_part, part_of, with_part_count
from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_part, applied_version
from kubevnfm_infra_k8s.domain.changing.relabelling import is_ours
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import (
    Autoscaled,
    Forbidden,
    ForeignObjects,
    MachinesMissing,
    NotScalable,
    ObjectMissing,
    OutsideAutoscaler,
    UnknownKinds,
)
from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, Resource, field_at, name_of, uid_of
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.autoscaling import autoscalers_of
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.vdus import owned_parts
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

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
    part: str = ""
    """A Cluster: the part of its topology that has the number."""
    is_made: bool = False
    """Whether Cluster API has made it from a topology: it carries no label of ours."""


@dataclass(frozen=True)
class ScaleRun:
    """The scaling of one instance's objects in one step."""

    wait: ReadinessWait
    progress: Progress
    is_undo: bool = False
    """Whether earlier numbers are restored."""

    async def find(self, counts: Sequence[ObjectCount], release: Release) -> Sequence[Scaled]:
        """Return the objects to scale; nothing is changed.

        Those of an autoscaler whose number the request does not change, or that an undo cannot restore, are left out. Raises:
        NotScalable, UnknownKinds, ObjectMissing, ForeignObjects, Autoscaled, OutsideAutoscaler naming the object; Unprocessable
        for a part that the topology of a Cluster does not have, and for a claim that one pod alone can mount.
        """
        namespaces = {each.namespace for each in counts if each.namespace and each.topology is None}
        autoscalers = await autoscalers_of(self.wait.cluster, namespaces)
        found = await each_of(counts, lambda each: self._find(each, release, autoscalers))
        return [each for each in found if each is not None]

    async def _find(self, wanted: ObjectCount, release: Release, autoscalers: Autoscalers) -> Scaled | None:
        key = ObjectKey(wanted.api_version, wanted.kind, wanted.namespace or "", wanted.name)
        resource = await self._resource(*key.api_kind)
        if wanted.topology is None and not resource.is_scalable:
            raise NotScalable(key)
        body = await self.wait.cluster.get(resource, key)
        if body is None:
            raise ObjectMissing(key)
        if not await is_ours(self.wait.cluster, resource, key, body, release):
            raise ForeignObjects([key])
        if wanted.topology is not None:
            return await self._find_in_topology(key, resource, body, wanted.topology, wanted)
        owner, limits = autoscalers.owner_of(key, body, body), Limits.from_object(body)
        if owner is not None and not wanted.is_change:
            return None
        if owner is not None and not owner.keeps_given_numbers:
            if self.is_undo:
                # The autoscaler has come since the scaling, and chooses the number from now on.
                return None
            raise Autoscaled(key, wanted.count, owner)
        if not limits.allow(wanted.count):
            raise OutsideAutoscaler(key, wanted.count, limits.in_words)
        # A rollback refuses nothing.
        if wanted.count > 1 and wanted.is_change and not self.is_undo:
            await self._check_claims(key, body, wanted.count)
        return Scaled(key, resource, uid_of(body), wanted.count)

    async def _check_claims(self, key: ObjectKey, body: Body, count: int) -> None:
        """Raise Unprocessable if several pods would mount a claim that one pod can have: all but one would never start."""
        for name in mounted_claims(body):
            try:
                claim = await self.wait.cluster.get(CLAIMS, replace(key, api_version="v1", kind=CLAIMS.kind, name=name))
            except Forbidden:
                return
            if field_at(claim, "spec", "accessModes") == [ALONE]:
                reason = f"{key}: up to 1 replica expected, found {count}: it mounts the claim {name}, which is {ALONE}"
                raise Unprocessable("spec.template.spec.volumes", reason)

    async def _find_in_topology(
        self, key: ObjectKey, resource: Resource, body: Body, name: str, wanted: ObjectCount
    ) -> Scaled | None:
        part = part_of(body, name)
        if part is None:
            raise Unprocessable("spec.topology", f"{key} has no {name} there, whose number is to change")
        limits, count = limits_of_part(part), wanted.count
        if limits.are_complete and not wanted.is_change:
            return None
        if not limits.allow(count):
            raise OutsideAutoscaler(key, count, limits.in_words)
        if not limits.are_complete:
            return Scaled(key, resource, uid_of(body), count, name)
        # The topology has no number, so that the autoscaler can choose it; that of the object itself is not reverted.
        owner = await owner_of_part(self.wait.cluster, key, body, name)
        if owner is None:
            raise ObjectMissing(
                ObjectKey(key.api_version, "MachineDeployment", key.namespace, f"of {key.name}, {name}")
            )
        return _owned(*owner, count)

    async def scale(self, objects: Sequence[Scaled], *, within_s: float, leaving: Sequence[ObjectFacts] = ()) -> bool:
        """Set the counts and return True once they are reached and all is ready; False: call again.

        ``leaving``: Machines that Cluster API is to choose first (capi.md CR-090). Raises ObjectFailed, ObjectsNotReady;
        MachinesMissing for one that is gone although no count was set yet, as another one would leave in its place.
        """
        present = await each_of(objects, self._wanted_now)
        left_to_scale = [each for each, count in zip(objects, present, strict=True) if count != each.count]
        if left_to_scale:
            for machine in leaving:
                await self._choose(machine, is_begun=len(left_to_scale) < len(objects))
        for each in left_to_scale:
            await self._set(each)
            log.info("object_scaled", object=str(each.key), part=each.part or None, replicas=each.count)
            await self.progress.on(str(each.key), f"{each.count} replicas wanted", done=0, total=len(objects))
        made = [each for each in objects if not each.part]
        left: list[tuple[str, str]] = []
        for each in objects:
            if each.part:
                owner, behind = await self._owner(each)
                made += [owner] if owner is not None else []
                left += [(str(each.key), behind)] if behind else []
        if not left:
            awaited = [Awaited(each.key, each.resource, is_shared=each.is_made) for each in made]
            if await self.wait.until_ready(awaited, self.progress, within_s=within_s) is None:
                return False
            left = [*await self._uncounted(made), *await self._ending(made)]
        return await self.wait.is_complete(left, self.progress, total=len(left))

    async def _wanted_now(self, each: Scaled) -> int | None:
        """Return the present number of replicas in the spec; None: none is written."""
        if not each.part:
            return _replicas(await self._scale_of(each), "spec")
        count = (part_of(await self._body(each), each.part) or {}).get("replicas")
        return count if isinstance(count, int) else None

    async def _set(self, each: Scaled) -> None:
        if not each.part:
            await self.wait.cluster.scale(each.resource, each.key, replicas=each.count)
            return
        resource, body = each.resource, await self._body(each)
        version = applied_version(body) or resource.api_version
        if version != resource.api_version:
            # The fields are known in the version in which they were applied (capi.md CR-038).
            resource = await self._resource(version, each.key.kind)
            body = await self._body(replace(each, resource=resource))
        config = applied_part(body, each.key) or {
            **{name: body[name] for name in ("apiVersion", "kind")},
            "metadata": {"name": each.key.name, "namespace": each.key.namespace, "uid": each.uid},
            # Without a record of our fields, all that a list has must be sent, as it may be replaced as a whole.
            "spec": {"topology": field_at(body, "spec", "topology")},
        }
        await self.wait.cluster.apply(resource, each.key, with_part_count(config, body, each.part, each.count))

    async def _owner(self, each: Scaled) -> tuple[Scaled | None, str]:
        """Return the object that gets its number from the topology, and what it waits for; "" if it has the number."""
        found = await owner_of_part(self.wait.cluster, each.key, await self._body(each), each.part)
        if found is None:
            return None, f"the object of {each.part} in the topology is not made yet"
        owner = _owned(*found, each.count)
        now = field_at(found[1], "spec", "replicas")
        return owner, "" if now == each.count else f"{owner.key} has {now} of {each.count} replicas of the topology"

    async def _resource(self, api_version: str, kind: str) -> Resource:
        found = await self.wait.cluster.resource(api_version, kind)
        if found is None:
            raise UnknownKinds([f"{api_version} {kind}"])
        return found

    async def _body(self, each: Scaled) -> Body:
        body = await self.wait.cluster.get(each.resource, each.key)
        if body is None:
            raise ObjectMissing(each.key)
        return body

    async def _choose(self, machine: ObjectFacts, *, is_begun: bool) -> None:
        key = ObjectKey(machine.api_version, machine.kind, machine.namespace or "", machine.name)
        resource = await self._resource(*key.api_kind)
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
        """Return the pods and machines that still end: until then they occupy what the scaling is to release."""
        found = await running_parts(self.wait.cluster, self.wait.vnf_instance_id, [each.key for each in objects])
        parts = owned_parts({each.uid for each in objects}, found)
        return [
            (f"{body['kind']} {field_at(body, 'metadata', 'namespace')}/{name_of(body)}", "ends")
            for body, _ in parts
            if field_at(body, "metadata", "deletionTimestamp")
        ]

    async def _scale_of(self, each: Scaled) -> Body:
        scale = await self.wait.cluster.scale(each.resource, each.key)
        if scale is None:
            raise ObjectMissing(each.key)
        return scale


def _owned(resource: Resource, body: Body, count: int) -> Scaled:
    return Scaled(resource.key(body), resource, uid_of(body), count, is_made=True)


def _replicas(scale: Body, part: str) -> int:
    # A count of 0 is left out of the Scale's JSON.
    return int(field_at(scale, part, "replicas") or 0)
