"""Virtual links and connection points in requests and grants (SOL003 V3.7.1 clauses 4.4.1.10 to 4.4.1.12), in the v2 form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, Final, Literal, Self

from kubevnfm_kit.json_types import JsonObject
from pydantic import AfterValidator, Field, model_validator

from kubevnfm_sol.base import WHOLE, SolRequest
from kubevnfm_sol.resources import ResourceHandle

_MAC: Final = re.compile(r"[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}", re.IGNORECASE)
MOST_ADDRESSES: Final = 64
"""The limit of one entry of ipAddresses."""
IpVersion = Literal["IPV4", "IPV6"]


def canonical_mac(text: str) -> str:
    """Return a MAC address as VIMs show it. Raises ValueError."""
    if _MAC.fullmatch(text) is None:
        raise ValueError("a MAC address such as fa:16:3e:00:00:01 expected")
    return text.lower().replace("-", ":")


def _is_address(text: str) -> str:
    try:
        # An address with a zone is valid on the host that has the zone only.
        if ip_address(text).compressed.count("%") == 0:
            return text
    except ValueError:
        pass
    raise ValueError("an IP address without mask and leading zeros expected")


IpText = Annotated[str, AfterValidator(_is_address)]
MacText = Annotated[str, AfterValidator(canonical_mac)]


class AddressRange(SolRequest):
    """A part of IpOverEthernetAddressData."""

    min_address: IpText
    max_address: IpText


class IpAddressesData(SolRequest):
    """An entry of ipAddresses (clause 4.4.1.10c): the addresses of one type, of one subnet if it names one."""

    type: IpVersion
    fixed_addresses: tuple[IpText, ...] | None = Field(default=None, max_length=MOST_ADDRESSES)
    num_dynamic_addresses: Annotated[int, Field(ge=1, le=MOST_ADDRESSES), WHOLE] | None = None
    address_range: AddressRange | None = None
    subnet_id: str | None = Field(default=None, min_length=1, max_length=255)

    @model_validator(mode="after")
    def _is_one_choice(self) -> Self:
        choices = (self.fixed_addresses, self.num_dynamic_addresses, self.address_range)
        # None of them, which SOL003 does not allow, has always meant one address that the VIM chooses.
        if sum(choice is not None for choice in choices) > 1:
            raise ValueError("exactly one of fixedAddresses, numDynamicAddresses and addressRange expected")
        _check_types(self.type, self.fixed_addresses or ())
        if self.address_range is not None:
            ends = (self.address_range.min_address, self.address_range.max_address)
            _check_types(self.type, ends)
            if int(ip_address(ends[0])) > int(ip_address(ends[1])):
                raise ValueError("minAddress is greater than maxAddress")
        return self


def _check_types(kind: IpVersion, addresses: Iterable[str]) -> None:
    wanted = IPv4Address if kind == "IPV4" else IPv6Address
    if any(not isinstance(ip_address(address), wanted) for address in addresses):
        raise ValueError(f"addresses of the type {kind} expected")


class IpOverEthernetAddressData(SolRequest):
    """Clause 4.4.1.10c."""

    mac_address: MacText | None = None
    segmentation_type: Literal["VLAN", "INHERIT"] | None = None
    segmentation_id: str | None = None
    ip_addresses: tuple[IpAddressesData, ...] | None = Field(default=None, max_length=MOST_ADDRESSES)


class CpProtocolData(SolRequest):
    """Clause 4.4.1.10b."""

    layer_protocol: Literal["IP_OVER_ETHERNET"]
    ip_over_ethernet: IpOverEthernetAddressData | None = None


class VnfExtCpConfig(SolRequest):
    """Clause 4.4.1.10a: an existing port, or the attributes of a new one."""

    parent_cp_config_id: str | None = None
    link_port_id: str | None = Field(default=None, min_length=1, max_length=255)
    create_ext_link_port: bool | None = None
    cp_protocol_data: tuple[CpProtocolData, ...] | None = None
    net_att_def_resource_id: str | tuple[str, ...] | None = None
    """One or several; v2 only."""

    @model_validator(mode="after")
    def _says_what_is_connected(self) -> Self:
        # A container's connection point needs its network attachment definition only.
        if self.link_port_id is None and self.cp_protocol_data is None and self.net_att_def_resource_id is None:
            raise ValueError("linkPortId or cpProtocolData is required")
        return self


class VnfExtCpData(SolRequest):
    """Clause 4.4.1.10, v2 form."""

    cpd_id: str = Field(min_length=1, max_length=255)
    cp_config: dict[str, VnfExtCpConfig | None] = Field(default_factory=dict)
    """By id; null deletes the entry."""


class ExtLinkPortData(SolRequest):
    """Clause 4.4.1.13: a port that exists."""

    id: str = Field(min_length=1, max_length=255)
    resource_handle: ResourceHandle
    trunk_resource_id: str | None = None


class ExtVirtualLinkData(SolRequest):
    """Clause 4.4.1.11, v2 form: ``cpConfig`` is a map."""

    id: str = Field(min_length=1, max_length=255)
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    resource_id: str = Field(min_length=1, max_length=255)
    ext_cps: tuple[VnfExtCpData, ...] = ()
    ext_link_ports: tuple[ExtLinkPortData, ...] | None = None


class ExtManagedVirtualLinkData(SolRequest):
    """Clause 4.4.1.12."""

    id: str = Field(min_length=1, max_length=255)
    vnf_virtual_link_desc_id: str
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    resource_id: str
    vnf_link_port: tuple[JsonObject, ...] | None = None
    ext_managed_multisite_virtual_link_id: str | None = None


_SHOWN: Final = ("id", "vnfVirtualLinkDescId", "extManagedMultisiteVirtualLinkId")


def shown_of_managed(link: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that an ExtManagedVirtualLinkInfo (SOL003 5.5.3.3) has as its ExtManagedVirtualLinkData has them."""
    return {name: link[name] for name in _SHOWN if link.get(name) is not None}


def of_indirect_mode(given: Mapping[str, Any]) -> Iterator[Sequence[str | int]]:
    """Yield the path of each ``resourceProviderId`` in the links of a request or of a grant, which has been validated.

    In direct mode, where the VNFM asks VIMs itself, they have no meaning (4.4.1.7).
    """
    for name in ("extVirtualLinks", "extManagedVirtualLinks"):
        for index, link in enumerate(given.get(name) or ()):
            here: list[str | int] = [name, index]
            ports = enumerate(link.get("extLinkPorts") or ())
            of_ports = (
                ([*here, "extLinkPorts", number, "resourceHandle"], port["resourceHandle"]) for number, port in ports
            )
            for path, one in ((here, link), *of_ports):
                if one.get("resourceProviderId") is not None:
                    yield [*path, "resourceProviderId"]
