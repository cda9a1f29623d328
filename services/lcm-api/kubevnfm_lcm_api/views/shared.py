"""``/kubevnfm/v1/links``, ``volumes`` and ``regions``: what VNFs share, with its state and its users.

They are created, changed and deleted by ``/multicloud/v1``; ``href`` leads there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, get_args

from aiohttp import web
from kubevnfm_clients.multicloud.links import VNF_REFERENCE, VirtualLink
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events.links import LinkStatus
from kubevnfm_events.volumes import VolumePhase

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.multicloud.services import services
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ListPage, list_answer
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.shared_health import link_health, region_health, volume_health
from kubevnfm_lcm_api.views.tree.facts import Away, Gone
from kubevnfm_lcm_api.views.tree.reading import known_of
from kubevnfm_lcm_api.views.vims import VimCapacityShown, capacity_shown

T = TypeVar("T")

_LINKS, _VOLUMES, _REGIONS = (f"{PREFIX}/{each}" for each in ("links", "volumes", "regions"))
_REGION: Final = Parameter("regionId", "In this cloud region: its id, owner/region")
_NAME: Final = Parameter("name", "Of this name")
_LINK_FILTERS: Final = (
    _REGION, _NAME, Parameter("type", "Of this type"), Parameter("state", "In this state", values=get_args(LinkStatus)),
)  # fmt: skip
_VOLUME_FILTERS: Final = (_REGION, _NAME, Parameter("state", "In this phase", values=get_args(VolumePhase)))
_REGION_FILTERS: Final = (Parameter("state", "In this state", values=("ACTIVE", "UNREACHABLE", "ERROR")),)
_OF_OWNER: Final = {"regionId": "cloud_region_id", "state": "status"}
"""The filters of the owners, where they have other names."""
_IN_LIST: Final = 10
"""The users that a row of a list names."""
_IN_VIEW: Final = 500
_NAMED: Final = 50
"""The VNF instances whose names are read: whole documents."""


class SharedUser(Shown):
    """A user of a link or a volume."""

    reference: str
    """The name of the user; ``vnf:`` and the id, if it is a VNF instance."""
    vnfInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    name: str | None = None
    """The name of the VNF instance: in the view of one thing, of its first 50."""


class SuspensionShown(Shown):
    """The suspension of a region, for maintenance."""

    by: str
    since: str
    reason: str


class _SharedThing(Shown):
    id: str
    name: str
    health: Health
    text: str | None = None
    """Why the health is not ``ok``."""
    suspended: SuspensionShown | None = None
    createdAt: str  # noqa: N815  # as it is on the wire
    updatedAt: str  # noqa: N815  # as it is on the wire
    href: str
    """Where it is changed and deleted."""


class LinkSummary(_SharedThing):
    """A virtual link."""

    type: str
    regionId: str  # noqa: N815  # as it is on the wire
    state: Literal["PENDING", "READY", "DEGRADED", "FAILED", "REMOVING"]
    useCount: int  # noqa: N815  # as it is on the wire
    users: list[SharedUser]
    """At most 10 in a list, and 500 in the view of one link."""
    namespaces: list[str]
    isAdopted: bool  # noqa: N815  # as it is on the wire
    """Whether its objects existed before it: they are not changed and not deleted."""


class LinkObject(Shown):
    """An object of a link in its region."""

    kind: str
    name: str
    namespace: str | None = None
    isConfirmed: bool  # noqa: N815  # as it is on the wire
    """Whether the API server has confirmed it."""


class LinkDetails(LinkSummary):
    """A virtual link with its objects."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    spec: dict[str, Any]
    objects: list[LinkObject]


class LinksPage(ListPage):
    """A page of virtual links."""

    items: list[LinkSummary]


class VolumeSummary(_SharedThing):
    """A persistent volume."""

    regionId: str  # noqa: N815  # as it is on the wire
    state: Literal["Pending", "Reserved", "Bound", "Released", "Failed"]
    size: str
    accessModes: list[str]  # noqa: N815  # as it is on the wire
    storageClass: str | None = None  # noqa: N815  # as it is on the wire
    reclaim: str
    useCount: int  # noqa: N815  # as it is on the wire
    users: list[SharedUser]
    """At most 10 in a list, and 500 in the view of one volume."""
    persistentVolume: str | None = None  # noqa: N815  # as it is on the wire
    """The name of the PersistentVolume; absent until there is one."""
    claim: str | None = None
    """The claim of the first VNF that uses it, with its namespace."""


class VolumeDetails(VolumeSummary):
    """A persistent volume."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""


class VolumesPage(ListPage):
    """A page of persistent volumes."""

    items: list[VolumeSummary]


class RegionSummary(_SharedThing):
    """A cloud region."""

    vimId: str  # noqa: N815  # as it is on the wire
    owner: str
    state: Literal["PENDING", "ACTIVE", "UNREACHABLE", "ERROR"]
    endpoint: str
    serverVersion: str  # noqa: N815  # as it is on the wire
    credentialsEndAt: str | None = None  # noqa: N815  # as it is on the wire
    """When the first part of the access data expires; absent: nothing says when."""
    capabilities: list[str]
    missingPermissions: list[str]  # noqa: N815  # as it is on the wire
    """The permissions that some resources need, and the user of the kubeconfig lacks."""


class RegionDetails(RegionSummary):
    """A cloud region with its capacity."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    labels: dict[str, str]
    protectedNamespaces: list[str]  # noqa: N815  # as it is on the wire
    capacity: VimCapacityShown | None = None
    """Absent: it was not read yet, or cannot be."""
    capacityError: str | None = None  # noqa: N815  # as it is on the wire
    """Why the capacity could not be read the last time."""


class RegionsPage(ListPage):
    """A page of cloud regions."""

    items: list[RegionSummary]


# --- virtual links ----------------------------------------------------------------------------------------------------


async def list_links(request: web.Request) -> web.Response:
    """GET links: by id."""

    def row(each: VirtualLink, root: str) -> Shown:
        return LinkSummary(**_link(each, _users(each.references, _IN_LIST), root))

    return await _listed(request, _LINK_FILTERS, services(request).links.find, row)


async def show_link(request: web.Request) -> web.Response:
    """GET links/{id}."""
    sequence = views(request).sequence()
    link = await services(request).links.get(request.match_info["id"])
    users = await _named(request, _users(link.references, _IN_VIEW))
    objects = [
        LinkObject(kind=each.kind, name=each.name, namespace=each.namespace or None, isConfirmed=bool(each.uid))
        for each in link.resources
    ]
    facts = {**_link(link, users, api_root(request)), "sequence": sequence, "spec": link.spec, "objects": objects}
    return web.json_response(_dumped(LinkDetails(**facts)))


def _link(link: VirtualLink, users: Sequence[SharedUser], root: str) -> dict[str, Any]:
    health, text = link_health(link)
    return {
        **_common(link, health, text),
        "name": link.name,
        "type": link.type,
        "regionId": link.cloud_region_id,
        "state": link.status,
        "useCount": link.use_count,
        "users": users,
        "namespaces": list(link.namespaces),
        "isAdopted": link.adopted,
        "href": f"{root}/multicloud/v1/virtual-links/{link.id}",
    }


# --- persistent volumes -----------------------------------------------------------------------------------------------


async def list_volumes(request: web.Request) -> web.Response:
    """GET volumes: by id."""

    def row(each: PersistentVolume, root: str) -> Shown:
        return VolumeSummary(**_volume(each, _vnfs(each.in_use_by, _IN_LIST), root))

    return await _listed(request, _VOLUME_FILTERS, services(request).volumes.find, row)


async def show_volume(request: web.Request) -> web.Response:
    """GET volumes/{id}: the phase is that of the region at this moment."""
    sequence = views(request).sequence()
    volume = await services(request).volumes.get(request.match_info["id"])
    users = await _named(request, _vnfs(volume.in_use_by, _IN_VIEW))
    return web.json_response(
        _dumped(VolumeDetails(**{**_volume(volume, users, api_root(request)), "sequence": sequence}))
    )


def _volume(volume: PersistentVolume, users: Sequence[SharedUser], root: str) -> dict[str, Any]:
    health, text = volume_health(volume)
    return {
        **_common(volume, health, text),
        "name": volume.name,
        "regionId": volume.cloud_region_id,
        "state": volume.phase,
        "size": volume.size,
        "accessModes": list(volume.access_modes),
        "storageClass": volume.storage_class,
        "reclaim": str(volume.reclaim),
        "useCount": len(volume.in_use_by),
        "users": users,
        "persistentVolume": volume.pv,
        "claim": None if volume.claim is None else f"{volume.claim.namespace}/{volume.claim.name}",
        "href": f"{root}/multicloud/v1/persistent-volumes/{volume.id}",
    }


# --- cloud regions ----------------------------------------------------------------------------------------------------


async def list_regions(request: web.Request) -> web.Response:
    """GET regions: by id."""

    def row(each: CloudRegion, root: str) -> Shown:
        return RegionSummary(**_region(each, root))

    return await _listed(request, _REGION_FILTERS, services(request).regions.find, row)


async def show_region(request: web.Request) -> web.Response:
    """GET regions/{owner}/{region}: with the capacity of its VIM."""
    sequence = views(request).sequence()
    region = await services(request).regions.get(request.match_info["owner"], request.match_info["region"])
    seen = await known_of("vim-registry", views(request).vims.view(region.vim_id))
    capacity, error = None, None
    if isinstance(seen, Away | Gone):
        error = line(seen.reason)
    else:
        capacity = None if seen.capacity is None else capacity_shown(seen.capacity)
        error = line(seen.capacity_error) if seen.capacity_error else None
    facts = {
        **_region(region, api_root(request)),
        "sequence": sequence,
        "labels": dict(region.labels),
        "protectedNamespaces": list(region.protected_namespaces),
        "capacity": capacity,
        "capacityError": error,
    }
    return web.json_response(_dumped(RegionDetails(**facts)))


def _region(region: CloudRegion, root: str) -> dict[str, Any]:
    health, text = region_health(region)
    return {
        **_common(region, health, text),
        "name": region.cloud_region,
        "owner": region.cloud_owner,
        "vimId": region.vim_id,
        "state": region.status,
        "endpoint": region.endpoint,
        "serverVersion": region.server_version,
        "credentialsEndAt": region.not_after,
        "capabilities": list(region.capabilities),
        "missingPermissions": list(region.missing_permissions),
        "href": f"{root}/multicloud/v1/cloud-regions/{region.id}",
    }


# --- what they have in common -----------------------------------------------------------------------------------------


async def _listed(
    request: web.Request,
    allowed: Sequence[Parameter],
    find: Callable[..., Awaitable[Page[T]]],
    row: Callable[[T, str], Shown],
) -> web.Response:
    """Return a page of what their owner finds; ``row`` makes one of each, with the root of addresses."""
    asked, sequence = read_page(request, allowed), views(request).sequence()
    found = await find(_filters(asked.filters), limit=asked.limit, after=asked.after)
    root = api_root(request)
    return list_answer(request, asked, sequence, [_dumped(row(each, root)) for each in found.items], found.next_after)


def _common(thing: VirtualLink | PersistentVolume | CloudRegion, health: Health, text: str | None) -> dict[str, Any]:
    return {
        "id": thing.id,
        "health": health,
        "text": text,
        "suspended": _suspension(thing.suspended),
        "createdAt": thing.created_at,
        "updatedAt": thing.updated_at,
    }


def _suspension(found: Suspension | None) -> SuspensionShown | None:
    return None if found is None else SuspensionShown(by=found.by, since=found.since, reason=line(found.reason))


def _filters(given: Mapping[str, str]) -> dict[str, str]:
    return {_OF_OWNER.get(name, name): value for name, value in given.items()}


def _users(references: Sequence[str], most: int) -> list[SharedUser]:
    return [
        SharedUser(
            reference=each, vnfInstanceId=each.removeprefix(VNF_REFERENCE) if each.startswith(VNF_REFERENCE) else None
        )
        for each in references[:most]
    ]


def _vnfs(ids: Iterable[str], most: int) -> list[SharedUser]:
    return _users([f"{VNF_REFERENCE}{each}" for each in ids], most)


async def _named(request: web.Request, users: Sequence[SharedUser]) -> list[SharedUser]:
    """Return the users with the names of those that are VNF instances."""
    ids = [each.vnfInstanceId for each in users if each.vnfInstanceId is not None][:_NAMED]
    found = await context(request).store.get_many(instances.COLLECTION, ids) if ids else []
    names = {each.id: each.body.get("vnfInstanceName") for each in found}
    return [each.model_copy(update={"name": names.get(each.vnfInstanceId or "")}) for each in users]


def _dumped(shown: Shown) -> dict[str, Any]:
    return shown.model_dump(mode="json", exclude_none=True)


def routes() -> list[Route]:
    """Return the routes of what VNFs share."""
    tag, page = "Views", "A page; Link names the next one"
    links, link = {200: Answer(page, LinksPage)}, {200: Answer("The link with its users", LinkDetails)}
    volumes, volume = {200: Answer(page, VolumesPage)}, {200: Answer("The volume with its users", VolumeDetails)}
    regions, region = {200: Answer(page, RegionsPage)}, {200: Answer("The region", RegionDetails)}
    of_links, of_volumes = (*_LINK_FILTERS, *PARAMETERS), (*_VOLUME_FILTERS, *PARAMETERS)
    of_regions, one = (*_REGION_FILTERS, *PARAMETERS), f"{_REGIONS}/{{owner}}/{{region}}"
    return [
        Route(tag, "GET", _LINKS, list_links, "List virtual links with their users", links, query=of_links),
        Route(tag, "GET", f"{_LINKS}/{{id}}", show_link, "Show a virtual link with its users", link),
        Route(
            tag, "GET", _VOLUMES, list_volumes, "List persistent volumes with their users", volumes, query=of_volumes
        ),
        Route(tag, "GET", f"{_VOLUMES}/{{id}}", show_volume, "Show a persistent volume with its users", volume),
        Route(tag, "GET", _REGIONS, list_regions, "List cloud regions with their state", regions, query=of_regions),
        Route(tag, "GET", one, show_region, "Show a cloud region with its capacity", region),
    ]
