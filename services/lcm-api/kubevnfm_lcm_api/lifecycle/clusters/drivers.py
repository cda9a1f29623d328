"""The management drivers of this VNFM: what a VNFD may map the phases of the life cycle to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar import Flavour, PhaseDriver, Vnfd
from kubevnfm_events.mgmt import CLUSTER_DRIVERS, NODE_PORTS_DRIVER, REGISTRY_DRIVERS
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.core.states import CAN_BE_ROLLED_BACK
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_placement

NOOP: Final = "vnflcm_noop"
"""Tacker's driver without work: a phase that is mapped to it is as one that is not mapped."""
MACHINE_DRIVERS: Final = CLUSTER_DRIVERS | REGISTRY_DRIVERS
"""Implementation names of the built-in drivers of VNFs of machines."""
CONTAINER_UPDATE: Final = "mgmt-container-update"
"""Tacker's driver that changes a CNF's ConfigMaps, Secrets and images at ``modify_information_end``, and only there."""
_PHASES: Final[Mapping[OperationType, str]] = {
    OperationType.INSTANTIATE: "instantiate",
    OperationType.SCALE: "scale",
    OperationType.SCALE_TO_LEVEL: "scale_to_level",
    OperationType.CHANGE_FLAVOUR: "change_flavour",
    OperationType.TERMINATE: "terminate",
    OperationType.HEAL: "heal",
    OperationType.OPERATE: "operate",
    OperationType.CHANGE_EXT_CONN: "change_external_connectivity",
    OperationType.MODIFY_INFO: "modify_information",
    OperationType.CHANGE_VNFPKG: "change_current_package",
}
"""The operations' names in VNFDs (SOL001 6.7, Tacker v2 for the last one)."""
_MOMENTS: Final = ("start", "end", "rollback_start", "rollback_end")
"""SOL001 has the first two. Tacker v2 reads the others, which a VNFD adds with an interface type of its own."""
_NEVER_RUN: Final = frozenset(
    f"{name}_{moment}"
    for operation, name in _PHASES.items()
    for moment in _MOMENTS
    if "rollback" in moment and not CAN_BE_ROLLED_BACK[operation]
)
CNF_DRIVERS: Final = frozenset({CONTAINER_UPDATE, NODE_PORTS_DRIVER})
"""Implementation names of the built-in drivers of CNFs."""


@dataclass(frozen=True)
class _VnfKind:
    """A kind of VNF, with the drivers and scripts that its VNFDs may map phases to."""

    name: str
    drivers: frozenset[str]
    """Implementation names of the built-in drivers."""
    operations: tuple[OperationType, ...]
    """Those that run scripts."""

    @property
    def script_phases(self) -> frozenset[str]:
        """The phases that run scripts."""
        return frozenset(f"{_PHASES[operation]}_{moment}" for operation in self.operations for moment in _MOMENTS)


_MACHINES: Final = _VnfKind("VNFs of machines", MACHINE_DRIVERS, tuple(_PHASES))
_CNFS: Final = _VnfKind(
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


def driven_phases(flavour: Flavour) -> dict[str, str]:
    """Return the management driver by phase, without phases whose driver has no work."""
    return {phase: driver.name for phase, driver in flavour.phases.items() if driver.name != NOOP}


def executor_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a CNF, as far as mgmt-executor runs it; other phases of the drivers have no work."""
    return {
        phase: driver
        for phase, driver in driven_phases(flavour).items()
        if driver == NODE_PORTS_DRIVER and phase in ("instantiate_end", "terminate_end")
    }


def cluster_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a cluster."""
    return {phase: driver for phase, driver in driven_phases(flavour).items() if driver in CLUSTER_DRIVERS}


def machine_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a VNF of machines, as far as it is one of this VNFM: of clusters or of registries."""
    return {phase: driver for phase, driver in driven_phases(flavour).items() if driver in MACHINE_DRIVERS}


def is_registry(flavour: Flavour) -> bool:
    """Return whether the VNF is made a private registry."""
    return any(driver in REGISTRY_DRIVERS for driver in driven_phases(flavour).values())


def scripts_of(flavour: Flavour, operation: OperationType) -> dict[str, str]:
    """Return the package's script by phase of the operation, a driver class of Tacker's v1 as ``file::Class``.

    `check_machine_drivers` or `check_cnf_drivers` comes first.
    """
    phases = [f"{_PHASES[operation]}_{moment}" for moment in _MOMENTS if operation in _PHASES]
    return {
        phase: "::".join(filter(None, (flavour.phases[phase].file, flavour.phases[phase].driver_class)))
        for phase in phases
        if phase in flavour.phases and _is_script(flavour.phases[phase])
    }


def has_scripts(flavour: Flavour) -> bool:
    """Return whether a phase of any operation has a script of the package."""
    return any(_is_script(driver) for driver in flavour.phases.values())


def _is_script(driver: PhaseDriver) -> bool:
    return driver.name not in {NOOP, *MACHINE_DRIVERS, *CNF_DRIVERS}


def check_machine_drivers(flavour: Flavour) -> None:
    """Raise Unprocessable for a phase of a VNF of machines that can neither be driven nor be scripted."""
    _check_drivers(flavour, _MACHINES)


def check_cnf_drivers(flavour: Flavour) -> None:
    """Raise Unprocessable for a phase of a CNF that can neither be driven nor be scripted."""
    _check_drivers(flavour, _CNFS)


def _check_drivers(flavour: Flavour, kind: _VnfKind) -> None:
    """Raise Unprocessable for the first phase that would be left out.

    Nothing of a VNFD is left out silently: a driver or a script runs, or the request is refused. A driver that this VNFM
    does not have is a script of the package (sequences.md 6.5).
    """
    for phase, driver in flavour.phases.items():
        if driver.name == NOOP or driver.name in kind.drivers:
            continue
        if not _is_script(driver):
            raise Unprocessable(
                "vnfdId",
                f"the VNFD maps {phase} to management driver {driver.name}; "
                f"for {kind.name} this VNFM knows {', '.join(sorted({*kind.drivers, NOOP}))}",
            )
        of_vnfd = f"the VNFD maps {phase} to {driver.name}"
        if phase not in kind.script_phases:
            operations = ", ".join(_PHASES[operation] for operation in kind.operations)
            raise Unprocessable(
                "vnfdId",
                f"{of_vnfd}: for {kind.name}, a script is run before and after {operations}, not at {phase}",
            )
        if driver.problem:
            raise Unprocessable("vnfdId", f"{of_vnfd}, whose script cannot be run: {driver.problem}")


def foreseen(vnfd: Vnfd, hot_flavours: Collection[str]) -> Iterator[str]:
    """Yield the warnings of a package: what will be refused, and which scripts will never run.

    ``hot_flavours``: the flavours with a Base HOT.
    """
    yield from _certain_refusals(vnfd, hot_flavours)
    for flavour in vnfd.flavours.values():
        for phase, driver in flavour.phases.items():
            if phase in _NEVER_RUN and _is_script(driver):
                operation = phase.partition("_rollback_")[0]
                yield f"{flavour.file}: the script of {phase}, {driver.name}, is never run: {operation} cannot be rolled back"


def _certain_refusals(vnfd: Vnfd, hot_flavours: Collection[str]) -> Iterator[str]:
    """Yield why instantiate will be refused, for each flavour where the package alone decides so, whatever is requested."""
    for flavour_id, flavour in vnfd.flavours.items():
        as_cnf = _refusal_of_cnf(flavour)
        # Which of both it is, the VIM of the request decides: packages for Tacker describe containers as Vdu.Compute too.
        is_cnf = bool(flavour.vdus) and all(vdu.kind == "container" for vdu in flavour.vdus.values())
        as_machines = as_cnf if is_cnf else _refusal_of_machines(flavour, has_hot=flavour_id in hot_flavours)
        if as_cnf is not None and as_machines is not None:
            yield f"{flavour.file}: flavour {flavour_id} cannot be instantiated: {as_machines.reason}"


def _refusal_of_cnf(flavour: Flavour) -> Unprocessable | None:
    try:
        check_cnf_drivers(flavour)
    except Unprocessable as refusal:
        return refusal
    return None


def _refusal_of_machines(flavour: Flavour, *, has_hot: bool) -> Unprocessable | None:
    try:
        check_machine_drivers(flavour)
        if not has_hot:
            # Rules about zones are for an NFVO, if there is one.
            check_placement(flavour, has_zones=True)
    except Unprocessable as refusal:
        return refusal
    return None
