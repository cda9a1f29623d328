"""``/kubevnfm/v1/topology``: the networks of a VNF, or of all VNFs on a VIM, with the machines and pods on them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_store.query import Compare, Op, Query, Stored

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import LIMIT, read_limit
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.multicloud.services import services as multicloud
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.topology_graph import Graph, TopologyEdge, TopologyNode, add_links, add_vim, add_vnf
from kubevnfm_lcm_api.views.tree.facts import Away, Gone, Placed
from kubevnfm_lcm_api.views.tree.reading import known_of, placed_of, read_facts
from kubevnfm_lcm_api.views.tree.standing import seen_vim

_INSTANCE: Final = Parameter("instance", "The networks of this VNF instance")
_VIM: Final = Parameter("vim", "The networks of all VNFs on this VIM, by their ids")
_USUAL, _MOST = 500, 2000
_LIMIT: Final = Parameter(LIMIT, f"The largest number of nodes: 1 to {_MOST}, {_USUAL} unless given")
_BATCH: Final = 20
_MOST_VNFS: Final = 200
_UNREAD: Final = ("internal/request", "internal/parameters")
_PAGE: Final = 1000


class AwayPart(Shown):
    """A part of the graph that could not be read."""

    part: str
    """``pods``, ``virtual-links`` or ``vim``."""
    text: str
    """Why not."""


class TopologyView(Shown):
    """A graph of networks."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    nodes: list[TopologyNode]
    edges: list[TopologyEdge]
    truncated: bool
    """Whether there is more: nodes than ``limit``, or VNFs than 200."""
    away: list[AwayPart]


async def show(request: web.Request) -> web.Response:
    """GET topology?instance=|vim=: one of the two is required."""
    instance_id, vim_id = request.query.get(_INSTANCE.name), request.query.get(_VIM.name)
    if (instance_id is None) == (vim_id is None):
        raise InvalidInput(_INSTANCE.name, f"either {_INSTANCE.name} or {_VIM.name} expected")
    graph, away = Graph(read_limit(request, most=_MOST) or _USUAL), list[AwayPart]()
    sequence = views(request).sequence()
    if instance_id is not None:
        await _of_instance(request, instance_id, graph, away)
    elif vim_id is not None:
        await _of_vim(request, vim_id, graph, away)
    view = TopologyView(
        sequence=sequence, nodes=list(graph.nodes.values()), edges=graph.edges, truncated=graph.is_truncated, away=away
    )
    return web.json_response(text=view.model_dump_json(exclude_none=True))


async def _of_instance(request: web.Request, instance_id: str, graph: Graph, away: list[AwayPart]) -> None:
    facts, root = await read_facts(request, instance_id, networks_alone=True), api_root(request)
    placed = facts.placed
    if isinstance(placed, Away | Gone):
        away.append(AwayPart(part="pods", text=line(placed.reason)))
    for vim_id in facts.record.facts.vim_ids:
        if vim_id in facts.vims:
            known, seen = facts.vims[vim_id], seen_vim(facts.vims[vim_id], vim_id)
            if isinstance(known, Away):
                away.append(AwayPart(part="vim", text=line(known.reason)))
            add_vim(graph, vim_id, seen, root)
    first = next(iter(facts.record.facts.vim_ids), None)
    for link_id, link in facts.links.items():
        if isinstance(link, VirtualLink):
            add_links(graph, [link], first, root)
        else:
            away.append(AwayPart(part="virtual-links", text=line(f"{link_id}: {link.reason}")))
    # After the links, whose state it does not know. In a thread: a VNF may have thousands of pods.
    pods = placed.resources if isinstance(placed, Placed) else ()
    await asyncio.to_thread(add_vnf, graph, facts.record, pods, root, facts.now)
    if isinstance(placed, Placed) and placed.are_more:
        graph.is_truncated = True


async def _of_vim(request: web.Request, vim_id: str, graph: Graph, away: list[AwayPart]) -> None:
    root, clients = api_root(request), multicloud(request)
    known = await known_of("vim-registry", views(request).vims.get(vim_id))
    if isinstance(known, Gone):
        raise NotFound(known.reason)
    if isinstance(known, Away):
        away.append(AwayPart(part="vim", text=line(known.reason)))
    seen = seen_vim(known, vim_id)
    add_vim(graph, vim_id, seen, root)
    pods = dict[str, list[InventoryResource]]()
    # One that cannot be asked may be a cluster.
    if seen.type in {None, "kubernetes"}:
        links, placed = await asyncio.gather(
            known_of("infra-k8s", clients.links.find({"vim_id": vim_id}, limit=_PAGE)),
            known_of("infra-k8s", placed_of(clients.inventory, {"vim_id": vim_id})),
        )
        if isinstance(links, Away | Gone):
            away.append(AwayPart(part="virtual-links", text=line(links.reason)))
        else:
            add_links(graph, links.items, vim_id, root)
            graph.is_truncated |= links.next_after is not None
        if isinstance(placed, Away | Gone):
            away.append(AwayPart(part="pods", text=line(placed.reason)))
        else:
            for each in placed.resources:
                pods.setdefault(each.vnf_id, []).append(each)
            graph.is_truncated |= placed.are_more
    await _add_vnfs(request, vim_id, graph, pods)


async def _add_vnfs(request: web.Request, vim_id: str, graph: Graph, pods: dict[str, list[InventoryResource]]) -> None:
    after: tuple[None, str] | None = None
    for _ in range(_MOST_VNFS // _BATCH):
        query = Query(Compare("internal/vimIds", Op.EQ, [vim_id]), after=after, limit=_BATCH, exclude=_UNREAD)
        found = await context(request).store.find(instances.COLLECTION, query)
        # In a thread: a VNF may have thousands of objects.
        await asyncio.to_thread(_add_batch, graph, found, pods, api_root(request), context(request).clock.now())
        if len(found) < _BATCH or graph.is_truncated:
            return
        after = (None, found[-1].id)
    graph.is_truncated = True


def _add_batch(
    graph: Graph, found: Sequence[Stored], pods: Mapping[str, Sequence[InventoryResource]], root: str, now: datetime
) -> None:
    for each in found:
        record = InstanceRecord.from_document(each.body)
        add_vnf(graph, record, pods.get(record.vnf.id, ()), root, now)


def routes() -> list[Route]:
    """Return the route of the topology."""
    shown = {200: Answer("The graph", TopologyView)}
    summary = "Show networks with the machines and pods on them"
    return [Route("Views", "GET", f"{PREFIX}/topology", show, summary, shown, query=(_INSTANCE, _VIM, _LIMIT))]
