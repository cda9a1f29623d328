"""The phase of a volume, as the region shows it (MC-100). No I/O."""

from __future__ import annotations

from kubevnfm_events.volumes import VolumePhase

from kubevnfm_infra_k8s.domain.objects import Body, field_at, uid_of
from kubevnfm_infra_k8s.domain.volumes import bodies
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume

Shown = tuple[VolumePhase, str]
"""A phase, and what is to be said of it."""


def phase_of(volume: Volume, pv: Body | None) -> Shown:
    """Return the phase of a volume whose work is done, by its PersistentVolume: drift is shown, and nothing repairs it."""
    if pv is None:
        if volume.pv_uid:
            return "Failed", f"PersistentVolume {volume.pv} was deleted by another party"
        return "Pending", "the class provisions it when the first VNF comes" if volume.storage_class else ""
    if volume.pv_uid and uid_of(pv) != volume.pv_uid:
        return "Failed", f"PersistentVolume {volume.pv} was replaced by another party"
    if field_at(pv, "metadata", "deletionTimestamp"):
        return "Failed", f"PersistentVolume {volume.pv} is being deleted by another party: it goes with its claim"
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
    if claim == volume.reserved_claim and phase == "Bound":
        return "Failed", f"PersistentVolume {volume.pv} was bound by another party to {claim.namespace}/{claim.name}"
    # Its controller writes Released once the claim is gone.
    is_bound = claim != volume.reserved_claim and phase != "Released"
    return ("Bound", "") if is_bound else ("Released", f"claim {claim.namespace}/{claim.name} is gone")


def phase_of_further(use: Use, pv: Body | None) -> Shown:
    """Return the phase of the PersistentVolume of a further user: Bound, or what another party has done to it."""
    if pv is None:
        return (
            "Failed",
            f"PersistentVolume {use.pv} of {use.reference} was deleted by another party, or has lost its label",
        )
    has = bodies.claim_of(pv)
    if has is None or has[0] != use.claim:
        return "Failed", f"PersistentVolume {use.pv} of {use.reference} was reserved for another claim by another party"
    if field_at(pv, "status", "phase") in {"Released", "Failed"} or has[1] != use.claim_uid:
        return "Released", f"claim {use.namespace}/{use.claim_name} of {use.reference} is gone"
    return "Bound", ""


def _growth(volume: Volume, pv: Body) -> str:
    present = field_at(pv, "spec", "capacity", "storage")
    return (
        f"grows from {present} to {volume.size} when the next VNF binds it"
        if bodies.is_smaller(present, volume)
        else ""
    )
