"""Modify the information of a VNF instance (SOL003 5.4.3.3.4): a JSON Merge Patch, carried out without a grant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import ApiVersion, PackageRef
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType, VnfInfoModificationRequest
from kubevnfm_sol.secret_destinations import moved_secret
from kubevnfm_sol.vim import VimConnectionInfo, long_vim_type
from kubevnfm_sol.wrong_attributes import wrong_attributes
from kubevnfm_store.query import Stored
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.declared import DECLARED, check_declared
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, UnderChange
from kubevnfm_lcm_api.lifecycle.core.modifying import CarriedStack, ModifyDraft, ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.own_metadata import check_not_given, own_part
from kubevnfm_lcm_api.lifecycle.core.package_identity import identity
from kubevnfm_lcm_api.lifecycle.core.revision import Inputs
from kubevnfm_lcm_api.lifecycle.core.server_notifier import check_values
from kubevnfm_lcm_api.lifecycle.core.vim_choice import checked
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.requests.unread import unread_of_vims
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_fields
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of

_NAMES: Final = ("vnf_instance_name", "vnf_instance_description")


async def checked_change(
    on: RequestServices,
    instance_id: str,
    asked: Asked[VnfInfoModificationRequest],
    *,
    check: Callable[[Stored], None],
) -> CheckedRequest:
    """Return a modification that can be accepted.

    ``check`` gets the instance as it will be changed; it raises if the caller expected another state (If-Match).
    Raises: NotFound; Conflict while an operation runs; InvalidInput; Unprocessable for a key that the VNFD does not
    declare, and for a package that does not describe what the VNF has. A CNF whose VNFD maps
    ``modify_information_end`` to ``mgmt-container-update`` also gets the package's configuration and images.
    """
    request = asked.request
    stored, record = await on.read(instance_id)
    check(stored)
    # Allowed in both instantiation states; only a running operation excludes it.
    await on.engine.check_free(record, record.vnf.instantiation_state)
    given = request.model_fields_set
    vnf: dict[str, Any] = {name: getattr(request, name) for name in _NAMES if name in given}
    changed: dict[str, Any] = {to_camel(name): value for name, value in vnf.items() if value is not None}
    package = await _new_package(on, record, request)
    present, described = await on.package_of(record)
    vnfd, carried = await _new_vnfd(on, stored, record, (present, described), package)
    if package is not None:
        vnf.update(identity(vnfd, package))
        changed.update({to_camel(name): value for name, value in identity(vnfd, package).items()})
    free = _free(record, request, vnfd)
    changed.update({to_camel(name): getattr(request, name) for name in free if getattr(request, name) is not None})
    connections = None
    # `changedInfo` lists the entries that the request named, with their values after the patch.
    if "vim_connection_info" in given and request.vim_connection_info is not None:
        connections = _connections(record.vnf.vim_connection_info, request.vim_connection_info)
        named = {key: value for key, value in connections.items() if key in request.vim_connection_info}
        connections.update(await _checked(on, record, named, asked.version))
        changed["vimConnectionInfo"] = {
            key: connections[key].model_dump(by_alias=True, exclude_none=True) for key in named
        }
    properties = _vnfc_properties(record, request)
    if properties:
        changed["vnfcInfoModifications"] = [
            {"id": key, "vnfcConfigurableProperties": value} for key, value in properties.items()
        ]
    draft = ModifyDraft(
        vnf_instance_id=instance_id,
        vnf={name: value for name, value in vnf.items() if value is not None},
        # null removes an attribute (RFC 7396); None in `vnf` would be lost when the draft is stored.
        removed=tuple(name for name, value in vnf.items() if value is None),
        free=free,
        vim_connections=connections,
        new_vim_ids=_new_vim_ids(record, connections or {}),
        vnfc_properties=properties,
        changed=changed,
        carried=carried,
        new_inputs=_new_inputs(record, package),
    )
    if (info := record.vnf.instantiated_vnf_info) is not None:
        scripts = scripts_of(described.flavour(info.flavour_id), OperationType.MODIFY_INFO)
        scripted = ModifyScriptedDraft(
            **vars(draft),
            package=present,
            new_package=package,
            **script_fields(scripts, asked, record.vnf),
            resources=record.stack.resources if record.stack is not None else None,
        )
        later = record if connections is None else record.with_vnf(vim_connection_info=connections)
        under_change = UnderChange(stored, later, present, vnfd, vnfd.flavour(info.flavour_id), info)
        of_kind = await on.kind_of(record).modify(under_change, scripted, request)
        draft = of_kind or (scripted if scripts else draft)
    return CheckedRequest(
        stored,
        record,
        OperationType.MODIFY_INFO,
        draft,
        asked,
        secret_names=vnfd.secret_names,
        state=OperationState.PROCESSING,
        warnings=_unread(draft, asked),
    )


def _unread(draft: ModifyDraft, asked: Asked[VnfInfoModificationRequest]) -> Sequence[RequestWarning]:
    """Return the warnings about the entries that the request names; scripts of the package may read any attribute of ``extra``."""
    is_for_code = isinstance(draft, ModifyScriptedDraft) and draft.scripts
    named = {} if is_for_code else asked.request.vim_connection_info or {}
    entries = {key: one for key, one in (draft.vim_connections or {}).items() if key in named}
    return unread_of_vims(entries, asked.original)


def _new_inputs(record: InstanceRecord, package: PackageRef | None) -> Inputs | None:
    """Return what the objects of a CNF that is up are made from with another package; None without one, and without objects."""
    internals = record.internals
    if package is None or record.release is None:
        return None
    return Inputs.model_construct(
        package=package, parameters=internals.parameters, networks=internals.networks, volumes=internals.volumes
    )


async def _checked(
    on: RequestServices, record: InstanceRecord, entries: Mapping[str, VimConnectionInfo], version: ApiVersion
) -> Mapping[str, VimConnectionInfo]:
    """Return the entries that the request names. Raises InvalidInput, Unprocessable."""
    for deployment in record.internals.deployments:
        present = record.vnf.vim_connection_info.get(deployment.vim_key)
        if present is not None:
            entries = await on.vim_entries.changed(entries, deployment.vim_key, present, version)
    # Without a deployment the entries are for an instantiate, which knows its own API version.
    return checked(entries)


async def _new_package(
    on: RequestServices, record: InstanceRecord, request: VnfInfoModificationRequest
) -> PackageRef | None:
    """Return the package that the request changes to; None if it names none, or the present one."""
    vnfd_id = request.vnfd_id
    if request.vnf_pkg_id is not None:
        try:
            named = await on.packages.reference(request.vnf_pkg_id)
        except NotFound as error:
            raise Unprocessable("vnfPkgId", str(error)) from error
        if vnfd_id is not None and named.vnfd_id != vnfd_id:
            raise Unprocessable("vnfPkgId", f"the package {request.vnf_pkg_id} does not contain VNFD {vnfd_id}")
        vnfd_id = named.vnfd_id
    if vnfd_id is None or vnfd_id == record.vnf.vnfd_id:
        return None
    usable = await on.packages.usable(vnfd_id)
    # The named one was deleted, and another one has the same VNFD now.
    if request.vnf_pkg_id not in (None, usable.package_id):
        raise Unprocessable("vnfPkgId", f"VNF package {request.vnf_pkg_id} does not exist")
    return usable


async def _new_vnfd(
    on: RequestServices,
    stored: Stored,
    record: InstanceRecord,
    present: tuple[PackageRef, Vnfd],
    package: PackageRef | None,
) -> tuple[Vnfd, CarriedStack | None]:
    """Return the descriptor that is valid from now on, and what it changes for resources that stay; ``package``: None: the present one.

    Raises Unprocessable if it does not describe them.
    """
    if package is None:
        return present[1], None
    new = await on.packages.vnfd(package.package_id, package.checksum)
    info = record.vnf.instantiated_vnf_info
    if info is None or record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        return new, None
    under_change = UnderChange(stored, record, *present, present[1].flavour(info.flavour_id), info)
    return new, await on.kind_of(record).carried(under_change, package, new)


def _free(record: InstanceRecord, request: VnfInfoModificationRequest, vnfd: Vnfd) -> dict[str, SecretParams]:
    """Return the wanted KeyValuePairs by attribute, of those that the request names. Raises InvalidInput, Unprocessable."""
    check_not_given(request.metadata, record.vnf.metadata)
    check_values(request.metadata or {}, "metadata")
    free: dict[str, SecretParams] = {}
    info = record.vnf.instantiated_vnf_info
    flavour = vnfd.flavours.get(info.flavour_id) if info is not None else None
    for name in ("metadata", *DECLARED):
        if name not in request.model_fields_set:
            continue
        patch = getattr(request, name)
        if patch is None:
            free[name] = own_part(record.vnf.metadata) if name == "metadata" else {}
            continue
        if name in DECLARED:
            check_declared(name, patch, record.vnf, vnfd, flavour)
        free[name] = merge_patch(getattr(record.vnf, name), patch)
    return free


def _connections(present: Mapping[str, VimConnectionInfo], patch: Mapping[str, Any]) -> dict[str, VimConnectionInfo]:
    """Return vimConnectionInfo after the patch.

    Raises InvalidInput for an entry that is not valid after it, and for a stored secret that would go to another destination.
    """
    plain = {key: value.model_dump(by_alias=True, exclude_none=True) for key, value in present.items()}
    found: dict[str, VimConnectionInfo] = {}
    for key, value in merge_patch(plain, patch).items():
        try:
            connection = VimConnectionInfo.model_validate(value)
        except ValidationError as error:
            first, *more = wrong_attributes(error, VimConnectionInfo, f"vimConnectionInfo/{key}")
            raise InvalidInput(*first, *more) from error
        moved = moved_secret(present[key], connection) if key in present else None
        if moved is not None:
            raise InvalidInput(f"vimConnectionInfo/{key}/{moved.place}", moved.reason())
        found[key] = connection.model_copy(update={"vim_type": long_vim_type(connection.vim_type)})
    return found


def _new_vim_ids(record: InstanceRecord, connections: Mapping[str, VimConnectionInfo]) -> tuple[str, ...]:
    """Return the VIMs on which the instance's resources are from now on, and were not before."""
    entries = [connections[one.vim_key] for one in record.internals.deployments if one.vim_key in connections]
    known = record.internals.vim_ids
    return tuple(dict.fromkeys(e.vim_id for e in entries if e.vim_id is not None and e.vim_id not in known))


def _vnfc_properties(record: InstanceRecord, request: VnfInfoModificationRequest) -> dict[str, SecretParams]:
    info = record.vnf.instantiated_vnf_info
    known = {one.id: one for one in info.vnfc_info} if info is not None else {}
    found: dict[str, SecretParams] = {}
    for index, one in enumerate(request.vnfc_info_modifications or ()):
        if one.id not in known:
            raise InvalidInput(f"vnfcInfoModifications[{index}]/id", f"the VNF has no VNFC {one.id}")
        found[one.id] = merge_patch(known[one.id].vnfc_configurable_properties or {}, one.vnfc_configurable_properties)
    return found
