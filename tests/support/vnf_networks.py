"""Networks of VNFs for tests: the lab's machines and clusters have loopback addresses."""

from __future__ import annotations

from typing import Final

from kubevnfm_clients.vnf_addresses import read_networks
from kubevnfm_clients.vnf_networks import VnfNetworks

LOOPBACK: Final = "127.0.0.0/8,::1"
"""The setting ``vnf_networks`` of tests on the lab."""


def networks(named: str = LOOPBACK) -> VnfNetworks:
    """Return networks without peers. A new object for each test, because it belongs to an event loop."""
    return VnfNetworks(read_networks(named))
