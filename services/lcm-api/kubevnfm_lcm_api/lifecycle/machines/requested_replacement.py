"""Change of the deployment flavour and of the package of machines: another template for the same VNF."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_csar.errors import UnknownFlavour, UnknownLevel
from kubevnfm_csar.files import inside
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.clones import numbered
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_csar.vnfd.phases import LONGEST_SCRIPT, script_problem
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import StackResources, UserData
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import hide
from kubevnfm_sol.connectivity import ExtVirtualLinkData
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, ChangeVnfFlavourRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Replacement
from kubevnfm_lcm_api.lifecycle.core.package_identity import identity
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.addresses import NodeNotFound, connection_address
from kubevnfm_lcm_api.lifecycle.machines.asked_links import check_kept, check_links, check_managed_links
from kubevnfm_lcm_api.lifecycle.machines.changing import Age, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.connectivity import changed_links, shown_links, with_known_entries
from kubevnfm_lcm_api.lifecycle.machines.drivers import check_machine_drivers, machine_phases
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_new_groups, check_numbers
from kubevnfm_lcm_api.lifecycle.machines.inventory import part_of
from kubevnfm_lcm_api.lifecycle.machines.package_fit import (
    USER_DATA,
    USER_DATA_CLASS,
    check_bootable,
    check_fed,
    check_hot_values,
    check_placement,
    check_subnets,
    check_user_data,
)
from kubevnfm_lcm_api.lifecycle.machines.tasks import supported_tasks
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of

ROLLING: Final = "RollingUpdate"
_COORDINATION: Final[Mapping[Age, str]] = {
    "new": "lcm-operation-coordinate-new-vnf",
    "old": "lcm-operation-coordinate-old-vnf",
}
_WHICH: Final[Mapping[Age, str]] = {"new": "new", "old": "present"}
_MANAGED: Final = "extManagedVirtualLinks"
_EXTERNAL: Final = "extVirtualLinks"

Request = ChangeVnfFlavourRequest | ChangeCurrentVnfPkgRequest


@dataclass(frozen=True)
class PackageChange:
    """Tacker's parameters of a change of package."""

    vdus: tuple[str, ...] = ()
    """The VDUs that change; none: all."""
    is_rolling: bool = False
    """Whether the machines change one after the other."""
    coordination: dict[Age, str] = field(default_factory=dict)
    """The scripts: ``new`` of the new package, ``old`` of the one that the VNF has."""
    params: dict[str, Any] = field(default_factory=dict)
    """``vdu_params`` by VDU."""


async def changed_flavour(
    packages: PackageCatalogue,
    vim_entries: VimEntries,
    vnf: VnfUnderChange,
    asked: Asked[ChangeVnfFlavourRequest],
    *,
    is_granted_outside: bool,
) -> Replacement:
    """Return the change to another flavour; ``is_granted_outside``: whether an NFVO can add virtual links. Raises InvalidInput for an unknown flavour or level, or the present one."""
    try:
        flavour = vnf.vnfd.flavour(asked.request.new_flavour_id)
    except UnknownFlavour as error:
        raise InvalidInput("newFlavourId", str(error)) from error
    if asked.request.new_flavour_id == vnf.flavour.flavour_id:
        raise InvalidInput("newFlavourId", f"the VNF has flavour {asked.request.new_flavour_id} already")
    try:
        levels = flavour.scale_levels(asked.request.instantiation_level_id)
        counts = flavour.initial_counts(asked.request.instantiation_level_id)
    except UnknownLevel as error:
        raise InvalidInput("instantiationLevelId", str(error)) from error
    draft = await replaced(
        packages,
        vim_entries,
        vnf,
        OperationType.CHANGE_FLAVOUR,
        asked,
        package=vnf.package,
        vnfd=vnf.vnfd,
        flavour=flavour,
        level_id=asked.request.instantiation_level_id,
        levels=levels,
        counts=counts,
        is_granted_outside=is_granted_outside,
    )
    return Replacement(draft, flavour, vnf.vnfd.secret_names)


async def changed_package(
    packages: PackageCatalogue,
    vim_entries: VimEntries,
    vnf: VnfUnderChange,
    asked: Asked[ChangeCurrentVnfPkgRequest],
    *,
    is_granted_outside: bool,
) -> Replacement:
    """Return the change to another package.

    Raises: InvalidInput for wrong parameters; PackageUnusable and Unprocessable for a package that the VNF cannot be changed
    to, and for parameters that are not supported yet.
    """
    change = _package_change(asked.request.additional_params, vnf.flavour)
    named = await packages.usable(asked.request.vnfd_id)
    of_ages: dict[Age, PackageRef] = {"new": named, "old": vnf.package}
    await _check_scripts(packages, change, of_ages)
    vnfd = await packages.vnfd(named.package_id, named.checksum)
    try:
        flavour = vnfd.flavour(vnf.flavour.flavour_id)
    except UnknownFlavour as error:
        raise Unprocessable("vnfdId", f"the VNF has flavour {vnf.flavour.flavour_id}: {error}") from error
    base_hot = await packages.base_hot(named.package_id, flavour.flavour_id)
    if base_hot is None:
        check_placement(flavour, has_zones=True)
    _check_new_points(change, flavour, base_hot)
    # The new package may allow fewer levels; the machines above them stay until the next scaling.
    levels = {name: min(vnf.scale_levels.get(name, 0), a.max_scale_level) for name, a in flavour.aspects.items()}
    draft = await replaced(
        packages,
        vim_entries,
        vnf,
        OperationType.CHANGE_VNFPKG,
        asked,
        package=named,
        vnfd=vnfd,
        flavour=flavour,
        level_id=None,
        levels=levels,
        # The machines of VDUs that the new package lacks leave.
        counts={**flavour.initial_counts(), **{n: c for n, c in vnf.counts_to_make.items() if n in flavour.vdus}},
        change=change,
        is_granted_outside=is_granted_outside,
    )
    _check_old_points(change, draft.before)
    return Replacement(draft, flavour, vnfd.secret_names)


async def _check_scripts(packages: PackageCatalogue, change: PackageChange, of_ages: Mapping[Age, PackageRef]) -> None:
    """Raise Unprocessable for a coordination script that its package does not have, or that cannot be run."""
    for age, file in change.coordination.items():
        package, place = of_ages[age], f"additionalParams/{_COORDINATION[age]}"
        names = await packages.file_names(package.package_id)
        if file not in names:
            raise Unprocessable(place, f"the {_WHICH[age]} package, of VNFD {package.vnfd_id}, has no file {file}")
        content = await packages.file(package.package_id, file, limit_bytes=LONGEST_SCRIPT)
        if content is None:
            raise Unprocessable(place, f"{file} is longer than {LONGEST_SCRIPT} bytes")
        problem = await asyncio.to_thread(script_problem, content, file, names)
        if problem:
            raise Unprocessable(place, f"the script cannot be run: {problem}")


def _package_change(parameters: Mapping[str, Any], flavour: Flavour) -> PackageChange:
    """Read the parameters that Tacker adds to the request (api.md 3.4). Raises InvalidInput, Unprocessable."""
    upgrade = parameters.get("upgrade_type", ROLLING)
    if upgrade != ROLLING:
        raise InvalidInput("additionalParams/upgrade_type", f"{ROLLING} expected")
    names = tuple(_COORDINATION.values())
    for name in parameters:
        # Left out, a change would not be coordinated although its request says so. Other names are for user data.
        if name.startswith("lcm-operation-coordinate") and name not in names:
            raise InvalidInput(f"additionalParams/{name}", f"{' or '.join(names)} expected")
    vdus = parameters.get("vdu_params", [])
    if not isinstance(vdus, list | tuple):
        raise InvalidInput("additionalParams/vdu_params", "an array of objects expected")
    coordination = {
        age: file for age, name in _COORDINATION.items() if (file := _named_script(parameters, name)) is not None
    }
    named: dict[str, Any] = {}
    for index, vdu in enumerate(vdus):
        place = f"additionalParams/vdu_params[{index}]"
        vdu_id = vdu.get("vdu_id") if isinstance(vdu, Mapping) else None
        if not isinstance(vdu_id, str):
            raise InvalidInput(f"{place}/vdu_id", "the VDU's id expected")
        if vdu_id not in flavour.vdus:
            raise InvalidInput(f"{place}/vdu_id", f"the VNF has no VDU {vdu_id}; it has {', '.join(flavour.vdus)}")
        if vdu_id in named:
            raise InvalidInput(f"{place}/vdu_id", f"VDU {vdu_id} is there already; one entry for each VDU expected")
        for age in coordination:
            _check_machine_param(vdu.get(f"{age}_vnfc_param"), f"{place}/{age}_vnfc_param", _COORDINATION[age])
        named[vdu_id] = vdu
    if coordination and not named:
        raise InvalidInput("additionalParams/vdu_params", f"{_COORDINATION[next(iter(coordination))]} needs it")
    if parameters.get("lcm-kubernetes-def-files") is not None:
        raise Unprocessable(
            "additionalParams/lcm-kubernetes-def-files", "not supported yet for a VNF of plain machines"
        )
    vdu_ids = () if set(named) == set(flavour.vdus) else tuple(named)
    # Without `upgrade_type`, which SOL003 does not have, all machines change in one update.
    return PackageChange(vdu_ids, "upgrade_type" in parameters, coordination, hide(named))


def _check_old_points(change: PackageChange, before: StackResources) -> None:
    """Raise Unprocessable for a connection point that a machine does not have: a rollback could never coordinate it."""
    for index, (vdu_id, vdu) in enumerate(change.params.items() if "old" in change.coordination else ()):
        place = f"additionalParams/vdu_params[{index}]/old_vnfc_param/cp_name"
        for server in before.servers:
            if server.vdu_id != vdu_id:
                continue
            try:
                connection_address(server, before, vdu["old_vnfc_param"]["cp_name"], field=place)
            except NodeNotFound as error:
                raise Unprocessable(place, error.reason) from error


def _check_new_points(change: PackageChange, flavour: Flavour, hot: BaseHot | None) -> None:
    """Raise Unprocessable for a connection point that no machine of the new package will have.

    A name that the templates contain is left to the stack: it may be that of a floating IP.
    """
    texts = [one.text for one in hot.templates] if hot is not None else []
    for index, (vdu_id, vdu) in enumerate(change.params.items() if "new" in change.coordination else ()):
        name = vdu["new_vnfc_param"]["cp_name"]
        # Templates may number the resources of each machine, and user data add the numbers.
        names = {name, numbered(name)[0]}
        own = [cp_id for cp_id, cp in flavour.cps.items() if cp.vdu_id == vdu_id]
        written = [re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])") for one in names]
        if names.isdisjoint(own) and not any(pattern.search(text) for pattern in written for text in texts):
            raise Unprocessable(
                f"additionalParams/vdu_params[{index}]/new_vnfc_param/cp_name",
                f"VDU {vdu_id} of the package has no connection point {name}; it has {', '.join(own) or 'none'}",
            )


def _rolling(change: PackageChange, before: StackResources) -> tuple[str, ...]:
    """Return the resources of the top stack that are changed one after the other, in the order of vnfcResourceInfo."""
    changed = [s for s in before.servers if not change.vdus or s.vdu_id in change.vdus] if change.is_rolling else []
    return tuple(dict.fromkeys(part_of(server) for server in changed))


def _named_script(parameters: Mapping[str, Any], name: str) -> str | None:
    """Return the script's path in the package. Raises InvalidInput."""
    path = parameters.get(name)
    if path is None or path == "":
        return None
    if not isinstance(path, str) or (normal := inside(path.removeprefix("./"))) is None:
        raise InvalidInput(f"additionalParams/{name}", "a path inside the package expected")
    return normal


def _check_machine_param(param: object, place: str, name: str) -> None:
    if not isinstance(param, Mapping):
        raise InvalidInput(place, f"an object expected, which {name} gets")
    if not isinstance(param.get("cp_name"), str):
        raise InvalidInput(f"{place}/cp_name", "the name of a connection point or floating IP of the machine expected")


def _check_drivers(flavour: Flavour) -> None:
    """Raise Unprocessable for a flavour with a driver that a change does not run."""
    if machine_phases(flavour):
        raise Unprocessable(
            "", f"flavour {flavour.flavour_id} has a management driver: a change to it is not supported yet"
        )
    check_machine_drivers(flavour)


async def replaced(
    packages: PackageCatalogue,
    vim_entries: VimEntries,
    vnf: VnfUnderChange,
    operation: OperationType,
    asked: Asked[Request],
    *,
    package: PackageRef,
    vnfd: Vnfd,
    flavour: Flavour,
    level_id: str | None,
    levels: Mapping[str, int],
    counts: Mapping[str, int],
    is_granted_outside: bool,
    change: PackageChange = PackageChange(),
) -> ReplaceVmDraft:
    """Return the draft of a change to another flavour, of the same package or of another."""
    _check_drivers(flavour)
    internals, is_package = vnf.record.internals, operation is OperationType.CHANGE_VNFPKG
    connections, named = _wanted_links(vnf, asked.request, flavour)
    hot = await packages.base_hot(package.package_id, flavour.flavour_id)
    parameters = {**internals.parameters, **asked.request.additional_params}
    # A change of flavour makes the stack as instantiate does; for a change of package, a request names its own class.
    named_in = asked.request.additional_params if is_package else parameters
    files = await packages.file_names(package.package_id)
    entries = await vnf.connections(vim_entries, asked.request.vim_connection_info, asked.version)
    present = vnf.change(asked, OperationType.CHANGE_FLAVOUR, named_in, files, entries)
    creator = present.user_data or _kept_class(vnf, files, hot)
    if creator is None:
        parameters = {name: value for name, value in parameters.items() if name not in (USER_DATA, USER_DATA_CLASS)}
    as_instantiated = _instantiation(flavour, level_id, connections, parameters)
    rules = vnf.link_rules(flavour, hot, has_user_data=present.user_data is not None)
    check_links(named, rules, after=connections[_EXTERNAL])
    check_managed_links(asked.request.ext_managed_virtual_links, rules)
    check_kept("vnfdId" if is_package else "newFlavourId", connections[_EXTERNAL], rules, counts)
    # As Tacker: the scripts of a change of package are those of the package that the VNF is changed to. A change of
    # flavour, which Tacker does not have, is one of the flavour that the VNF has.
    scripts = scripts_of(flavour, operation) if is_package else present.scripts
    draft = ReplaceVmDraft(
        **{
            **vars(present),
            "scripts": scripts,
            "script_request": script_request(asked) if scripts else {},
            "package": package,
            "flavour_id": flavour.flavour_id,
            "instantiation_level_id": level_id,
            # User data classes expect the request as it came; the built-in rules read an InstantiateVnfRequest.
            "request": present.request if is_package and (present.user_data or vnf.is_numbered) else as_instantiated,
            # `as_instantiated` is in v2 form, also if this request is in v1 form.
            "api_version": "v2",
            "counts": dict(counts),
            "connections": connections,
            "external_cps": {name: name for name, cp in flavour.cps.items() if cp.is_external and cp.vdu_id},
            "scale_status": scale_status(levels),
            "max_scale_levels": scale_status(
                {name: aspect.max_scale_level for name, aspect in flavour.aspects.items()}
            ),
        },
        before_package=vnf.package,
        before_flavour_id=vnf.flavour.flavour_id,
        is_new_package=is_package,
        changed_vdus=change.vdus,
        rolling=_rolling(change, present.before),
        coordination=change.coordination,
        coordination_packages={age: package if age == "new" else vnf.package for age in change.coordination},
        coordination_params=change.params if change.coordination else {},
        instantiate_request=as_instantiated,
        creator=creator,
        parameters=parameters,
        tasks=supported_tasks(vnfd, flavour),
        extensions=asked.request.extensions,
        vnf_configurable_properties=asked.request.vnf_configurable_properties,
        vnf=identity(vnfd, package) if is_package else {},
    )
    await check_user_data(packages, draft)
    # A value of a class of user data stays in the stack, where only Heat knows it.
    has_user_data = draft.user_data is not None or internals.user_data is not None
    given = asked.request.additional_params
    _check_template(draft, flavour, hot, given, has_user_data=has_user_data, is_granted_outside=is_granted_outside)
    return draft


def _instantiation(
    flavour: Flavour, level_id: str | None, connections: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the InstantiateVnfRequest that would lead to the same VNF."""
    return {
        "flavourId": flavour.flavour_id,
        **({"instantiationLevelId": level_id} if level_id is not None else {}),
        **{name: links for name, links in connections.items() if links},
        **({"additionalParams": dict(parameters)} if parameters else {}),
    }


def _kept_class(vnf: VnfUnderChange, files: frozenset[str], hot: BaseHot | None) -> UserData | None:
    """Return the class that has made the stack, if the new package has its file.

    Raises Unprocessable if nothing could make the stack again: a heal of the whole VNF would lose its machines.
    """
    made_by = vnf.record.internals.user_data
    if made_by is None or (made_by.path in files and hot is not None):
        return made_by
    if vnf.is_numbered:
        lacks = f"has no {made_by.path}" if made_by.path not in files else f"has no Base HOT for {made_by.path}"
        reason = "which has made a resource for each machine: a class that does the same, and its Base HOT, expected"
        raise Unprocessable(f"additionalParams/{USER_DATA}", f"the new package {lacks}, {reason}")
    return None


def _check_template(
    draft: ReplaceVmDraft,
    flavour: Flavour,
    hot: BaseHot | None,
    given: Mapping[str, Any],
    *,
    has_user_data: bool,
    is_granted_outside: bool,
) -> None:
    """Raise InvalidInput, Unprocessable for what the new template does not allow, or needs and does not get.

    ``given``: the request's own additionalParams.
    """
    level = "instantiationLevelId" if draft.instantiation_level_id is not None else "newFlavourId"
    place = "vnfdId" if draft.is_new_package else level
    check_numbers(place, flavour, present={}, wanted=draft.counts)
    if hot is None:
        check_subnets(place, flavour, [one["vnfVirtualLinkDescId"] for one in draft.connections[_MANAGED]])
    else:
        # Machines may be missing that the levels count.
        wanted = {vdu_id: count for vdu_id, count in draft.counts.items() if count}
        check_new_groups(place, hot, draft.parameters, wanted=wanted, has_user_data=has_user_data)
        if not has_user_data:
            check_hot_values(hot, given, kept=draft.parameters)
    if not has_user_data and not is_granted_outside:
        check_bootable("vnfdId" if draft.is_new_package else "newFlavourId", flavour, hot)
        check_fed(draft.connections[_EXTERNAL], flavour, hot, draft.counts, draft.parameters)


def _wanted_links(
    vnf: VnfUnderChange, request: Request, flavour: Flavour
) -> tuple[dict[str, Any], Sequence[ExtVirtualLinkData]]:
    """Return the external and managed links after the change, and the external ones that the request names."""
    before = vnf.record.internals.connections
    left = {
        cp_id for cp_id, cp in vnf.flavour.cps.items() if cp.vdu_id in vnf.flavour.vdus.keys() - flavour.vdus.keys()
    } - flavour.cps.keys()
    present = _without_points(shown_links(before.get(_EXTERNAL) or (), vnf.info), left)
    named = with_known_entries(request.ext_virtual_links, present, vnf.info)
    managed = [
        link.model_dump(mode="json", by_alias=True, exclude_none=True) for link in request.ext_managed_virtual_links
    ]
    return {
        _EXTERNAL: changed_links(present, named),
        _MANAGED: managed or list(before.get(_MANAGED) or ()),
    }, named


def _without_points(links: Sequence[Mapping[str, Any]], points: Collection[str]) -> list[dict[str, Any]]:
    """Return the links without these connection points; a link that has no other is left out."""
    without = [{**link, "extCps": [cp for cp in link["extCps"] if cp["cpdId"] not in points]} for link in links]
    return [link for link, before in zip(without, links, strict=True) if link["extCps"] or not before["extCps"]]
