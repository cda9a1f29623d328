"""The Clusters that a management cluster has, and what Cluster API has made for them (capi.md CR-043, CR-109)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.objects import LeftObject

from kubevnfm_infra_k8s.domain.capi.contract import CORE, GROUPS, NAME_LABEL
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.object_facts import left_object
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster


def cluster_key(workload: WorkloadCluster) -> ObjectKey:
    """Return the key of a workload cluster's Cluster."""
    return ObjectKey(workload.api_version, "Cluster", workload.namespace, workload.name)


async def clusters_in(cluster: Cluster, namespace: str = "") -> Mapping[ObjectKey, str]:
    """Return the Clusters of a namespace, or of all, with their uids; none if Cluster API is not there."""
    kinds = [each for each in await cluster.kinds() if _is_clusters(each)]
    listed = await each_of(kinds, lambda kind: cluster.list(kind, namespace=namespace))
    return {kind.key(body): uid_of(body) for kind, bodies in zip(kinds, listed, strict=True) for body in bodies}


async def parts_of_cluster(cluster: Cluster, key: ObjectKey) -> Sequence[LeftObject]:
    """Return what belongs to a Cluster: its machines, with the servers that they stand for, and what describes them."""
    kinds = [each for each in await cluster.kinds() if _is_of_clusters(each)]
    selector = f"{NAME_LABEL}={key.name}"
    listed = await each_of(kinds, lambda kind: cluster.list(kind, namespace=key.namespace, labels=selector))
    return [
        left_object(kind.key(body), uid_of(body), cluster=cluster.endpoint, provider_id=_provider_id(body))
        for kind, bodies in zip(kinds, listed, strict=True)
        for body in bodies
        if kind.key(body).identity != key.identity
    ]


async def orphans(cluster: Cluster, clusters: Mapping[ObjectKey, str]) -> tuple[LeftObject, ...]:
    """Return Clusters that lose their controllers, each with its parts."""
    parts = await each_of(clusters, lambda key: parts_of_cluster(cluster, key))
    return tuple(
        each
        for (key, uid), belonging in zip(clusters.items(), parts, strict=True)
        for each in (left_object(key, uid, cluster=cluster.endpoint), *belonging)
    )


def _provider_id(body: Body) -> str | None:
    found = field_at(body, "spec", "providerID")
    return str(found) if found else None


def _is_clusters(kind: Resource) -> bool:
    return kind.kind == "Cluster" and kind.api_version.rpartition("/")[0] == CORE


def _is_of_clusters(kind: Resource) -> bool:
    return kind.namespaced and "list" in kind.verbs and kind.api_version.rpartition("/")[0] in GROUPS
