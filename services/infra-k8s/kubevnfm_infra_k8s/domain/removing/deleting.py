"""Deletes the objects of an inventory in reverse order, by uid, and waits for their deletion (capi.md CR-023)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

import structlog
from kubevnfm_csar.object_treatment import KEPT_FROM_ANNOTATION, Keep, keeps_of
from kubevnfm_events.objects import LeftObject
from kubevnfm_kit.clock import Clock

from kubevnfm_infra_k8s.domain.capi.contract import (
    PAUSED_ANNOTATION,
    is_cluster,
    is_of_management,
    is_paused,
)
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectsNotGone, StillWaiting, WebhookUnavailable
from kubevnfm_infra_k8s.domain.object_facts import left_object
from kubevnfm_infra_k8s.domain.objects import (
    CLAIMS,
    INSTANCE_LABEL,
    Body,
    ObjectKey,
    Resource,
    annotations_of,
    field_at,
    labels_of,
    name_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.preparing import labels_as
from kubevnfm_infra_k8s.domain.planning.priorities import bring_down_stages
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases, SharedObjects, Sharing
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.claims import (
    Surroundings,
    claim_key,
    is_made_by,
    is_of_others,
    may_be_made_by,
    save_claims,
)
from kubevnfm_infra_k8s.domain.reading.existing import find, find_all, served_kinds
from kubevnfm_infra_k8s.domain.reading.kept import KEPT, is_kept
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.deletion_state import deletion_obstacle, deletion_progress
from kubevnfm_infra_k8s.domain.removing.disowning import give_back_made, without_owner
from kubevnfm_infra_k8s.domain.removing.ending_pods import LOOK_EVERY_S, EndingPods
from kubevnfm_infra_k8s.domain.removing.finalizers import Stripping, Target
from kubevnfm_infra_k8s.domain.removing.grace_periods import GracePeriods
from kubevnfm_infra_k8s.domain.removing.inhabitants import has_clusters, inhabitants, object_of_others
from kubevnfm_infra_k8s.domain.removing.propagation import propagation_of
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, View, viewing

log = structlog.get_logger()

GivenUpAt = Callable[[str], Awaitable[datetime]]
"""Returns when a part of the deletion, which is under way, is not waited for any longer."""


@dataclass(frozen=True)
class DeletionRun:
    """The deletion of one instance's objects in one step."""

    cluster: Cluster
    releases: Releases
    shared: SharedObjects
    progress: Progress
    clock: Clock
    deadline: datetime
    grace_period_s: int | None
    stripping: Stripping | None = field(default=None, kw_only=True)
    """None: no finalizer is ever removed."""
    given_up_at: GivenUpAt | None = field(default=None, kw_only=True)
    """When objects that are not gone are left; None: never, ObjectsNotGone is raised at the deadline."""
    kept_objects: dict[ObjectKey, LeftObject] = field(default_factory=dict, kw_only=True)
    """The objects that their artifacts or annotations keep."""
    deletion: ClassVar[Keep] = Keep.ON_DELETE

    async def delete(self, release: Release, *, within_s: float) -> int | None:
        """Delete the whole inventory; return its number of objects, or None after ``within_s``.

        Raises ObjectsNotGone at the deadline, naming the remaining objects and what blocks their deletion.
        """
        loop = asyncio.get_running_loop()
        look_until = loop.time() + within_s
        entries = {entry.key: entry for entry in release.entries}
        priorities = {key: entry.priority for key, entry in entries.items()}
        for number, stage in enumerate(bring_down_stages(priorities, webhooks_first=is_of_management(entries))):
            mine = [entries[key] for key in stage]
            if any(_is_namespace(key) for key in stage) and not await self.are_volumes_left(release, look_until):
                return None
            if implied := [entry.key.name for entry in mine if entry.is_implied]:
                await self.empty(release, implied)
            for targets_of in (self._targets, self._claims):
                targets = await targets_of(release, mine)
                are_left = await each_of(targets, self.begin)
                left = [target for target, is_left in zip(targets, are_left, strict=True) if is_left]
                if left and not await self.until_gone(
                    release, left, look_until, part=f"{number}-{targets_of.__name__}"
                ):
                    return None
                await each_of(
                    [each.key for each in targets if is_cluster_scoped(each.key)],
                    lambda key: self.shared.forget(release.cluster, key),
                )
        log.info("objects_deleted", objects=len(release.entries))
        return len(release.entries)

    async def empty(self, release: Release, namespaces: Sequence[str]) -> None:
        """Have what the instance has from others leave its namespaces, which are the next to go."""

    async def are_volumes_left(self, release: Release, look_until: float) -> bool:
        """Return whether no claim of a persistent volume goes with the instance's namespace; False after ``look_until``."""
        return True

    async def with_claims(self, release: Release) -> Release:
        """Return the whole release with the claims of its StatefulSets, while their pods exist. Raises RevisionConflict."""
        return await save_claims(self.cluster, self.releases, release)

    async def _targets(self, release: Release, entries: Sequence[Entry]) -> Sequence[Target]:
        """Return the objects of those entries that exist, belong only to this instance, and are not to be kept."""

        there = await self._there(entries)

        async def judge(entry: Entry) -> Target | None:
            resource, body = there.get(entry.key, (None, None))
            if resource is not None and body is not None and await self.is_to_go(release, entry, resource, body):
                return Target(entry, resource, body)
            if is_cluster_scoped(entry.key):
                # Deleted by someone else. An instance that declares it again must not find us among its holders.
                if body is None:
                    await self.shared.release(release.cluster, entry.key, release.vnf_instance_id)
                await self.shared.forget(release.cluster, entry.key)
            return None

        return [target for target in await each_of(entries, judge) if target is not None]

    async def _there(self, entries: Sequence[Entry]) -> Mapping[ObjectKey, tuple[Resource, Body]]:
        """Return the objects of those entries that exist."""
        served = await served_kinds(self.cluster, [entry.key.api_kind for entry in entries])
        resources = {entry.key: served[entry.key.api_kind] for entry in entries}
        planned = {entry.key for entry in entries if not entry.uid}
        known = {key: resource for key, resource in resources.items() if resource is not None}
        bodies = await find_all(
            self.cluster,
            [(resource, key) for key, resource in known.items()],
            lambda resource, key: self._look(resource, key, is_planned=key in planned),
        )
        return {key: (known[key], body) for key, body in bodies.items()}

    async def _look(self, resource: Resource, key: ObjectKey, *, is_planned: bool) -> Body | None:
        try:
            return await self.cluster.get(resource, key)
        except Forbidden as refusal:
            # Credentials that may not read the object were not able to create it either: it was only planned.
            if is_planned:
                log.info("planned_object_not_readable", object=str(key), reason=str(refusal))
                return None
            raise

    async def is_to_go(self, release: Release, entry: Entry, resource: Resource, body: Body) -> bool:
        """Return whether an object that exists is deleted; leave the holders of a cluster-scoped one."""
        mine = release.vnf_instance_id
        if is_kept(entry, body, self.deletion):
            if not (is_cluster_scoped(entry.key) and (await self._let_go(release, entry.key, resource)).holders):
                await self.keep_there(release, entry, resource, body)
            return False
        if entry.is_adopted:
            await self.give_back(release, entry, resource, body)
            return False
        owners: Sequence[str] = [mine]
        was_shared = False
        if is_cluster_scoped(entry.key):
            sharing = await self._let_go(release, entry.key, resource)
            if sharing.holders:
                return False
            # If several instances leave at the same time, the label can be that of any of them.
            owners = sharing.former
            was_shared = len(owners) > 1
            reason = await self.need_of_others(release, entry.key, body, is_implied=entry.is_implied)
            if entry.is_implied and not reason:
                reason = await self._obstacle(entry, body, owners)
            if reason:
                if entry.is_implied and (await self._let_go(release, entry.key, resource)).holders:
                    # One that has come meanwhile deletes it.
                    return False
                await self.leave(entry.key, body, reason)
                await self.let_stay(release, entry, resource, body)
                return False
        # An object of the same name with another uid was created by someone else after ours was deleted; one that was
        # shared may have been created again by another holder.
        is_same = not entry.uid or entry.uid == uid_of(body) or (was_shared and not entry.is_implied)
        is_ours = labels_of(body).get(INSTANCE_LABEL) in owners or release.has_lost_label(entry.key, body)
        return is_same and is_ours

    async def _obstacle(self, entry: Entry, body: Body, owners: Sequence[str]) -> str:
        """Return why a Namespace that was made for VNFs stays after the last of them; "" if it goes."""
        if entry.uid not in ("", uid_of(body)):
            return "another party has made it again" if labels_of(body).get(INSTANCE_LABEL) in owners else ""
        found = await inhabitants(self.cluster, entry.key.name)
        return f"it has {', '.join(found)}" if found else ""

    async def give_back(
        self, release: Release, entry: Entry, resource: Resource, body: Body, *, kept_from: str | None = None
    ) -> None:
        """Take our labels off an object that stays, such as one that existed before the VNF (capi.md CR-020).

        ``kept_from``: the VNF that it names afterwards.
        """
        if is_cluster_scoped(entry.key):
            await self.shared.release(release.cluster, entry.key, release.vnf_instance_id)
            await self.shared.forget(release.cluster, entry.key)
        if labels_of(body).get(INSTANCE_LABEL) != release.vnf_instance_id:
            return
        await self.cluster.patch(resource, entry.key, without_owner(uid_of(body), kept_from=kept_from))
        log.info("object_given_back", object=str(entry.key), kept=kept_from is not None)

    async def keep_there(self, release: Release, entry: Entry, resource: Resource, body: Body) -> None:
        """Have an object stay that its artifact keeps, and what its controllers have made of it, without our labels (MC-106d)."""
        mine = release.vnf_instance_id
        await self.give_back(release, entry, resource, body, kept_from=mine)
        is_kept_by_us = annotations_of(body).get(KEPT_FROM_ANNOTATION) == mine
        if labels_of(body).get(INSTANCE_LABEL) == mine or is_kept_by_us:
            self.kept_objects[entry.key] = left_object(
                entry.key, uid_of(body), cluster=self.cluster.endpoint, vdu_id=entry.vdu_id, reason=KEPT[self.deletion]
            )
            self.keep(entry.key)
            await give_back_made(self.cluster, entry.key, uid_of(body), mine)

    async def let_stay(self, release: Release, entry: Entry, resource: Resource, body: Body) -> None:
        """Have a cluster-scoped object stay that others need."""

    async def _let_go(self, release: Release, key: ObjectKey, resource: Resource) -> Sharing:
        """Leave the holders of a cluster-scoped object. If others remain, give it the label of one of them.

        The label is checked after leaving and again after each change. The instance that it names either leaves later,
        and then passes the label on itself, or has left already, which the second check finds.
        """
        while True:
            sharing = await self.shared.release(release.cluster, key, release.vnf_instance_id)
            body = await self.cluster.get(resource, key) if sharing.holders else None
            if body is None or labels_of(body).get(INSTANCE_LABEL) not in sharing.former:
                return sharing
            await self.cluster.patch(resource, key, {"metadata": {"labels": labels_as(body, sharing.holders[0])}})

    async def need_of_others(self, release: Release, key: ObjectKey, body: Body, *, is_implied: bool = False) -> str:
        """Return why a cluster-scoped object stays at the end of the instance; "" if nothing else needs it."""
        if _is_namespace(key):
            others = self.releases.strangers_in if is_implied else self.releases.others_in
            if await others(release.cluster, key.name, than=release.id):
                return "other VNF instances have objects there"
            if kept := next((each for each in self.kept_objects if each.namespace == key.name), None):
                return f"{kept} is kept there"
            if found := await object_of_others(self.cluster, key.name, release.vnf_instance_id):
                return f"{found} of another VNF instance is there"
            if await has_clusters(self.cluster, key.name):
                return "a Cluster of Cluster API is there"
        if key.kind == "CustomResourceDefinition" and await self.has_resources(body):
            return "custom resources of it exist"
        if key.kind == "PersistentVolume" and await self._is_claimed(body):
            return "its claim is kept, or another's"
        return ""

    async def has_resources(self, definition: Body) -> bool:
        """Return whether there are custom resources of a definition."""
        group, kind = field_at(definition, "spec", "group"), field_at(definition, "spec", "names", "kind")
        versions = field_at(definition, "spec", "versions") or []
        # The version in which they are stored needs no conversion webhook, whose pods may be deleted by now.
        for version in sorted(versions, key=lambda each: not each.get("storage")):
            resource = await self.cluster.resource(f"{group}/{version.get('name')}", str(kind))
            if resource is not None:
                try:
                    listed = await self.cluster.list_metadata(resource, namespace="", most=1)
                    return listed is None or bool(listed)
                except WebhookUnavailable as error:
                    # Only what exists is converted: it was stored in an earlier version.
                    log.warning("resources_not_readable", definition=f"{kind}.{group}", reason=str(error))
                    return True
        return False

    async def _is_claimed(self, volume: Body) -> bool:
        """Return whether the volume's claim still exists. All claims of this instance are deleted by now."""
        reference = field_at(volume, "spec", "claimRef") or {}
        if not reference.get("name"):
            return False
        key = ObjectKey("v1", "PersistentVolumeClaim", str(reference.get("namespace")), str(reference["name"]))
        claim = await self.cluster.get(CLAIMS, key)
        return claim is not None and uid_of(claim) == reference.get("uid")

    async def begin(self, target: Target) -> bool:
        """Ask for the deletion of an object, unless that was done; return False if it is gone.

        Raises StillWaiting if a Namespace that was made for VNFs has changed since it was judged.
        """
        if is_cluster(target.key) and is_paused(target.body):
            # Otherwise its controllers would never delete it (capi.md CR-110).
            change = {"spec": {"paused": None}, "metadata": {"annotations": {PAUSED_ANNOTATION: None}}}
            await self.cluster.patch(target.resource, target.key, change)
            await self.progress.on(str(target.key), "was paused, which is removed", done=0, total=1)
        if field_at(target.body, "metadata", "deletionTimestamp"):
            return True
        # Other kinds ignore the period; the pods of workloads get it from `GracePeriods`.
        grace_period_s = self.grace_period_s if target.key.kind == "Pod" else None
        uid = uid_of(target.body)
        # The Namespace was read before the holders were left. Each VNF that comes joins them first, and then writes it.
        version = str(field_at(target.body, "metadata", "resourceVersion") or "") if target.entry.is_implied else ""
        is_left = await self.cluster.delete(
            target.resource,
            target.key,
            uid=uid,
            version=version,
            grace_period_s=grace_period_s,
            propagation=propagation_of(target.key, target.body),
        )
        if version and is_left and self.clock.now() < self.deadline:
            body = await self.cluster.get(target.resource, target.key)
            if body is not None and uid_of(body) == uid and not field_at(body, "metadata", "deletionTimestamp"):
                raise StillWaiting
        return is_left

    async def _claims(self, release: Release, entries: Sequence[Entry]) -> Sequence[Target]:
        """Return the volume claims that deleted StatefulSets have made from their templates, as far as that is proven."""
        sets = [entry for entry in entries if entry.claim_templates]
        targets: dict[ObjectKey, Target] = {}
        for namespace in sorted({entry.key.namespace for entry in sets}):
            around = await Surroundings.look(self.cluster, namespace)
            for entry in (each for each in sets if each.key.namespace == namespace):
                is_staying = entry.is_adopted or await self._is_staying(entry)
                for claim in around.claims:
                    key = claim_key(claim, namespace)
                    if is_made_by(entry, claim, release):
                        if entry.key in self.kept_objects or self.deletion in keeps_of(annotations_of(claim)):
                            await self.keep_there(release, Entry(key, entry.file, ""), CLAIMS, claim)
                            self.keep(key)
                        elif await self._is_claim_to_go(release, key, claim, around, is_staying=is_staying):
                            targets[key] = Target(Entry(key, entry.file, ""), CLAIMS, claim)
                    elif not is_staying and await self._is_unclear(entry, claim, release):
                        await self.leave(key, claim, f"nothing proves that {entry.key} has made it")
        return list(targets.values())

    async def _is_claim_to_go(
        self, release: Release, key: ObjectKey, claim: Body, around: Surroundings, *, is_staying: bool
    ) -> bool:
        """Return whether a claim of the instance is deleted; ``is_staying``: its StatefulSet is not."""
        if is_staying:
            self.keep(key)
            return False
        pod = await around.mounted_by_others(claim, release.vnf_instance_id)
        if pod:
            await self.leave(key, claim, f"pod {pod} of another VNF instance uses it")
        return not pod

    async def _is_unclear(self, entry: Entry, claim: Body, release: Release) -> bool:
        """Return whether a claim could be one of a StatefulSet and is known to be of nothing else."""
        # First: few of the claims of a namespace have such a name.
        if not may_be_made_by(entry, claim):
            return False
        known = {(each.key.namespace, each.key.name) for each in release.entries if each.key.kind == CLAIMS.kind}
        known |= {(each.key.namespace, claim.name) for each in release.entries for claim in each.claims}
        if (entry.key.namespace, name_of(claim)) in known:
            return False
        is_to_stay = self.deletion in keeps_of(annotations_of(claim))
        return not is_to_stay and not await is_of_others(self.releases, claim, release.vnf_instance_id)

    def keep(self, key: ObjectKey) -> None:
        """Note that an object of the instance is not deleted."""

    async def leave(self, key: ObjectKey, body: Body, reason: str) -> None:
        """Report an object that is not deleted although an operator could expect it."""
        log.warning("object_stays", object=str(key), reason=reason)
        await self.progress.on(str(key), f"stays: {reason}", done=0, total=1)

    async def _is_staying(self, entry: Entry) -> bool:
        """Return whether an object of this name stays: one that was kept, or that another owner has created."""
        body = await find(self.cluster, entry.key)
        # One that could not be waited for is still there.
        return body is not None and not (uid_of(body) == entry.uid and field_at(body, "metadata", "deletionTimestamp"))

    async def until_gone(self, release: Release, targets: Sequence[Target], look_until: float, *, part: str) -> bool:
        """Return True when all are deleted, replaced by objects of other owners, or left; False after ``look_until``."""
        loop = asyncio.get_running_loop()
        awaited = [Awaited(each.key, each.resource, is_shared=not _has_label(each, release)) for each in targets]
        deadline = await self.deadline_of(part)
        namespaces = {each.key.namespace for each in targets if each.key.namespace}
        grace_periods = GracePeriods(self.cluster, release.vnf_instance_id, namespaces, self.grace_period_s)
        ending = EndingPods(self.cluster, release.vnf_instance_id, self.clock)
        async with (
            grace_periods.shortened(),
            viewing(self.cluster, awaited, vnf_instance_id=release.vnf_instance_id) as view,
        ):
            while left := self._left(targets, view):
                grace_periods.go_on()
                gone = len(targets) - len(left)
                bodies = {each.key: view.bodies[each.key] for each in left}
                left_s = (deadline - self.clock.now()).total_seconds()
                reasons = await ending.reasons(bodies, is_last=left_s <= 0)
                said = {str(key): _with(deletion_progress(key, body), reasons, key) for key, body in bodies.items()}
                await self.progress.on_all(said, done=gone, total=len(targets))
                if self.stripping is not None:
                    held = [replace(each, body=bodies[each.key]) for each in left]
                    await self.stripping.strip(held, left_s=left_s)
                if left_s <= 0:
                    obstacles = {key: _with(deletion_obstacle(key, body), reasons, key) for key, body in bodies.items()}
                    if self.given_up_at is None:
                        raise ObjectsNotGone("; ".join(obstacles.values()))
                    for key, obstacle in obstacles.items():
                        await self.leave(key, bodies[key], obstacle)
                    return True
                patience_s = min(left_s, look_until - loop.time(), LOOK_EVERY_S)
                if self.stripping is not None and left_s > self.stripping.margin_s:
                    patience_s = min(patience_s, left_s - self.stripping.margin_s)
                changed = await view.change([each.key for each in left], within_s=patience_s)
                if not changed and loop.time() >= look_until:
                    return False
            return True

    async def deadline_of(self, part: str) -> datetime:
        """Return until when a part of the deletion is waited for."""
        return self.deadline if self.given_up_at is None else min(self.deadline, await self.given_up_at(part))

    @staticmethod
    def _left(targets: Sequence[Target], view: View) -> Sequence[Target]:
        return [
            each for each in targets if each.key in view.bodies and uid_of(view.bodies[each.key]) == uid_of(each.body)
        ]


def _with(text: str, reasons: Mapping[ObjectKey, str], key: ObjectKey) -> str:
    return f"{text}, {reasons[key]}" if key in reasons else text


def is_cluster_scoped(key: ObjectKey) -> bool:
    """Return whether the object is in no namespace."""
    return not key.namespace


def _has_label(target: Target, release: Release) -> bool:
    return labels_of(target.body).get(INSTANCE_LABEL) == release.vnf_instance_id


def _is_namespace(key: ObjectKey) -> bool:
    return key.kind == "Namespace" and not key.is_custom
