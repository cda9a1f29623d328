"""Records the objects of a workload cluster as the API server shows them, for tests that judge them without a server."""

from __future__ import annotations

from typing import Any, Final

from real.real_cluster import RealCluster

_KINDS: Final = (
    ("cluster.x-k8s.io", "Cluster"),
    ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
    ("infrastructure.cluster.x-k8s.io", "DevCluster"),
    ("cluster.x-k8s.io", "MachineDeployment"),
    ("cluster.x-k8s.io", "MachineSet"),
    ("cluster.x-k8s.io", "Machine"),
)
_LEFT_OUT: Final = {
    "metadata": ("managedFields", "resourceVersion", "annotations"),
    "spec": ("kubeadmConfigSpec", "rollout", "strategy", "deletion"),
    "status": ("nodeInfo",),
}
"""Attributes that say nothing about how far the cluster is."""


async def recorded(cluster: RealCluster, namespace: str, version: str) -> list[dict[str, Any]]:
    """Return the objects of Cluster API in a namespace, read in one of its API versions."""
    found: list[dict[str, Any]] = []
    for group, kind in _KINDS:
        listed = await cluster.get(f"/apis/{group}/{version}/namespaces/{namespace}/{kind.lower()}s") or {}
        for each in listed.get("items", []):
            facts = {
                part: {name: value for name, value in each.get(part, {}).items() if name not in left_out}
                for part, left_out in _LEFT_OUT.items()
            }
            found.append({"apiVersion": f"{group}/{version}", "kind": kind, **facts})
    return found
