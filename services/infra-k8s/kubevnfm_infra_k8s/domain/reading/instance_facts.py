"""Reads from a cluster what events report about a release: its objects, the pods that run VDUs, node ports, and providers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from kubevnfm_csar.capi_providers import providers_of
from kubevnfm_events import CapiProviders, ServiceFacts
from kubevnfm_events.objects import ObjectsApplied, PodFacts

from kubevnfm_infra_k8s.domain.capi.contract import is_of_management, is_provider_definition
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.object_facts import hooks_of, objects_of
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    MACHINE_INSTANCES,
    PODS,
    REPLICA_SETS,
    VIRTUAL_MACHINES,
    Body,
    ObjectKey,
    Resource,
    field_at,
    name_of,
)
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.domain.reading.kubevirt import MACHINE, is_restart_required
from kubevnfm_infra_k8s.domain.reading.vdus import RunningParts, bears_machines, vnfcs_of_vdus
from kubevnfm_infra_k8s.domain.release import Release

_SERVICES: Final = Resource("v1", "Service", "services", namespaced=True)
_DEPLOYMENT: Final = ("apps", "Deployment")
_POOL: Final = "VirtualMachinePool"


async def running_parts(cluster: Cluster, vnf_instance_id: str, workloads: Collection[ObjectKey]) -> RunningParts:
    """Return what of the instance runs in the namespaces of these workloads."""
    bearing = [key for key in workloads if bears_machines(key)]
    pods, replica_sets, machines, pooled = await asyncio.gather(
        _labelled(cluster, PODS, vnf_instance_id, [key for key in workloads if not bears_machines(key)]),
        _labelled(cluster, REPLICA_SETS, vnf_instance_id, [key for key in workloads if key.group_kind == _DEPLOYMENT]),
        _labelled(cluster, MACHINE_INSTANCES, vnf_instance_id, bearing),
        _labelled(cluster, VIRTUAL_MACHINES, vnf_instance_id, [key for key in bearing if key.kind == _POOL]),
    )
    return RunningParts(pods=pods, replica_sets=replica_sets, machines=machines, pooled=pooled)


async def _labelled(
    cluster: Cluster, resource: Resource, vnf_instance_id: str, workloads: Collection[ObjectKey]
) -> list[Body]:
    """Return the objects of a kind that have the instance's label, in the namespaces of the workloads."""
    found: list[Body] = []
    for namespace in sorted({key.namespace for key in workloads}):
        listed = await cluster.list(resource, namespace=namespace, labels=f"{INSTANCE_LABEL}={vnf_instance_id}")
        found += listed
    return found


async def facts_of(cluster: Cluster, release: Release) -> ObjectsApplied:
    """Return the event with the objects of the inventory and the pods that run VDUs."""
    pods, restarting, services, providers = await asyncio.gather(
        present_vnfcs(cluster, release),
        _restarting(cluster, release),
        _node_ports(cluster, release),
        providers_in(cluster, release),
    )
    return ObjectsApplied(
        namespace=release.namespace,
        objects=objects_of(release, restarting=restarting),
        hooks=hooks_of(release),
        pods=tuple(pods),
        kept_objects=release.kept_objects,
        services=services,
        providers=providers,
    )


async def present_vnfcs(cluster: Cluster, release: Release) -> Sequence[PodFacts]:
    """Return the pods and virtual machines that run VDUs now."""
    workloads = {entry.key: (entry.vdu_id, entry.uid) for entry in release.entries if entry.vdu_id is not None}
    return vnfcs_of_vdus(workloads, await running_parts(cluster, release.vnf_instance_id, workloads))


async def _restarting(cluster: Cluster, release: Release) -> frozenset[ObjectKey]:
    """Return the virtual machines of which a change waits for their next start."""
    keys = [entry.key for entry in release.entries if entry.uid and (entry.key.group, entry.key.kind) == MACHINE]
    bodies = await each_of(keys, lambda key: find(cluster, key))
    return frozenset(
        key for key, body in zip(keys, bodies, strict=True) if body is not None and is_restart_required(body)
    )


async def providers_in(cluster: Cluster, release: Release) -> CapiProviders | None:
    """Return the providers of Cluster API in the inventory, as the cluster shows them; None if there are none."""
    keys = [entry.key for entry in release.entries if entry.uid]
    if not is_of_management(keys):
        return None
    bodies = await each_of(
        [key for key in keys if is_provider_definition(key) or key.group_kind == _DEPLOYMENT],
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
        body = bodies.get((key.namespace, key.name), {})
        if field_at(body, "spec", "type") == "NodePort":
            found.append(ServiceFacts(namespace=key.namespace, name=key.name, node_ports=node_ports_of(body)))
    return tuple(found)


def node_ports_of(service: Body) -> tuple[int, ...]:
    """Return the ports that a Service has on each node."""
    return tuple(port["nodePort"] for port in field_at(service, "spec", "ports") or [] if port.get("nodePort"))
