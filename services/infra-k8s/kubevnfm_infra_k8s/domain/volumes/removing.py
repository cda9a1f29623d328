"""Removes the objects of a volume: claim, PersistentVolume, and its data if they are to go (MC-104)."""

from __future__ import annotations

from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import binding, bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Volume


async def remove(cluster: Cluster, records: VolumeRecords, volume: Volume) -> None:
    """Have no object of the volume, and then no document. Raises NotYet, Broken, RevisionConflict."""
    name = volume.pv or await _provisioned(cluster, volume)
    if name and not volume.pv:
        # Stored first: once its claim is gone, nothing else leads to it.
        volume = await records.replace(volume.model_copy(update={"pv": name}))
    pv = await cluster.get(VOLUMES, pv_key(name)) if name else None
    if pv is not None and not volume.pv_uid and volume.storage_class is not None and not bodies.is_own(volume, pv):
        pv = await cluster.patch(VOLUMES, pv_key(name), bodies.patch_to_keep(volume)) or pv
    if pv is not None and bodies.is_own(volume, pv) and volume.reclaim == "Delete":
        await _delete_data(cluster, volume, pv)
    else:
        await binding.without_claim(cluster, volume, volume.reserved_claim)
        if name:
            await binding.without_pv(cluster, volume, name)
    await records.delete(volume)


async def _provisioned(cluster: Cluster, volume: Volume) -> str:
    """Return the name of a PersistentVolume that was made and not yet recorded."""
    claim = await cluster.get(CLAIMS, volume.reserved_claim)
    if claim is None or not bodies.is_own(volume, claim):
        return ""
    return str(field_at(claim, "spec", "volumeName") or "")


async def _delete_data(cluster: Cluster, volume: Volume, pv: Body) -> None:
    """Have the provisioner delete the data: it does so for a PersistentVolume whose claim is gone and that is to be deleted.

    A claim of our own binds it first, because the provisioner looks at none that was only reserved.
    """
    key = pv_key(str(pv["metadata"]["name"]))
    claim = await cluster.get(CLAIMS, volume.reserved_claim)
    is_bound = claim is not None and bodies.claim_of(pv) == (volume.reserved_claim, uid_of(claim))
    if field_at(pv, "spec", "persistentVolumeReclaimPolicy") != "Delete":
        if not is_bound:
            pv = await binding.reserved_for(cluster, volume, pv, volume.reserved_claim)
        await binding.bound_by(cluster, volume, pv, volume.reserved_claim)
        await cluster.patch(VOLUMES, key, bodies.patch_to_keep(volume, reclaim="Delete"))
    await binding.without_claim(cluster, volume, volume.reserved_claim)
    left = await cluster.get(VOLUMES, key)
    if left is not None:
        deleting = f"PersistentVolume {key.name}: its provisioner is deleting the data"
        raise NotYet(deleting, Watched.from_body(VOLUMES, key, left))
