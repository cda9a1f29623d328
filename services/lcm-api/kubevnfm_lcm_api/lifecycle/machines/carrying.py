"""A modification that names another package, while the machines stay: they must be what its VNFD describes."""

from __future__ import annotations

from collections.abc import Iterable

from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.core.modifying import CarriedStack
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status
from kubevnfm_lcm_api.lifecycle.machines.drivers import check_machine_drivers, machine_phases
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_numbers
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_user_data_file
from kubevnfm_lcm_api.lifecycle.machines.tasks import supported_tasks
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

_PLACE = "vnfdId"


async def carried_machines(
    packages: PackageCatalogue, vnf: VnfUnderChange, package: PackageRef, vnfd: Vnfd
) -> CarriedStack:
    """Return what the new package changes for the VNF. Raises Unprocessable naming what the VNF has and the package lacks."""
    flavour = vnfd.flavours.get(vnf.flavour.flavour_id)
    if flavour is None:
        raise _lacks("flavour", [vnf.flavour.flavour_id], vnfd.flavours)
    _check_parts(vnf, flavour)
    _check_levels(vnf, flavour)
    _check_drivers(vnf, flavour)
    hots = [await packages.base_hot(one.package_id, flavour.flavour_id) is not None for one in (vnf.package, package)]
    if hots[0] != hots[1]:
        which = "has a Base HOT, and the present one has" if hots[1] else "has no Base HOT, and the present one has one"
        raise Unprocessable(_PLACE, f"the package {which}{' none' if hots[1] else ''}; use change_vnfpkg")
    user_data = vnf.record.internals.user_data
    if user_data is not None:
        await check_user_data_file(packages, package, user_data, place=_PLACE)
    left = vnf.stack.left_package or vnf.package
    levels = {name: vnf.scale_levels.get(name, 0) for name in flavour.aspects}
    return CarriedStack(
        # Back to it: a heal or scaling since may have made parts of the stack by the one that is left now.
        left_package=left if left.vnfd_id != package.vnfd_id else vnf.package,
        scale_status=scale_status(levels),
        max_scale_levels=scale_status({name: aspect.max_scale_level for name, aspect in flavour.aspects.items()}),
        external_cps={name: name for name, cp in flavour.cps.items() if cp.is_external and cp.vdu_id},
        tasks=supported_tasks(vnfd, flavour),
    )


def _check_parts(vnf: VnfUnderChange, flavour: Flavour) -> None:
    """Check machines, volumes, and the connection points and internal links that have networks of others."""
    used = {server.vdu_id for server in vnf.resources.servers}
    _check("VDU", used, flavour.vdus)
    for vdu_id in sorted(used & vnf.flavour.vdus.keys()):
        one, other = vnf.flavour.vdus[vdu_id].kind, flavour.vdus[vdu_id].kind
        if one != other:
            raise Unprocessable(_PLACE, f"VDU {vdu_id} of the VNF is a {one} VDU; the package has a {other} VDU")
    check_numbers(_PLACE, flavour, present={}, wanted={vdu_id: n for vdu_id, n in vnf.counts.items() if n})
    _check("storage", {one.storage_id for one in vnf.resources.volumes} & vnf.flavour.storages.keys(), flavour.storages)
    links = vnf.record.internals.connections
    points = {cp["cpdId"] for link in links.get("extVirtualLinks") or () for cp in link.get("extCps") or ()}
    _check("connection point", points & vnf.flavour.cps.keys(), flavour.cps)
    managed = {link["vnfVirtualLinkDescId"] for link in links.get("extManagedVirtualLinks") or ()}
    _check("virtual link", managed & vnf.flavour.virtual_links.keys(), flavour.virtual_links)


def _check_levels(vnf: VnfUnderChange, flavour: Flavour) -> None:
    level_id = vnf.record.internals.instantiation_level_id
    if level_id is not None:
        _check("instantiation level", {level_id}, flavour.levels)
    levels = {name: level for name, level in vnf.scale_levels.items() if level}
    _check("scaling aspect", levels, flavour.aspects)
    for name, level in levels.items():
        most = flavour.aspects[name].max_scale_level
        if level > most:
            raise Unprocessable(_PLACE, f"the VNF is at scale level {level} of {name}; the package has {most} at most")


def _check_drivers(vnf: VnfUnderChange, flavour: Flavour) -> None:
    check_machine_drivers(flavour)
    before, after = machine_phases(vnf.flavour), machine_phases(flavour)
    if before != after:
        phase = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))[0]
        one, other = before.get(phase, "none"), after.get(phase, "none")
        raise Unprocessable(_PLACE, f"the management driver of {phase} is {one}; the package has {other}")


def _check(what: str, used: Iterable[str], known: Iterable[str]) -> None:
    missing = sorted(set(used) - set(known))
    if missing:
        raise _lacks(what, missing, known)


def _lacks(what: str, missing: Iterable[str], known: Iterable[str]) -> Unprocessable:
    has = ", ".join(sorted(known)) or "none"
    return Unprocessable(_PLACE, f"the package lacks the {what} {', '.join(missing)} that the VNF has; it has {has}")
