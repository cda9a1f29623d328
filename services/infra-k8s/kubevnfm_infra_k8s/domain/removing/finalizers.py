"""Removes finalizers that hold a deletion, because an operator has decided it (capi.md CR-109)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from kubevnfm_events.objects import LeftObject

from kubevnfm_infra_k8s.domain.capi.clusters import parts_of_cluster
from kubevnfm_infra_k8s.domain.capi.contract import GROUPS, is_cluster
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.object_facts import left_object
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.release import Entry

log = structlog.get_logger()


@dataclass(frozen=True)
class Target:
    """An object to delete."""

    entry: Entry
    resource: Resource
    body: Body

    @property
    def key(self) -> ObjectKey:
        return self.entry.key

    @property
    def finalizers(self) -> tuple[str, ...]:
        return tuple(field_at(self.body, "metadata", "finalizers") or ())


@dataclass(frozen=True)
class Stripping:
    """The removal of finalizers in one step."""

    cluster: Cluster
    releases: Releases
    vnf_instance_id: str
    progress: Progress
    before: datetime
    """A deletion that is older than this has waited long enough: that of an earlier attempt."""
    margin_s: float
    """So long before the deadline, younger deletions have waited long enough too."""
    _done: set[str] = field(default_factory=set)
    """The uids of the objects whose finalizers were removed."""

    async def strip(self, existing: Sequence[Target], *, left_s: float) -> None:
        """Remove the finalizers of the objects that have waited long enough, and record what may be left for it.

        ``left_s``: the seconds until the deadline. Raises RevisionConflict if another worker has changed the inventory.
        """
        candidates = [each for each in existing if self._is_deleted(each)]
        orphaned = await self._orphaned(candidates)
        held = [each for each in candidates if left_s <= self.margin_s or self._is_old(each) or each.key in orphaned]
        if not held:
            return
        left = [part for each in held for part in await self._left(each)]
        # First: after a crash, what was stripped would not be known any more.
        await self._record(left)
        for each in held:
            key, finalizers = each.entry.key, ", ".join(each.finalizers)
            log.warning("finalizers_removed", object=str(key), finalizers=finalizers)
            places = ", ".join(_in_words(part) for part in left if part.provider_id)
            outside = f"; what may be left outside: {places}" if is_cluster(key) and places else ""
            text = f"finalizers removed, as force_remove_finalizers asks: {finalizers}{outside}"
            await self.progress.on(str(key), text, done=0, total=len(held))
            try:
                # The uid makes the API server refuse if the object is another one by now.
                change = {"metadata": {"uid": uid_of(each.body), "finalizers": None}}
                await self.cluster.patch(each.resource, key, change)
            except ObjectRefused as refusal:
                if refusal.http_status != 409:
                    raise
            self._done.add(uid_of(each.body))

    def _is_deleted(self, each: Target) -> bool:
        since = field_at(each.body, "metadata", "deletionTimestamp")
        return bool(each.finalizers and since and uid_of(each.body) not in self._done)

    def _is_old(self, each: Target) -> bool:
        return datetime.fromisoformat(str(field_at(each.body, "metadata", "deletionTimestamp"))) < self.before

    async def _orphaned(self, candidates: Sequence[Target]) -> Collection[ObjectKey]:
        """Return the objects of Cluster API whose Cluster has lost its finalizers: no controller ends their deletion."""
        mine = [each.key for each in candidates if each.key.group in GROUPS and not is_cluster(each.key)]
        release = await self.releases.get(self.vnf_instance_id) if mine else None
        left = release.left if release is not None else ()
        places = {each.namespace for each in left if each.kind == "Cluster" and each.finalizers}
        return frozenset(key for key in mine if key.namespace in places)

    async def _left(self, each: Target) -> Sequence[LeftObject]:
        """Return the object, and for a Cluster what Cluster API has made for it."""
        key, endpoint = each.entry.key, self.cluster.endpoint
        own = left_object(
            key, uid_of(each.body), cluster=endpoint, vdu_id=each.entry.vdu_id, finalizers=each.finalizers
        )
        return [own, *(await parts_of_cluster(self.cluster, key) if is_cluster(key) else ())]

    async def _record(self, left: Sequence[LeftObject]) -> None:
        release = await self.releases.get(self.vnf_instance_id)
        assert release is not None
        new = {each.uid: each for each in left}
        earlier = [each for each in release.left if each.uid not in new]
        await self.releases.save(replace(release, left=(*earlier, *new.values())))


def _in_words(part: LeftObject) -> str:
    return f"{part.kind} {part.namespace}/{part.name} ({part.provider_id})"
