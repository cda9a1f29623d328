"""Networks of VNFs for tests: the lab's machines and clusters have loopback addresses."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

from kubevnfm_clients.vnf_addresses import read_networks
from kubevnfm_clients.vnf_networks import VnfNetworks, own_addresses
from needs import cannot_have

LOOPBACK: Final = "127.0.0.0/8,::1"
"""The setting ``vnf_networks`` of tests on the lab."""


def networks(named: str = LOOPBACK) -> VnfNetworks:
    """Return networks without peers. A new object for each test, because it belongs to an event loop."""
    return VnfNetworks(read_networks(named))


def host_address() -> str:
    """Return an address of this host that is not loopback, as the VNFM has in an operator's network.

    Without one the test is skipped, loudly; in CI (``CI`` is set) it fails.
    """
    found = sorted(each for each in own_addresses() if isinstance(each, IPv4Address) and not each.is_loopback)
    if not found:
        cannot_have("this host has loopback addresses only")
    return str(found[0])
