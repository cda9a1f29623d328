"""Looks at the PersistentVolumes of a volume, for its phase and for what other parties have changed (MC-100)."""

from __future__ import annotations

from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.phases import Shown, phase_of, phase_of_further
from kubevnfm_infra_k8s.domain.volumes.record import VOLUME_LABEL, Volume


async def shown(cluster: Cluster, volume: Volume) -> Shown:
    """Return the phase of a volume whose work is done: that of its own PersistentVolume, or what is wrong with a further one."""
    pv = await cluster.get(VOLUMES, pv_key(volume.pv)) if volume.pv else None
    phase, detail = phase_of(volume, pv)
    further = [each for each in volume.uses if each.pv]
    if phase == "Failed" or not further:
        return phase, detail
    listed = await cluster.list(VOLUMES, labels=f"{VOLUME_LABEL}={volume.id}")
    by_name = {str(each["metadata"]["name"]): each for each in listed}
    found = [phase_of_further(each, by_name.get(each.pv)) for each in further]
    return next((each for each in found if each[0] != "Bound"), (phase, detail))
