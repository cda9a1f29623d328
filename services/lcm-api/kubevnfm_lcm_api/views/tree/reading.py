"""Reads the facts of a tree: each source by itself, within a time limit, so that one that does not answer costs only its own part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.inventory import Inventory, InventoryResource
from kubevnfm_clients.ports import Vims
from kubevnfm_clients.vim_views import VimNode
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Op, Query, Stored

from kubevnfm_lcm_api.alarm_marks import external_marks
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.http.context import services as lifecycle
from kubevnfm_lcm_api.multicloud.services import services as multicloud
from kubevnfm_lcm_api.views.instance_rows import LARGE, with_operations
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.tree.facts import PLACED_KINDS, Away, Gone, Known, OnVim, Placed, TreeFacts
from kubevnfm_lcm_api.views.tree.under_way import as_under_way

T = TypeVar("T")

_LONGEST_S: Final = 5.0
"""The time limit for each source."""
_PAGE: Final = 1000
_MOST_PLACED: Final = 10_000
_MOST_ON_VIM: Final = 200
_AT_ONCE: Final = 10
_LARGE: Final = 500
"""Objects and pods from which on a document is read in a thread: it would delay other requests."""


async def read_facts(request: web.Request, instance_id: str, *, networks_alone: bool = False) -> TreeFacts:
    """Return the facts about an instance. Raises NotFound, StoreUnavailable.

    ``networks_alone``: its volumes, the nodes of its own cluster and the VNFs there are not asked for.
    """
    store = context(request).store
    stored = await lifecycle(request).instances.get(instance_id)
    record = await _record(stored)
    operation = None
    if record.internals.current_operation is not None:
        operation = await store.get(occurrences.COLLECTION, record.internals.current_operation)
    record, node_names = as_under_way(record, None if operation is None else operation.body)
    has_release = record.release is not None and record.release.release is not None
    clients = multicloud(request)
    links = {each.virtual_link_id for each in record.internals.networks}
    volumes = {each.persistent_volume_id for each in record.internals.volumes} if not networks_alone else set[str]()
    own = record.internals.cluster_vim_id if not networks_alone else None
    alarms = await external_marks(store, [instance_id])
    vims, placed, linked, claimed, nodes, on_vim = await asyncio.gather(
        _each("vim-registry", views(request).vims.get, _vims_of(record, is_claimed=operation is not None)),
        known_of("infra-k8s", _existing(clients.inventory, instance_id, has_release=has_release))
        if has_release or operation is not None
        else _nothing(),
        _each("infra-k8s", clients.links.get, links),
        _each("infra-k8s", clients.volumes.get, volumes),
        known_of("vim-registry", _nodes(views(request).vims, own)),
        _on_vim(store, own, instance_id, api_root(request)),
    )
    return TreeFacts(
        record=record,
        document=stored.body,
        operation=None if operation is None else operation.body,
        now=context(request).clock.now(),
        root=api_root(request),
        node_names=node_names,
        vims=vims,
        placed=placed,
        links=linked,
        volumes=claimed,
        nodes=nodes,
        alarm=alarms.get(instance_id),
        on_vim=on_vim,
    )


async def _record(stored: Stored) -> InstanceRecord:
    deployments = stored.body.get("internal", {}).get("deployments") or ()
    release = next((each.get("release") or {} for each in deployments if each.get("kind") == "release"), {})
    if len(release.get("objects", ())) + len(release.get("pods", ())) < _LARGE:
        return InstanceRecord.from_document(stored.body)
    return await asyncio.to_thread(InstanceRecord.from_document, stored.body)


def _vims_of(record: InstanceRecord, *, is_claimed: bool) -> set[str]:
    internals = record.internals
    own = {each for each in (internals.cluster_vim_id, internals.management_vim_id) if each is not None}
    if record.vnf.instantiation_state is not InstantiationState.INSTANTIATED and not is_claimed:
        return own
    return {*record.facts.vim_ids, *own}


async def _nothing() -> Placed:
    return Placed(())


async def _nodes(vims: Vims, vim_id: str | None) -> Known[Sequence[VimNode]]:
    if vim_id is None:
        return Away("it has no cluster of its own")
    seen = await vims.view(vim_id)
    if seen.cluster_nodes is None:
        return Away(seen.capacity_error or f"VIM {seen.name} is {seen.status}")
    return seen.cluster_nodes


async def _existing(inventory: Inventory, instance_id: str, *, has_release: bool) -> Placed:
    """Return what exists of a VNF: until its first operation has ended, the inventory alone knows its objects."""
    filters = {"vnf_id": instance_id}
    return await placed_of(inventory, filters) if has_release else await _all_of(inventory, filters)


async def placed_of(inventory: Inventory, filters: Mapping[str, str]) -> Placed:
    """Return the pods and virtual machines; the rest of the inventory is known from the releases."""
    parts = [await _all_of(inventory, {**filters, "kind": kind}) for kind in PLACED_KINDS]
    return Placed([each for part in parts for each in part.resources], are_more=any(part.are_more for part in parts))


async def _all_of(inventory: Inventory, filters: Mapping[str, str]) -> Placed:
    found: list[InventoryResource] = []
    after: str | None = None
    while len(found) < _MOST_PLACED:
        page = await inventory.find(filters, limit=_PAGE, after=after)
        found += page.items
        after = page.next_after
        if after is None:
            return Placed(found)
    return Placed(found, are_more=True)


async def _on_vim(store: DocumentStore, vim_id: str | None, instance_id: str, root: str) -> OnVim:
    if vim_id is None:
        return OnVim(())
    wanted = Compare("internal/vimIds", Op.EQ, [vim_id])
    found = await store.find(instances.COLLECTION, Query(wanted, limit=_MOST_ON_VIM + 1, exclude=LARGE))
    others = [each for each in found[:_MOST_ON_VIM] if each.id != instance_id]
    return OnVim(await with_operations(store, others, root), are_more=len(found) > _MOST_ON_VIM)


async def _each(owner: str, read: Callable[[str], Awaitable[T]], ids: Iterable[str]) -> dict[str, Known[T]]:
    """Read what has these ids, a few at a time."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(wanted: str) -> Known[T]:
        async with gate:
            return await read(wanted)

    listed = sorted(ids)
    found = await asyncio.gather(*(known_of(owner, one(each)) for each in listed))
    return dict(zip(listed, found, strict=True))


async def known_of(owner: str, reading: Awaitable[Known[T]]) -> Known[T]:
    """Return what a service says, or why it is not known."""
    try:
        async with asyncio.timeout(_LONGEST_S):
            return await reading
    except TimeoutError:
        return Away(f"{owner} did not answer within {_LONGEST_S:g} s")
    except NotFound as error:
        return Gone(str(error))
    except VnfmError as error:
        return Away(str(error))
