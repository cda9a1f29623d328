"""The Cluster among the manifests of a package, and the parts of its topology, which stand for VDUs.

Sources: capi.md CR-050 to CR-052 and chapter 12; a Cluster with ``spec.topology`` has the numbers of replicas of objects that
the controllers make, which would revert a change of those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.objects import VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.autoscalers import Limits
from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL, is_cluster
from kubevnfm_infra_k8s.domain.capi.machines import (
    CONTROL_PLANE_VDU,
    TOPOLOGY_DEPLOYMENT_LABEL,
    TOPOLOGY_POOL_LABEL,
)
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, annotations_of, field_at, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster

_FIELD: Final = "additionalParams.capi.cluster_name"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_NAME: Final = 63
_WORKERS: Final = ("machineDeployments", "machinePools")


def workload_cluster(keys: Sequence[ObjectKey], wanted: str | None) -> WorkloadCluster | None:
    """Return the Cluster among the objects; None if there is none and none is wanted.

    Raises InvalidInput if it is not clear which one is meant, and for a name that is no RFC 1123 label.
    """
    found = [key for key in keys if is_cluster(key)]
    if wanted is not None:
        found = [key for key in found if key.name == wanted]
        if not found:
            raise InvalidInput(_FIELD, f"the files have no Cluster {wanted}")
    if len(found) > 1:
        raise InvalidInput(_FIELD, f"one of {', '.join(key.name for key in found)} expected, as the files have several")
    for key in found:
        if len(key.name) > _LONGEST_NAME or not _NAME.fullmatch(key.name):
            raise InvalidInput(
                "metadata.name", f"{key}: at most {_LONGEST_NAME} lower-case letters, digits and - expected (RFC 1123)"
            )
        return WorkloadCluster(name=key.name, namespace=key.namespace, api_version=key.api_version)
    return None


def topology_vdus(body: Body, vdus: Sequence[VduTarget]) -> Sequence[VduTarget]:
    """Return the VDUs for which parts of a Cluster's topology stand."""
    return [vdu for vdu in vdus if part_of(body, vdu.name) is not None]


def with_topology_replicas(body: Body, vdus: Sequence[VduTarget]) -> Body:
    """Return the Cluster with the replicas of the instantiation level in its topology, where no autoscaler owns them."""
    replicas = {vdu.name: vdu.replicas for vdu in topology_vdus(body, vdus) if vdu.replicas is not None}
    if field_at(body, "spec", "topology") is None:
        return body
    changed: dict[str, Any] = deepcopy(dict(body))
    if CONTROL_PLANE_VDU in replicas:
        _control_plane(changed)["replicas"] = replicas[CONTROL_PLANE_VDU]
    for _, each in _workers(changed):
        if limits_of_part(each).are_complete:
            # Otherwise each apply would take the number back that the autoscaler has chosen (CR-091).
            each.pop("replicas", None)
        elif each.get("name") in replicas:
            each["replicas"] = replicas[str(each["name"])]
    return changed


def part_of(body: Body | None, name: str) -> Body | None:
    """Return the part of a Cluster's topology: ``controlPlane``, or the MachineDeployment or MachinePool of this name."""
    if field_at(body, "spec", "topology") is None:
        return None
    if name == CONTROL_PLANE_VDU:
        return field_at(body, "spec", "topology", "controlPlane") or {}
    return next((each for _, each in _workers(body) if each.get("name") == name), None)


def part_name(worker: Body) -> str:
    """Return the name of the part that a MachineDeployment or MachinePool was made from; "" if it was not."""
    labels = labels_of(worker)
    return labels.get(TOPOLOGY_DEPLOYMENT_LABEL) or labels.get(TOPOLOGY_POOL_LABEL) or ""


def limits_of_part(part: Body) -> Limits:
    """Return between which numbers an autoscaler chooses."""
    return Limits.from_annotations(annotations_of(part))


def with_part_count(config: Body, body: Body, name: str, count: int) -> Body:
    """Return what is applied of a Cluster (``body``) with another number in a part of its topology."""
    changed: dict[str, Any] = deepcopy(dict(config))
    if name == CONTROL_PLANE_VDU:
        _control_plane(changed)["replicas"] = count
        return changed
    for _, each in _workers(changed):
        if each.get("name") == name:
            each["replicas"] = count
            return changed
    # Another party has added the part; from now on its number is ours too.
    listed = next(listed for listed, each in _workers(body) if each.get("name") == name)
    workers = changed.setdefault("spec", {}).setdefault("topology", {}).setdefault("workers", {})
    workers.setdefault(listed, []).append({"name": name, "replicas": count})
    return changed


async def owner_of_part(cluster: Cluster, key: ObjectKey, body: Body, name: str) -> tuple[Resource, Body] | None:
    """Return the object of which a part of a Cluster's topology gives the number; None if it was not made yet."""
    if name == CONTROL_PLANE_VDU:
        reference = field_at(body, "spec", "controlPlaneRef") or {}
        # v1beta2 names the group alone; the versions of the providers are those of the package's Cluster then.
        version = reference.get("apiVersion") or f"{reference.get('apiGroup')}/{key.api_version.rpartition('/')[2]}"
        resource = await cluster.resource(str(version), str(reference.get("kind")))
        if resource is None:
            return None
        place = ObjectKey(resource.api_version, resource.kind, key.namespace, str(reference.get("name")))
        found = await cluster.get(resource, place)
        return (resource, found) if found is not None else None
    for kind in ("MachineDeployment", "MachinePool"):
        resource = await cluster.resource(key.api_version, kind)
        selector = f"{NAME_LABEL}={key.name}"
        for each in await cluster.list(resource, namespace=key.namespace, labels=selector) if resource else ():
            if resource is not None and part_name(each) == name:
                return resource, each
    return None


def _control_plane(body: dict[str, Any]) -> dict[str, Any]:
    topology = body.setdefault("spec", {}).setdefault("topology", {})
    topology["controlPlane"] = {**(topology.get("controlPlane") or {})}
    plane: dict[str, Any] = topology["controlPlane"]
    return plane


def _workers(body: Body | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the workers of a topology, each with the name of its list."""
    for listed in _WORKERS:
        found = field_at(body, "spec", "topology", "workers", listed)
        for each in found if isinstance(found, list) else ():
            if isinstance(each, dict):
                yield listed, each
