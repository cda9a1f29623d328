"""Brings the objects of one volume to what its document says: one look, as far as the region lets it come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import binding, bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.phases import phase_of
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume

CLASSES: Final = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
_LATE: Final = "WaitForFirstConsumer"


class Bringing:
    """One look at a volume. Raises NotYet, Broken, RevisionConflict (the document has changed: look again)."""

    def __init__(self, cluster: Cluster, records: VolumeRecords, volume: Volume) -> None:
        self._cluster, self._records, self.volume = cluster, records, volume

    async def bring(self) -> None:
        """Have what is wanted; the document says so at the end."""
        for use in [each for each in self.volume.uses if each.is_leaving]:
            await binding.without_claim(self._cluster, self.volume, use.claim)
            if use.pv:
                await binding.without_pv(self._cluster, self.volume, use.pv)
                await self._save(self.volume.without_use(use.reference))
        staying = [each for each in self.volume.uses if not each.is_leaving]
        pv = await self._pv(staying)
        if pv is not None:
            pv = await self._bound(pv, staying)
        await self._forget_left()
        for use in [each for each in staying if each.pv]:
            await binding.check_free(self._cluster, self.volume, use.claim)
            further = await binding.made_pv(self._cluster, self.volume, use.pv, use.claim)
            further = await binding.reserved_for(self._cluster, self.volume, further, use.claim)
            await self._bind(further, use)
        phase, detail = phase_of(self.volume, pv)
        await self._save(
            self.volume.model_copy(update={"reached": self.volume.wanted, "phase": phase, "phase_detail": detail})
        )

    async def _pv(self, staying: Sequence[Use]) -> Body | None:
        """Return the volume's PersistentVolume; None if its class makes it when a VNF comes."""
        volume = self.volume
        if volume.source is not None:
            pv = await binding.made_pv(self._cluster, volume, volume.pv, volume.reserved_claim)
        elif volume.pv:
            found = await self._cluster.get(VOLUMES, pv_key(volume.pv))
            if found is None:
                raise Broken(f"PersistentVolume {volume.pv} was deleted by another party: its data are out of reach")
            pv = found
        else:
            provisioned = await self._provisioned(staying)
            if provisioned is None:
                return None
            pv = provisioned
        if not bodies.is_kept(self.volume, pv):
            pv = await self._cluster.patch(VOLUMES, pv_key(self.volume.pv), bodies.patch_to_keep(self.volume)) or pv
        seen = {"pv_uid": uid_of(pv), "pv_source": bodies.source_in(pv)}
        await self._save(self.volume.model_copy(update=seen))
        return pv

    async def _provisioned(self, staying: Sequence[Use]) -> Body | None:
        """Return the PersistentVolume that the class has made. Its name is stored before anything is changed on it."""
        volume = self.volume
        found = await self._cluster.get(
            CLASSES, ObjectKey(CLASSES.api_version, CLASSES.kind, "", str(volume.storage_class))
        )
        if found is None:
            raise Broken(f"the region has no StorageClass {volume.storage_class}")
        is_late = found.get("volumeBindingMode") == _LATE
        if is_late and not staying:
            await binding.without_claim(self._cluster, volume, volume.reserved_claim)
            return None
        key = staying[0].claim if is_late else volume.reserved_claim
        claim = await binding.claim_for_class(self._cluster, volume, key)
        name = field_at(claim, "spec", "volumeName")
        if not name or field_at(claim, "status", "phase") != "Bound":
            why = await binding.why_unbound(self._cluster, claim, key)
            if is_late:
                await self._save(volume.with_use(staying[0].model_copy(update={"waits_for_consumer": True})))
            raise NotYet(why, Watched.from_body(CLAIMS, key, claim))
        await self._save(volume.model_copy(update={"pv": str(name)}))
        pv = await self._cluster.get(VOLUMES, pv_key(str(name)))
        if pv is None:
            raise Broken(f"PersistentVolume {name} was deleted by another party: its data are out of reach")
        return pv

    async def _bound(self, pv: Body, staying: Sequence[Use]) -> Body:
        """Return the PersistentVolume, bound to the claim of its user, or reserved while it has none."""
        volume = self.volume
        user = next((each for each in staying if not each.pv), None)
        if user is None:
            await binding.without_claim(self._cluster, volume, volume.reserved_claim)
        else:
            # A claim of others by this name would take the PersistentVolume once it is reserved for the name.
            await binding.check_free(self._cluster, volume, user.claim)
        wanted = volume.reserved_claim if user is None else user.claim
        pv = await binding.reserved_for(self._cluster, volume, pv, wanted)
        if user is None:
            return pv
        await self._bind(pv, user)
        return await self._cluster.get(VOLUMES, pv_key(volume.pv)) or pv

    async def _bind(self, pv: Body, use: Use) -> None:
        claim = await binding.bound_by(self._cluster, self.volume, pv, use.claim)
        seen = {"claim_uid": uid_of(claim), "waits_for_consumer": False}
        await self._save(self.volume.with_use(use.model_copy(update=seen)))

    async def _forget_left(self) -> None:
        """Have no use in the document whose claim is gone, now that the PersistentVolume is reserved for no such claim."""
        left = [each for each in self.volume.uses if each.is_leaving]
        changed = self.volume
        for use in left:
            changed = changed.without_use(use.reference)
        await self._save(changed)

    async def _save(self, changed: Volume) -> None:
        if changed.document() != self.volume.document():
            self.volume = await self._records.replace(changed)
