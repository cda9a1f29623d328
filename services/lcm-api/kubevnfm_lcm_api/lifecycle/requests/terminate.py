"""Terminate (SOL003 5.4.8): checks the request against the instance before 202 is sent."""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_kit.errors import NotFound
from kubevnfm_sol.lcm import InstantiationState, OperationType, TerminateVnfRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instances import any_state
from kubevnfm_lcm_api.lifecycle.core.instantiation import TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEFAULT_GRACEFUL_S
from kubevnfm_lcm_api.lifecycle.requests.declared_parameters import check_declared_parameters
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_in
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import has_scripts, scripts_of


async def checked(
    on: RequestServices,
    instance_id: str,
    asked: Asked[TerminateVnfRequest],
    *,
    check: Callable[[Stored], None] = any_state,
    is_removal: bool = False,
    gives_up_waiting: bool = False,
) -> CheckedRequest:
    """Return a terminate that can be accepted. ``is_removal``: the instance is to be deleted at the end.

    ``gives_up_waiting``: objects of a CNF that are not gone after a short time are left.

    ``check`` gets the instance as it will be changed; it raises if the caller expected another state.
    Raises: NotFound; Conflict while NOT_INSTANTIATED or while an operation runs; ProvidedInUse if GRACEFUL while
    another instance uses its cluster or registry.
    """
    stored, record = await on.read(instance_id)
    check(stored)
    await on.engine.check_free(record, InstantiationState.INSTANTIATED)
    request = asked.request
    is_forceful = request.termination_type == "FORCEFUL"
    package, flavour = await _package(on, record)
    (deployment,) = record.internals.deployments  # operations so far make instances of one deployment
    timeout = request.graceful_termination_timeout
    wait_s = DEFAULT_GRACEFUL_S if timeout is None else timeout
    common = TerminateDraft(
        vnf_instance_id=record.vnf.id,
        vnfd_id=record.vnf.vnfd_id,
        package=package,
        vim_key=deployment.vim_key,
        vim=VimConnection(**vars(record.vnf.vim_connection_info[deployment.vim_key])),
        is_forceful=is_forceful,
        graceful_wait_s=0.0 if is_forceful else float(wait_s),
        is_removal=is_removal,
        gives_up_waiting=gives_up_waiting,
    )
    draft = await on.kind_of(record).terminate(common, record, request)
    if flavour is not None and has_scripts(flavour):
        draft = draft.model_copy(
            update={
                "has_scripts": True,
                "scripts": scripts_of(flavour, OperationType.TERMINATE),
                "script_request": script_request(asked),
                "instance": record.vnf.model_dump(by_alias=True, exclude_none=True),
            }
        )
    await check_declared_parameters(on, OperationType.TERMINATE, request, flavour, draft)
    warnings = await unread_in(on, draft, asked, flavour)
    return CheckedRequest(stored, record, OperationType.TERMINATE, draft, asked, flavour=flavour, warnings=warnings)


async def _package(on: RequestServices, record: InstanceRecord) -> tuple[PackageRef, Flavour | None]:
    """Return the package and the flavour. A VNF can be terminated even if its package no longer exists, without its scripts."""
    info = record.vnf.instantiated_vnf_info
    assert info is not None
    try:
        package, vnfd = await on.package_of(record)
    except NotFound:
        return PackageRef(package_id=record.vnf.vnf_pkg_id, vnfd_id=record.vnf.vnfd_id), None
    return package, vnfd.flavour(info.flavour_id)
