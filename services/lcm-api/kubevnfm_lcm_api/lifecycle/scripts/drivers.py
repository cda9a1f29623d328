"""The management drivers of this VNFM: what a VNFD may map the phases of the life cycle to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.vnfd.model import Flavour, PhaseDriver
from kubevnfm_events.mgmt import CLUSTER_DRIVERS, NODE_PORTS_DRIVER, REGISTRY_DRIVERS
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.core.states import CAN_BE_ROLLED_BACK

NOOP: Final = "vnflcm_noop"
"""Tacker's driver without work: a phase that is mapped to it is as one that is not mapped."""
CONTAINER_UPDATE: Final = "mgmt-container-update"
"""Tacker's driver that changes a CNF's ConfigMaps, Secrets and images at ``modify_information_end``, and only there."""
OPERATION_NAMES: Final[Mapping[OperationType, str]] = {operation: operation.lower() for operation in OperationType} | {
    OperationType.CHANGE_EXT_CONN: "change_external_connectivity",
    OperationType.MODIFY_INFO: "modify_information",
    OperationType.CHANGE_VNFPKG: "change_current_package",
}
"""The operations' names in VNFDs (SOL001 6.7, Tacker v2 for the last one)."""
_MOMENTS: Final = ("start", "end", "rollback_start", "rollback_end")
"""SOL001 has the first two. Tacker v2 reads the others, which a VNFD adds with an interface type of its own."""
NEVER_RUN: Final = frozenset(
    f"{name}_{moment}"
    for operation, name in OPERATION_NAMES.items()
    for moment in _MOMENTS
    if "rollback" in moment and not CAN_BE_ROLLED_BACK[operation]
)
MACHINE_DRIVERS: Final = CLUSTER_DRIVERS | REGISTRY_DRIVERS
"""Implementation names of the built-in drivers of VNFs of machines."""
CNF_DRIVERS: Final = frozenset({CONTAINER_UPDATE, NODE_PORTS_DRIVER})
"""Implementation names of the built-in drivers of CNFs."""


@dataclass(frozen=True)
class DrivenVnfs:
    """A kind of VNF, with the drivers and scripts that its VNFDs may map phases to."""

    name: str
    drivers: frozenset[str]
    """Implementation names of the built-in drivers."""
    operations: tuple[OperationType, ...]
    """Those that run scripts."""

    @property
    def script_phases(self) -> frozenset[str]:
        """The phases that run scripts."""
        return frozenset(
            f"{OPERATION_NAMES[operation]}_{moment}" for operation in self.operations for moment in _MOMENTS
        )


def driven_phases(flavour: Flavour) -> dict[str, str]:
    """Return the management driver by phase, without phases whose driver has no work."""
    return {phase: driver.name for phase, driver in flavour.phases.items() if driver.name != NOOP}


def scripts_of(flavour: Flavour, operation: OperationType) -> dict[str, str]:
    """Return the package's script by phase of the operation, a driver class of Tacker's v1 as ``file::Class``.

    `check_machine_drivers` or `check_cnf_drivers` comes first.
    """
    phases = [f"{OPERATION_NAMES[operation]}_{moment}" for moment in _MOMENTS if operation in OPERATION_NAMES]
    return {
        phase: "::".join(filter(None, (flavour.phases[phase].file, flavour.phases[phase].driver_class)))
        for phase in phases
        if phase in flavour.phases and is_script(flavour.phases[phase])
    }


def has_scripts(flavour: Flavour) -> bool:
    """Return whether a phase of any operation has a script of the package."""
    return any(is_script(driver) for driver in flavour.phases.values())


def is_script(driver: PhaseDriver) -> bool:
    """Return whether the driver is code of the package, and not one of this VNFM."""
    return driver.name not in {NOOP, *MACHINE_DRIVERS, *CNF_DRIVERS}


def check_drivers(flavour: Flavour, kind: DrivenVnfs) -> None:
    """Raise Unprocessable for the first phase that would be left out.

    Nothing of a VNFD is left out silently: a driver or a script runs, or the request is refused. A driver that this VNFM
    does not have is a script of the package (sequences.md 6.5).
    """
    for phase, driver in flavour.phases.items():
        if driver.name == NOOP or driver.name in kind.drivers:
            continue
        if not is_script(driver):
            raise Unprocessable(
                "vnfdId",
                f"the VNFD maps {phase} to management driver {driver.name}; "
                f"for {kind.name} this VNFM knows {', '.join(sorted({*kind.drivers, NOOP}))}",
            )
        of_vnfd = f"the VNFD maps {phase} to {driver.name}"
        if phase not in kind.script_phases:
            operations = ", ".join(OPERATION_NAMES[operation] for operation in kind.operations)
            raise Unprocessable(
                "vnfdId",
                f"{of_vnfd}: for {kind.name}, a script is run before and after {operations}, not at {phase}",
            )
        if driver.problem:
            raise Unprocessable("vnfdId", f"{of_vnfd}, whose script cannot be run: {driver.problem}")
