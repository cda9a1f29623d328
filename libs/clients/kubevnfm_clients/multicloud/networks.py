"""The interfaces of a VNF on virtual links, as a request asks for them (multicloud.md chapter 10)."""

from __future__ import annotations

from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_clients.multicloud.types import MultiCloudRequest

MOST_NETWORKS = 256


class NetworkRequest(MultiCloudRequest):
    """An interface of a VDU on a virtual link. infra-k8s checks the texts, as it knows the link."""

    vdu_id: str = Field(min_length=1, max_length=253)
    virtual_link_id: str = Field(min_length=1, max_length=255)
    interface: str | None = Field(default=None, max_length=255)
    """Absent: ``net1``, ``net2`` ... in their order."""
    ip_address: str | None = Field(default=None, max_length=255)
    mac_address: str | None = Field(default=None, max_length=255)
    default_gateway: bool = False
    binding: str | JsonObject | None = None
    """KubeVirt: ``bridge``, ``masquerade``, ``sriov`` or ``{"plugin": "<name>"}``."""


class AttachRequest(MultiCloudRequest):
    """The interfaces of an instance, to check."""

    vim_id: str
    """The region of the instance."""
    reference: str
    """The instance as a user of links: its own addresses are not in use by another."""
    namespace: str | None = None
    """Where its pods will be; None: only its manifests say it."""
    networks: tuple[NetworkRequest, ...] = Field(max_length=MOST_NETWORKS)
