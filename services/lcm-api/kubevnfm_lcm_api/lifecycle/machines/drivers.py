"""The management drivers of VNFs of machines: what their VNFDs may map the phases of the life cycle to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kubevnfm_clients.playbooks import AnsibleMissing, PlaybookPrograms
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.mgmt import ANSIBLE, CLUSTER_DRIVERS, KURYR_DRIVER, REGISTRY_DRIVERS

from kubevnfm_lcm_api.lifecycle.scripts.drivers import (
    MACHINE_DRIVERS,
    OPERATION_NAMES,
    DrivenVnfs,
    check_drivers,
    driven_phases,
)

_MACHINES: Final = DrivenVnfs("VNFs of machines", MACHINE_DRIVERS, tuple(OPERATION_NAMES))


def cluster_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a cluster."""
    return {phase: driver for phase, driver in driven_phases(flavour).items() if driver in CLUSTER_DRIVERS}


def machine_phases(flavour: Flavour) -> dict[str, str]:
    """Return the driver by phase of a VNF of machines, as far as it is one of this VNFM: of clusters or of registries."""
    return {phase: driver for phase, driver in driven_phases(flavour).items() if driver in MACHINE_DRIVERS}


def is_registry(flavour: Flavour) -> bool:
    """Return whether the VNF is made a private registry."""
    return any(driver in REGISTRY_DRIVERS for driver in driven_phases(flavour).values())


def check_machine_drivers(flavour: Flavour) -> None:
    """Raise Unprocessable for a phase of a VNF of machines that can neither be driven nor be scripted."""
    check_drivers(flavour, _MACHINES)


async def check_playbook_program(programs: PlaybookPrograms, flavour: Flavour) -> None:
    """Raise AnsibleMissing if a phase of a flavour runs Ansible playbooks, and mgmt-executor cannot."""
    mapped = next((driver for driver in flavour.phases.values() if driver.driver_class == ANSIBLE), None)
    if mapped is not None and (reason := await programs.why_missing()):
        raise AnsibleMissing("vnfdId", f"the VNFD maps {mapped.phase} to {mapped.name}: {reason}")


RoleName = Literal["cluster", "kuryr", "registry"]
"""The uses that management drivers, or scripts of the package, put the machines of a VNF to."""


def role_name(phases: Mapping[str, str]) -> RoleName | None:
    """Return the role of machines; ``phases``: management driver by phase."""
    if has_kuryr(phases):
        return "kuryr"
    if not REGISTRY_DRIVERS.isdisjoint(phases.values()):
        return "registry"
    return "cluster" if phases else None


def has_kuryr(phases: Mapping[str, str]) -> bool:
    """Return whether the VNF is a cluster with Kuryr; ``phases``: its management driver by phase."""
    return KURYR_DRIVER in phases.values()
