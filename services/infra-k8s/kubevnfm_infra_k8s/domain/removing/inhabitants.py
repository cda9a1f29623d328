"""Finds the objects in a namespace, each of which would be deleted with it: Kubernetes has no guard for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden, WebhookUnavailable
from kubevnfm_infra_k8s.domain.objects import Resource, field_at, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster

_OF_EVERY_NAMESPACE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
"""The objects that Kubernetes itself puts into each namespace."""
_OF_CONTROLLERS: Final = frozenset({"Endpoints", "EndpointSlice", "Event", "Lease", "PodMetrics"})
"""Kinds that follow from other objects."""
_NAMED: Final = 20


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


def _is_inhabitable(resource: Resource) -> bool:
    return resource.namespaced and "list" in resource.verbs and resource.kind not in _OF_CONTROLLERS
