"""Runs the hooks of one point, one after another; each step of it is stored, so that a killed worker repeats none that has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NoReturn

import structlog
from kubevnfm_csar.hooks import HookDelete, Point
from kubevnfm_csar.waits import Wait
from kubevnfm_kit.clock import rfc3339

from kubevnfm_infra_k8s.domain.errors import (
    ForeignObjects,
    HookFailed,
    ObjectFailed,
    ObjectRefused,
    ObjectsNotGone,
    ObjectsNotReady,
    StillWaiting,
)
from kubevnfm_infra_k8s.domain.hooks.words import last_words
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    OF_KUBERNETES,
    Body,
    ObjectKey,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.planning.preparing import labelled
from kubevnfm_infra_k8s.domain.ports import Propagation, Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.release import HookRecord, Release
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, viewing
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

log = structlog.get_logger()

_JOB: Final = ("batch/v1", "Job")
_COLLECTED_AFTER: Final = "ttlSecondsAfterFinished"
RUN_LABEL: Final = "kubevnfm.io/hook-run"
"""On the object of a hook: the run for which it was created."""


@dataclass
class HookRun:
    """The run of an instance's hooks by one step attempt."""

    wait: ReadinessWait
    releases: Releases
    progress: Progress
    release: Release
    """As it is stored."""
    run: str
    """Operation, step and occasion; a hook that has succeeded for them does not run again."""
    attempt: str
    limit_s: float
    """The time for a hook that the order gives none."""
    within_s: float
    """How long a call may wait for a hook."""

    async def run_all(self, hooks: Sequence[PlannedHook], point: Point) -> Release:
        """Run hooks, those that have succeeded before excepted; return the release. Raises StillWaiting, HookFailed, ForeignObjects."""
        is_over = all(self._has_succeeded(each, point) for each in hooks)
        for number, hook in enumerate(hooks if not is_over else (), start=1):
            name = f"{point} hook {hook.key} ({number} of {len(hooks)})"
            try:
                await self.run_one(hook, point, name)
            except (HookFailed, ForeignObjects, ObjectsNotGone):
                await self.clean(hooks, point)
                raise
            await self.progress.on(name, "has succeeded", done=number, total=len(hooks))
        await self.clean(hooks, point)
        return self.release

    def _has_succeeded(self, hook: PlannedHook, point: Point) -> bool:
        record = self.release.hook_record(hook.key, point)
        return record is not None and record.run == self.run and record.ended == "succeeded"

    async def run_one(self, hook: PlannedHook, point: Point, name: str) -> None:
        """Run one hook, unless it has succeeded before; `clean` follows. Raises StillWaiting, HookFailed, ForeignObjects, ObjectsNotGone."""
        record = self.release.hook_record(hook.key, point)
        is_mine = record is not None and record.run == self.run
        if record is None or not is_mine or not self._counts(hook, record):
            await self._make_way(hook, name, is_again=is_mine)
            record = HookRecord(hook.key, point, self.run, self.attempt, self.wait.clock.now())
            # Before it is sent: a worker that continues knows that it may exist.
            await self._save(record)
        if record.ended == "succeeded":
            return
        if record.ended == "failed":
            raise HookFailed(record.reason)
        try:
            record = await self._sent(hook, record)
            await self._await(hook, record, name)
        except (ObjectRefused, ObjectFailed, ObjectsNotReady) as error:
            await self._fail(hook, record, f"{name}: {error}")
        await self._save(replace(record, ended="succeeded"))
        log.info("hook_succeeded", hook=str(hook.key), point=point)

    def _counts(self, hook: PlannedHook, record: HookRecord) -> bool:
        """Return whether a run of this or an earlier attempt is continued, or its result stands."""
        if record.ended == "succeeded":
            # A ServiceAccount that went with the failure of a later hook is needed again, a Job has done its work.
            return hook.runs_to_an_end or not (record.is_gone or record.is_going)
        return record.attempt == self.attempt

    async def _make_way(self, hook: PlannedHook, name: str, *, is_again: bool) -> None:
        """Have the object of an earlier run deleted; ``is_again``: it is one of this operation."""
        cluster = self.wait.cluster
        there = await cluster.get(hook.resource, hook.key)
        if there is None:
            return
        self._check_ours(hook, there)
        if HookDelete.BEFORE_CREATION not in hook.hook.delete and not is_again:
            lacking = f"exists from an earlier run, and its hook_delete has no {HookDelete.BEFORE_CREATION}"
            raise HookFailed(f"{name}: {lacking}: delete it")
        if not field_at(there, "metadata", "deletionTimestamp"):
            await cluster.delete(hook.resource, hook.key, uid=uid_of(there), propagation=propagation_of(hook.key))
        awaited = [Awaited(hook.key, hook.resource, is_shared=True)]
        async with viewing(cluster, awaited, vnf_instance_id=self.wait.vnf_instance_id) as view:
            while hook.key in view.bodies and uid_of(view.bodies[hook.key]) == uid_of(there):
                left_s = self.wait.left_s()
                if left_s <= 0:
                    raise ObjectsNotGone(f"{name}: the object of an earlier run is not deleted in time")
                await self.progress.on(name, "the object of an earlier run is being deleted", done=0, total=1)
                if not await view.change([hook.key], within_s=min(left_s, self.within_s)):
                    raise StillWaiting

    def _check_ours(self, hook: PlannedHook, there: Body) -> None:
        if labels_of(there).get(INSTANCE_LABEL) != self.wait.vnf_instance_id:
            raise ForeignObjects([hook.key], way_out="delete or rename them")

    async def _sent(self, hook: PlannedHook, record: HookRecord) -> HookRecord:
        """Return the record with the object's uid; create the object, unless a call before has done so."""
        if record.uid:
            return record
        cluster, label = self.wait.cluster, run_label(record.run, record.attempt, record.point)
        there = await cluster.get(hook.resource, hook.key)
        if there is None:
            there = await cluster.create(hook.resource, hook.key, labelled(_lasting(hook), {RUN_LABEL: label}))
        if there is None or labels_of(there).get(RUN_LABEL) != label:
            raise ForeignObjects([hook.key], way_out="delete or rename them")
        record = replace(record, uid=uid_of(there))
        await self._save(record)
        return record

    async def _await(self, hook: PlannedHook, record: HookRecord, name: str) -> None:
        if hook.wait is Wait.NONE:
            return
        limit_s = self.limit_s if hook.timeout_s is None else hook.timeout_s
        began = record.started_at + self.wait.silence_since(record.started_at)
        deadline = min(self.wait.deadline, began + timedelta(seconds=limit_s))
        awaited = Awaited(
            hook.key,
            hook.resource,
            uid=record.uid,
            wanted=hook.wanted,
            only_exists=hook.wait is Wait.EXISTS,
            until_ended=True,
        )
        waits = f"waits since {rfc3339(record.started_at)}" + (" until it has ended" if hook.runs_to_an_end else "")
        await self.progress.on(name, waits, done=0, total=1)
        wait = replace(self.wait, deadline=deadline, complete=set())
        if await wait.until_ready([awaited], self.progress, within_s=self.within_s) is None:
            raise StillWaiting

    async def _fail(self, hook: PlannedHook, record: HookRecord, reason: str) -> NoReturn:
        cluster = self.wait.cluster
        said = await last_words(cluster, hook, record.uid, vnf_instance_id=self.wait.vnf_instance_id)
        error = HookFailed(cluster.masked(reason) + (f"; its log ends:{said}" if said else ""))
        await self._save(replace(record, ended="failed", reason=str(error)))
        log.info("hook_failed", hook=str(hook.key), point=record.point)
        raise error

    async def clean(self, hooks: Sequence[PlannedHook], point: Point) -> None:
        """Delete the objects whose policies say so, in reverse order: a ServiceAccount after the Job that uses it.

        The time after which Kubernetes deletes a Job counts from now on (`_lasting`).
        """
        for hook in reversed(hooks):
            record = self.release.hook_record(hook.key, point)
            if record is None or record.run != self.run or record.is_gone or record.is_going or not record.ended:
                continue
            policy = HookDelete.ON_SUCCESS if record.ended == "succeeded" else HookDelete.ON_FAILURE
            if policy in hook.hook.delete:
                is_held = bool(record.uid) and await self._is_held_after_delete(hook, record)
                await self._save(replace(record, is_gone=not is_held, is_going=is_held))
            elif record.uid and (limit_s := _collected_after(hook)) is not None:
                change = {"metadata": {"uid": record.uid}, "spec": {_COLLECTED_AFTER: limit_s}}
                # Refused: another party has put a Job in its place by now.
                with suppress(ObjectRefused):
                    await self.wait.cluster.patch(hook.resource, hook.key, change)

    async def _is_held_after_delete(self, hook: PlannedHook, record: HookRecord) -> bool:
        """Delete the object; return whether finalizers of others hold it, so that the end of the instance has to wait for it."""
        cluster = self.wait.cluster
        if not await cluster.delete(hook.resource, hook.key, uid=record.uid, propagation=propagation_of(hook.key)):
            return False
        left = await cluster.get(hook.resource, hook.key)
        held_by = field_at(left, "metadata", "finalizers") or []
        return left is not None and uid_of(left) == record.uid and not OF_KUBERNETES.issuperset(held_by)

    async def _save(self, record: HookRecord) -> None:
        self.release = await self.releases.save(self.release.with_hook(record))


def _collected_after(hook: PlannedHook) -> object:
    """Return the time after which Kubernetes deletes the Job of a hook that has ended; None if it has none."""
    is_job = hook.key.api_kind == _JOB
    return field_at(hook.body, "spec", _COLLECTED_AFTER) if is_job else None


def _lasting(hook: PlannedHook) -> Body:
    """Return the body of a hook's object, with which nothing deletes a Job before its end is stored.

    One that was collected before would look as one that has not run yet.
    """
    if _collected_after(hook) is None:
        return hook.body
    return {**hook.body, "spec": {name: each for name, each in hook.body["spec"].items() if name != _COLLECTED_AFTER}}


def run_label(run: str, attempt: str, point: str) -> str:
    """Return the value of `RUN_LABEL` on the objects of a run."""
    return hashlib.sha256(f"{run}/{attempt}/{point}".encode()).hexdigest()[:32]


def propagation_of(key: ObjectKey) -> Propagation:
    """Return how the object of a hook is deleted: a Job is gone once its pods are."""
    return Propagation.FOREGROUND if key.api_kind == _JOB else Propagation.BACKGROUND
