"""Messages about virtual links, which infra-k8s owns."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText

from kubevnfm_events.base import Event

LinkStatus = Literal["PENDING", "READY", "DEGRADED", "FAILED", "REMOVING"]


class VirtualLinkChanged(Event, kind="infra.link.changed", by="infra-k8s"):
    """A virtual link has become READY, FAILED, or DEGRADED by what another party did to its objects."""

    link_id: str
    name: str
    cloud_region_id: str
    vim_id: str
    old_status: LinkStatus
    status: LinkStatus
    reason: ErrorText = ""
    vnf_instance_ids: tuple[str, ...] = ()
    """The VNF instances that hold it; at most 1,000."""
    has_more_vnf_instances: bool = False
    """Whether there are more of them."""
