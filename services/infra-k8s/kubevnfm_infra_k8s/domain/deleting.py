"""Deletes what an inventory lists: backwards, each object by its uid, and waits until it is gone (capi.md CR-023)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.dressing import instance_labels
from kubevnfm_infra_k8s.domain.errors import ObjectsNotGone
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    KEEP_ANNOTATION,
    Body,
    ObjectKey,
    Resource,
    annotations_of,
    at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.order import deletion_stages
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases, SharedObjects, Sharing
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.readiness import last_condition
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.together import each_of
from kubevnfm_infra_k8s.domain.waiting import Awaited, View, viewing

log = structlog.get_logger()

_PODS: Final = Resource("v1", "Pod", "pods", namespaced=True)
_CLAIMS: Final = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)


@dataclass(frozen=True)
class Target:
    """An object on its way out."""

    entry: Entry
    resource: Resource
    body: Body

    @property
    def key(self) -> ObjectKey:
        return self.entry.key


@dataclass(frozen=True)
class Deleting:
    """One step's work on one instance's objects."""

    cluster: Cluster
    releases: Releases
    shared: SharedObjects
    progress: Progress
    clock: Clock
    deadline: datetime
    grace_period_s: int | None

    async def delete(self, release: Release, *, within_s: float) -> int | None:
        """Delete the whole inventory; return how many objects it had, None when it takes longer than ``within_s``.

        Raises ObjectsNotGone at the deadline, naming what is left and what holds it.
        """
        loop = asyncio.get_running_loop()
        look_until = loop.time() + within_s
        entries = {entry.key: entry for entry in release.entries}
        for stage in deletion_stages([entry.key for entry in release.entries]):
            mine = [entries[key] for key in stage]
            for find in (self._targets, self._claims):
                targets = await find(release, mine)
                await each_of(targets, self._begin)
                if targets and not await self._until_gone(release, targets, look_until):
                    return None
                await each_of(
                    [each.key for each in targets if _is_cluster_scoped(each.key)],
                    lambda key: self.shared.forget(release.cluster, key),
                )
        log.info("objects_deleted", objects=len(release.entries))
        return len(release.entries)

    async def _targets(self, release: Release, entries: Sequence[Entry]) -> Sequence[Target]:
        """Return those of the entries that are there, ours alone, and not to be kept."""

        async def look(entry: Entry) -> Target | None:
            resource = await self.cluster.resource(entry.key.api_version, entry.key.kind)
            body = await self.cluster.get(resource, entry.key) if resource is not None else None
            if resource is not None and body is not None and await self._is_to_go(release, entry, resource, body):
                return Target(entry, resource, body)
            if _is_cluster_scoped(entry.key):
                if body is None:  # it went without us; who declares it anew must not be told that we hold it
                    await self.shared.release(release.cluster, entry.key, release.vnf_instance_id)
                await self.shared.forget(release.cluster, entry.key)
            return None

        return [target for target in await each_of(entries, look) if target is not None]

    async def _is_to_go(self, release: Release, entry: Entry, resource: Resource, body: Body) -> bool:
        if entry.is_kept or annotations_of(body).get(KEEP_ANNOTATION) == "true":
            return False
        mine = release.vnf_instance_id
        owners: Sequence[str] = [mine]
        if _is_cluster_scoped(entry.key):
            sharing = await self._let_go(release, entry.key, resource)
            if sharing.holders:
                return False
            # Several that left at once may have written their labels in another order than they left.
            owners = sharing.former
            if entry.key.kind == "Namespace" and await self.releases.others_in(
                release.cluster, entry.key.name, than=mine
            ):
                log.warning("namespace_kept", namespace=entry.key.name, reason="other VNF instances have objects there")
                return False
            if entry.key.kind == "CustomResourceDefinition" and await self._has_resources(body):
                log.warning("definition_kept", name=entry.key.name, reason="custom resources of others exist")
                return False
            if entry.key.kind == "PersistentVolume" and await self._is_claimed(body):
                log.warning("volume_kept", name=entry.key.name, reason="its claim is kept, or another's")
                return False
        is_same = not entry.uid or entry.uid == uid_of(body)
        return is_same and labels_of(body).get(INSTANCE_LABEL) in owners

    async def _let_go(self, release: Release, key: ObjectKey, resource: Resource) -> Sharing:
        """Hold a cluster-scoped object no more; while others do, leave it with the label of one of them.

        The label is looked at after we left, and again after it is written: whoever it names leaves after that, so
        that he finds it and hands it on, or has left before, which we see here.
        """
        while True:
            sharing = await self.shared.release(release.cluster, key, release.vnf_instance_id)
            body = await self.cluster.get(resource, key) if sharing.holders else None
            if body is None or labels_of(body).get(INSTANCE_LABEL) not in sharing.former:
                return sharing
            await self.cluster.relabel(resource, key, instance_labels(sharing.holders[0]))

    async def _has_resources(self, definition: Body) -> bool:
        group, kind = at(definition, "spec", "group"), at(definition, "spec", "names", "kind")
        for version in at(definition, "spec", "versions") or []:
            resource = await self.cluster.resource(f"{group}/{version.get('name')}", str(kind))
            if resource is not None:
                return bool(await self.cluster.list(resource))
        return False

    async def _is_claimed(self, volume: Body) -> bool:
        """Tell whether the volume's claim is still there, now that all claims of ours are gone."""
        reference = at(volume, "spec", "claimRef") or {}
        if not reference.get("name"):
            return False
        key = ObjectKey("v1", "PersistentVolumeClaim", str(reference.get("namespace")), str(reference["name"]))
        claim = await self.cluster.get(_CLAIMS, key)
        return claim is not None and uid_of(claim) == reference.get("uid")

    async def _begin(self, target: Target) -> None:
        if at(target.body, "metadata", "deletionTimestamp"):
            return
        grace_period_s = self.grace_period_s if target.key.kind == "Pod" else None
        uid = uid_of(target.body)
        await self.cluster.delete(target.resource, target.key, uid=uid, grace_period_s=grace_period_s)

    async def _claims(self, release: Release, entries: Sequence[Entry]) -> Sequence[Target]:
        """Return the volume claims that StatefulSets, gone by now, made from their templates."""
        claims: list[Target] = []
        for entry in entries:
            if not entry.claim_templates or entry.is_kept or await self._is_there(entry):
                continue
            prefixes = tuple(f"{template}-{entry.key.name}-" for template in entry.claim_templates)
            for claim in await self.cluster.list(_CLAIMS, namespace=entry.key.namespace):
                name = str(at(claim, "metadata", "name"))
                is_kept = annotations_of(claim).get(KEEP_ANNOTATION) == "true"
                if not is_kept and name.startswith(prefixes) and name.rpartition("-")[2].isdigit():
                    key = ObjectKey("v1", "PersistentVolumeClaim", entry.key.namespace, name)
                    claims.append(Target(Entry(key, entry.file, ""), _CLAIMS, claim))
        return claims

    async def _is_there(self, entry: Entry) -> bool:
        """Tell whether an object of the name is there: kept, or somebody else's by now."""
        resource = await self.cluster.resource(entry.key.api_version, entry.key.kind)
        return resource is not None and await self.cluster.get(resource, entry.key) is not None

    async def _until_gone(self, release: Release, targets: Sequence[Target], look_until: float) -> bool:
        """Return True once all are gone (or made anew by somebody), False when ``look_until`` passes first."""
        loop = asyncio.get_running_loop()
        awaited = [Awaited(each.key, each.resource, is_shared=not _has_label(each, release)) for each in targets]
        hurry = asyncio.create_task(self._hurry_pods(release, targets), name="hurry-pods")
        try:
            async with viewing(self.cluster, awaited, vnf_instance_id=release.vnf_instance_id) as view:
                while left := self._left(targets, view):
                    gone = len(targets) - len(left)
                    for each in left:
                        await self.progress.on(str(each.key), "is being deleted", done=gone, total=len(targets))
                    left_s = (self.deadline - self.clock.now()).total_seconds()
                    if left_s <= 0:
                        raise ObjectsNotGone("; ".join(_holding(each.key, view.bodies) for each in left))
                    changed = await view.change(within_s=min(left_s, look_until - loop.time()))
                    if not changed and loop.time() >= look_until:
                        return False
                return True
        finally:
            hurry.cancel()
            await asyncio.gather(hurry, return_exceptions=True)

    @staticmethod
    def _left(targets: Sequence[Target], view: View) -> Sequence[Target]:
        return [
            each for each in targets if each.key in view.bodies and uid_of(view.bodies[each.key]) == uid_of(each.body)
        ]

    async def _hurry_pods(self, release: Release, targets: Sequence[Target]) -> None:
        """Give the instance's pods the grace period that was asked for: their owners' deletion has none to give."""
        if self.grace_period_s is None:
            return
        namespaces = sorted({each.key.namespace for each in targets if each.key.namespace})
        await asyncio.gather(*(self._hurry_pods_of(release, namespace) for namespace in namespaces))

    async def _hurry_pods_of(self, release: Release, namespace: str) -> None:
        assert self.grace_period_s is not None
        told: set[str] = set()
        selector = f"{INSTANCE_LABEL}={release.vnf_instance_id}"
        try:
            async with aclosing(self.cluster.follow(_PODS, namespace=namespace, labels=selector)) as following:
                async for pods in following:
                    for pod in list(pods.values()):
                        own_s = at(pod, "metadata", "deletionGracePeriodSeconds")
                        if own_s is None or own_s <= self.grace_period_s or uid_of(pod) in told:
                            continue
                        told.add(uid_of(pod))
                        key = ObjectKey("v1", "Pod", namespace, str(at(pod, "metadata", "name")))
                        await self.cluster.delete(_PODS, key, uid=uid_of(pod), grace_period_s=self.grace_period_s)
        except VnfmError as error:  # the wait itself goes on, and tells if the cluster is away
            log.warning("pods_not_hurried", namespace=namespace, reason=str(error))


def _is_cluster_scoped(key: ObjectKey) -> bool:
    return not key.namespace


def _has_label(target: Target, release: Release) -> bool:
    return labels_of(target.body).get(INSTANCE_LABEL) == release.vnf_instance_id


def _holding(key: ObjectKey, bodies: Mapping[ObjectKey, Body]) -> str:
    body = bodies[key]
    finalizers = ", ".join(at(body, "metadata", "finalizers") or [])
    said = last_condition(body)
    parts = [f"held by {finalizers}" if finalizers else "still there", *([said] if said else [])]
    return f"{key}: {', '.join(parts)}"
