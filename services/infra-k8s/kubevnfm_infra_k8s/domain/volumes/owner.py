"""Volumes as their users see them: each call is one write of the volume's document, and wakes the work on it (ADR 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from kubevnfm_clients.multicloud.links import is_reference
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.multicloud.volumes import (
    Claim,
    CreatedVolume,
    PersistentVolume,
    RemovedVolume,
    VolumeClaim,
    VolumePatch,
    VolumeRequest,
    VolumeUse,
)
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import (
    BeingRemoved,
    Conflict,
    ConflictingInput,
    InUse,
    InvalidInput,
    NotFound,
    OutsideUnavailable,
    PreconditionFailed,
    Unprocessable,
)
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_infra_k8s.domain.errors import AccessRefused, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import CLAIMS, ObjectKey
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Policies
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters
from kubevnfm_infra_k8s.domain.reconciling.permitted import check_permitted
from kubevnfm_infra_k8s.domain.reconciling.ports import Regions
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, is_of, place_of_data, pv_key
from kubevnfm_infra_k8s.domain.volumes.checking import (
    check_class,
    check_expansion,
    check_growth,
    check_labels,
    check_policy,
    check_request,
)
from kubevnfm_infra_k8s.domain.volumes.looking import shown
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import MOST_FORMER_LABELS, MOST_USES, Use, Volume

T = TypeVar("T")

_CHANGED: Final = "the persistent volume has changed since it was read"


class VolumeWork(Protocol):
    """The work that brings volumes to what their documents say."""

    def wake(self, volume_id: str, /) -> None:
        """Have the volume looked at now."""
        ...

    async def decided(self, volume_id: str, /, *, within_s: float) -> Volume | None:
        """Return the volume once waiting would not change it, or after this time; None if it is gone."""
        ...


@dataclass(frozen=True)
class PersistentVolumes:
    """The owner of volumes: `kubevnfm_clients.multicloud.volumes.PersistentVolumes`."""

    records: VolumeRecords
    regions: Regions
    vims: VimDirectory
    clusters: Clusters
    work: VolumeWork
    clock: Clock
    policies: Policies
    look_s: float = 5.0
    """How long a caller who reads a volume waits for the region; then the phase is the one that was last seen."""

    async def create(self, wanted: VolumeRequest, *, wait_s: float) -> CreatedVolume:
        check_request(wanted)
        try:
            region = await self.regions.region(wanted.cloud_region_id)
        except NotFound as error:
            raise Unprocessable("cloud_region_id", str(error)) from error
        new = Volume.from_request(
            wanted, id=new_id(), vim_id=region.vim_id, place=region.links_namespace, now=rfc3339(self.clock.now())
        )
        check_permitted([("namespace", new.place)], region)
        volume, is_new = await self._created(wanted, new)
        return CreatedVolume(await self._shown(await self._worked_on(volume, wait_s) or volume), is_new)

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[PersistentVolume]:
        found = await self.records.page(filters, limit=limit + 1, after=after)
        shown = await self._all_shown(found[:limit])
        return Page(shown, shown[-1].id if len(found) > limit else None)

    async def get(self, volume_id: str) -> PersistentVolume:
        """Return a volume with the phase that its PersistentVolume has now, if the region answers."""
        volume = await self._volume(volume_id)
        if not volume.is_settled or not volume.pv:
            return await self._shown(volume)
        seen = await self._look(volume, partial(shown, volume=volume))
        if seen is not None:
            volume = volume.model_copy(update={"phase": seen[0], "phase_detail": seen[1]})
        return await self._shown(volume)

    async def change(
        self, volume_id: str, patch: VolumePatch, *, if_revision: int | None, wait_s: float
    ) -> PersistentVolume:
        written = await self._changed(volume_id, patch, if_revision)
        return await self._shown(await self._worked_on(written, wait_s) or written)

    async def delete(self, volume_id: str, *, if_revision: int | None, wait_s: float) -> RemovedVolume:
        is_lost = await self._is_lost(await self._volume(volume_id))
        volume = await self._removed(volume_id, if_revision, is_lost=is_lost)
        left = await self._worked_on(volume, wait_s)
        data, where = ("deleted", "") if volume.reclaim == "Delete" else ("kept", place_of_data(volume))
        return RemovedVolume.model_validate({"id": volume.id, "is_gone": left is None, "data": data, "where": where})

    async def use(self, volume_id: str, reference: str, wanted: VolumeUse, *, wait_s: float) -> VolumeClaim:
        if not is_reference(reference):
            raise InvalidInput("reference", "1 to 255 printable characters without space expected")
        region = await self.regions.region((await self._volume(volume_id)).cloud_region_id)
        check_permitted([("namespace", wanted.namespace)], region)
        volume = await self._used(volume_id, reference, wanted)
        volume = await self._worked_on(volume, wait_s) or volume
        use = volume.use_of(reference)
        if use is None:
            raise Conflict(f"{reference} has left persistent volume {volume.name} at the same time")
        return VolumeClaim(
            reference=reference,
            claim=Claim(namespace=use.namespace, name=use.claim_name),
            pv=use.pv or volume.pv or None,
            is_bound=bool(use.claim_uid),
            waits_for_consumer=use.waits_for_consumer,
            detail=use.detail or ("" if use.claim_uid else volume.phase_detail),
        )

    async def leave(self, volume_id: str, reference: str, *, wait_s: float) -> bool:
        volume = await self._left(volume_id, reference)
        if volume is None or volume.use_of(reference) is None:
            return True
        left = await self._worked_on(volume, wait_s)
        return left is None or left.use_of(reference) is None

    async def check_answering(self, volume: Volume, claim: ObjectKey) -> None:
        """Raise ClusterUnavailable if the region of a volume does not answer when it is asked for a claim."""
        with suppress(NotFound):
            vim = await self._vim(volume)
            # Any answer will do.
            with suppress(AccessRefused, ObjectRefused):
                async with self.clusters.cluster(vim) as cluster:
                    await cluster.get_metadata(CLAIMS, claim)

    async def _worked_on(self, volume: Volume, wait_s: float) -> Volume | None:
        self.work.wake(volume.id)
        return await self.work.decided(volume.id, within_s=wait_s)

    async def _check_not_suspended(self, volume: Volume) -> None:
        """Raise Suspended if the region of a volume is suspended."""
        suspension = (await self.regions.suspensions()).get(volume.vim_id)
        if suspension is not None:
            raise suspension.refusal(f"cloud region {volume.cloud_region_id}")

    async def _shown(self, volume: Volume) -> PersistentVolume:
        (shown,) = await self._all_shown([volume])
        return shown

    async def _all_shown(self, volumes: Sequence[Volume]) -> list[PersistentVolume]:
        suspensions: Mapping[str, Suspension] = {}
        # The documents of this service can be read while vim-registry is away.
        with suppress(OutsideUnavailable):
            suspensions = await self.regions.suspensions()
        return [volume.shown().model_copy(update={"suspended": suspensions.get(volume.vim_id)}) for volume in volumes]

    async def _volume(self, volume_id: str) -> Volume:
        volume = await self.records.get(volume_id)
        if volume is None:
            raise NotFound(f"persistent volume {volume_id} does not exist")
        return volume

    async def _created(self, wanted: VolumeRequest, new: Volume) -> tuple[Volume, bool]:
        """Return the volume of this name, and whether it is new."""
        there = await self.records.named(new.vim_id, new.name)
        if there is None:
            await self._check_not_suspended(new)
            vim = await self._vim(new)
            async with self.clusters.cluster(vim) as cluster:
                check_policy(wanted, self.policies.for_cluster(vim, cluster.endpoint))
                await check_class(cluster, wanted)
            try:
                return await self.records.insert(new), True
            except AlreadyExists:
                there = await self.records.named(new.vim_id, new.name)
        if there is None or there.is_removed:
            raise BeingRemoved(f"persistent volume {new.name} is being removed: try again once it is gone")
        differing = there.differs_from(new)
        if differing:
            raise ConflictingInput(
                "name", f"persistent volume {there.name} ({there.id}) exists and differs in {', '.join(differing)}"
            )
        # In a suspended region nothing is repaired.
        is_suspended = there.vim_id in await self.regions.suspensions()
        return (there if is_suspended else await self._repaired(there.id)), False

    @repeat_lost_writes
    async def _repaired(self, volume_id: str) -> Volume:
        """Have the objects looked at again: a repeated creation repairs what others have changed."""
        volume = await self._volume(volume_id)
        return await self.records.replace(volume.asked_again(rfc3339(self.clock.now())))

    @repeat_lost_writes
    async def _used(self, volume_id: str, reference: str, wanted: VolumeUse) -> Volume:
        volume = await self._volume(volume_id)
        if volume.is_removed:
            raise BeingRemoved(f"persistent volume {volume.name} is being removed")
        there = volume.use_of(reference)
        if there is not None and (there.is_leaving or there.wanted != wanted):
            raise Conflict(f"{reference} uses persistent volume {volume.name} by another claim, or is leaving it")
        others = [each for each in volume.uses if each.reference != reference]
        if there is None and not volume.takes_another:
            raise InUse(f"persistent volume {volume.name} is in use", [each.reference for each in others])
        if any(each.claim == Use(reference="", **dict(wanted)).claim for each in others):
            raise Conflict(f"claim {wanted.namespace}/{wanted.claim_name} is that of another user of the volume")
        if len(others) >= MOST_USES:
            raise Conflict(f"persistent volume {volume.name} has {MOST_USES} users, which is the most")
        use = there or Use(reference=reference, pv=volume.name_for(reference), **dict(wanted))
        # Its first pod may have come since the last look: the caller waits for the next one.
        use = use.model_copy(update={"waits_for_consumer": False})
        return await self.records.replace(volume.with_use(use).asked_again(rfc3339(self.clock.now())))

    @repeat_lost_writes
    async def _left(self, volume_id: str, reference: str) -> Volume | None:
        volume = await self.records.get(volume_id)
        use = None if volume is None else volume.use_of(reference)
        if volume is None or use is None or use.is_leaving:
            return volume
        leaving = volume.with_use(use.model_copy(update={"is_leaving": True}))
        return await self.records.replace(leaving.asked_again(rfc3339(self.clock.now())))

    @repeat_lost_writes
    async def _changed(self, volume_id: str, patch: VolumePatch, if_revision: int | None) -> Volume:
        volume = await self._volume(volume_id)
        if if_revision is not None and volume.revision != if_revision:
            raise PreconditionFailed(_CHANGED)
        if volume.is_removed:
            raise BeingRemoved(f"persistent volume {volume.name} is being removed")
        check_labels(patch.labels or {})
        await self._check_not_suspended(volume)
        if patch.size is not None and check_growth(volume, patch.size):
            async with self.clusters.cluster(await self._vim(volume)) as cluster:
                await check_expansion(cluster, str(volume.storage_class))
        given = {name: value for name, value in dict(patch).items() if value is not None}
        former = {*volume.former_labels, *volume.labels} - given.get("labels", volume.labels).keys()
        if len(former) > MOST_FORMER_LABELS:
            raise Conflict(
                f"persistent volume {volume.name} has {len(volume.former_labels)} labels that are to be taken away first"
            )
        changed = volume.model_copy(update={**given, "former_labels": tuple(sorted(former))})
        now = rfc3339(self.clock.now())
        return await self.records.replace(changed.asked_again(now).model_copy(update={"updated_at": now}))

    @repeat_lost_writes
    async def _removed(self, volume_id: str, if_revision: int | None, *, is_lost: bool) -> Volume:
        volume = await self._volume(volume_id)
        if if_revision is not None and volume.revision != if_revision:
            raise PreconditionFailed(_CHANGED)
        if volume.is_removed:
            return volume
        if volume.uses:
            raise InUse(f"persistent volume {volume.name} is in use", volume.holders)
        await self._check_not_suspended(volume)
        removed = volume.asked_again(rfc3339(self.clock.now()))
        # No provisioner deletes data whose PersistentVolume is gone: the answer must not say that they are deleted.
        reclaim = "Retain" if is_lost else volume.reclaim
        return await self.records.replace(removed.model_copy(update={"is_removed": True, "reclaim": reclaim}))

    async def _is_lost(self, volume: Volume) -> bool:
        """Return whether no provisioner will delete the data, as far as the region answers.

        The region is not registered any more, or another party has deleted or replaced the PersistentVolume.
        """
        if volume.reclaim == "Retain" or not volume.pv_uid or volume.is_removed:
            return False
        with suppress(OutsideUnavailable):
            try:
                await self._vim(volume)
            except NotFound:
                return True

        async def is_lost(cluster: Cluster) -> bool:
            pv = await cluster.get(VOLUMES, pv_key(volume.pv))
            return pv is None or not is_of(volume, pv)

        return await self._look(volume, is_lost) or False

    async def _look(self, volume: Volume, look: Callable[[Cluster], Awaitable[T]]) -> T | None:
        """Return what is seen in the region of a volume; None if that does not answer in time, or refuses."""
        with suppress(OutsideUnavailable, AccessRefused, ObjectRefused, NotFound, TimeoutError):
            async with asyncio.timeout(self.look_s), self.clusters.cluster(await self._vim(volume)) as cluster:
                return await look(cluster)
        return None

    async def _vim(self, volume: Volume) -> VimConnection:
        return await self.vims.connection(VimConnection(vim_id=volume.vim_id))
