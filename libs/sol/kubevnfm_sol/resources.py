"""The resources of a VNF instance (SOL003 V3.7.1 clause 5.5.3)."""

from __future__ import annotations

from typing import Any, Literal

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_sol.base import SolType


class ResourceHandle(SolType):
    """Clause 4.4.1.7: a resource as the VIM knows it."""

    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    resource_id: str
    vim_level_resource_type: str | None = None


class IpAddresses(SolType):
    """A part of IpOverEthernetAddressInfo."""

    type: Literal["IPV4", "IPV6"]
    addresses: tuple[str, ...] = ()
    is_dynamic: bool | None = None
    subnet_id: str | None = None


class IpOverEthernetAddressInfo(SolType):
    """Clause 5.5.3.10."""

    mac_address: str | None = None
    ip_addresses: tuple[IpAddresses, ...] = ()


class CpProtocolInfo(SolType):
    """Clause 5.5.3.9b."""

    layer_protocol: Literal["IP_OVER_ETHERNET"] = "IP_OVER_ETHERNET"
    ip_over_ethernet: IpOverEthernetAddressInfo | None = None


class VnfcCpInfo(SolType):
    """A connection point of a VNFC (in clause 5.5.3.5)."""

    id: str
    cpd_id: str
    vnf_ext_cp_id: str | None = None
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    vnf_link_port_id: str | None = None
    metadata: JsonObject | None = None


class VnfcResourceInfo(SolType):
    """Clause 5.5.3.5: the compute resource behind a VNFC."""

    id: str
    vdu_id: str
    vnfd_id: str | None = None
    compute_resource: ResourceHandle
    zone_id: str | None = None
    storage_resource_ids: tuple[str, ...] | None = None
    vnfc_cp_info: tuple[VnfcCpInfo, ...] | None = None
    metadata: JsonObject | None = None


class VnfLinkPortInfo(SolType):
    """Clause 5.5.3.8."""

    id: str
    resource_handle: ResourceHandle
    cp_instance_id: str | None = None
    cp_instance_type: Literal["VNFC_CP", "EXT_CP"] | None = None


class VnfVirtualLinkResourceInfo(SolType):
    """Clause 5.5.3.6."""

    id: str
    vnf_virtual_link_desc_id: str
    vnfd_id: str | None = None
    network_resource: ResourceHandle
    vnf_link_ports: tuple[VnfLinkPortInfo, ...] | None = None


class VirtualStorageResourceInfo(SolType):
    """Clause 5.5.3.7."""

    id: str
    virtual_storage_desc_id: str
    vnfd_id: str | None = None
    storage_resource: ResourceHandle


class VnfExtCpInfo(SolType):
    """Clause 5.5.3.4: an external connection point."""

    id: str
    cpd_id: str
    cp_config_id: str
    vnfd_id: str | None = None
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    ext_link_port_id: str | None = None
    associated_vnfc_cp_id: str | None = None


class ExtLinkPortInfo(SolType):
    """Clause 5.5.3.9."""

    id: str
    resource_handle: ResourceHandle
    cp_instance_id: str | None = None


class ExtVirtualLinkInfo(SolType):
    """Clause 5.5.3.2."""

    id: str
    resource_handle: ResourceHandle
    ext_link_ports: tuple[ExtLinkPortInfo, ...] | None = None
    current_vnf_ext_cp_data: tuple[JsonObject, ...] = ()


class ScaleInfo(SolType):
    """Clause 4.4.1.9 (the OpenAPI file misnames scaleLevel)."""

    aspect_id: str
    vnfd_id: str | None = None
    scale_level: int


class VnfcInfo(SolType):
    """Clause 5.5.3.23."""

    id: str
    vdu_id: str
    vnfc_resource_info_id: str | None = None
    vnfc_state: Literal["STARTED", "STOPPED"] = "STARTED"
    vnfc_configurable_properties: SecretParams | None = None


class InstantiatedVnfInfo(SolType):
    """The part of VnfInstance that exists exactly while it is INSTANTIATED (clause 5.5.2.2)."""

    flavour_id: str
    vnf_state: Literal["STARTED", "STOPPED"] = "STARTED"
    scale_status: tuple[ScaleInfo, ...] | None = None
    max_scale_levels: tuple[ScaleInfo, ...] | None = None
    ext_cp_info: tuple[VnfExtCpInfo, ...] = ()
    ext_virtual_link_info: tuple[ExtVirtualLinkInfo, ...] | None = None
    ext_managed_virtual_link_info: tuple[JsonObject, ...] | None = None
    localization_language: str | None = None
    vnfc_resource_info: tuple[VnfcResourceInfo, ...] = ()
    vnf_virtual_link_resource_info: tuple[VnfVirtualLinkResourceInfo, ...] | None = None
    virtual_storage_resource_info: tuple[VirtualStorageResourceInfo, ...] | None = None
    vnfc_info: tuple[VnfcInfo, ...] = ()
    additional_params: SecretParams | None = None
    """v1 answers show it; sealed in documents."""
    metadata: SecretParams = Field(default_factory=dict)
    """v2 answers show it: facts that an operator needs (stack id, namespace), and the parameter ``nfv`` of the stack."""


ChangeType = Literal["ADDED", "REMOVED", "MODIFIED", "TEMPORARY"]


class AffectedVnfc(SolType):
    """Clause 5.5.3.13."""

    id: str
    vdu_id: str
    vnfd_id: str | None = None
    change_type: ChangeType
    compute_resource: ResourceHandle
    zone_id: str | None = None
    metadata: JsonObject | None = None
    affected_vnfc_cp_ids: tuple[str, ...] | None = None
    added_storage_resource_ids: tuple[str, ...] | None = None
    removed_storage_resource_ids: tuple[str, ...] | None = None


class AffectedVirtualLink(SolType):
    """Clause 5.5.3.14: a virtual link, or the ports on it."""

    id: str
    vnf_virtual_link_desc_id: str
    vnfd_id: str | None = None
    change_type: ChangeType | Literal["LINK_PORT_ADDED", "LINK_PORT_REMOVED"]
    network_resource: ResourceHandle
    vnf_link_port_ids: tuple[str, ...] | None = None
    """The ports; with LINK_PORT_ADDED and LINK_PORT_REMOVED."""


class AffectedVirtualStorage(SolType):
    """Clause 5.5.3.15."""

    id: str
    virtual_storage_desc_id: str
    vnfd_id: str | None = None
    change_type: ChangeType
    storage_resource: ResourceHandle


class AffectedExtLinkPort(SolType):
    """Clause 5.5.3.14a; v2 only."""

    id: str
    change_type: ChangeType
    ext_cp_instance_id: str
    resource_handle: ResourceHandle


class ResourceChanges(SolType):
    """``resourceChanges`` of VnfLcmOpOcc (clause 5.5.2.13): cumulative, filled as steps end."""

    affected_vnfcs: tuple[AffectedVnfc, ...] = ()
    affected_virtual_links: tuple[AffectedVirtualLink, ...] = ()
    affected_ext_link_ports: tuple[AffectedExtLinkPort, ...] = ()
    """v2 only."""
    affected_virtual_storages: tuple[AffectedVirtualStorage, ...] = ()
    metadata: dict[str, Any] | None = None
    """Ours: what has no attribute in SOL003, such as objects that a FORCEFUL termination leaves."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was affected."""
        return not any(value for _, value in self)
