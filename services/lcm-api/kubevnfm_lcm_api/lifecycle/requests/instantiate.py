"""Instantiate (SOL003 5.4.4): checks the request against instance, package and VIM before 202 is sent."""

from __future__ import annotations

import asyncio
from typing import Final

from kubevnfm_csar.errors import UnknownFlavour, UnknownLevel
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import InstantiateVnfRequest, InstantiationState, OperationType
from kubevnfm_sol.vim import OPENSTACK

from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft
from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.declared import check_all_declared
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Replacement
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status
from kubevnfm_lcm_api.lifecycle.core.server_notifier import check_notifier
from kubevnfm_lcm_api.lifecycle.requests.declared_parameters import check_declared_parameters
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_in


async def checked(on: RequestServices, instance_id: str, asked: Asked[InstantiateVnfRequest]) -> CheckedRequest:
    """Return an instantiate that can be accepted. Raises NotFound, Conflict, InvalidInput, Unprocessable."""
    stored, record = await on.read(instance_id)
    await on.engine.check_free(record, InstantiationState.NOT_INSTANTIATED)
    found = await draft_of(on, record, asked)
    _check_place(record, found.draft)
    await _check_protected(on, found.draft)
    await check_declared_parameters(on, OperationType.INSTANTIATE, asked.request, found.flavour, found.draft)
    return CheckedRequest(
        stored,
        record,
        OperationType.INSTANTIATE,
        found.draft,
        asked,
        flavour=found.flavour,
        secret_names=found.secret_names,
        warnings=await unread_in(on, found.draft, asked, found.flavour),
    )


_TERRAFORM: Final = ("tf_dir_path", "tf_var_path")
"""Names of Tacker's Terraform driver, which say that the package is deployed by it."""


async def draft_of(on: RequestServices, record: InstanceRecord, asked: Asked[InstantiateVnfRequest]) -> Replacement:
    """Return the draft of an instantiate, with all that was checked for it. Raises NotFound, InvalidInput, Unprocessable."""
    request = asked.request
    package, vnfd = await on.package_of(record)
    flavour = _flavour(vnfd, request)
    check_all_declared(request, record.vnf, vnfd, flavour)
    # Entries may have been set by a modification before; those of the request replace them.
    connections = {**record.vnf.vim_connection_info, **request.vim_connection_info}
    parameters = request.additional_params
    for name in _TERRAFORM:
        if name in parameters:
            raise Unprocessable(f"additionalParams/{name}", "Terraform configurations are not deployed: leave it out")
    check_notifier(parameters)
    signs = ((kind.sign(parameters), kind.vim_type) for kind in on.kinds)
    sign, vim_type = next((found for found in signs if found[0] is not None), (None, OPENSTACK))
    vim_key, connections = await on.vim_entries.choose(connections, vim_type, sign, asked.version)
    connection = connections[vim_key]
    of_vim = (kind for kind in on.kinds if kind.vim_type == connection.vim_type)
    kind = next(kind for kind in of_vim if kind.is_asked_for(parameters))
    # In a thread: values may have megabytes.
    common = await asyncio.to_thread(
        InstantiateDraft,
        vnf_instance_id=record.vnf.id,
        package=package,
        vim_key=vim_key,
        vim=VimConnection(**vars(connection)),
        vim_connections=connections,
        flavour_id=flavour.flavour_id,
        instantiation_level_id=request.instantiation_level_id,
        api_version=asked.version,
        parameters=request.additional_params,
        extensions=request.extensions,
        vnf_configurable_properties=request.vnf_configurable_properties,
        localization_language=request.localization_language,
        scale_status=scale_status(flavour.scale_levels(request.instantiation_level_id)),
        max_scale_levels=scale_status({name: aspect.max_scale_level for name, aspect in flavour.aspects.items()}),
        # A CP without a VDU has no port in the stack.
        external_cps={name: name for name, cp in flavour.cps.items() if cp.is_external and cp.vdu_id},
        ext_virtual_links=tuple(
            link.model_dump(mode="json", by_alias=True, exclude_none=True) for link in request.ext_virtual_links
        ),
        tasks=kind.tasks(vnfd, flavour),
        remains_of=record.internals.remains_of,
    )
    return Replacement(await kind.instantiate(common, record, flavour, asked), flavour, vnfd.secret_names)


async def _check_protected(on: RequestServices, draft: Draft) -> None:
    """Raise Unprocessable for objects with an order in a namespace that the region of the VIM protects."""
    if not isinstance(draft, InstantiateCnfDraft) or draft.order_artifact is None or draft.namespace is None:
        return
    await on.protected_namespaces.check(draft.vim, draft.namespace)


def _check_place(record: InstanceRecord, draft: Draft) -> None:
    """Raise Unprocessable unless an instance of the multi-cloud API stays where it was brought up."""
    place = record.internals.multicloud
    if place is None:
        return
    if place.vim_id not in (None, draft.vim_id):
        where = f"cloud region {place.cloud_region_id} of the VNF"
        raise Unprocessable(
            "vimConnectionInfo", f"VIM {place.vim_id}, which is the {where}, expected: it does not move"
        )
    if not isinstance(draft, InstantiateCnfDraft) or draft.namespace != place.namespace:
        reason = f"{place.namespace}, where the VNF was brought up, expected: it does not move"
        raise Unprocessable("additionalParams/namespace", reason)


def _flavour(vnfd: Vnfd, request: InstantiateVnfRequest) -> Flavour:
    try:
        flavour = vnfd.flavour(request.flavour_id)
    except UnknownFlavour as error:
        raise InvalidInput("flavourId", str(error)) from error
    try:
        flavour.level(request.instantiation_level_id)
    except UnknownLevel as error:
        raise InvalidInput("instantiationLevelId", str(error)) from error
    return flavour
