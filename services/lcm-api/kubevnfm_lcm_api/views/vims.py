"""``/kubevnfm/v1/vims``: VIMs with their state and its history, what they can do, how much is left there, and the VNFs on them."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from aiohttp import web
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_clients.vim_views import VimCapacity, VimNode, VimView
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Op

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ListPage, list_answer
from kubevnfm_lcm_api.views.services import views

_MANY: Final = f"{PREFIX}/vims"
_TYPE: Final = Parameter("type", "Of this type", values=("openstack", "kubernetes"))
_STATE: Final = Parameter("state", "In this state", values=("PENDING", "ACTIVE", "UNREACHABLE", "ERROR"))
_NAME: Final = Parameter("name", "Whose name begins so")
_OWNER: Final = Parameter("vnfInstanceId", "That this VNF instance has become")
_FILTERS: Final = (_TYPE, _STATE, _NAME, _OWNER)
_OF_OWNER: Final = {"type": "type", "state": "status", "name": "name", "vnfInstanceId": "owner"}
"""The filters of vim-registry."""
_MOST_COUNTED: Final = 1000
_AT_ONCE: Final = 10
_MOST_NODES: Final = 200
_SOON_DAYS: Final = 14


class VimQuotaShown(Shown):
    """A quota of an OpenStack project."""

    name: Literal["instances", "cores", "ram_mib", "volumes", "volume_gib"]
    used: int
    limit: int | None = None
    """Absent: there is none."""


class VimCapacityShown(Shown):
    """How much a VIM has, as it was read last."""

    asOf: str  # noqa: N815  # as it is on the wire
    nodes: int | None = None
    nodesReady: int | None = None  # noqa: N815  # as it is on the wire
    cpu: float | None = None
    """The cores that pods can have on all nodes."""
    memoryBytes: int | None = None  # noqa: N815  # as it is on the wire
    """The memory that pods can have on all nodes."""
    pods: int | None = None
    quotas: list[VimQuotaShown] | None = None
    """The quotas of the project, if the VIM is an OpenStack."""


class VimNodeShown(Shown):
    """A node of a cluster."""

    name: str
    ready: bool
    text: str | None = None
    """Why it is not ready."""
    since: str | None = None
    addresses: list[str]
    version: str | None = None
    """The version of its kubelet."""


class VimCredentialsEnd(Shown):
    """The end of the first part of a VIM's access data."""

    part: str
    """``bearer_token``, ``client_certificate`` or ``ssl_ca_cert``."""
    at: str
    daysLeft: int  # noqa: N815  # as it is on the wire


class VimSummary(Shown):
    """A VIM."""

    id: str
    name: str
    description: str | None = None
    type: Literal["openstack", "kubernetes"]
    isDefault: bool  # noqa: N815  # as it is on the wire
    state: Literal["PENDING", "ACTIVE", "UNREACHABLE", "ERROR"]
    since: str
    """Since when it is in this state."""
    health: Health
    text: str | None = None
    """Why the health is not ``ok``."""
    endpoint: str
    vnfInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    """The VNF that has built the cluster; absent: an operator has registered the VIM."""
    regionId: str | None = None  # noqa: N815  # as it is on the wire
    """The id of the cloud region that it is."""
    kubernetesVersion: str | None = None  # noqa: N815  # as it is on the wire
    features: list[str]
    """Those of a cloud region: ``multus``, ``kubevirt``, ``nfd`` and so on."""
    credentialsEnd: VimCredentialsEnd | None = None  # noqa: N815  # as it is on the wire
    """Absent: nothing says when they end."""
    lastCheck: str | None = None  # noqa: N815  # as it is on the wire
    """When it was called last."""
    lastCheckMs: float | None = None  # noqa: N815  # as it is on the wire
    lastError: str | None = None  # noqa: N815  # as it is on the wire
    """The last failure of such a call, although it may answer again."""
    lastErrorAt: str | None = None  # noqa: N815  # as it is on the wire
    capacity: VimCapacityShown | None = None
    """Absent: it was not read yet, or cannot be."""
    vnfCount: int  # noqa: N815  # as it is on the wire
    """The number of VNF instances with resources on it; at most 1,000 are counted."""
    createdAt: str  # noqa: N815  # as it is on the wire
    updatedAt: str  # noqa: N815  # as it is on the wire
    href: str


class VimsPage(ListPage):
    """A page of VIMs."""

    items: list[VimSummary]


class VimDetails(VimSummary):
    """A VIM with its nodes."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    places: list[str]
    """The regions of an OpenStack; the namespaces that a cluster had when it was registered."""
    missingPermissions: list[str]  # noqa: N815  # as it is on the wire
    """The permissions that the user of a cloud region lacks, and that some operations need."""
    capacityError: str | None = None  # noqa: N815  # as it is on the wire
    """Why the capacity could not be read the last time."""
    nodes: list[VimNodeShown] | None = None
    """The nodes of a cluster, those that are not ready first; at most 200. Absent: they could not be read."""


async def list_all(request: web.Request) -> web.Response:
    """GET vims: by name. No VIM is called: the capacity is the one that was read last."""
    asked = read_page(request, _FILTERS)
    sequence = views(request).sequence()
    filters = {_OF_OWNER[name]: value for name, value in asked.filters.items()}
    after = None if asked.after is None else (str(asked.after[0]), str(asked.after[1]))
    found, following = await views(request).vims.views(filters, limit=asked.limit, after=after)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def row(vim: VimView) -> VimSummary:
        async with gate:
            return VimSummary.model_validate(
                _facts(vim, await _vnfs_on(context(request).store, vim.id), api_root(request))
            )

    rows = await asyncio.gather(*map(row, found))
    shown = [each.model_dump(mode="json", exclude_none=True) for each in rows]
    return list_answer(request, asked, sequence, shown, following)


async def show(request: web.Request) -> web.Response:
    """GET vims/{id}: with its capacity and nodes, which are read from the VIM if what is known is older than a minute."""
    sequence = views(request).sequence()
    vim_id = request.match_info["id"]
    vim, count = await asyncio.gather(views(request).vims.view(vim_id), _vnfs_on(context(request).store, vim_id))
    nodes = None if vim.cluster_nodes is None else [_node(each) for each in vim.cluster_nodes]
    more = {
        "sequence": sequence,
        "places": list(vim.places),
        "missingPermissions": list(vim.missing_permissions),
        "capacityError": line(vim.capacity_error) if vim.capacity_error else None,
        "nodes": None if nodes is None else sorted(nodes, key=lambda node: (node.ready, node.name))[:_MOST_NODES],
    }
    details = VimDetails.model_validate({**_facts(vim, count, api_root(request)), **more})
    return web.json_response(details.model_dump(mode="json", exclude_none=True))


async def _vnfs_on(store: DocumentStore, vim_id: str) -> int:
    return await store.count(instances.COLLECTION, Compare("internal/vimIds", Op.EQ, [vim_id]), limit=_MOST_COUNTED)


def _facts(vim: VimView, vnf_count: int, root: str) -> dict[str, object]:
    health, text = _judged(vim)
    ends = vim.expires_at is not None and vim.expiring is not None and vim.days_left is not None
    return {
        "id": vim.id,
        "name": vim.name,
        "description": vim.description or None,
        "type": vim.type,
        "isDefault": vim.is_default,
        "state": vim.status,
        "since": vim.status_since,
        "health": health,
        "text": text,
        "endpoint": vim.endpoint,
        "vnfInstanceId": vim.owner,
        "regionId": vim.region_id,
        "kubernetesVersion": vim.kubernetes_version or None,
        "features": list(vim.features),
        "credentialsEnd": {"part": vim.expiring, "at": vim.expires_at, "daysLeft": vim.days_left} if ends else None,
        "lastCheck": vim.checked_at,
        "lastCheckMs": vim.check_ms,
        "lastError": line(vim.error) if vim.error else None,
        "lastErrorAt": vim.error_at,
        "capacity": None if vim.capacity is None else capacity_shown(vim.capacity),
        "vnfCount": vnf_count,
        "createdAt": vim.created_at,
        "updatedAt": vim.updated_at,
        "href": f"{root}{_MANY}/{vim.id}",
    }


def _judged(vim: VimView) -> tuple[Health, str | None]:
    if vim.status in {"UNREACHABLE", "ERROR"}:
        return "problem", line(vim.status_reason or f"the VIM is {vim.status}")
    if vim.days_left is not None and vim.days_left < _SOON_DAYS:
        return "problem", f"its {vim.expiring} ends in {vim.days_left} days, at {vim.expires_at}"
    if vim.status == "PENDING":
        return "progressing", "it is being registered"
    not_ready = 0 if vim.capacity is None else (vim.capacity.nodes or 0) - (vim.capacity.nodes_ready or 0)
    return ("problem", f"{not_ready} of its nodes are not ready") if not_ready else ("ok", None)


def capacity_shown(read: VimCapacity) -> VimCapacityShown:
    """Return a capacity as views show it."""
    quotas = [VimQuotaShown.model_validate(each.model_dump()) for each in read.quotas]
    return VimCapacityShown(
        asOf=read.as_of,
        nodes=read.nodes,
        nodesReady=read.nodes_ready,
        cpu=read.cpu,
        memoryBytes=read.memory_bytes,
        pods=read.pods,
        quotas=quotas or None,
    )


def _node(node: VimNode) -> VimNodeShown:
    return VimNodeShown(
        name=node.name,
        ready=node.ready,
        text=line(node.reason) if node.reason else None,
        since=node.since or None,
        addresses=list(node.addresses),
        version=node.version or None,
    )


def routes() -> list[Route]:
    """Return the routes of VIMs."""
    page, shown = {200: Answer("A page; Link names the next one", VimsPage)}, {200: Answer("The VIM", VimDetails)}
    return [
        Route("Views", "GET", _MANY, list_all, "List VIMs with their state", page, query=(*_FILTERS, *PARAMETERS)),
        Route("Views", "GET", f"{_MANY}/{{id}}", show, "Show a VIM with its state and capacity", shown),
    ]
