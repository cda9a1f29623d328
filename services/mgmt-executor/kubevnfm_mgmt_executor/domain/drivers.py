"""The table of management drivers. A new driver is a row here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_mgmt_executor.domain import kubernetes, node_ports, private_registry
from kubevnfm_mgmt_executor.domain.driver import Driver
from kubevnfm_mgmt_executor.domain.kuryr import phases as kuryr

DRIVERS: Final[Mapping[str, Driver]] = {
    "kubernetes": kubernetes.PHASES,
    "kuryr-kubernetes": kuryr.PHASES,
    "mgmt-drivers-cnf-nodeport": node_ports.PHASES,
    "mgmt-drivers-kubernetes": kubernetes.PHASES,  # the name in packages that were written for older managers
    "mgmt-drivers-private-registry": private_registry.PHASES,
    "private-registry": private_registry.PHASES,
}
"""Driver by the implementation name in VNFDs."""
