"""The phase of a volume, as the region shows it (MC-100). No I/O."""

from __future__ import annotations

from kubevnfm_clients.multicloud.volumes import Phase

from kubevnfm_infra_k8s.domain.objects import Body, field_at, uid_of
from kubevnfm_infra_k8s.domain.volumes import bodies
from kubevnfm_infra_k8s.domain.volumes.quantities import bytes_of
from kubevnfm_infra_k8s.domain.volumes.record import Volume

Shown = tuple[Phase, str]
"""A phase, and what is to be said of it."""


def phase_of(volume: Volume, pv: Body | None) -> Shown:
    """Return the phase of a volume whose work is done, by its PersistentVolume: drift is shown, and nothing repairs it."""
    if pv is None:
        if volume.pv_uid:
            return "Failed", f"PersistentVolume {volume.pv} was deleted by another party"
        return "Pending", "the class provisions it when the first VNF comes" if volume.storage_class else ""
    if volume.pv_uid and uid_of(pv) != volume.pv_uid:
        return "Failed", f"PersistentVolume {volume.pv} was replaced by another party"
    if not bodies.is_own(volume, pv):
        return "Failed", f"PersistentVolume {volume.pv} has lost the label of this volume"
    return _phase(volume, pv)


def _phase(volume: Volume, pv: Body) -> Shown:
    own = {volume.reserved_claim, *(each.claim for each in volume.uses if not each.pv)}
    has, phase = bodies.claim_of(pv), field_at(pv, "status", "phase")
    if phase == "Failed":
        return "Failed", str(field_at(pv, "status", "message") or "the PersistentVolume has failed")
    if has is None:
        return "Failed", f"PersistentVolume {volume.pv} lost its claimRef to another party: any claim can take it"
    claim, uid = has
    if claim not in own:
        return (
            "Failed",
            f"PersistentVolume {volume.pv} was reserved for {claim.namespace}/{claim.name} by another party",
        )
    if not uid:
        return "Reserved", _growth(volume, pv)
    # Its controller writes Released once the claim is gone.
    is_bound = claim != volume.reserved_claim and phase != "Released"
    return ("Bound", "") if is_bound else ("Released", f"claim {claim.namespace}/{claim.name} is gone")


def _growth(volume: Volume, pv: Body) -> str:
    present = str(field_at(pv, "spec", "capacity", "storage"))
    if volume.storage_class is None or bytes_of(present) >= bytes_of(volume.size):
        return ""
    return f"grows from {present} to {volume.size} when the next VNF binds it"
