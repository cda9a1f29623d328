"""The view that the API and the lab give of a cluster VNF."""

from __future__ import annotations

from typing import Any

from callers.user import User
from clouds.lab_process import LabControl


async def nodes_of(user: User, lab: LabControl, cluster_id: str) -> set[str]:
    """Return the names of the nodes, after checking that the instance shows the same ones and that all are Ready."""
    nodes = (await cluster_of(user, lab, cluster_id))["nodes"]
    assert all(node["ready"] for node in nodes), nodes
    return {node["name"] for node in nodes}


async def cluster_of(user: User, lab: LabControl, cluster_id: str) -> dict[str, Any]:
    """Return the lab's Kubernetes that has exactly the nodes of the instance."""
    vnfcs = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    machines = [vnfc for vnfc in vnfcs if vnfc["vduId"].startswith(("master", "worker"))]
    names = {str(vnfc["metadata"]["node_name"]) for vnfc in machines}
    assert len(names) == len(machines)
    # By its nodes, because machines of other packages have other names, and floating addresses.
    clusters = (await lab.inventory())["clusters"]
    (found,) = [one for one in clusters if {node["name"] for node in one["nodes"]} == names]
    return found


def tasks_of(view: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the tasks of an operation by name and node."""
    return {(task["task"], node["name"]): task for node in view["nodes"] for task in node["tasks"]}


def nodes_with(view: dict[str, Any], *tasks: str) -> set[str]:
    """Return the nodes that have one of these tasks in an operation."""
    return {node for task, node in tasks_of(view) if task in tasks}


async def volumes_of(user: User, lab: LabControl, cluster_id: str) -> dict[str, str]:
    """Return uid by name of the persistent volumes of the VNF."""
    return {
        place.rpartition("/")[2]: one["uid"]
        for place, one in (await cluster_of(user, lab, cluster_id))["objects"].items()
        if place.startswith("PersistentVolume/") and one["labels"]["kubevnfm.io/vnf-instance-id"] == cluster_id
    }
