"""Heal of machines: selects those to replace, or the whole stack."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import HealVnfRequest, InstantiationState, OperationType

from kubevnfm_lcm_api.lifecycle.core.drift import check_stack_exists, is_stack_missing
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, REPAIR, flag
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_ids
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_fed, check_user_data
from kubevnfm_lcm_api.lifecycle.machines.roles import ROLES, RequestedHeal
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

WITH_STORAGE: Final = "tacker_extension_heal_include_block_storage"
KEEP: Final = "x_keep_volume"


async def healed_machines(
    packages: PackageCatalogue, vnf: VnfUnderChange, asked: Asked[HealVnfRequest], *, is_granted_outside: bool
) -> HealVmDraft:
    """Return the draft (sequences.md A4, A5). ``is_granted_outside``: whether an NFVO can add virtual links.

    Raises: Drifted; InvalidInput for an unknown VNFC or a malformed parameter; Unprocessable for nodes that a cluster cannot
    lose, and for volumes that cannot stay.
    """
    is_all = _flag(asked.request.additional_params, ALL)
    _check_no_repair(asked.request)
    chosen = resource_ids(asked.request.vnfc_instance_id, vnf.info) if asked.request.vnfc_instance_id else None
    is_missing = is_stack_missing(vnf.record)
    if chosen is not None:
        check_stack_exists(vnf.record, "heal of some machines")
    # As Tacker: v1 recreates the stack if no VNFC is named; v2 only if `all` is true, which also means the storage.
    # A stack that was deleted by hand has no machines that could be replaced in place.
    is_recreated = chosen is None and (asked.version == "v1" or bool(is_all) or is_missing)
    servers = chosen if chosen is not None else [s.server_id for s in vnf.resources.servers]
    takes_storage = _takes_storage(asked.request.additional_params, asked.version, is_recreated=is_recreated)
    volumes = [v.resource_id for v in vnf.resources.volumes if takes_storage and v.server_id in servers]
    files = await packages.file_names(vnf.package.package_id)
    change = vnf.change(asked, OperationType.HEAL, asked.request.additional_params, files)
    creator = vnf.record.internals.user_data
    # Before the old stack is deleted.
    made_by = change.user_data or creator if is_recreated else change.user_data
    await check_user_data(packages, change.model_copy(update={"user_data": made_by}))
    # A heal that failed after the deletion has left no machines; their number is what the VNF was scaled to.
    present = vnf.counts_to_make if is_recreated else vnf.counts
    counts = present if any(vnf.counts.values()) else vnf.declared_counts
    if is_recreated and vnf.stack.left_package is not None and made_by is None and not is_granted_outside:
        await _check_new_stack(packages, vnf, counts)
    plain = HealVmDraft(
        **{**vars(change), "counts": counts},
        servers=tuple(servers),
        volumes=tuple(volumes),
        is_recreated=is_recreated,
        instantiate_request=vnf.record.internals.request,
        creator=creator,
        # A stack that was deleted by hand has taken the registry away already.
        lost_registry=vnf.record.internals.own_registry if is_recreated and not is_missing else (),
        instance_to_make=_not_instantiated(vnf),
    )
    has_role = bool(vnf.record.internals.phases)
    hot = await packages.base_hot(vnf.package.package_id, vnf.flavour.flavour_id) if has_role else None
    requested = RequestedHeal(vnf, plain, chosen, asked.request.additional_params, hot)
    # In a thread, because a private key may have to be opened with its passphrase.
    return await asyncio.to_thread(ROLES[vnf.role_name].healed, requested)


async def _check_new_stack(packages: PackageCatalogue, vnf: VnfUnderChange, counts: Mapping[str, int]) -> None:
    """Raise Unprocessable if a package that a modification has named needs more than the requests about the VNF have given."""
    internals, flavour = vnf.record.internals, vnf.flavour
    hot = await packages.base_hot(vnf.package.package_id, flavour.flavour_id)
    links = internals.connections.get("extVirtualLinks") or ()
    try:
        check_fed(links, flavour, hot, counts, internals.parameters)
    except Unprocessable as error:
        why = f"the package that the VNF was modified to makes another stack: {error.field}: {error.reason}"
        raise Unprocessable("", f"{why}; use change_vnfpkg, which can give it") from error


def _check_no_repair(request: HealVnfRequest) -> None:
    """Raise InvalidInput, Unprocessable if the request about a VNF of machines asks for a repair."""
    if flag(request.additional_params, REPAIR):
        why = (
            "true expects Kubernetes objects, and the VNF has machines: a heal of the whole VNF builds its stack again"
        )
        raise Unprocessable(f"additionalParams/{REPAIR}", why)


def _flag(parameters: Mapping[str, Any], name: str) -> bool | None:
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"additionalParams/{name}", "true or false expected")
    return value


def _takes_storage(parameters: Mapping[str, Any], version: ApiVersion, *, is_recreated: bool) -> bool:
    """Return whether the volumes of the machines are replaced too, and their data lost.

    Raises: InvalidInput for a malformed parameter; Unprocessable if they must stay, but cannot.
    """
    with_storage, is_all, keep = (_flag(parameters, name) for name in (WITH_STORAGE, ALL, KEEP))
    if keep and (is_recreated or is_all or with_storage):
        why = "the stack is created again" if is_recreated else "another parameter asks for new volumes"
        raise Unprocessable(f"additionalParams/{KEEP}", f"true, but {why}: false, or neither of both, expected")
    if keep is not None:
        return not keep
    # As Tacker.
    return bool(is_all) if version == "v2" else with_storage is not False


def _not_instantiated(vnf: VnfUnderChange) -> dict[str, Any]:
    """Return the VnfInstance that user data would have got at the instantiation."""
    instance = vnf.record.vnf.model_copy(
        update={"instantiation_state": InstantiationState.NOT_INSTANTIATED, "instantiated_vnf_info": None}
    )
    return instance.model_dump(by_alias=True, exclude_none=True)
