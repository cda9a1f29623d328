"""Grant (SOL003 V3.7.1 clause 9.5.2.3): the NFVO's permission, with zones, flavors and images for the resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_secrets import SecretParams
from pydantic import Field, field_validator

from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.connectivity import ExtManagedVirtualLinkData, ExtVirtualLinkData
from kubevnfm_sol.vim import VimConnectionInfo


class ZoneInfo(SolRequest):
    """Clause 9.5.3.4."""

    id: str
    zone_id: str
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None


class ZoneGroupInfo(SolRequest):
    """Clause 9.5.3.5."""

    zone_id: tuple[str, ...]


class GrantInfo(SolRequest):
    """Clause 9.5.3.3: about one resource definition of the request."""

    resource_definition_id: str
    reservation_id: str | None = None
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    zone_id: str | None = None
    resource_group_id: str | None = None


class VimComputeResourceFlavour(SolRequest):
    """Clause 9.5.3.10."""

    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    vnfd_virtual_compute_desc_id: str
    vim_flavour_id: str


class VimSoftwareImage(SolRequest):
    """Clause 9.5.3.11."""

    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    vnfd_software_image_id: str
    vim_software_image_id: str


class VimAssets(SolRequest):
    """Flavours and images that the VIM holds already."""

    compute_resource_flavours: tuple[VimComputeResourceFlavour, ...] | None = None
    software_images: tuple[VimSoftwareImage, ...] | None = None


class Grant(SolRequest):
    """Clause 9.5.2.3, without ``_links``."""

    id: str = Field(min_length=1, max_length=255)
    vnf_instance_id: str
    vnf_lcm_op_occ_id: str
    vim_connection_info: dict[str, VimConnectionInfo] | None = None
    zones: tuple[ZoneInfo, ...] | None = None
    zone_groups: tuple[ZoneGroupInfo, ...] | None = None
    add_resources: tuple[GrantInfo, ...] | None = None
    temp_resources: tuple[GrantInfo, ...] | None = None
    remove_resources: tuple[GrantInfo, ...] | None = None
    update_resources: tuple[GrantInfo, ...] | None = None
    vim_assets: VimAssets | None = None
    ext_virtual_links: tuple[ExtVirtualLinkData, ...] | None = None
    ext_managed_virtual_links: tuple[ExtManagedVirtualLinkData, ...] | None = None
    additional_params: SecretParams | None = None

    @field_validator("vim_connection_info", mode="before")
    @classmethod
    def _list_is_a_map(cls, given: Any) -> Any:
        """Older NFVOs (SOL003 V2) send a list whose entries have an ``id``."""
        if not isinstance(given, list):
            return given
        # Without an id the position keeps two entries apart.
        return {
            str(one.get("id", index)) if isinstance(one, Mapping) else str(index): one
            for index, one in enumerate(given)
        }
