"""Applies a plan to a cluster: checks that no object of others is overwritten, then sends all objects in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_csar.waits import Wait
from kubevnfm_kit.clock import rfc3339

from kubevnfm_infra_k8s.domain.changing.dry_run import rehearse, webhooks_of
from kubevnfm_infra_k8s.domain.changing.sending import Sender
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import (
    ForeignObjects,
    ObjectFailed,
    ObjectRefused,
    ObjectsNotReady,
    ObjectsRefused,
    StillWaiting,
)
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Wanted, field_at, labels_of
from kubevnfm_infra_k8s.domain.planning.order import Wave, waves
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.planning.priorities import Stage, is_ready_awaited, stages
from kubevnfm_infra_k8s.domain.ports import Releases, SharedObjects
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.claims import taken_claims
from kubevnfm_infra_k8s.domain.reading.existing import find_all, readable
from kubevnfm_infra_k8s.domain.release import Entry, Release, Stages
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

log = structlog.get_logger()

_NAMED: Final = 5
"""The most objects that the progress of a priority names."""


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
    only: Collection[ObjectKey] | None = None
    """The objects to apply again, of a set that was applied before; None: all. Those that others share are among them."""
    stage_timeout_s: float = 500.0
    """The limit of a wait for objects of a priority that the order gives none."""
    within_s: float = 20.0
    """How long a call may wait for the objects of a priority."""

    async def apply(self, plan: Plan, release: Release, *, applied_by: str) -> Release:
        """Send all objects and store the release; return it with the uids.

        Nothing is sent if the check or the dry run rejects an object. Raises StillWaiting if objects of a priority are not
        ready within the time of a call: the next one continues with them.
        """
        objects = [each for each in plan.objects if self.only is None or each.key in self.only]
        persistent = [each for each in objects if each.resource.is_persistent]
        is_first = not any(entry.uid for entry in release.entries)
        # Stored before any object is sent, so that after a crash termination finds all of them. Entries that were never
        # sent are harmless: termination deletes no object without our label.
        if self.only is None:
            release = await self.releases.save(release.planned(persistent, namespace=plan.namespace))
        sharers = await self._hold(persistent)
        there = await self._find_existing(persistent)
        foreign = self._foreign(there, sharers, release)
        taken = await taken_claims(
            self.wait.cluster, self.releases, persistent, there.keys(), self.wait.vnf_instance_id
        )
        if taken:
            # Not taken over either: two instances would write the same data.
            raise ForeignObjects(taken, way_out="rename the StatefulSets or their claim templates")
        if foreign and not self.adopt:
            raise ForeignObjects(foreign, way_out="delete or rename them" if self.only is not None else "")
        # Before its definition is applied, a custom resource would be rejected. For objects that exist already, the dry
        # run was done when they were created, unless their manifests are others now.
        if plan.all_served and (is_first or self.rehearses):
            await rehearse(self.wait.cluster, objects)
        keys = {each.key for each in persistent}
        release = await self.releases.save(release.sharing(sharers, among=keys).adopting(foreign))
        await self.progress.started(f"{len(objects)} objects", total=len(objects))
        for vdu in plan.without_workload if self.only is None else ():
            message = f"no workload named {vdu.name} in the files, so it has no VNFC"
            await self.progress.on(f"VDU {vdu.vdu_id}", message, done=0, total=len(objects))
        # A Job that has ended must not run again because a later object has failed. It may have been collected.
        left = [each for each in objects if each.key not in release.complete]
        sender = Sender(
            self.wait, self.progress, there, sharers, webhooks_of(plan.objects), is_again=self.only is not None
        )
        run = StageRun(self, plan, sender, release, applied_by)
        # From the whole plan, so that the stages are the same ones in a call that finds some of the objects done.
        for stage in stages(plan.objects):
            await run.apply(stage, {each.key for each in left})
        log.info("objects_applied", namespace=plan.namespace, objects=len(objects))
        # The same attempt may apply some of the objects once more.
        return await self.releases.save(replace(run.release, stages=Stages()).confirmed({}, applied_by=applied_by))

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
        places = [(each.resource, each.key) for each in objects]
        return await find_all(cluster, places, lambda resource, key: readable(cluster, resource, key))

    def _foreign(
        self, there: Mapping[ObjectKey, Body], sharers: Mapping[ObjectKey, Sequence[str]], release: Release
    ) -> Sequence[ObjectKey]:
        """Return those of the existing objects that belong neither to this instance nor to one that shares them."""
        mine = self.wait.vnf_instance_id
        return [
            key
            for key, body in there.items()
            if labels_of(body).get(INSTANCE_LABEL) not in {mine, *sharers.get(key, ())}
            and not release.has_lost_label(key, body)
        ]


@dataclass
class StageRun:
    """The application of the stages of a plan, one after the other."""

    run: ApplyRun
    plan: Plan
    sender: Sender
    release: Release
    """As it is stored."""
    attempt: str

    async def apply(self, stage: Stage, wanted: Collection[ObjectKey]) -> None:
        """Send those objects of the stage that are ``wanted``, and wait for them, unless an earlier call of the attempt has done so."""
        position = self.release.stages_of(self.attempt)
        if stage.number <= position.ended:
            return
        try:
            if position.sent_at is None:
                await self._send([each for each in stage.objects if each.key in wanted])
                position = replace(position, sent_at=self.run.wait.clock.now())
                await self._save(position, stage)
            assert position.sent_at is not None
            await self._await(stage, position.sent_at, wanted)
        except (ObjectRefused, ObjectsRefused, ObjectFailed, ObjectsNotReady) as error:
            if stage.is_ordered:
                error.args = (f"{stage}: {error}",)
            raise
        # A retry after the failure of a later stage must not run Jobs again, which may have been collected by then.
        self.release = self.release.completing(self.run.wait.complete)
        await self._save(replace(position, ended=stage.number, sent_at=None), stage)

    async def _send(self, objects: Sequence[Wanted]) -> None:
        unsent = {each.key for each in objects}
        postponed: list[Wanted] = []
        for wave in waves(objects):
            await self._wait_for(wave)
            sent = await self.sender.send([*postponed, *wave.objects], unsent=unsent)
            # Stored now: a rollback after a crash then knows which objects are ours.
            self.release = await self.run.releases.save(self.release.written(sent.written))
            postponed = [each for each, _ in sent.refused]
            unsent -= sent.written.keys()
        self.release = self.release.written(await self.sender.send_rest(postponed))

    async def _wait_for(self, wave: Wave) -> None:
        needed = [Awaited(each.key, each.resource) for each in self.plan.objects if each.key in wave.after_ready]
        await self.run.wait.until_ready(needed, self.run.progress)

    async def _await(self, stage: Stage, sent_at: datetime, wanted: Collection[ObjectKey]) -> None:
        """Return when all waits of the stage hold. Raises StillWaiting."""
        wait, total = self.run.wait, len(stage.objects)
        # The shortest limit first: meanwhile the others go on too.
        for limit_s, objects in stage.awaited(wanted, self.run.stage_timeout_s).items():
            named = ", ".join(str(each.key) for each in objects[:_NAMED]) + (", ..." if len(objects) > _NAMED else "")
            await self.run.progress.on(str(stage), f"waits since {rfc3339(sent_at)} for {named}", done=0, total=total)
            stage_wait = replace(wait, deadline=min(wait.deadline, sent_at + timedelta(seconds=limit_s)))
            found = _awaited(objects, self.release)
            if await stage_wait.until_ready(found, self.run.progress, within_s=self.run.within_s) is None:
                raise StillWaiting
        if stage.is_ordered:
            await self.run.progress.on(str(stage), "is done", done=total, total=total)

    async def _save(self, position: Stages, stage: Stage) -> None:
        # Without an order there is nothing to continue with but the wait for all objects.
        if stage.is_ordered:
            self.release = await self.run.releases.save(replace(self.release, stages=position))


def awaited(plan: Plan, release: Release) -> Sequence[Awaited]:
    """Return the objects that have to become ready; Jobs that have ended already are not among them."""
    return _awaited([each for each in plan.objects if is_ready_awaited(each)], release)


def _awaited(objects: Sequence[Wanted], release: Release) -> Sequence[Awaited]:
    entries = {entry.key: entry for entry in release.entries}
    return [
        _of_entry(each, entries[each.key])
        for each in objects
        if each.resource.is_persistent and not entries[each.key].is_complete
    ]


def _of_entry(wanted: Wanted, entry: Entry) -> Awaited:
    return Awaited(
        wanted.key,
        wanted.resource,
        is_shared=entry.is_shared,
        uid=entry.uid,
        is_collected_at_end=field_at(wanted.body, "spec", "ttlSecondsAfterFinished") is not None,
        wanted=wanted.artifact.wanted if wanted.artifact is not None else None,
        only_exists=wanted.artifact is not None and wanted.artifact.wait is Wait.EXISTS,
    )
