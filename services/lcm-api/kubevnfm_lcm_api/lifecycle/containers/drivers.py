"""The management drivers of CNFs: what their VNFDs may map the phases of the life cycle to."""

from __future__ import annotations

from typing import Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.mgmt import ANSIBLE, NODE_PORTS_DRIVER
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.scripts.drivers import CNF_DRIVERS, DrivenVnfs, check_drivers, driven_phases

_CNFS: Final = DrivenVnfs(
    "CNFs",
    CNF_DRIVERS,
    (
        OperationType.INSTANTIATE,
        OperationType.SCALE,
        OperationType.SCALE_TO_LEVEL,
        OperationType.HEAL,
        OperationType.CHANGE_VNFPKG,
        OperationType.MODIFY_INFO,
        OperationType.TERMINATE,
    ),
)


def executor_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a CNF, as far as mgmt-executor runs it; other phases of the drivers have no work."""
    return {
        phase: driver
        for phase, driver in driven_phases(flavour).items()
        if driver == NODE_PORTS_DRIVER and phase in ("instantiate_end", "terminate_end")
    }


def check_cnf_drivers(flavour: Flavour) -> None:
    """Raise Unprocessable for a phase of a CNF that can neither be driven nor be scripted."""
    check_drivers(flavour, _CNFS)
    for phase, driver in flavour.phases.items():
        if driver.driver_class == ANSIBLE:
            why = f"the VNFD maps {phase} to {driver.name}: playbooks are for the machines of a VNF, and a CNF has none"
            raise Unprocessable("vnfdId", why)
