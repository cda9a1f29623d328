"""Finds what an earlier Cluster of the same name has left, before a new one is applied."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_events.credentials import WorkloadCluster

from kubevnfm_infra_k8s.domain.capi.clusters import cluster_key
from kubevnfm_infra_k8s.domain.capi.contract import GROUPS, NAME_LABEL
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import SECRETS, Body, ObjectKey, field_at, group_of, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster


async def secrets_of_earlier(cluster: Cluster, workload: WorkloadCluster) -> Sequence[ObjectKey]:
    """Return the Secrets of a Cluster that was deleted; none once the Cluster exists.

    The garbage collector deletes them some time after their owner, the control plane. Until then a new control plane would find
    the CA and the kubeconfig of the earlier one, and lose them later.
    """
    resource = await cluster.resource(workload.api_version, "Cluster")
    key = cluster_key(workload)
    if resource is None or await cluster.get(resource, key) is not None:
        return ()
    try:
        found = await cluster.list(SECRETS, namespace=workload.namespace, labels=f"{NAME_LABEL}={workload.name}")
    except Forbidden:  # unknown; such credentials need not be able to list Secrets
        return ()
    names = [name_of(each) for each in found if _is_owned(each)]
    return [ObjectKey("v1", "Secret", workload.namespace, name) for name in sorted(names)]


def _is_owned(secret: Body) -> bool:
    """Return whether Cluster API has made the Secret; one that a user provides has no such owner."""
    owners = field_at(secret, "metadata", "ownerReferences") or ()
    return any(group_of(str(each.get("apiVersion"))) in GROUPS for each in owners)
