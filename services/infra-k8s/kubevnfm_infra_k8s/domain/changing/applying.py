"""Applies a plan to a cluster: checks that no object of others is overwritten, then sends all objects in order."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from kubevnfm_infra_k8s.domain.changing.dry_run import rehearse, webhooks_of
from kubevnfm_infra_k8s.domain.changing.foreign import foreign_among
from kubevnfm_infra_k8s.domain.changing.sending import Sender
from kubevnfm_infra_k8s.domain.changing.stage_run import KeepsData, StageRun, awaited_among
from kubevnfm_infra_k8s.domain.changing.unchangeable import Replacing
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, ObjectsNotReady, StillWaiting
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    NAMESPACES,
    OPERATION_ANNOTATION,
    Body,
    ObjectKey,
    Wanted,
    annotations_of,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.planning.priorities import is_ready_awaited
from kubevnfm_infra_k8s.domain.ports import Releases, SharedObjects
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.claims import taken_claims
from kubevnfm_infra_k8s.domain.reading.existing import find_all, readable
from kubevnfm_infra_k8s.domain.release import Release, Stages
from kubevnfm_infra_k8s.domain.removing.deletion_state import deletion_obstacle, deletion_progress
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.ended_jobs import verdicts_on_ended
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

log = structlog.get_logger()

_LASTING: Final = frozenset({"", "default", "kube-system", "kube-public"})
"""Namespaces that Kubernetes does not let go, and that of cluster-scoped objects."""
_LOOK_S: Final = 1.0
"""Before the next look at what is being deleted."""


@dataclass(frozen=True)
class ApplyRun:
    """The application of one instance's objects in one step."""

    wait: ReadinessWait
    releases: Releases
    shared: SharedObjects
    progress: Progress
    adopt: bool
    rehearses: bool = False
    """Whether a set that changes existing objects is checked by a dry run too."""
    is_undo: bool = False
    """Whether an operation is taken back: what gives way to other managers and was not changed by it, is not sent."""
    only: Collection[ObjectKey] | None = None
    """The objects to apply again, of a set that was applied before; None: all. Those that others share are among them."""
    replacing: Replacing | None = None
    """Which objects may be deleted and created again, if a field of them cannot be changed; None: none."""
    stage_timeout_s: float = 500.0
    """The limit of a wait for objects of a priority that the order gives none."""
    within_s: float = 20.0
    """How long a call may wait for the objects of a priority."""
    keeps_data: KeepsData | None = None
    """See `StageRun`."""

    async def apply(self, plan: Plan, release: Release, *, applied_by: str) -> Release:
        """Send all objects and store the release; return it with the uids.

        Nothing is sent if the check or the dry run rejects an object. Raises StillWaiting if objects of a priority are not
        ready within the time of a call: the next one continues with them.
        """
        objects = [each for each in plan.objects if self.only is None or each.key in self.only]
        persistent = [each for each in objects if each.resource.is_persistent and not each.is_read_only]
        is_first = not any(entry.uid for entry in release.entries)
        # Stored before any object is sent, so that after a crash termination finds all of them. Entries that were never
        # sent are harmless: termination deletes no object without our label.
        if self.only is None:
            release = await self.releases.save(release.planned(persistent, namespace=plan.namespace))
        sharers = await self._hold(persistent)
        there = await self._find_existing(persistent)
        await self._check_going(persistent, there)
        await self._check_namespace(persistent, there, sharers, release)
        sent = [each for each in objects if not (self.is_undo and _is_untouched(each, there.get(each.key)))]
        if self.only is None:
            release = release.completing(release.collected(there.keys(), operation_id=applied_by.partition("/")[0]))
            release = release.completing(await self._ended(persistent, release, there))
        judged = {each.key: each for each in persistent if not each.is_implied}
        found = {key: body for key, body in there.items() if key in judged}
        foreign = foreign_among(list(judged.values()), found, release, sharers)
        taken = await taken_claims(
            self.wait.cluster, self.releases, persistent, there.keys(), self.wait.vnf_instance_id
        )
        if taken:
            # Not taken over either: two instances would write the same data.
            raise ForeignObjects(taken, way_out="rename the StatefulSets or their claim templates")
        if foreign and not self.adopt:
            raise ForeignObjects(foreign, way_out="delete or rename them" if self.only is not None else "")
        adopted = {each.key for each in release.entries if each.is_adopted}
        writable = [each for each in sent if not each.is_read_only]
        replaced: Mapping[ObjectKey, str] = {}
        if is_first or self.rehearses:
            replaced = await self._rehearse(plan, writable, there, {*sharers, *foreign, *adopted})
        keys = {each.key for each in persistent}
        marked = release.sharing(sharers, among=keys).adopting(foreign)
        # For most sets this is what was stored above.
        if self.only is not None or marked != release:
            release = await self.releases.save(marked)
        await self.progress.started(f"{len(objects)} objects", total=len(objects))
        for vdu in plan.without_workload if self.only is None else ():
            message = f"no workload named {vdu.name} in the files, so it has no VNFC"
            await self.progress.on(f"VDU {vdu.vdu_id}", message, done=0, total=len(objects))
        # An object that has done its work, as a Job that has ended, is not made again because a later one has failed. It may have been collected.
        left = [each for each in sent if each.key not in release.complete]
        sender = Sender(
            self.wait,
            self.progress,
            there,
            sharers,
            webhooks_of(plan.objects),
            replaced,
            is_again=self.only is not None,
        )
        run = StageRun(
            plan,
            {each.key for each in left},
            sender,
            self.wait,
            self.releases,
            self.progress,
            release,
            applied_by,
            limit_s=self.stage_timeout_s,
            within_s=self.within_s,
            keeps_data=self.keeps_data,
        )
        await run.apply()
        log.info("objects_applied", namespace=plan.namespace, objects=len(objects))
        # The same attempt may apply some of the objects once more.
        return await self.releases.save(replace(run.release, stages=Stages()).confirmed({}, applied_by=applied_by))

    async def _rehearse(
        self, plan: Plan, objects: Sequence[Wanted], there: Mapping[ObjectKey, Body], not_ours: Collection[ObjectKey]
    ) -> Mapping[ObjectKey, str]:
        """Return the uids of the objects that have to be replaced. Raises ObjectsRefused.

        For objects that exist already, it was done when they were created, unless their manifests are others now.
        """
        replacing = self.replacing and replace(self.replacing, not_ours=not_ours)
        if plan.all_served:
            return await rehearse(self.wait.cluster, objects, there, replacing)
        if replacing is None:
            return {}
        # Before its definition is applied, a custom resource would be rejected.
        present = [each for each in objects if each.key in there]
        return await rehearse(self.wait.cluster, present, there, replacing, only_unchangeable=True)

    async def _ended(
        self, objects: Sequence[Wanted], release: Release, there: Mapping[ObjectKey, Body]
    ) -> Collection[ObjectKey]:
        """Return the Jobs that Kubernetes has removed after a good end which no call has seen: events say so."""
        entries = {each.key: each for each in release.entries}
        gone = [
            each
            for each in awaited_among([one for one in objects if one.key not in there], release)
            if each.is_collected_at_end and entries[each.key].uid
        ]
        verdicts = await verdicts_on_ended(self.wait.cluster, gone) if gone else {}
        return [key for key, verdict in verdicts.items() if verdict.is_current]

    async def _hold(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Sequence[str]]:
        """Join the holders of the cluster-scoped objects; return the other instances by object.

        Raises SharedObjectDiffers.
        """
        mine, cluster = self.wait.vnf_instance_id, self.wait.cluster.endpoint
        scoped = [each for each in objects if not each.resource.namespaced]
        others = await each_of(scoped, lambda each: self.shared.hold(cluster, each.key, each.digest, mine))
        return {each.key: holders for each, holders in zip(scoped, others, strict=True) if holders}

    async def _find_existing(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
        """Return the objects that exist already."""
        cluster = self.wait.cluster
        implied = [each for each in objects if each.is_implied]
        bodies = await each_of(implied, lambda each: cluster.get(each.resource, each.key))
        there = {each.key: body for each, body in zip(implied, bodies, strict=True) if body is not None}
        # In a namespace that is absent there is nothing.
        absent = {each.key.name for each in implied if each.key not in there}
        places = [
            (each.resource, each.key) for each in objects if not each.is_implied and each.key.namespace not in absent
        ]
        found = await find_all(cluster, places, lambda resource, key: readable(cluster, resource, key))
        return there | dict(found)

    async def _check_going(self, objects: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> None:
        """Raise StillWaiting while objects of these names, or the namespaces of these, are being deleted, whosever they are.

        Nothing can be put in their places, and to take them over is of no use. Raises ObjectsNotReady at the deadline.
        """
        found = {**await self._other_namespaces(objects), **there}
        going = {key: body for key, body in found.items() if field_at(body, "metadata", "deletionTimestamp")}
        if not going:
            return
        if self.wait.left_s() <= 0:
            left = "; ".join(deletion_obstacle(key, body) for key, body in going.items())
            raise ObjectsNotReady(f"not gone in time, so that nothing could take the place: {left}")
        said = {str(key): f"{deletion_progress(key, body)}; waits" for key, body in going.items()}
        await self.progress.on_all(said, done=0, total=len(objects))
        await asyncio.sleep(_LOOK_S)
        raise StillWaiting

    async def _other_namespaces(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
        """Return the namespaces of the objects that are not among them and can be deleted, if the credentials may read them."""
        declared = {each.key.name for each in objects if each.key.group_kind == ("", "Namespace")}
        names = sorted({each.key.namespace for each in objects} - declared - _LASTING)
        keys = [ObjectKey(*NAMESPACES.api_kind, "", name) for name in names]
        bodies = await each_of(keys, lambda key: readable(self.wait.cluster, NAMESPACES, key))
        return {key: body for key, body in zip(keys, bodies, strict=True) if body is not None}

    async def _check_namespace(
        self,
        objects: Sequence[Wanted],
        there: Mapping[ObjectKey, Body],
        sharers: Mapping[ObjectKey, Sequence[str]],
        release: Release,
    ) -> None:
        """Raise StillWaiting if an implied Namespace is another one than that of the plan.

        The next call plans for the one that is there then. Raises ObjectsNotReady at the deadline.
        """
        known = {entry.key: entry.uid for entry in release.entries if entry.uid}
        for each in objects:
            body = there.get(each.key) if each.is_implied else None
            if body is None:
                continue
            owners = {self.wait.vnf_instance_id, *sharers.get(each.key, ())}
            is_known = uid_of(body) in {each.joined_uid, known.get(each.key)}
            if is_known or labels_of(body).get(INSTANCE_LABEL) in owners:
                continue
            what = "was made by another party meanwhile"
            if self.wait.left_s() <= 0:
                raise ObjectsNotReady(f"{each.key} {what}")
            await self.progress.on(str(each.key), what, done=0, total=len(objects))
            raise StillWaiting


def _is_untouched(wanted: Wanted, there: Body | None) -> bool:
    """Return whether an object that takes no fields of others was not changed by the operation of the plan."""
    if wanted.takes_fields or there is None:
        return False
    return annotations_of(there).get(OPERATION_ANNOTATION) != annotations_of(wanted.body).get(OPERATION_ANNOTATION)


def awaited(plan: Plan, release: Release) -> Sequence[Awaited]:
    """Return the objects that have to become ready; Jobs that have ended already are not among them."""
    return awaited_among([each for each in plan.objects if is_ready_awaited(each)], release)
