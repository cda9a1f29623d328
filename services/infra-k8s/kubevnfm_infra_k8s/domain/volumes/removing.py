"""Removes the objects of a volume: claim, PersistentVolume, and its data if they are to go (MC-104)."""

from __future__ import annotations

from kubevnfm_infra_k8s.domain.objects import Body, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import binding, bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Volume


async def remove(cluster: Cluster, records: VolumeRecords, volume: Volume) -> None:
    """Have no object of the volume, and then no document. Raises NotYet, Broken, RevisionConflict."""
    name = volume.pv or await binding.volume_of(cluster, volume, volume.reserved_claim)
    if name and not volume.pv:
        # Stored first: once its claim is gone, nothing else leads to it.
        volume = await records.replace(volume.model_copy(update={"pv": name}))
    pv = await cluster.get(VOLUMES, pv_key(name)) if name else None
    is_new = not volume.pv_uid and volume.storage_class is not None
    if pv is not None and (is_new or bodies.is_of(volume, pv)):
        if volume.reclaim == "Delete":
            await _delete_data(cluster, volume, pv)
        elif not bodies.is_kept(volume, pv):
            await cluster.patch(VOLUMES, pv_key(volume.pv), bodies.patch_to_keep(volume))
    await binding.without_claim(cluster, volume, volume.reserved_claim)
    if name:
        await binding.without_pv(cluster, volume, name)
    await records.delete(volume)


async def _delete_data(cluster: Cluster, volume: Volume, pv: Body) -> None:
    """Have the provisioner delete the data: it does so for a PersistentVolume whose claim is gone and that is to be deleted.

    A claim of our own binds it first, because the provisioner looks at none that was only reserved.
    """
    key = pv_key(str(pv["metadata"]["name"]))
    if field_at(pv, "spec", "persistentVolumeReclaimPolicy") != "Delete":
        await binding.bound(cluster, volume, pv, volume.reserved_claim)
        await cluster.patch(VOLUMES, key, bodies.patch_to_keep(volume, reclaim="Delete"))
    await binding.without_claim(cluster, volume, volume.reserved_claim)
    left = await cluster.get(VOLUMES, key)
    if left is not None:
        said = field_at(left, "status", "message")
        deleting = f"PersistentVolume {key.name}: its provisioner is deleting the data"
        raise NotYet(f"{deleting}: {said}" if said else deleting, Watched.from_body(VOLUMES, key, left))
