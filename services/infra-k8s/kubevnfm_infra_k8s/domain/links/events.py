"""The events of virtual links (multicloud.md MC-098). No I/O."""

from __future__ import annotations

from kubevnfm_events.links import VirtualLinkChanged

from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.reconciling.holders import vnfs_among


def change_of(before: Link, after: Link) -> VirtualLinkChanged | None:
    """Return the event of a write; None if it is no news for others: the status is as before, or the work goes on."""
    if after.status == before.status or after.status not in {"READY", "DEGRADED", "FAILED"}:
        return None
    return VirtualLinkChanged(
        link_id=after.id, name=after.name, cloud_region_id=after.cloud_region_id, vim_id=after.vim_id,
        old_status=before.status, status=after.status, reason=after.status_detail,
        **vnfs_among(after.references),
    )  # fmt: skip
