"""The settings of addresses that packages choose; a part of the settings of every service that connects to VNFs."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from pydantic import BaseModel, ConfigDict, field_validator

from kubevnfm_clients.outbound import Network
from kubevnfm_clients.vnf_addresses import read_networks


class VnfNetworkSettings(BaseModel):
    """The networks of VNFs."""

    model_config = ConfigDict(use_attribute_docstrings=True)

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
    def _are_networks(cls, value: str) -> str:
        read_networks(value)
        return value

    @property
    def named_networks(self) -> tuple[Network, ...]:
        """The networks of ``vnf_networks``."""
        return read_networks(self.vnf_networks)

    @property
    def excluded_networks(self) -> tuple[Network, ...]:
        """The networks and addresses of ``vnf_networks_except``."""
        return tuple(found for each in self._excluded() if (found := _network(each)) is not None)

    @property
    def excluded_names(self) -> tuple[str, ...]:
        """The host names of ``vnf_networks_except``."""
        return tuple(each for each in self._excluded() if _network(each) is None)

    def _excluded(self) -> Iterator[str]:
        return (each.strip() for each in self.vnf_networks_except.split(",") if each.strip())


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
