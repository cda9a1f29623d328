"""Reads from a cluster what events report about a release: its objects, the pods that run VDUs, node ports, and providers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.capi_providers import providers_of
from kubevnfm_events import CapiProviders, ServiceFacts
from kubevnfm_events.objects import ObjectsApplied

from kubevnfm_infra_k8s.domain.capi.contract import is_of_management, is_provider_definition
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.object_facts import hooks_of, objects_of
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, PODS, REPLICA_SETS, Body, ObjectKey, Resource, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.domain.reading.vdus import pods_of_vdus
from kubevnfm_infra_k8s.domain.release import Release

_SERVICES: Final = Resource("v1", "Service", "services", namespaced=True)
_DEPLOYMENT: Final = ("apps/v1", "Deployment")


@dataclass(frozen=True)
class InstancePods:
    """The pods of an instance, those that end included, and the ReplicaSets that connect them with Deployments."""

    pods: Sequence[Body]
    replica_sets: Sequence[Body]


async def instance_pods(cluster: Cluster, vnf_instance_id: str, workloads: Collection[ObjectKey]) -> InstancePods:
    """Return the instance's pods in the namespaces of these workloads."""
    selector = f"{INSTANCE_LABEL}={vnf_instance_id}"
    pods, replica_sets = [], []
    for namespace in sorted({key.namespace for key in workloads}):
        pods += list(await cluster.list(PODS, namespace=namespace, labels=selector))
        # A Deployment's pods belong to its ReplicaSets, and only those name the Deployment.
        if any(key.kind == "Deployment" for key in workloads):
            replica_sets += list(await cluster.list(REPLICA_SETS, namespace=namespace, labels=selector))
    return InstancePods(pods, replica_sets)


async def facts_of(cluster: Cluster, release: Release) -> ObjectsApplied:
    """Return the event with the objects of the inventory and the pods that run VDUs."""
    workloads = {entry.key: (entry.vdu_id, entry.uid) for entry in release.entries if entry.vdu_id is not None}
    found = await instance_pods(cluster, release.vnf_instance_id, workloads)
    return ObjectsApplied(
        namespace=release.namespace,
        objects=objects_of(release),
        hooks=hooks_of(release),
        pods=tuple(pods_of_vdus(workloads, pods=found.pods, replica_sets=found.replica_sets)),
        kept_objects=release.kept_objects,
        services=await _node_ports(cluster, release),
        providers=await providers_in(cluster, release),
    )


async def providers_in(cluster: Cluster, release: Release) -> CapiProviders | None:
    """Return the providers of Cluster API in the inventory, as the cluster shows them; None if there are none."""
    keys = [entry.key for entry in release.entries if entry.uid]
    if not is_of_management(keys):
        return None
    bodies = await each_of(
        [key for key in keys if is_provider_definition(key) or key.api_kind == _DEPLOYMENT],
        lambda key: find(cluster, key),
    )
    return providers_of(body for body in bodies if body is not None)


async def _node_ports(cluster: Cluster, release: Release) -> tuple[ServiceFacts, ...]:
    """Return the node ports of the release's Services, those that the cluster has chosen included."""
    keys = [entry.key for entry in release.entries if entry.key.api_kind == ("v1", "Service")]
    selector = f"{INSTANCE_LABEL}={release.vnf_instance_id}"
    bodies: dict[tuple[str, str], Body] = {}
    for namespace in sorted({key.namespace for key in keys}):
        for body in await cluster.list(_SERVICES, namespace=namespace, labels=selector):
            bodies[namespace, name_of(body)] = body
    found: list[ServiceFacts] = []
    for key in keys:
        spec = bodies.get((key.namespace, key.name), {}).get("spec") or {}
        if spec.get("type") == "NodePort":
            ports = tuple(int(port["nodePort"]) for port in spec.get("ports") or [] if port.get("nodePort"))
            found.append(ServiceFacts(namespace=key.namespace, name=key.name, node_ports=ports))
    return tuple(found)
