"""The settings of addresses that packages choose; a part of the settings of every service that connects to VNFs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Final

from pydantic import BaseModel, field_validator

from kubevnfm_clients.outbound import Network
from kubevnfm_clients.vnf_addresses import read_networks

_HOST_NAME: Final = re.compile(
    r"(?![0-9.]+$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?"
)
"""A name that can be resolved. Digits and dots alone are an address with an error."""


class VnfNetworkSettings(BaseModel):
    """The networks of VNFs."""

    vnf_networks: str = ""
    """Networks that are for VNFs, divided by commas: ``10.20.0.0/16, fd12::/64``. Machines are logged in to, scripts of packages
    connect to, and clusters of VNFs are reached at addresses in them alone; never at those of this host, of a server that the
    settings name, or of a metadata service. Empty by default, because the author of a package chooses the addresses of its
    machines: none of them can be trusted unless an operator has named its network."""
    vnf_networks_except: str = ""
    """Addresses, networks and host names inside ``vnf_networks`` that VNFs do not have, divided by commas: servers that other
    services of kubevnfm use, such as the NFVO."""

    @field_validator("vnf_networks")
    @classmethod
    def _vnf_networks_are_networks(cls, value: str) -> str:
        read_networks(value)
        return value

    @field_validator("vnf_networks_except")
    @classmethod
    def _exceptions_are_networks_or_names(cls, value: str) -> str:
        for each in _parts(value):
            if _network(each) is None and not _HOST_NAME.fullmatch(each):
                raise ValueError(f"{each!r}: an address, a network without host bits or a host name expected")
        return value

    @property
    def named_networks(self) -> tuple[Network, ...]:
        """The networks of ``vnf_networks``."""
        return read_networks(self.vnf_networks)

    @property
    def excluded_networks(self) -> tuple[Network, ...]:
        """The networks and addresses of ``vnf_networks_except``."""
        return tuple(found for each in _parts(self.vnf_networks_except) if (found := _network(each)) is not None)

    @property
    def excluded_names(self) -> tuple[str, ...]:
        """The host names of ``vnf_networks_except``."""
        return tuple(each for each in _parts(self.vnf_networks_except) if _network(each) is None)


def _parts(text: str) -> Iterator[str]:
    return (each.strip() for each in text.split(",") if each.strip())


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
