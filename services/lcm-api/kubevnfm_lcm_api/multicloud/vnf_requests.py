"""Translates requests for VNFs into those of SOL003, and what is wrong with these back into members of the body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.regions import CloudRegion, CloudRegions
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import ConflictingInput, InvalidInput, NotFound, Unprocessable, VnfmError
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    CreateVnfRequest,
    InstantiateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_sol.vim import KUBERNETES
from kubevnfm_store.query import Stored
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace, OnapFacts
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Replacement, UnderChange
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEF_FILES, KUBERNETES_VERSION, ORDER_ARTIFACT, VALUES
from kubevnfm_lcm_api.lifecycle.core.revision import SOL003, Origin
from kubevnfm_lcm_api.lifecycle.requests import bring_up, changes, modify
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud.oam_address import with_oam_address
from kubevnfm_lcm_api.multicloud.profile_checks import check_profiles
from kubevnfm_lcm_api.multicloud.taken_places import PlaceCheck
from kubevnfm_lcm_api.multicloud.vnf_types import (
    VnfInstancePatch,
    VnfInstanceRequest,
    additional_params,
    check_oof_parameters,
)
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf
from kubevnfm_lcm_api.multicloud.wanted_packages import WantedPackage, request_text, wanted_package

_PARAMETERS: Final = "additionalParams/"
_NAMES: Final = ("vnf_instance_name", "vnf_instance_description")
_NETWORKS: Final = "networks["
_VOLUMES: Final = "volumes["
_VIM_KEY: Final = "region"
_LISTS: Final = ("compute_profiles", "networks", "volumes")

T = TypeVar("T")


async def accept(
    on: RequestServices,
    regions: CloudRegions,
    wanted: VnfInstanceRequest,
    body: Mapping[str, Any],
    origin: Origin,
    *,
    check_places: PlaceCheck,
    instance_id: str | None,
    group_operation: str | None = None,
    onap: OnapFacts | None = None,
) -> tuple[InstanceRecord, str]:
    """Accept a VNF; return its instance as it was made, and the id of the occurrence. ``body``: the request as it came.

    ``instance_id``: None for a random one.
    Raises: Unprocessable with pointers into the body; Conflict; RegionUnavailable. Nothing was created then.
    """
    region = await named_region(regions, wanted.cloud_region_id)
    async with _answering(regions, region) as answers:
        named = wanted_package(wanted)
        if not await _is_held(on, named):
            if group_operation is None and onap is None:
                await answers
                return await _accept_awaiting(on, regions, region, wanted, named, body, origin, instance_id)
            raise Unprocessable(named.place, f"VNF package {named.csar_id} is not held")
        made, package, asked = await asked_of(on, regions, region, wanted, body, origin)

        async def check(vnf_instance_id: str, order: ObjectsOrder) -> None:
            await answers
            await check_places(vnf_instance_id, order)

        accepting = bring_up.accept(
            on,
            made,
            package,
            region.id,
            asked,
            protected_namespaces=region.protected_namespaces,
            check_places=check,
            instance_id=instance_id,
            group_operation=group_operation,
            onap=onap,
        )
        return await pointed(accepting)


async def _is_held(on: RequestServices, named: WantedPackage) -> bool:
    """Return whether a package needs no fetch, also because none is possible for it; a copy is not removed from now on."""
    shown = await on.fetches.shown(named.csar_id)
    if shown is None or (shown["origin"] == "fetched" and shown["status"] not in ("READY", "DISABLED")):
        return False
    if shown["origin"] == "fetched":
        await on.fetches.ensure(named.csar_id, named.source)
    return True


async def _accept_awaiting(
    on: RequestServices,
    regions: CloudRegions,
    region: CloudRegion,
    wanted: VnfInstanceRequest,
    named: WantedPackage,
    body: Mapping[str, Any],
    origin: Origin,
    instance_id: str | None,
) -> tuple[InstanceRecord, str]:
    """Accept a VNF whose package is fetched first, after all checks that do without the package. Raises as `accept`."""
    on.fetches.check(named.csar_id, named.source, named.place)
    check_oof_parameters(wanted.oof_parameters)
    with_oam_address(wanted.networks, wanted.network_parameters)
    await check_profiles(regions, region, wanted.compute_profiles)
    text = await request_text(body, on.ring)
    awaited = bring_up.AwaitedPackage(named.csar_id, named.source, named.place, text, on.fetches.longest_s)
    accepting = bring_up.accept_awaiting(
        on,
        CreateVnfRequest(vnfd_id=named.csar_id, **_names_of(wanted)),
        awaited,
        (region.id, region.vim_id),
        additional_params(body),
        origin,
        protected_namespaces=region.protected_namespaces,
        instance_id=instance_id,
    )
    return await pointed(accepting)


def _names_of(wanted: VnfInstanceRequest) -> dict[str, str | None]:
    return {name: getattr(wanted, name) for name in _NAMES}


async def order_of_new(
    on: RequestServices, regions: CloudRegions, wanted: VnfInstanceRequest, body: Mapping[str, Any]
) -> tuple[str, ObjectsOrder]:
    """Return the id that a VNF could have, and the objects that it would be asked for. Raises as `accept`, but for taken places."""
    region = await region_of(regions, wanted.cloud_region_id)
    made, package, asked = await asked_of(on, regions, region, wanted, body, SOL003)
    place = CloudPlace(cloud_region_id=region.id, namespace="")
    protected = region.protected_namespaces
    record, found = await pointed(
        bring_up.prepared(on, made, package, place, asked, protected_namespaces=protected, instance_id=None)
    )
    return record.vnf.id, _order_in(found)


async def check(
    on: RequestServices,
    regions: CloudRegions,
    region: CloudRegion,
    wanted: VnfInstanceRequest,
    body: Mapping[str, Any],
    origin: Origin,
    *,
    instance_id: str,
) -> None:
    """Check a VNF as `accept` does, but for whether its region answers and what it has; nothing is stored. Raises as `accept`."""
    made, package, asked = await asked_of(on, regions, region, wanted, body, origin)
    place = CloudPlace(cloud_region_id=region.id, namespace="")
    protected = region.protected_namespaces
    await pointed(
        bring_up.prepared(on, made, package, place, asked, protected_namespaces=protected, instance_id=instance_id)
    )


async def asked_of(
    on: RequestServices,
    regions: CloudRegions,
    region: CloudRegion,
    wanted: VnfInstanceRequest,
    body: Mapping[str, Any],
    origin: Origin,
) -> tuple[CreateVnfRequest, PackageRef, Asked[InstantiateVnfRequest]]:
    """Return a request for a region in the form of SOL003, with its package. Raises as `accept`."""
    check_oof_parameters(wanted.oof_parameters)
    networks = with_oam_address(wanted.networks, wanted.network_parameters)
    await check_profiles(regions, region, wanted.compute_profiles)
    named = wanted_package(wanted)
    package = await package_of(on, named.csar_id, named.place)
    vnfd = await on.packages.vnfd(package.package_id, package.checksum)
    # In threads: values may have megabytes.
    parameters = await asyncio.to_thread(additional_params, body)
    original = {
        "flavourId": _flavour_id(vnfd),
        "vimConnectionInfo": {_VIM_KEY: {"vimId": region.vim_id, "vimType": KUBERNETES}},
        "additionalParams": parameters,
    }
    request = await asyncio.to_thread(parse, InstantiateVnfRequest, original)
    made = CreateVnfRequest(vnfd_id=package.vnfd_id, **_names_of(wanted))
    # Those of a homing decision and of another VNF are not written for this package.
    values = {} if body.get("clone_of") is not None else body.get("values") or {}
    asked = Asked(request, original, "v2", networks, wanted.volumes, origin, given_values=values)
    return made, package, asked


async def change(
    on: RequestServices,
    regions: CloudRegions,
    vnf: Vnf,
    wanted: VnfInstancePatch,
    body: Mapping[str, Any],
    *,
    origin: Origin,
    check: Callable[[Stored], None],
    check_places: PlaceCheck,
    is_known: Callable[[UnderChange, Draft], Awaitable[bool]],
) -> str | None:
    """Accept a change of a VNF; return the id of the occurrence, None if it changes nothing. ``body``: the patch as it came.

    ``is_known`` says whether the VNF is already as it would be.

    ``check`` gets the instance as it will be changed; it raises if the caller expected another state.
    ``vnf`` was as the caller expected.
    Raises: Unprocessable with pointers into the body; Conflict; RegionUnavailable.
    """
    names, replacing = await _patched(on, regions, vnf, wanted, body, origin)
    if names is not None:
        return await accepted(on, modify.checked_change(on, vnf.record.vnf.id, names, check=check))
    if replacing is None:
        return None
    under_change, found = await pointed(changes.package_change(on, vnf.record.vnf.id, replacing, check=check))
    if await is_known(under_change, found.draft):
        return None
    await check_places(vnf.record.vnf.id, _order_in(found))
    return await accepted(on, changes.checked_found_package(on, under_change, found, replacing))


async def replace(
    on: RequestServices,
    vnf: Vnf,
    csar_id: str,
    values: Mapping[str, Any],
    *,
    kubernetes_version: str | None,
    origin: Origin,
    check: Callable[[Stored], None],
    check_places: PlaceCheck,
) -> str:
    """Accept a change to a package with these values alone, in place of all that the VNF has; return the occurrence's id.

    ``kubernetes_version``: what the charts see from then on; None: that of the region.

    Raises as `change`.
    """
    package = await package_of(on, csar_id)
    replaced = {VALUES, ORDER_ARTIFACT, KUBERNETES_VERSION}
    parameters = {name: each for name, each in vnf.record.internals.parameters.items() if name not in replaced}
    if kubernetes_version is not None:
        parameters[KUBERNETES_VERSION] = kubernetes_version
    original = {"vnfdId": package.vnfd_id, "additionalParams": {**parameters, VALUES: values}}
    asked = Asked(parse(ChangeCurrentVnfPkgRequest, original), original, "v2", origin=origin, is_whole=True)
    return await accept_change(on, vnf, asked, check=check, check_places=check_places)


async def accept_change(
    on: RequestServices,
    vnf: Vnf,
    asked: Asked[ChangeCurrentVnfPkgRequest],
    *,
    check: Callable[[Stored], None],
    check_places: PlaceCheck,
) -> str:
    """Accept a change of package that is a request of this API by another name; return the occurrence's id. Raises as `change`."""
    under_change, found = await pointed(changes.package_change(on, vnf.record.vnf.id, asked, check=check))
    await check_places(vnf.record.vnf.id, _order_in(found))
    return await accepted(on, changes.checked_found_package(on, under_change, found, asked))


async def order_of_patch(
    on: RequestServices, regions: CloudRegions, vnf: Vnf, wanted: VnfInstancePatch, body: Mapping[str, Any]
) -> ObjectsOrder | None:
    """Return the objects that a patch would ask for; None if it changes no object. Raises as `change`; nothing is stored."""
    _, replacing = await _patched(on, regions, vnf, wanted, body, SOL003)
    return None if replacing is None else await order_of_change(on, vnf, replacing)


async def order_of_change(on: RequestServices, vnf: Vnf, asked: Asked[ChangeCurrentVnfPkgRequest]) -> ObjectsOrder:
    """Return the objects that a change of package would ask for. Raises as `change`; nothing is stored."""
    _, found = await pointed(changes.package_change(on, vnf.record.vnf.id, asked))
    return _order_in(found)


def _order_in(found: Replacement) -> ObjectsOrder:
    order: object = getattr(found.draft, "order", None)
    assert isinstance(order, ObjectsOrder)
    return order


async def _patched(
    on: RequestServices,
    regions: CloudRegions,
    vnf: Vnf,
    wanted: VnfInstancePatch,
    body: Mapping[str, Any],
    origin: Origin,
) -> tuple[Asked[VnfInfoModificationRequest] | None, Asked[ChangeCurrentVnfPkgRequest] | None]:
    """Return the request of SOL003 that a patch stands for: one for the names, or one for the objects, or none."""
    # null removes a list, as a merge patch does.
    body = {**body, **{name: body[name] or [] for name in _LISTS if name in body}}
    names = {name: body[name] for name in _NAMES if name in body}
    made_from = [name for name in ("csar_id", "values", "order_artifact", *_LISTS) if name in body]
    for name in made_from:
        if body[name] is None:
            raise Unprocessable(name, "no null expected: it cannot be removed")
    if names and made_from:
        raise Unprocessable(next(iter(names)), f"not expected beside {made_from[0]}: send it by itself")
    if names:
        original = {to_camel(name): value for name, value in names.items()}
        return Asked(parse(VnfInfoModificationRequest, original), original, "v2", origin=origin), None
    if not made_from:
        return None, None
    if wanted.compute_profiles:
        await check_profiles(regions, await region_of(regions, _region_id(vnf)), wanted.compute_profiles)
    package = None if wanted.csar_id is None else await package_of(on, wanted.csar_id)
    vnfd_id = vnf.record.vnf.vnfd_id if package is None else package.vnfd_id
    changed = {"vnfdId": vnfd_id, "additionalParams": additional_params(body)}
    networks = wanted.networks or () if "networks" in body else None
    volumes = wanted.volumes or () if "volumes" in body else None
    request = parse(ChangeCurrentVnfPkgRequest, changed)
    replacing = Asked(request, changed, "v2", networks, volumes, origin, is_merge_patch=True)
    return None, replacing


def _region_id(vnf: Vnf) -> str:
    place = vnf.record.internals.multicloud
    assert place is not None
    return place.cloud_region_id


async def region_of(regions: CloudRegions, region_id: str) -> CloudRegion:
    """Return the region of an id, or of a name that one owner has. Raises Unprocessable; RegionUnavailable."""
    region = await named_region(regions, region_id)
    await _check_health(regions, region)
    return region


async def _check_health(regions: CloudRegions, region: CloudRegion) -> None:
    health = await regions.health(region.cloud_owner, region.cloud_region)
    if not health.reachable:
        raise RegionUnavailable(f"cloud region {region.id} does not answer: {health.reason}")


@asynccontextmanager
async def _answering(regions: CloudRegions, region: CloudRegion) -> AsyncIterator[Awaitable[None]]:
    """Yield what returns once the region answers, which is asked beside the block. Raises RegionUnavailable rather than errors of the block."""
    answers = asyncio.create_task(_check_health(regions, region), name="region-health")
    try:
        yield answers
    except VnfmError:
        await answers
        raise
    finally:
        answers.cancel()
        await asyncio.gather(answers, return_exceptions=True)


async def named_region(regions: CloudRegions, region_id: str, place: str = "cloud_region_id") -> CloudRegion:
    """Return the region of an id, or of a name that one owner has; ``place``: the member that names it. Raises Unprocessable."""
    found = await regions.find({"cloud_region_id": region_id}, limit=2)
    if not found.items:
        raise Unprocessable(place, f"cloud region {region_id} does not exist")
    if len(found.items) > 1:
        ids = " and ".join(each.id for each in found.items)
        raise Unprocessable(place, f"several cloud regions have this name, such as {ids}: name the owner")
    return found.items[0]


async def package_of(on: RequestServices, csar_id: str, place: str = "csar_id") -> PackageRef:
    """Return an onboarded and enabled package; ``place``: the member that names it. Raises Unprocessable."""
    try:
        package = await on.packages.reference(csar_id)
        if not package.vnfd_id:
            raise Unprocessable(place, f"VNF package {csar_id} is not onboarded")
        usable = await pointed(on.packages.usable(package.vnfd_id))
    except NotFound as error:
        raise Unprocessable(place, str(error)) from error
    if usable.package_id != csar_id:
        raise Unprocessable(place, f"VNF package {csar_id} does not exist any more")
    return usable


def _flavour_id(vnfd: Vnfd) -> str:
    if vnfd.default_flavour_id is not None:
        return vnfd.default_flavour_id
    if len(vnfd.flavours) != 1:
        names = ", ".join(vnfd.flavours)
        raise Unprocessable("csar_id", f"the VNFD has several flavours and none is its default: {names}")
    return next(iter(vnfd.flavours))


async def accepted(on: RequestServices, checking: Awaitable[CheckedRequest]) -> str:
    """Accept a request of SOL003 once it is checked; return the occurrence's id. Raises as `pointed`."""

    async def accept() -> str:
        return await on.acceptance.accept(await checking)

    return await pointed(accept())


async def pointed(work: Awaitable[T]) -> T:
    """Return the result; raise what is wrong with a request of SOL003 at the members of the body that it was made from."""
    try:
        return await work
    except InvalidInput as error:
        places = ((_member(name), reason) for name, reason in error.places)
        # Its class has the code, such as `package-unusable`; what is malformed for SOL003 was well-formed here.
        kind = type(error) if isinstance(error, Unprocessable | ConflictingInput) else Unprocessable
        first, *more = places
        raise kind(*first, *more) from error


def _member(place: str) -> str:
    """Return the member of the body that a place in a request of SOL003 comes from."""
    if place.startswith(_PARAMETERS):
        member = place.removeprefix(_PARAMETERS)
        return "order_artifact" if member.startswith(DEF_FILES) else member
    if place.startswith((_NETWORKS, _VOLUMES)):
        return place
    return "cloud_region_id" if place.startswith("vimConnectionInfo") else "csar_id"
