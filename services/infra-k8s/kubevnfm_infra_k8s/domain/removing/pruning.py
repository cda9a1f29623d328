"""Deletes what an earlier set of manifests had and the present one lacks (capi.md CR-022).

A pruned object leaves the inventory. One that is never pruned stays there, so that a termination judges it again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import ClassVar

import structlog
from kubevnfm_csar.object_treatment import Keep

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, Resource, labels_of
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.domain.reading.kept import is_kept
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.deleting import DeletionRun
from kubevnfm_infra_k8s.domain.removing.inhabitants import inhabitants

log = structlog.get_logger()


@dataclass(frozen=True)
class PruneRun(DeletionRun):
    """The pruning of one instance's objects in one step."""

    read_only: Collection[ObjectKey] = field(default=(), kw_only=True)
    """The objects that the present manifests only read: what the instance has had of them is given back."""
    deletion: ClassVar[Keep] = Keep.ON_CHANGE

    async def prune(self, release: Release, wanted: Collection[ObjectKey], *, within_s: float) -> Release | None:
        """Delete the objects that are not wanted, in reverse order; return the release without them.

        None after ``within_s``: call again. Raises ObjectsNotGone at the deadline.
        """
        if all(entry.key in wanted for entry in release.entries):
            return release
        release = await self.with_claims(release)
        old = [entry for entry in release.entries if entry.key not in wanted]
        if await self.delete(replace(release, entries=old), within_s=within_s) is None:
            return None
        stays = await each_of(old, lambda entry: self._stays(release, entry))
        gone = {entry.key for entry, stay in zip(old, stays, strict=True) if not stay}
        log.info("objects_pruned", objects=len(gone))
        return await self.releases.save(
            replace(
                release,
                entries=[entry for entry in release.entries if entry.key not in gone],
                kept_objects=(*release.kept_objects, *self.kept_objects.values()),
            )
        )

    async def _stays(self, release: Release, entry: Entry) -> bool:
        """Return whether the object still exists and is this instance's; a shared one belongs to the others by now."""
        body = await find(self.cluster, entry.key)
        return body is not None and labels_of(body).get(INSTANCE_LABEL) == release.vnf_instance_id

    async def is_to_go(self, release: Release, entry: Entry, resource: Resource, body: Body) -> bool:
        """As for a termination, but nothing that others need or that holds data is deleted."""
        if entry.key in self.read_only:
            await self.give_back(release, entry, resource, body, kept_from=release.vnf_instance_id)
            return False
        is_staying = is_kept(entry, body, self.deletion)
        if not entry.key.namespace and not is_staying and not await self._is_held_by_others(release, entry):
            reason = await self._protection(entry.key, body)
            if reason:
                # Before the base class leaves the holders: the object stays this instance's.
                log.warning("object_not_pruned", object=str(entry.key), reason=reason)
                return False
        return await super().is_to_go(release, entry, resource, body)

    async def _is_held_by_others(self, release: Release, entry: Entry) -> bool:
        mine = release.vnf_instance_id
        return bool(await self.shared.hold(release.cluster, entry.key, entry.digest, mine))

    async def _protection(self, key: ObjectKey, body: Body) -> str:
        """Return why a cluster-scoped object is never pruned; "" if it can be."""
        if key.kind == "PersistentVolume":
            return "a volume holds data"
        if key.kind == "CustomResourceDefinition" and await self.has_resources(body):
            return "custom resources of it exist"
        if key.kind == "Namespace" and not key.is_custom:
            # Objects that were pruned are gone by now, because namespaces are the last stage of a deletion.
            found = await inhabitants(self.cluster, key.name)
            return f"it has {found[0]}" if found else ""
        return ""
