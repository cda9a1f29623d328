"""Lists of VNFs (multicloud.md MC-007): by id, and by filters that indexes lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType
from kubevnfm_store.matching import fits
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.lifecycle.core import cloud_place, drift
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf, vnf_of

_CURRENT: Final = "internal/currentOperation"
_PATHS: Final = {
    "namespace": cloud_place.NAMESPACE,
    "vnf_instance_name": "vnfInstanceName",
    "group_operation": cloud_place.GROUP,
}
_MOST_REGIONS: Final = 100
"""Owners whose region has a name that is given alone."""
_BATCH: Final = 500
_RUNNING: Final = (OperationState.STARTING, OperationState.PROCESSING, OperationState.ROLLING_BACK)
_LARGE: Final = ("internal/draft", "internal/steps", "operationParams", "resourceChanges")
_INSTANTIATED: Final = by(instantiationState=InstantiationState.INSTANTIATED.value)
_FREE: Final = Exists(_CURRENT, exists=False)
_OF_FREE: Final[Mapping[str, Filter]] = {
    "READY": AllOf([_INSTANTIATED, _FREE, Exists(drift.PATH, exists=False)]),
    "DEGRADED": AllOf([_INSTANTIATED, _FREE, Exists(drift.PATH)]),
    "FAILED": AllOf([by(instantiationState=InstantiationState.NOT_INSTANTIATED.value), _FREE]),
}
"""The VNFs without an operation that have a status."""
_OTHERS: Final = tuple(
    each.value for each in OperationType if each not in (OperationType.INSTANTIATE, OperationType.TERMINATE)
)
_OF_OPERATION: Final[Mapping[str, Sequence[tuple[Sequence[str], Sequence[OperationState]]]]] = {
    "CREATING": [(("INSTANTIATE",), _RUNNING[:2])],
    "UPDATING": [(_OTHERS, _RUNNING)],
    "DELETING": [(("TERMINATE",), _RUNNING), (("INSTANTIATE",), _RUNNING[2:])],
    "FAILED": [((*_OTHERS, "INSTANTIATE", "TERMINATE"), (OperationState.FAILED_TEMP,))],
}
"""The operations, and their states, that give the status to the VNF that they have claimed."""


async def find(
    store: DocumentStore, regions: CloudRegions, filters: Mapping[str, str], *, limit: int, after: str | None
) -> Page[Vnf]:
    """Return a page of VNFs by id."""
    wanted: list[Filter] = [Exists(cloud_place.REGION)]
    for name, path in _PATHS.items():
        if name in filters:
            # The second for a sparse index, which holds no other documents.
            wanted += [Compare(path, Op.EQ, [filters[name]]), Exists(path)]
    region = filters.get("cloud_region_id")
    if region is not None:
        found = await regions.find({"cloud_region_id": region}, limit=_MOST_REGIONS)
        ids = [each.id for each in found.items] or [region]
        wanted.append(Compare(cloud_place.REGION, Op.EQ if len(ids) == 1 else Op.IN, ids))
    status = filters.get("status")
    if status is None:
        return await _page(store, await _instances(store, wanted, limit + 1, after), limit)
    parts = [claimed_by(store, wanted, kinds, limit + 1, after) for kinds in _OF_OPERATION.get(status, ())]
    if status in _OF_FREE:
        parts.append(_instances(store, [*wanted, _OF_FREE[status]], limit + 1, after))
    merged = {each.id: each for part in await asyncio.gather(*parts) for each in part}
    return await _page(store, [merged[key] for key in sorted(merged)][: limit + 1], limit)


async def named_by_onap(store: DocumentStore, name: str) -> str | None:
    """Return the id of the instance that has a name of ONAP; None if none has."""
    wanted = AllOf([Compare(cloud_place.ONAP_NAME, Op.EQ, [name]), Exists(cloud_place.ONAP_NAME)])
    found = await store.find(instances.COLLECTION, Query(wanted, limit=1))
    return found[0].id if found else None


async def of_onap(
    store: DocumentStore, packages: Collection[str] | None, *, limit: int, after: str | None
) -> Page[Vnf]:
    """Return a page of the VNFs that clients of ONAP have brought up, by id; ``packages``: None for any."""
    wanted: list[Filter] = [Exists(cloud_place.ONAP_NAME)]
    if packages is not None:
        wanted.append(Compare("vnfPkgId", Op.IN, list(packages)))
    return await _page(store, await _instances(store, wanted, limit + 1, after), limit)


async def _instances(store: DocumentStore, wanted: Sequence[Filter], most: int, after: str | None) -> Sequence[Stored]:
    behind = None if after is None else (after, after)
    return await store.find(instances.COLLECTION, Query(AllOf(wanted), after=behind, limit=most))


async def claimed_by(
    store: DocumentStore,
    wanted: Sequence[Filter],
    kinds: tuple[Sequence[str], Sequence[OperationState]],
    most: int,
    after: str | None,
) -> Sequence[Stored]:
    """Return VNFs that such operations have claimed: operations that run or wait are few, so they are read first."""
    operations, states = kinds
    asked: list[Filter] = [
        Compare("operationState", Op.IN, [each.value for each in states]),
        Compare("operation", Op.IN, operations),
        *([Compare("vnfInstanceId", Op.GT, [after])] if after is not None else []),
    ]
    found: list[Stored] = []
    behind: tuple[str, str] | None = None
    while len(found) < most:
        query = Query(AllOf(asked), sort=Sort("vnfInstanceId"), after=behind, limit=_BATCH, exclude=_LARGE)
        batch = await store.find(occurrences.COLLECTION, query)
        claimed = AllOf([*wanted, Compare(_CURRENT, Op.IN, [each.id for each in batch])])
        ids = sorted({str(each.body["vnfInstanceId"]) for each in batch})
        seen = {each.id: each for each in await store.get_many(instances.COLLECTION, ids)} if ids else {}
        found += [seen[each] for each in ids if each in seen and fits(claimed, seen[each].body)]
        if len(batch) < _BATCH:
            break
        behind = (str(batch[-1].body["vnfInstanceId"]), batch[-1].id)
    return found[:most]


async def _page(store: DocumentStore, found: Sequence[Stored], limit: int) -> Page[Vnf]:
    """Return a page with the operations that have claimed its VNFs; one more than the limit proves that there is a next one."""
    records = [(stored, InstanceRecord.from_document(stored.body)) for stored in found[:limit]]
    current = [each.internals.current_operation for _, each in records if each.internals.current_operation is not None]
    operations = {each.id: each for each in await store.get_many(occurrences.COLLECTION, current)} if current else {}
    items = [vnf_of(stored, each, operations.get(each.internals.current_operation or "")) for stored, each in records]
    return Page(items, items[-1].record.vnf.id if len(found) > limit else None)
