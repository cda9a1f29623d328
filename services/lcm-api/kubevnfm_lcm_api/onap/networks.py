"""``/v2/cluster-providers/../clusters/../networks`` of ONAP's ncm: virtual links that it holds (multicloud.md MC-097)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

from aiohttp import web
from kubevnfm_clients.multicloud.links import LinkRequest, VirtualLink
from kubevnfm_clients.multicloud.regions import CloudRegion, CloudRegions
from kubevnfm_clients.multicloud.types import MultiCloudRequest, NamespaceName
from kubevnfm_kit.errors import Conflict, InUse, NotFound, Unprocessable, VnfmError
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import Index, Query, Stored, by
from kubevnfm_store.races import repeat_lost_writes
from pydantic import Field, StringConstraints

from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.services import services
from kubevnfm_lcm_api.onap.answers import GONE, NO_BODY, PREFER, WRONG, ShownNetwork, listed
from kubevnfm_lcm_api.onap.plain import read_plain

NETWORKS: Final = "onap_networks"
INDEXES: Final = {NETWORKS: [Index(["region"])]}
_CLUSTER: Final = "/v2/cluster-providers/{provider}/clusters/{cluster}"
_TYPES: Final = {"networks": "ovn4nfv", "provider-networks": "ovn4nfv-provider"}
_REFERENCE: Final = "ncm"
_PAGE: Final = 500
_AT_ONCE: Final = 10
_LONGEST_S: Final = 20
_LONGEST_VLAN: Final = 5
Text = Annotated[str, StringConstraints(max_length=1024)]


class Metadata(MultiCloudRequest):
    """The name of a network, and data of the caller."""

    name: NamespaceName
    description: Text | None = None
    user_data1: Annotated[Text | None, Field(alias="userData1")] = None
    user_data2: Annotated[Text | None, Field(alias="userData2")] = None


class Network(MultiCloudRequest):
    """A network, as ncm sends and shows it; what ``spec`` has is checked when it is applied."""

    metadata: Metadata
    spec: JsonObject


async def remove_of_region(store: DocumentStore, vim_id: str) -> None:
    """Remove the networks of a region that has been deleted; none of them is applied, as its links keep a region."""
    await store.delete_many(NETWORKS, by(region=vim_id))


async def remove_without_region(store: DocumentStore, regions: CloudRegions) -> None:
    """Remove the networks of regions that were deleted by other paths."""
    after: tuple[str, str] | None = None
    while batch := await store.find(NETWORKS, Query(after=after, limit=_PAGE)):
        for vim_id in {str(each.body["region"]) for each in batch}:
            if not (await regions.find({"vim_id": vim_id}, limit=1)).items:
                await remove_of_region(store, vim_id)
        after = (batch[-1].id, batch[-1].id)


async def create(request: web.Request) -> web.Response:
    """POST networks: 201; nothing is in the region before it is applied."""
    region = await _region(request)
    network = await _read(request, region)
    body = {"region": region.vim_id, "kind": _kind(request), "shown": network}
    try:
        await context(request).store.insert(NETWORKS, _id(region, network["metadata"]["name"]), body)
    except AlreadyExists as error:
        raise Conflict(f"the cluster has a network {network['metadata']['name']} already") from error
    return web.json_response(network, status=201)


async def list_all(request: web.Request) -> web.Response:
    """GET networks: 200."""
    region, kind = await _region(request), _kind(request)
    return web.json_response(
        [each.body["shown"] async for each in _stored(request, region) if each.body["kind"] == kind]
    )


async def show(request: web.Request) -> web.Response:
    """GET networks/{name}: 200."""
    return web.json_response((await _network(request, await _region(request))).body["shown"])


async def replace(request: web.Request) -> web.Response:
    """PUT networks/{name}: 201, or 409 while it is applied."""
    region = await _region(request)
    network = await _read(request, region)
    if network["metadata"]["name"] != request.match_info["name"]:
        raise Unprocessable("metadata/name", f"{request.match_info['name']}, as in the path, expected")
    await _replaced(request, region, network)
    return web.json_response(network, status=201)


@repeat_lost_writes
async def _replaced(request: web.Request, region: CloudRegion, network: Any) -> None:
    found = await _network(request, region)
    await _check_not_applied(request, region, found)
    changed = {**found.body, "shown": network}
    await context(request).store.replace(NETWORKS, found.id, changed, if_revision=found.revision)


async def delete(request: web.Request) -> web.Response:
    """DELETE networks/{name}: 204, or 409 while it is applied."""
    region = await _region(request)
    found = await _network(request, region)
    await _check_not_applied(request, region, found)
    await context(request).store.delete(NETWORKS, found.id)
    # It was applied since the check: no later request would find the link.
    await _release(request, region, found, wait_s=0)
    return web.Response(status=204)


async def apply(request: web.Request) -> web.Response:
    """POST apply: 204 once the region has the networks, or each has a link that waits for it; 500 for one that failed."""
    region, wait_s = await _region(request), min(read_preference(request).wait_s, _LONGEST_S)

    async def make(network: Stored) -> None:
        wanted = _wanted(region, network.body["kind"], network.body["shown"])
        link = (await services(request).links.create(wanted, wait_s=wait_s)).link
        if await context(request).store.get(NETWORKS, network.id) is None:
            # Deleted meanwhile, perhaps before it had this link.
            await _release(request, region, network, wait_s=wait_s)
        elif link.status == "FAILED":
            raise NetworkFailed(link.status_detail)

    await _each(request, region, make)
    return web.Response(status=204)


async def terminate(request: web.Request) -> web.Response:
    """POST terminate: 204; a network that others use stays with them."""
    region, wait_s = await _region(request), min(read_preference(request).wait_s, _LONGEST_S)

    async def release(network: Stored) -> None:
        await _release(request, region, network, wait_s=wait_s)

    await _each(request, region, release)
    return web.Response(status=204)


async def _release(request: web.Request, region: CloudRegion, network: Stored, *, wait_s: float) -> None:
    """Give back the link that ncm holds for a network, if it holds one."""
    link = await _applied(request, region, network)
    if link is not None:
        with suppress(NotFound):  # another request has given it back
            await services(request).links.release(link.id, _REFERENCE, wait_s=wait_s)


def _with_numbers(spec: JsonObject) -> JsonObject:
    """Return a spec whose VLAN id is a number: with ncm it is a text."""
    vlan = spec.get("vlan")
    if not isinstance(vlan, dict):
        return spec
    given = vlan.get("vlanID")
    if not isinstance(given, str) or not given.isascii() or not given.isdigit() or len(given) > _LONGEST_VLAN:
        return spec
    return {**spec, "vlan": {**vlan, "vlanID": int(given)}}


class NetworkFailed(VnfmError, code="network-failed", title="Network failed", status=500):
    """The region could not make a network."""


async def _each(request: web.Request, region: CloudRegion, work: Callable[[Stored], Awaitable[None]]) -> None:
    """Do the work for each network of a cluster. Raises the first error, with the name of its network, after all were tried."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def alone(network: Stored) -> VnfmError | None:
        async with gate:
            try:
                await work(network)
            except VnfmError as error:
                return _named(error, network.body["shown"]["metadata"]["name"])
        return None

    found = [each async for each in _stored(request, region)]
    for error in await asyncio.gather(*map(alone, found)):
        if error is not None:
            raise error


def _named(error: VnfmError, name: str) -> VnfmError:
    """Return an error of the same status that names the network."""
    if isinstance(error, Unprocessable):
        first, *more = [(f"{name}/{place}", reason) for place, reason in error.places]
        return Unprocessable(*first, *more)
    error.args = (f"network {name}: {error}", *error.args[1:])
    return error


async def _check_not_applied(request: web.Request, region: CloudRegion, network: Stored) -> None:
    if await _applied(request, region, network) is not None:
        raise InUse("the network is applied: terminate the networks of the cluster first")


async def _applied(request: web.Request, region: CloudRegion, network: Stored) -> VirtualLink | None:
    """Return the link that ncm holds for a network; None if it holds none."""
    filters = {"cloud_region_id": region.id, "name": network.body["shown"]["metadata"]["name"]}
    found = await services(request).links.find(filters, limit=1)
    return next((each for each in found.items if _REFERENCE in each.references), None)


async def _stored(request: web.Request, region: CloudRegion) -> AsyncIterator[Stored]:
    after: tuple[str, str] | None = None
    while batch := await context(request).store.find(
        NETWORKS, Query(by(region=region.vim_id), after=after, limit=_PAGE)
    ):
        for each in batch:
            yield each
        after = (batch[-1].id, batch[-1].id)


async def _network(request: web.Request, region: CloudRegion) -> Stored:
    name = request.match_info["name"]
    found = await context(request).store.get(NETWORKS, _id(region, name))
    if found is None or found.body["kind"] != _kind(request):
        raise NotFound(f"network {name} does not exist")
    return found


async def _read(request: web.Request, region: CloudRegion) -> Any:
    """Return the network of a body. Raises EmptyBody; Unprocessable, also for one that could never be a link."""
    body = await read_plain(request)
    spec = body.get("spec")
    if not isinstance(spec, dict) or spec.get("cniType") != "ovn4nfv":
        raise Unprocessable("spec/cniType", "ovn4nfv expected")
    network = parsed(Network, body).model_dump(mode="json", by_alias=True, exclude_none=True)
    _wanted(region, _kind(request), network)
    return network


def _wanted(region: CloudRegion, kind: str, network: Any) -> LinkRequest:
    """Return the link that a network is once it is applied. Raises Unprocessable."""
    asked = {
        "cloud_region_id": region.id,
        "name": network["metadata"]["name"],
        "type": _TYPES[kind],
        "metadata": network["metadata"],
        "spec": _with_numbers(network["spec"]),
        "reference": _REFERENCE,
    }
    return parsed(LinkRequest, asked)


async def _region(request: web.Request) -> CloudRegion:
    return await services(request).regions.get(request.match_info["provider"], request.match_info["cluster"])


def _kind(request: web.Request) -> str:
    resource = request.match_info.route.resource
    assert resource is not None
    return "provider-networks" if "/provider-networks" in resource.canonical else "networks"


def _id(region: CloudRegion, name: str) -> str:
    # By the id of its VIM: a region that is registered again has none of the networks of the one that was deleted.
    return derived_id("onap-network", region.vim_id, name)


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag = "Networks"
    wrong, taken = {**NO_BODY, **WRONG}, {409: "The cluster has a network of this name already"}
    applied = {409: "It is applied"}
    made, shown = ({status: Answer("The network", ShownNetwork)} for status in (201, 200))
    for kind in _TYPES:
        many, one = f"{_CLUSTER}/{kind}", f"{_CLUSTER}/{kind}/{{name}}"
        what = kind.removesuffix("s").replace("-", " ")
        yield Route(tag, "POST", many, create, f"Make a {what}", made, Network, refusals={**wrong, **taken})
        yield Route(tag, "GET", many, list_all, f"List {kind}", listed(ShownNetwork, "Those of the cluster"))
        yield Route(tag, "GET", one, show, f"Show a {what}", shown)
        yield Route(tag, "PUT", one, replace, f"Change a {what}", made, Network, refusals={**wrong, **applied})
        yield Route(tag, "DELETE", one, delete, f"Delete a {what}", GONE, refusals=applied)
    done = {204: Answer("All are tried, and none has failed")}
    refused = {409: "The region is suspended; or the owner's links conflict with a network"}
    failed = {422: "The region cannot have a network", 500: "The region could not make a network"}
    yield Route(
        tag, "POST", f"{_CLUSTER}/apply", apply, "Make all networks of a cluster", done, headers=(PREFER,),
        refusals={**refused, **failed},
    )  # fmt: skip
    yield Route(
        tag, "POST", f"{_CLUSTER}/terminate", terminate, "Give all networks of a cluster back", done,
        headers=(PREFER,), refusals=refused,
    )  # fmt: skip
