"""The table of management drivers. A new driver is a name in the contract, and a row here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_events.mgmt import CLUSTER_DRIVERS, KURYR_DRIVER, NODE_PORTS_DRIVER, REGISTRY_DRIVERS

from kubevnfm_mgmt_executor.domain import kubernetes, node_ports, private_registry
from kubevnfm_mgmt_executor.domain.driver import Driver
from kubevnfm_mgmt_executor.domain.kuryr import phases as kuryr

DRIVERS: Final[Mapping[str, Driver]] = {
    **dict.fromkeys(CLUSTER_DRIVERS, kubernetes.PHASES),
    KURYR_DRIVER: kuryr.PHASES,
    **dict.fromkeys(REGISTRY_DRIVERS, private_registry.PHASES),
    NODE_PORTS_DRIVER: node_ports.PHASES,
}
"""Driver by the implementation name in VNFDs."""
