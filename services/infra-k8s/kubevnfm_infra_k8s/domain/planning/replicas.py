"""Leaves the number of replicas out of the objects whose number an autoscaler chooses (multicloud.md MC-114)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kubevnfm_csar.field_paths import without_fields

from kubevnfm_infra_k8s.domain.autoscalers import Autoscalers
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Wanted
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.autoscaling import autoscalers_of, path_of_replicas
from kubevnfm_infra_k8s.domain.reading.existing import readable_metadata


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
        body = each.body if await _needs_number(cluster, autoscalers, each) else without_fields(each.body, [path])
        return replace(each, body=body, autoscaled_at=path)

    after = await each_of(scalable, given)
    changed = {each.key: each for each in after if each.autoscaled_at}
    return [changed.get(each.key, each) for each in objects] if changed else objects


async def _is_autoscaled(cluster: Cluster, autoscalers: Autoscalers, wanted: Wanted) -> bool:
    key = wanted.key
    there = await readable_metadata(cluster, wanted.resource, key) if key.namespace in autoscalers.unread else None
    return autoscalers.owner_of(key, wanted.body, there) is not None


async def _needs_number(cluster: Cluster, autoscalers: Autoscalers, wanted: Wanted) -> bool:
    """Return whether an object is created that has no number unless we give one: the API server then serves no Scale of it.

    Custom kinds rarely have a default. The webhooks of Cluster API choose one for the objects with its annotations.
    """
    key = wanted.key
    if not key.is_custom or key.identity not in autoscalers.by_target:
        return False
    try:
        return await cluster.get_metadata(wanted.resource, key) is None
    except Forbidden:
        return False
