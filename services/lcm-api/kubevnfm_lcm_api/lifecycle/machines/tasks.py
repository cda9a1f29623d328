"""The operations that VNFs of machines support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events.mgmt import REGISTRY_DRIVERS

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import (
    CHANGE_EXT_CONN,
    CHANGE_FLAVOUR,
    CHANGE_VNFPKG,
    CREATE_SNAPSHOT,
    HEAL,
    OPERATE,
    REVERT_TO_SNAPSHOT,
    SCALE,
    SCALE_TO_LEVEL,
)
from kubevnfm_lcm_api.lifecycle.machines.drivers import cluster_phases, is_registry

_REASONS: Final[Mapping[str, str]] = {
    SCALE: "its VNFD has no scaling aspect",
    SCALE_TO_LEVEL: "its VNFD has neither scaling aspects nor several instantiation levels",
    CHANGE_FLAVOUR: "its VNFD has one flavour only",
    CHANGE_EXT_CONN: "its VNFD has no external connection point",
}


def supported_tasks(vnfd: Vnfd, flavour: Flavour) -> tuple[str, ...]:
    """Return the operations that an instance of this flavour supports, without terminate."""
    scales = bool(flavour.aspects)
    phases = cluster_phases(flavour)
    if phases:
        # A cluster's nodes need the driver's phases for each change; those of other changes do not exist yet.
        of_cluster = {
            **dict.fromkeys((SCALE, SCALE_TO_LEVEL), scales and {"scale_start", "scale_end"} <= phases.keys()),
            HEAL: {"heal_start", "heal_end"} <= phases.keys(),
        }
        return tuple(task for task, is_mapped in of_cluster.items() if is_mapped and "instantiate_end" in phases)
    # A registry is one machine, and only a heal has a phase in which another machine becomes the registry.
    registry = is_registry(flavour)
    tasks = {
        SCALE: scales and not registry,
        SCALE_TO_LEVEL: (scales or len(flavour.levels) > 1) and not registry,
        CHANGE_FLAVOUR: len(vnfd.flavours) > 1 and not registry,
        HEAL: True,
        OPERATE: True,
        CHANGE_EXT_CONN: any(cp.is_external and cp.vdu_id for cp in flavour.cps.values()),
        CHANGE_VNFPKG: not registry,
        # Every plain machine has a disk: the VNFD need not declare these two, as it need not declare a heal.
        CREATE_SNAPSHOT: not registry,
        REVERT_TO_SNAPSHOT: not registry,
    }
    return tuple(task for task, is_supported in tasks.items() if is_supported)


def why_unsupported(record: InstanceRecord, task: str) -> str:
    """Return why the instance does not support the operation."""
    if REGISTRY_DRIVERS.intersection(record.internals.phases.values()):
        return "it is a private registry, which is one machine of one package"
    if record.internals.phases:
        if task in (SCALE, SCALE_TO_LEVEL):
            return "its VNFD maps scale_start or scale_end to no driver of clusters, or has no scaling aspect"
        if task == HEAL:
            return "its VNFD maps heal_start or heal_end to no driver of clusters"
        return "clusters support instantiate, scale, scale to level, heal and terminate only"
    return _REASONS.get(task, "it was instantiated by an earlier version")
