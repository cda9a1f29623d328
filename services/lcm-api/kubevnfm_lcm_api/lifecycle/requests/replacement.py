"""Change of the deployment flavour (SOL003 5.4.7) and of the VNF package (5.4.11a): another template for the same VNF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_csar import Flavour, UnknownFlavour, UnknownLevel, Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, ChangeVnfFlavourRequest, OperationType
from kubevnfm_sol.resources import ScaleInfo

from kubevnfm_lcm_api.lifecycle.domain.change_drafts import ChangeFields, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.domain.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.requests.acceptance import Acceptance, ApiVersion
from kubevnfm_lcm_api.lifecycle.requests.connectivity import check_points, merged_links
from kubevnfm_lcm_api.lifecycle.requests.drivers import driven_phases
from kubevnfm_lcm_api.lifecycle.requests.vnf_under_change import (
    CHANGE_FLAVOUR,
    CHANGE_VNFPKG,
    ChangeableVnfs,
    VnfUnderChange,
    scale_status,
    supported_tasks,
)

ROLLING: Final = "RollingUpdate"
_COORDINATION: Final = ("lcm-operation-coordinate-old-vnf", "lcm-operation-coordinate-new-vnf")
_MANAGED: Final = "extManagedVirtualLinks"
_EXTERNAL: Final = "extVirtualLinks"

Request = ChangeVnfFlavourRequest | ChangeCurrentVnfPkgRequest


class ChangeFlavour:
    """Accepts ChangeVnfFlavourRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, acceptance: Acceptance) -> None:
        self._vnfs, self._acceptance = vnfs, acceptance

    async def accept(
        self, instance_id: str, request: ChangeVnfFlavourRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a change of flavour; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for an unknown flavour or level, or the present one.
        """
        vnf = await self._vnfs.find(instance_id, CHANGE_FLAVOUR)
        try:
            flavour = vnf.vnfd.flavour(request.new_flavour_id)
        except UnknownFlavour as error:
            raise InvalidInput("newFlavourId", str(error)) from error
        if request.new_flavour_id == vnf.flavour.flavour_id:
            raise InvalidInput("newFlavourId", f"the VNF has flavour {request.new_flavour_id} already")
        try:
            levels = flavour.scale_levels(request.instantiation_level_id)
            counts = flavour.initial_counts(request.instantiation_level_id)
        except UnknownLevel as error:
            raise InvalidInput("instantiationLevelId", str(error)) from error
        draft = await replaced(
            self._vnfs,
            vnf,
            OperationType.CHANGE_FLAVOUR,
            request,
            original,
            version,
            package=vnf.package,
            vnfd=vnf.vnfd,
            flavour=flavour,
            level_id=request.instantiation_level_id,
            levels=levels,
            counts=counts,
        )
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.CHANGE_FLAVOUR,
            draft,
            original=original,
            version=version,
            flavour=flavour,
            secret_names=vnf.vnfd.secret_names,
        )


class ChangePackage:
    """Accepts ChangeCurrentVnfPkgRequests."""

    def __init__(self, *, vnfs: ChangeableVnfs, packages: PackageCatalogue, acceptance: Acceptance) -> None:
        self._vnfs, self._packages, self._acceptance = vnfs, packages, acceptance

    async def accept(
        self, instance_id: str, request: ChangeCurrentVnfPkgRequest, original: Mapping[str, object], version: ApiVersion
    ) -> str:
        """Accept a change of package; return the occurrence's id.

        Raises: NotFound, TaskUnsupported, Conflict; InvalidInput for wrong parameters; PackageUnusable and
        Unprocessable for a package that the VNF cannot be changed to, and for parameters that are not supported yet.
        """
        vnf = await self._vnfs.find(instance_id, CHANGE_VNFPKG)
        changed_vdus = _checked_parameters(request.additional_params, vnf.flavour)
        named = await self._packages.usable(request.vnfd_id)
        vnfd = await self._packages.vnfd(named.package_id, named.checksum)
        try:
            flavour = vnfd.flavour(vnf.flavour.flavour_id)
        except UnknownFlavour as error:
            raise Unprocessable("vnfdId", f"the VNF has flavour {vnf.flavour.flavour_id}: {error}") from error
        missing = [vdu for vdu in vnf.flavour.vdus if vdu not in flavour.vdus]
        if missing:
            raise Unprocessable("vnfdId", f"the package lacks VDUs of the VNF: {', '.join(missing)}")
        # The new package may allow fewer levels; the machines above them stay until the next scaling.
        levels = {name: min(vnf.scale_levels.get(name, 0), a.max_scale_level) for name, a in flavour.aspects.items()}
        draft = await replaced(
            self._vnfs,
            vnf,
            OperationType.CHANGE_VNFPKG,
            request,
            original,
            version,
            package=named,
            vnfd=vnfd,
            flavour=flavour,
            level_id=None,
            levels=levels,
            counts={**flavour.initial_counts(), **vnf.counts},
            changed_vdus=changed_vdus,
        )
        return await self._acceptance.accept(
            vnf.stored,
            vnf.record,
            OperationType.CHANGE_VNFPKG,
            draft,
            original=original,
            version=version,
            flavour=flavour,
            claims={"internal/dstVnfdId": vnfd.vnfd_id},
            secret_names=vnfd.secret_names,
        )


def _checked_parameters(parameters: Mapping[str, Any], flavour: Flavour) -> tuple[str, ...]:
    """Check the parameters that Tacker adds to the request (api.md 3.4); return the VDUs that it names, none for all.

    Raises InvalidInput, Unprocessable.
    """
    upgrade = parameters.get("upgrade_type", ROLLING)
    if upgrade != ROLLING:
        raise InvalidInput("additionalParams/upgrade_type", f"{ROLLING} expected")
    vdus = parameters.get("vdu_params", [])
    if not isinstance(vdus, list | tuple):
        raise InvalidInput("additionalParams/vdu_params", "an array of objects expected")
    named: dict[str, None] = {}
    for index, vdu in enumerate(vdus):
        place = f"additionalParams/vdu_params[{index}]/vdu_id"
        vdu_id = vdu.get("vdu_id") if isinstance(vdu, Mapping) else None
        if not isinstance(vdu_id, str):
            raise InvalidInput(place, "the VDU's id expected")
        if vdu_id not in flavour.vdus:
            raise InvalidInput(place, f"the VNF has no VDU {vdu_id}; it has {', '.join(flavour.vdus)}")
        named[vdu_id] = None
    for name in (*_COORDINATION, "lcm-kubernetes-def-files"):
        if parameters.get(name) is not None:
            raise Unprocessable(f"additionalParams/{name}", "not supported yet for a VNF of plain machines")
    return () if set(named) == set(flavour.vdus) else tuple(named)


async def replaced(
    vnfs: ChangeableVnfs,
    vnf: VnfUnderChange,
    operation: OperationType,
    request: Request,
    original: Mapping[str, object],
    version: ApiVersion,
    *,
    package: PackageRef,
    vnfd: Vnfd,
    flavour: Flavour,
    level_id: str | None,
    levels: Mapping[str, int],
    counts: Mapping[str, int],
    changed_vdus: tuple[str, ...] = (),
) -> ReplaceVmDraft:
    """Return the draft of a change to another flavour, of the same package or of another."""
    if driven_phases(flavour):
        raise Unprocessable(
            "", f"flavour {flavour.flavour_id} has a management driver: a change to it is not supported yet"
        )
    check_points(request.ext_virtual_links, flavour)
    internals, is_package = vnf.record.internals, operation is OperationType.CHANGE_VNFPKG
    connections = {
        _EXTERNAL: merged_links(internals.connections.get(_EXTERNAL) or (), request.ext_virtual_links),
        _MANAGED: [
            link.model_dump(mode="json", by_alias=True, exclude_none=True) for link in request.ext_managed_virtual_links
        ]
        or list(internals.connections.get(_MANAGED) or ()),
    }
    parameters = {**internals.parameters, **request.additional_params}
    as_instantiated = {
        "flavourId": flavour.flavour_id,
        **({"instantiationLevelId": level_id} if level_id is not None else {}),
        **{name: links for name, links in connections.items() if links},
        **({"additionalParams": parameters} if parameters else {}),
    }
    files = await vnfs.files(package.package_id)
    entries = await vnfs.connections(vnf, request.vim_connection_info, version)
    present = vnf.fields(hide(original), parameters, version, files, connections=entries)
    fields: ChangeFields = {
        **present,
        "package": package,
        "flavour_id": flavour.flavour_id,
        "instantiation_level_id": level_id,
        # User data classes expect the request as it came; the built-in rules read an InstantiateVnfRequest.
        "request": dict(hide(original)) if is_package and present["user_data"] is not None else as_instantiated,
        # `as_instantiated` is in v2 form, also if this request is a v1 request.
        "api_version": "v2",
        "counts": dict(counts),
        "connections": connections,
        "external_cps": {name: name for name, cp in flavour.cps.items() if cp.is_external and cp.vdu_id},
        "scale_status": scale_status(levels),
        "max_scale_levels": _max_levels(flavour),
    }
    await vnfs.check(fields)
    return ReplaceVmDraft(
        **fields,
        before_package=vnf.package,
        before_flavour_id=vnf.flavour.flavour_id,
        is_new_package=is_package,
        changed_vdus=changed_vdus,
        instantiate_request=as_instantiated,
        parameters=parameters,
        tasks=supported_tasks(vnfd, flavour, is_cnf=False),
        extensions=request.extensions,
        vnf_configurable_properties=request.vnf_configurable_properties,
        vnf=identity(vnfd, package) if is_package else {},
    )


def _max_levels(flavour: Flavour) -> tuple[ScaleInfo, ...]:
    return scale_status({name: aspect.max_scale_level for name, aspect in flavour.aspects.items()})


def identity(vnfd: Vnfd, package: PackageRef) -> dict[str, str]:
    """Return the attributes of a VNF instance that its package decides."""
    return {
        "vnfd_id": vnfd.vnfd_id,
        "vnf_provider": vnfd.provider,
        "vnf_product_name": vnfd.product_name,
        "vnf_software_version": vnfd.software_version,
        "vnfd_version": vnfd.descriptor_version,
        "vnf_pkg_id": package.package_id,
    }
