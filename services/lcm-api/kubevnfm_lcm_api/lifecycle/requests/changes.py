"""The operations of which a kind of VNF alone knows what they mean.

Heal (SOL003 5.4.9, SOL002's vnfcInstanceId), operate (5.4.10), change of the external connectivity (5.4.11), of the deployment
flavour (5.4.7) and of the VNF package (5.4.11a). Each function returns a request that can be accepted.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    HealVnfRequest,
    OperateVnfRequest,
    OperationType,
)
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.declared import check_all_declared
from kubevnfm_lcm_api.lifecycle.core.instances import any_state
from kubevnfm_lcm_api.lifecycle.core.kind import (
    CHANGE_EXT_CONN,
    CHANGE_FLAVOUR,
    CHANGE_VNFPKG,
    HEAL,
    OPERATE,
    Asked,
    Replacement,
    UnderChange,
)
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, flag
from kubevnfm_lcm_api.lifecycle.requests.declared_parameters import check_declared_parameters
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_in
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of


async def checked_heal(on: RequestServices, instance_id: str, asked: Asked[HealVnfRequest]) -> CheckedRequest:
    """Return a heal that can be accepted (sequences.md A4, A5).

    Raises: NotFound, TaskUnsupported, Conflict, Drifted; InvalidInput for an unknown VNFC or a malformed parameter;
    Unprocessable for nodes that a cluster cannot lose, and for volumes that cannot stay.
    """
    kind, vnf = await on.find(instance_id, HEAL)
    # Also of a kind that does not read it.
    flag(asked.request.additional_params, ALL)
    # A script of the package that runs at a heal gets the request.
    if asked.request.heal_script is not None and not scripts_of(vnf.flavour, OperationType.HEAL):
        raise InvalidInput("healScript", "the package maps no script to heal: leave it out")
    return await _checked(on, vnf, OperationType.HEAL, Replacement(await kind.heal(vnf, asked), vnf.flavour), asked)


async def checked_operate(on: RequestServices, instance_id: str, asked: Asked[OperateVnfRequest]) -> CheckedRequest:
    """Return a start or stop of the machines of a VNF, or of some of them, that can be accepted.

    Raises: NotFound, TaskUnsupported; InvalidInput for an unknown VNFC; Conflict if all machines are in that state; Drifted
    for a machine that was found deleted.
    """
    kind, vnf = await on.find(instance_id, OPERATE)
    found = Replacement(await kind.operate(vnf, asked), vnf.flavour)
    return await _checked(on, vnf, OperationType.OPERATE, found, asked)


async def checked_links(
    on: RequestServices, instance_id: str, asked: Asked[ChangeExtVnfConnectivityRequest]
) -> CheckedRequest:
    """Return a change of links that can be accepted.

    Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for a connection point that the VNFD does not have.
    """
    kind, vnf = await on.find(instance_id, CHANGE_EXT_CONN)
    found = Replacement(await kind.connect(vnf, asked), vnf.flavour)
    return await _checked(on, vnf, OperationType.CHANGE_EXT_CONN, found, asked)


async def checked_flavour(
    on: RequestServices, instance_id: str, asked: Asked[ChangeVnfFlavourRequest]
) -> CheckedRequest:
    """Return a change of flavour that can be accepted.

    Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for an unknown flavour or level, or the present one.
    """
    kind, vnf = await on.find(instance_id, CHANGE_FLAVOUR)
    found = await kind.change_flavour(vnf, asked)
    check_all_declared(asked.request, vnf.record.vnf, vnf.vnfd, found.flavour)
    return await _checked(on, vnf, OperationType.CHANGE_FLAVOUR, found, asked)


async def checked_package(
    on: RequestServices,
    instance_id: str,
    asked: Asked[ChangeCurrentVnfPkgRequest],
    *,
    check: Callable[[Stored], None] = any_state,
) -> CheckedRequest:
    """Return a change of package that can be accepted.

    ``check`` gets the instance as it will be changed; it raises if the caller expected another state.
    Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for wrong parameters; PackageUnusable and
    Unprocessable for a package that the VNF cannot be changed to, and for parameters that are not supported yet.
    """
    vnf, found = await package_change(on, instance_id, asked, check=check)
    return await checked_found_package(on, vnf, found, asked)


async def package_change(
    on: RequestServices,
    instance_id: str,
    asked: Asked[ChangeCurrentVnfPkgRequest],
    *,
    check: Callable[[Stored], None] = any_state,
) -> tuple[UnderChange, Replacement]:
    """Return what a change of package would do; nothing is stored. Raises as `checked_package`."""
    kind, vnf = await on.find(instance_id, CHANGE_VNFPKG)
    check(vnf.stored)
    found = await kind.change_package(vnf, asked)
    if asked.request.extensions or asked.request.vnf_configurable_properties:
        package = await on.packages.usable(asked.request.vnfd_id)
        vnfd = await on.packages.vnfd(package.package_id, package.checksum)
        check_all_declared(asked.request, vnf.record.vnf, vnfd, found.flavour)
    return vnf, found


async def checked_found_package(
    on: RequestServices, vnf: UnderChange, found: Replacement, asked: Asked[ChangeCurrentVnfPkgRequest]
) -> CheckedRequest:
    """Return a change of package, which `package_change` has returned, that can be accepted."""
    return await _checked(on, vnf, OperationType.CHANGE_VNFPKG, found, asked)


async def _checked(
    on: RequestServices, vnf: UnderChange, operation: OperationType, found: Replacement, asked: Asked[SolType]
) -> CheckedRequest:
    await check_declared_parameters(on, operation, asked.request, found.flavour, found.draft)
    return CheckedRequest(
        vnf.stored,
        vnf.record,
        operation,
        found.draft,
        asked,
        flavour=found.flavour,
        secret_names=found.secret_names,
        warnings=await unread_in(on, found.draft, asked, found.flavour),
    )
