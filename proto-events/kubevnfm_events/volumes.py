"""Messages about persistent volumes, which infra-k8s owns."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText

from kubevnfm_events.base import Event

VolumePhase = Literal["Pending", "Reserved", "Bound", "Released", "Failed"]


class PersistentVolumeChanged(Event, kind="infra.volume.changed", by="infra-k8s"):
    """A persistent volume was reserved, bound to the claim of a VNF, or has Failed or lost its claim, as by another party."""

    volume_id: str
    name: str
    cloud_region_id: str
    vim_id: str
    old_phase: VolumePhase
    phase: VolumePhase
    reason: ErrorText = ""
    vnf_instance_ids: tuple[str, ...] = ()
    """The VNF instances that use it, or did so before the change; at most 1,000."""
    has_more_vnf_instances: bool = False
    """Whether there are more of them."""
