"""The paths of collections and objects on an API server, and the selections of a query."""

from __future__ import annotations

from kubevnfm_clients.paths import quoted

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource


def selection(labels: str, name: str) -> dict[str, str]:
    """Return the query for objects by a label selector and a name; "" for any."""
    query = {"labelSelector": labels, "fieldSelector": f"metadata.name={name}" if name else ""}
    return {name: value for name, value in query.items() if value}


def collection_path(resource: Resource, namespace: str) -> str:
    """Return the path of the objects of a kind, in one namespace unless it is ""."""
    base = f"/apis/{resource.api_version}" if "/" in resource.api_version else f"/api/{resource.api_version}"
    place = f"/namespaces/{_segment(namespace)}" if resource.namespaced and namespace else ""
    return f"{base}{place}/{resource.plural}"


def object_path(resource: Resource, key: ObjectKey) -> str:
    """Return the path of an object. Raises ObjectRefused for a name that Kubernetes does not accept."""
    return f"{collection_path(resource, key.namespace)}/{_segment(key.name)}"


def restart_path(machine: ObjectKey) -> str:
    """Return the path by which KubeVirt restarts a VirtualMachine. Raises ObjectRefused as `object_path`."""
    place = f"namespaces/{_segment(machine.namespace)}/virtualmachines/{_segment(machine.name)}"
    return f"/apis/subresources.kubevirt.io/v1/{place}/restart"


def _segment(name: str) -> str:
    try:
        return quoted(name)
    except ValueError as error:
        raise ObjectRefused(repr(name), "not a name that Kubernetes accepts", http_status=422) from error
