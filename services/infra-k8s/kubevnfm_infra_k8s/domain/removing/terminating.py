"""Deletes all that an instance has in a cluster: its inventory, and what else carries its label (capi.md CR-111)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from kubevnfm_csar.object_treatment import keeps_of
from kubevnfm_events.objects import LeftObject

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectsNotGone, WebhookUnavailable
from kubevnfm_infra_k8s.domain.object_facts import left_object
from kubevnfm_infra_k8s.domain.objects import (
    CLAIMS,
    INSTANCE_LABEL,
    REPLICA_SETS,
    Body,
    ObjectKey,
    Resource,
    annotations_of,
    field_at,
    uid_of,
)
from kubevnfm_infra_k8s.domain.ports import LinkUses, VolumeUses
from kubevnfm_infra_k8s.domain.reading.existing import served_kinds
from kubevnfm_infra_k8s.domain.reading.vdus import owner_uid
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.deleting import DeletionRun, is_cluster_scoped
from kubevnfm_infra_k8s.domain.removing.end_hooks import EndHooks
from kubevnfm_infra_k8s.domain.removing.finalizers import Target

log = structlog.get_logger()

_LINKS_S: Final = 10.0
"""The wait for objects of virtual links to leave a namespace; after it the namespace stays, and the answer says so."""


@dataclass(frozen=True)
class Terminated:
    """The end of an instance's objects."""

    count: int
    """The objects of the inventory."""
    left: tuple[LeftObject, ...]
    """Those that stay because others need them, or because their artifacts keep them."""


@dataclass(frozen=True)
class TerminationRun(DeletionRun):
    """The deletion of all objects of one instance in one step."""

    links: LinkUses = field(kw_only=True)
    volumes: VolumeUses = field(kw_only=True)
    hooks: EndHooks = field(kw_only=True)
    _staying: dict[ObjectKey, LeftObject | None] = field(default_factory=dict, kw_only=True)
    """The objects that are not deleted; with what is reported if others need them."""

    async def terminate(self, release: Release, *, within_s: float) -> Terminated | None:
        """Delete the inventory, then what else carries the instance's label; None after ``within_s``: call again.

        Raises ObjectsNotGone at the deadline.
        """
        look_until = asyncio.get_running_loop().time() + within_s
        release = await self.with_claims(release)
        await self.hooks.before()
        # Before the definitions of their kinds.
        if not await self._delete_hooks(release, look_until, of_end=False):
            return None
        count = await self.delete(release, within_s=within_s)
        if count is None or not await self._are_hooks_gone(release, look_until):
            return None
        if not await self._clear(release, look_until):
            return None
        left = self._staying | self.kept_objects
        return Terminated(count, tuple(each for each in left.values() if each is not None))

    async def empty(self, release: Release, namespaces: Sequence[str]) -> None:
        """See the base class. The objects of virtual links there would keep the namespaces for ever.

        Whatever is left of the call's time: what is there afterwards is not looked at again.
        """
        await self.links.leave(release.vnf_instance_id, namespaces, vim_id=release.vim_id, within_s=_LINKS_S)

    async def are_volumes_left(self, release: Release, look_until: float) -> bool:
        """Have the claims of persistent volumes removed before the namespace, after the pods: each volume is reserved with its data.

        Raises ObjectsNotGone at the deadline.
        """
        if not await self._are_hooks_gone(release, look_until):
            return False
        within_s = max(0.0, look_until - asyncio.get_running_loop().time())
        left = await self.volumes.leave(release.vnf_instance_id, within_s=within_s)
        waits = "; ".join(left.values())
        if left and self.clock.now() >= await self.deadline_of("volumes"):
            raise ObjectsNotGone(f"not released: {waits}")
        if left:
            await self.progress.on("persistent volumes", f"waits for {waits}", done=0, total=len(left))
        return not left

    async def _are_hooks_gone(self, release: Release, look_until: float) -> bool:
        """Run the hooks after all other objects but namespaces, and delete what hooks have left; False after ``look_until``."""
        await self.hooks.after()
        return await self._delete_hooks(release, look_until, of_end=True)

    async def _delete_hooks(self, release: Release, look_until: float, *, of_end: bool) -> bool:
        targets = await self.hooks.left(of_end=of_end)
        await each_of(targets, self.begin)
        return not targets or await self.until_gone(release, targets, look_until, part=f"hooks-{of_end}")

    async def is_to_go(self, release: Release, entry: Entry, resource: Resource, body: Body) -> bool:
        """As for any deletion; what stays is remembered."""
        is_to_go = await super().is_to_go(release, entry, resource, body)
        if not is_to_go:
            self.keep(entry.key)
        return is_to_go

    def keep(self, key: ObjectKey) -> None:
        """See the base class. It is not deleted by its label either."""
        self._staying.setdefault(key)

    async def leave(self, key: ObjectKey, body: Body, reason: str) -> None:
        """See the base class. It is in the answer too."""
        await super().leave(key, body, reason)
        self._staying[key] = left_object(key, uid_of(body), cluster=self.cluster.endpoint, reason=reason)

    async def let_stay(self, release: Release, entry: Entry, resource: Resource, body: Body) -> None:
        """See the base class. The instance that its labels name is gone."""
        await self.give_back(release, entry, resource, body)

    async def _clear(self, release: Release, look_until: float) -> bool:
        """Delete what carries the label until there is nothing more; False after ``look_until``.

        It comes from a worker that had lost this instance and wrote once more, or from a controller that copies labels.
        """
        while found := await self._labelled(release):
            for each in found:
                log.warning("object_found_by_label", object=str(each.key))
                await self.progress.on(str(each.key), "still has the label of this VNF", done=0, total=len(found))
            # The garbage collector deletes what belongs to another object.
            await each_of(
                [each for each in found if not field_at(each.body, "metadata", "ownerReferences")], self.begin
            )
            if not await self.until_gone(release, found, look_until, part="labelled"):
                return False
        return True

    async def _labelled(self, release: Release) -> Sequence[Target]:
        """Return the objects with the label, of the kinds and in the namespaces of the inventory, that are to go."""
        listed = await each_of(await self._scopes(release), lambda scope: self._list(release, *scope))
        targets: list[Target] = []
        for target in (each for some in listed for each in some):
            if target.key in self._staying or await self._is_made_of_kept(target.body):
                continue
            if self.deletion in keeps_of(annotations_of(target.body)):
                await self.keep_there(release, target.entry, target.resource, target.body)
                continue
            # Others may share or need an object that is in no namespace.
            if is_cluster_scoped(target.key) and not await self.is_to_go(
                release, target.entry, target.resource, target.body
            ):
                continue
            targets.append(target)
        return targets

    async def _is_made_of_kept(self, body: Body) -> bool:
        """Return whether a controller has made an object of one that is kept: it gets its labels from the template there."""
        uids = {each.uid for each in self.kept_objects.values()}
        owner = owner_uid(body)
        if not uids or not owner or owner in uids:
            return owner in uids
        name = next(
            each.get("name") for each in field_at(body, "metadata", "ownerReferences") if each.get("uid") == owner
        )
        place = str(field_at(body, "metadata", "namespace"))
        key = ObjectKey(REPLICA_SETS.api_version, REPLICA_SETS.kind, place, str(name))
        replica_set = await self.cluster.get_metadata(REPLICA_SETS, key)
        return replica_set is not None and uid_of(replica_set) == owner and owner_uid(replica_set) in uids

    async def _scopes(self, release: Release) -> Sequence[tuple[Resource, str]]:
        """Return the kinds of the inventory that are still served, each with the namespaces that may have objects of it."""
        namespaces: dict[tuple[str, str], set[str]] = {}
        for entry in release.entries:
            namespaces.setdefault(entry.key.api_kind, set()).add(entry.key.namespace)
            if entry.claim_templates:
                namespaces.setdefault((CLAIMS.api_version, CLAIMS.kind), set()).add(entry.key.namespace)
        everywhere = {entry.key.namespace for entry in release.entries if entry.key.namespace}
        gone = {
            entry.key.name
            for entry in release.entries
            if entry.key.kind == "Namespace" and not entry.key.is_custom and entry.key not in self._staying
        }
        return [
            (resource, place)
            for resource in (await served_kinds(self.cluster, namespaces)).values()
            if resource is not None and "list" in resource.verbs
            for place in (sorted(everywhere - gone) if resource.namespaced else [""])
        ]

    async def _list(self, release: Release, resource: Resource, namespace: str) -> Sequence[Target]:
        selector = f"{INSTANCE_LABEL}={release.vnf_instance_id}"
        try:
            bodies = await self.cluster.list(resource, namespace=namespace, labels=selector)
        # Credentials that may not list a kind were able to create objects of it by name. The custom resources of others, whose
        # webhook may be gone, stay with their definition.
        except (Forbidden, WebhookUnavailable) as error:
            log.info("label_not_checked", kind=resource.kind, namespace=namespace, reason=str(error))
            return []
        return [_target(resource, body) for body in bodies]


def _target(resource: Resource, body: Body) -> Target:
    return Target(Entry(resource.key(body), "", "", uid=uid_of(body)), resource, body)
