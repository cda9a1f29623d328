"""Reads the autoscalers of a set of objects and of a cluster, and where a kind has its number of replicas (MC-114)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.autoscalers import (
    REPLICAS,
    Autoscaler,
    Autoscalers,
    Identity,
    autoscaler_of,
    is_autoscaler,
    target_of,
)
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, Wanted, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster

_HORIZONTAL: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")
_HORIZONTAL_BEFORE_1_23: Final = ("autoscaling/v1", "HorizontalPodAutoscaler")
_SCALED_OBJECT: Final = ("keda.sh/v1alpha1", "ScaledObject")
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


async def autoscalers_of(cluster: Cluster, namespaces: Iterable[str], objects: Sequence[Wanted] = ()) -> Autoscalers:
    """Return the autoscalers in these namespaces, with those of a set as the set has them."""
    wanted = {each.key.identity for each in objects}
    found = [(each.key, each.body) for each in objects if is_autoscaler(each.key)]
    unread: set[str] = set()
    # Those of a cluster-scoped object do not exist.
    for namespace in sorted(filter(None, namespaces)):
        try:
            there = await _in_cluster(cluster, namespace)
        except Forbidden:
            unread.add(namespace)
            continue
        found += [(key, body) for key, body in there if key.identity not in wanted]
    by_target: dict[Identity, Autoscaler] = {}
    for key, body in found:
        target = target_of(key, body)
        if target is not None:
            by_target.setdefault(target, autoscaler_of(key, body))
    return Autoscalers(by_target, frozenset(unread))


async def _in_cluster(cluster: Cluster, namespace: str) -> Sequence[tuple[ObjectKey, Body]]:
    """Return the autoscalers of a namespace; those that KEDA makes for its own are left out, unless its own may not be read.

    Raises Forbidden.
    """
    horizontal = await cluster.resource(*_HORIZONTAL) or await cluster.resource(*_HORIZONTAL_BEFORE_1_23)
    bodies = await cluster.list(horizontal, namespace=namespace) if horizontal is not None else ()
    made = [each for each in bodies if _is_made(each)]
    # A cluster without KEDA is not asked each time whether it has it by now.
    keda = await cluster.resource(*_SCALED_OBJECT) if made else cluster.known_resource(*_SCALED_OBJECT)
    try:
        scaled = await cluster.list(keda, namespace=namespace) if keda is not None else ()
    except Forbidden:
        # Those that KEDA has made for them have the same targets.
        keda, scaled = None, ()
    own = [each for each in bodies if keda is None or not _is_made(each)]
    return [
        (resource.key(body), body)
        for resource, listed in ((horizontal, own), (keda, scaled))
        if resource is not None
        for body in listed
    ]


def _is_made(autoscaler: Body) -> bool:
    owners = field_at(autoscaler, "metadata", "ownerReferences")
    return any(
        field_at(each, "controller") and field_at(each, "kind") == _SCALED_OBJECT[1]
        for each in (owners if isinstance(owners, list) else ())
    )


async def path_of_replicas(cluster: Cluster, resource: Resource, objects: Collection[Wanted] = ()) -> tuple[str, ...]:
    """Return where an object of the kind has its number of replicas; ``objects``: a set that may define the kind."""
    group, _, version = resource.api_version.rpartition("/")
    key = ObjectKey(_DEFINITION[0], _DEFINITION[1], "", f"{resource.plural}.{group}")
    if not resource.key({"metadata": {"name": ""}}).is_custom:
        return REPLICAS
    definition = next((each.body for each in objects if each.key.identity == key.identity), None)
    if definition is None:
        kind = await cluster.resource(*_DEFINITION)
        try:
            definition = await cluster.get(kind, key) if kind is not None else None
        except Forbidden:
            return REPLICAS
    versions = field_at(definition, "spec", "versions")
    for each in versions if isinstance(versions, list) else ():
        path = field_at(each, "subresources", "scale", "specReplicasPath")
        if field_at(each, "name") == version and isinstance(path, str) and path.startswith("."):
            return tuple(path[1:].split("."))
    return REPLICAS
