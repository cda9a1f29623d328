"""Finds which objects of a set exist: many of one kind by one list of metadata, others one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster

Kind = tuple[str, str]
"""apiVersion and kind."""
Place = tuple[Resource, ObjectKey]
MANY: Final = 8
"""From so many objects of a kind in a namespace on, a list costs less than a request for each."""
_MOST: Final = 2000
"""The most objects of a kind in a namespace that are listed, those of others included; about 2 MB of metadata."""


async def find_all(
    cluster: Cluster, wanted: Sequence[Place], get: Callable[[Resource, ObjectKey], Awaitable[Body | None]]
) -> Mapping[ObjectKey, Body]:
    """Return the objects that exist, some of them only with their metadata; ``get`` reads a single one.

    Cluster-scoped objects and those that describe a workload cluster are complete.
    """
    groups: dict[tuple[Resource, str], list[ObjectKey]] = {}
    for resource, key in wanted:
        if resource.namespaced and key.namespace and not is_cluster(key):
            groups.setdefault((resource, key.namespace), []).append(key)
    found: dict[ObjectKey, Body] = {}
    listed: set[ObjectKey] = set()
    many = [(place, keys) for place, keys in groups.items() if len(keys) >= MANY]
    lists = await each_of(many, lambda each: _listed(cluster, *each[0]))
    for (_, keys), bodies in zip(many, lists, strict=True):
        if bodies is not None:
            listed.update(keys)
            found |= {key: bodies[key.name] for key in keys if key.name in bodies}
    single = [(resource, key) for resource, key in wanted if key not in listed]
    read = await each_of(single, lambda each: get(*each))
    return found | {key: body for (_, key), body in zip(single, read, strict=True) if body is not None}


async def served_kinds(cluster: Cluster, kinds: Iterable[Kind]) -> Mapping[Kind, Resource | None]:
    """Return how the cluster serves these kinds; None: it does not."""
    return {kind: await cluster.resource(*kind) for kind in sorted(set(kinds))}


async def find(cluster: Cluster, key: ObjectKey) -> Body | None:
    """Return the object; None also if the cluster does not serve its kind."""
    resource = await cluster.resource(*key.api_kind)
    return await cluster.get(resource, key) if resource is not None else None


async def readable(cluster: Cluster, resource: Resource, key: ObjectKey) -> Body | None:
    """Return the object; None also if the credentials do not permit to read it: the API server decides when it is applied."""
    try:
        return await cluster.get(resource, key)
    except Forbidden:
        return None


async def readable_metadata(cluster: Cluster, resource: Resource, key: ObjectKey) -> Body | None:
    """Return the metadata of the object; None also if the credentials do not permit to read it."""
    try:
        return await cluster.get_metadata(resource, key)
    except Forbidden:
        return None


async def _listed(cluster: Cluster, resource: Resource, namespace: str) -> Mapping[str, Body] | None:
    """Return the objects of a kind by name; None if there are too many, or the credentials do not permit a list."""
    try:
        bodies = await cluster.list_metadata(resource, namespace=namespace, most=_MOST)
    except ObjectRefused:
        return None
    return None if bodies is None else {name_of(body): body for body in bodies}
