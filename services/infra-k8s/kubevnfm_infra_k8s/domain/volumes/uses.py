"""The persistent volumes of VNF instances, which an instance takes and leaves (multicloud.md MC-060, MC-101)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kubevnfm_clients.multicloud.links import VNF_REFERENCE
from kubevnfm_clients.multicloud.volumes import VolumeUse
from kubevnfm_events.objects import ClaimedVolume

from kubevnfm_infra_k8s.domain.errors import VolumeNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume


@dataclass(frozen=True)
class InstanceVolumes:
    """`domain.ports.VolumeUses`: each call may be repeated, also after a crash in the middle."""

    volumes: PersistentVolumes

    async def hold(self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str) -> None:
        for each in volumes:
            await self._take(vnf_instance_id, each, namespace)

    async def waited_for(
        self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str, *, within_s: float
    ) -> str:
        reference = _reference(vnf_instance_id)
        for each in volumes:
            volume_id = each.persistent_volume_id
            volume, use = await self._use(volume_id, reference)
            # A retry looks again at what has failed, and a heal takes what its deletion has left.
            if use is None or volume is None or volume.phase in {"Failed", "Released"}:
                await self._take(vnf_instance_id, each, namespace)
            await self.volumes.work.decided(volume_id, within_s=within_s)
            volume, use = await self._use(volume_id, reference)
            if volume is None or use is None or use.is_leaving:
                raise VolumeNotReady(f"persistent volume {volume_id} is not used by this VNF: it was removed or left")
            if use.waits_for_consumer or use.claim_uid:
                continue
            why = use.detail or volume.phase_detail or f"claim {use.namespace}/{use.claim_name} is not bound yet"
            # A claim of another user of the volume that is not as wanted ends no operation of this one.
            if volume.phase == "Failed" and use.detail in {"", volume.phase_detail}:
                raise VolumeNotReady(f"persistent volume {volume.name} is Failed: {why}")
            return f"persistent volume {volume.name} ({volume.phase}): {why}"
        return ""

    async def unbound(self, vnf_instance_id: str) -> Sequence[ObjectKey]:
        reference = _reference(vnf_instance_id)
        uses = [each.use_of(reference) for each in await self.volumes.records.used_by(reference)]
        return [use.claim for use in uses if use is not None and not use.claim_uid and not use.is_leaving]

    async def leave(self, vnf_instance_id: str, *, kept: Collection[str] = (), within_s: float) -> Mapping[str, str]:
        reference = _reference(vnf_instance_id)
        mine = [each for each in await self.volumes.records.used_by(reference) if each.id not in kept]
        # First all of them, so that none waits for the claims of another.
        for volume in mine:
            await self.volumes.leave(volume.id, reference, wait_s=0.0)
        left: dict[str, str] = {}
        for volume in mine:
            present = await self.volumes.work.decided(volume.id, within_s=0.0 if left else within_s)
            use = None if present is None else present.use_of(reference)
            if present is not None and use is not None:
                why = use.detail or present.phase_detail or "its claim is being removed"
                left[volume.id] = f"persistent volume {present.name}: {why}"
        return left

    async def check_answering(self, vnf_instance_id: str) -> None:
        reference, asked = _reference(vnf_instance_id), set[str]()
        for volume in await self.volumes.records.used_by(reference):
            use = volume.use_of(reference)
            if use is not None and use.is_leaving and volume.vim_id not in asked:
                asked.add(volume.vim_id)
                await self.volumes.check_answering(volume, use.claim)

    async def _take(self, vnf_instance_id: str, volume: ClaimedVolume, namespace: str) -> None:
        wanted = VolumeUse(namespace=namespace, claim_name=volume.claim_name)
        await self.volumes.use(volume.persistent_volume_id, _reference(vnf_instance_id), wanted, wait_s=0.0)

    async def _use(self, volume_id: str, reference: str) -> tuple[Volume | None, Use | None]:
        volume = await self.volumes.records.get(volume_id)
        return volume, None if volume is None else volume.use_of(reference)


def _reference(vnf_instance_id: str) -> str:
    return f"{VNF_REFERENCE}{vnf_instance_id}"
