"""Finds the objects in a namespace, each of which would be deleted with it: Kubernetes has no guard for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.capi.clusters import clusters_in
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden, WebhookUnavailable
from kubevnfm_infra_k8s.domain.objects import CLAIMS, INSTANCE_LABEL, PODS, Resource, field_at, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster

_OF_EVERY_NAMESPACE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
"""The objects that Kubernetes itself puts into each namespace."""
_OF_CONTROLLERS: Final = frozenset({"Endpoints", "EndpointSlice", "Event", "Lease", "PodMetrics"})
"""Kinds that follow from other objects."""
_NAMED: Final = 20
_OF_VNFS: Final = (
    PODS,
    CLAIMS,
    *(
        Resource(version, kind, plural, namespaced=True)
        for version, kind, plural in (
            ("apps/v1", "Deployment", "deployments"),
            ("apps/v1", "StatefulSet", "statefulsets"),
            ("v1", "ConfigMap", "configmaps"),
            ("v1", "Secret", "secrets"),
        )
    ),
)
"""The kinds of which nearly every VNF has an object, or whose data are lost with the namespace."""


async def inhabitants(cluster: Cluster, namespace: str) -> Sequence[str]:
    """Return up to 20 objects in the namespace that Kubernetes has not put there itself.

    A kind that cannot be listed is among them: it may have objects.
    """

    async def look(resource: Resource) -> Sequence[str]:
        try:
            bodies = await cluster.list(resource, namespace=namespace)
        except (Forbidden, WebhookUnavailable):
            return [f"perhaps a {resource.kind}, which cannot be listed"]
        return [
            f"{resource.kind} {namespace}/{name_of(body)}"
            for body in bodies
            if body.get("type") != "kubernetes.io/service-account-token"
            and not field_at(body, "metadata", "ownerReferences")
            and (resource.kind, name_of(body)) not in _OF_EVERY_NAMESPACE
        ]

    kinds = [each for each in await cluster.kinds() if _is_inhabitable(each)]
    found = [each for some in await each_of(kinds, look) for each in some]
    return found[:_NAMED]


async def object_of_others(cluster: Cluster, namespace: str, vnf_instance_id: str) -> str:
    """Return an object in a namespace that has the label of another VNF instance; "" if none is found.

    The inventories know others by the URL of the cluster, which can have several, and do not know those of another VNFM.
    """
    others = f"{INSTANCE_LABEL},{INSTANCE_LABEL}!={vnf_instance_id}"
    for resource in _OF_VNFS:
        try:
            found = await cluster.list(resource, namespace=namespace, labels=others)
        except Forbidden:  # unknown
            continue
        for each in found:
            if not field_at(each, "metadata", "deletionTimestamp"):
                return f"{resource.kind} {field_at(each, 'metadata', 'name')}"
    return ""


async def has_clusters(cluster: Cluster, namespace: str) -> bool:
    """Return whether a namespace has a Cluster; with it, the machines of that would be deleted, or it would never go."""
    try:
        return bool(await clusters_in(cluster, namespace))
    except WebhookUnavailable:  # it may have
        return True
    except Forbidden:  # unknown; credentials without this right have installed no Cluster API
        return False


def _is_inhabitable(resource: Resource) -> bool:
    return resource.namespaced and "list" in resource.verbs and resource.kind not in _OF_CONTROLLERS
