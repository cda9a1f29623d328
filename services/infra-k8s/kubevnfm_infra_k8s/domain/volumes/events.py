"""The event about a volume (MC-100). No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_events.volumes import PersistentVolumeChanged

from kubevnfm_infra_k8s.domain.reconciling.holders import vnfs_among
from kubevnfm_infra_k8s.domain.volumes.record import Volume


def change_of(before: Volume, after: Volume, leaving: Sequence[str] = ()) -> PersistentVolumeChanged | None:
    """Return the event of a write; None if it is no news for others: the phase is as before, or the work has just begun.

    ``leaving``: the references of those that have left it just now.
    """
    if after.phase in {before.phase, "Pending"}:
        return None
    return PersistentVolumeChanged(
        volume_id=after.id, name=after.name, cloud_region_id=after.cloud_region_id, vim_id=after.vim_id,
        old_phase=before.phase, phase=after.phase, reason=after.phase_detail,
        **vnfs_among([*after.holders, *before.holders, *leaving]),
    )  # fmt: skip
