"""Applies a plan to a cluster: checks that no object of others is overwritten, then sends all objects in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from kubevnfm_infra_k8s.domain.errors import (
    ForeignObjects,
    ObjectRefused,
    ObjectsNotReady,
    ObjectsRefused,
    WebhookUnavailable,
)
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Wanted, field_at, labels_of, uid_of
from kubevnfm_infra_k8s.domain.order import Wave, waves
from kubevnfm_infra_k8s.domain.planning import Plan
from kubevnfm_infra_k8s.domain.ports import Releases, SharedObjects
from kubevnfm_infra_k8s.domain.preparing import instance_labels, labelled
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.ready_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.together import each_of
from kubevnfm_infra_k8s.domain.waiting import Awaited

log = structlog.get_logger()

_WEBHOOK_PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)
"""capi.md CR-016; the last pause is repeated until the deadline."""
_FIRST_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0


@dataclass(frozen=True)
class ApplyRun:
    """The application of one instance's objects in one step."""

    wait: ReadinessWait
    releases: Releases
    shared: SharedObjects
    progress: Progress
    adopt: bool

    async def apply(self, plan: Plan, release: Release, *, applied_by: str) -> Release:
        """Send all objects and store the release; return it with the uids.

        Nothing is sent if the check or the dry run rejects an object.
        """
        persistent = [each for each in plan.objects if each.resource.is_persistent]
        is_first = not any(entry.uid for entry in release.entries)
        # Stored before any object is sent, so that after a crash termination finds all of them. Entries that were never
        # sent are harmless: termination deletes no object without our label.
        release = await self.releases.save(release.planned(persistent, namespace=plan.namespace))
        sharers = await self._hold(persistent)
        there = await self._find_existing(persistent, sharers)
        # Before its definition is applied, a custom resource would be rejected. For objects that exist already, the dry
        # run was done when they were created.
        if plan.all_served and is_first:
            await self._rehearse(plan.objects)
        release = await self.releases.save(release.sharing(sharers))
        await self.progress.started(f"{len(plan.objects)} objects", total=len(plan.objects))
        for vdu in plan.without_workload:
            message = f"no workload named {vdu.name} in the files, so it has no VNFC"
            await self.progress.on(f"VDU {vdu.vdu_id}", message, done=0, total=len(plan.objects))
        uids: dict[ObjectKey, str] = {}
        for wave in waves(plan.objects):
            await self._wait_for(wave, plan)
            uids |= await self._send(wave, there, sharers)
        log.info("objects_applied", namespace=plan.namespace, objects=len(plan.objects))
        return await self.releases.save(release.confirmed(uids, applied_by=applied_by))

    async def _hold(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Sequence[str]]:
        """Join the holders of the cluster-scoped objects; return the other instances by object.

        Raises SharedObjectDiffers.
        """
        mine, cluster = self.wait.vnf_instance_id, self.wait.cluster.endpoint
        scoped = [each for each in objects if not each.resource.namespaced]
        others = await each_of(scoped, lambda each: self.shared.hold(cluster, each.key, each.digest, mine))
        return {each.key: holders for each, holders in zip(scoped, others, strict=True) if holders}

    async def _find_existing(
        self, objects: Sequence[Wanted], sharers: Mapping[ObjectKey, Sequence[str]]
    ) -> Mapping[ObjectKey, Body]:
        """Return the objects that exist already. Raises ForeignObjects for those of others, unless they are adopted."""
        found = await each_of(objects, lambda each: self.wait.cluster.get(each.resource, each.key))
        there = {each.key: body for each, body in zip(objects, found, strict=True) if body is not None}
        ours = {self.wait.vnf_instance_id}
        foreign = [
            key
            for key, body in there.items()
            if labels_of(body).get(INSTANCE_LABEL) not in ours.union(sharers.get(key, ()))
        ]
        if foreign and not self.adopt:
            raise ForeignObjects(foreign)
        return there

    async def _rehearse(self, objects: Sequence[Wanted]) -> None:
        """Have the API server check all objects with a dry run. Raises ObjectsRefused with all errors."""
        namespaces = {each.key.name for each in objects if each.key.kind == "Namespace"}

        refusals: list[ObjectRefused] = []

        async def check(each: Wanted) -> None:
            # Its namespace does not exist yet, so the API server would reject it.
            if each.key.namespace in namespaces:
                return
            try:
                await self.wait.cluster.apply(each.resource, each.key, each.body, dry_run=True)
            except ObjectRefused as refusal:
                refusals.append(refusal)
            except WebhookUnavailable as error:  # the real request waits for it
                log.info("webhook_unavailable", object=str(each.key), reason=str(error))

        await each_of(objects, check)
        if refusals:
            raise ObjectsRefused(refusals)

    async def _wait_for(self, wave: Wave, plan: Plan) -> None:
        needed = [Awaited(each.key, each.resource) for each in plan.objects if each.key in wave.after_ready]
        await self.wait.until_ready(needed, self.progress)

    async def _send(
        self, wave: Wave, there: Mapping[ObjectKey, Body], sharers: Mapping[ObjectKey, Sequence[str]]
    ) -> Mapping[ObjectKey, str]:
        bodies = await each_of(
            wave.objects, lambda each: self._send_one(each, there.get(each.key), sharers.get(each.key, ()))
        )
        definitions = [
            Awaited(each.key, each.resource, is_shared=each.key in sharers)
            for each in wave.objects
            if each.key.kind == "CustomResourceDefinition"
        ]
        if definitions:
            await self.wait.until_ready(definitions, self.progress)
            await self._until_served(wave.objects)
        return {each.key: uid_of(body) for each, body in zip(wave.objects, bodies, strict=True)}

    async def _until_served(self, definitions: Sequence[Wanted]) -> None:
        """Return when discovery shows the defined kinds, which takes a moment after a definition is established."""
        cluster = self.wait.cluster
        cluster.forget_kinds()
        for each in definitions:
            for version in field_at(each.body, "spec", "versions") or []:
                api_version = f"{field_at(each.body, 'spec', 'group')}/{version.get('name')}"
                pause_s = _FIRST_LOOK_S
                while version.get("served") and not await cluster.resource(api_version, _kind(each)):
                    if self.wait.left_s() <= pause_s:
                        raise ObjectsNotReady(f"{each.key}: established, but {api_version} is not served")
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, _LONGEST_LOOK_S)

    async def _send_one(self, wanted: Wanted, there: Body | None, sharers: Sequence[str]) -> Body:
        body = wanted.body
        if sharers:
            if there is not None:  # another instance has created it with the same content
                return there
            # Both instances may apply it at the same time; with the same label the order does not matter.
            body = labelled(body, instance_labels(sharers[0]))
        tries = 0
        while True:
            try:
                return await self.wait.cluster.apply(wanted.resource, wanted.key, body)
            # Retried here and not by the worker, because the webhook's own pods may be among the objects just sent.
            except WebhookUnavailable as error:
                pause_s = _WEBHOOK_PAUSES_S[min(tries, len(_WEBHOOK_PAUSES_S) - 1)]
                if self.wait.left_s() <= pause_s:
                    raise ObjectsNotReady(f"{wanted.key} ({wanted.file}): {error}") from error
                await self.progress.on(str(wanted.key), "waiting for an admission webhook", done=0, total=1)
                await asyncio.sleep(pause_s)
                tries += 1


def _kind(definition: Wanted) -> str:
    return str(field_at(definition.body, "spec", "names", "kind"))


def awaited(plan: Plan, release: Release) -> Sequence[Awaited]:
    """Return the objects that have to become ready."""
    shared = {entry.key for entry in release.entries if entry.is_shared}
    return [
        Awaited(each.key, each.resource, is_shared=each.key in shared)
        for each in plan.objects
        if each.resource.is_persistent
    ]
