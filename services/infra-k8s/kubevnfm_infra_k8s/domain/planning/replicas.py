"""Leaves the number of replicas out of the objects whose number an autoscaler chooses (multicloud.md MC-114)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kubevnfm_infra_k8s.domain.autoscalers import Autoscalers
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.autoscaling import autoscalers_of, path_of_replicas


async def without_autoscaled_replicas(cluster: Cluster, objects: Sequence[Wanted]) -> Sequence[Wanted]:
    """Return the objects of a set, those that an autoscaler of the set or of the cluster scales without their number."""
    scalable = [each for each in objects if each.resource.is_scalable and each.resource.is_persistent]
    if not scalable:
        return objects
    autoscalers = await autoscalers_of(cluster, {each.key.namespace for each in scalable}, objects)

    async def given(each: Wanted) -> Wanted:
        if not await _is_autoscaled(cluster, autoscalers, each):
            return each
        path = await path_of_replicas(cluster, each.resource, objects)
        return replace(each, body=_without(each.body, path), autoscaled_at=path)

    after = await each_of(scalable, given)
    changed = {each.key: each for each in after if each.autoscaled_at}
    return [changed.get(each.key, each) for each in objects] if changed else objects


async def _is_autoscaled(cluster: Cluster, autoscalers: Autoscalers, wanted: Wanted) -> bool:
    key = wanted.key
    there = await _metadata(cluster, wanted.resource, key) if key.namespace in autoscalers.unread else None
    return autoscalers.owner_of(key, wanted.body, there) is not None


async def _metadata(cluster: Cluster, resource: Resource, key: ObjectKey) -> Body | None:
    try:
        return await cluster.get_metadata(resource, key)
    except Forbidden:
        return None


def _without(body: Body, path: Sequence[str]) -> Body:
    """Return the object without the field at the path."""
    name, *below = path
    if name not in body:
        return body
    if not below:
        return {each: value for each, value in body.items() if each != name}
    inner: Any = body[name]
    return {**body, name: _without(inner, below)} if isinstance(inner, dict) else body
