"""Nodes: created when a machine joins, ready a moment later; the pods of one that is no longer ready are not either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, condition_is_true, key_of, value_at, with_condition
from kubevnfm_lab.kubernetes.store import Change

_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class Nodes:
    """Marks nodes as ready, and the pods of those that are not ready as not ready, as kube-controller-manager does."""

    def __init__(self, plane: ControlPlane, *, has_network: bool = True) -> None:
        """``has_network``: whether pods have a network from the start; otherwise the first DaemonSet brings it."""
        self._plane, self._has_network = plane, has_network
        self._waiting: set[str] = set()

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"nodes": itself} if self._has_network else {"nodes": itself, "daemonsets.apps": self._all}

    def _all(self, _: Change) -> Iterable[Key]:
        return [key_of(node) for node in self._plane.store.list("nodes")]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        node = self._plane.store.get("nodes", key)
        if node is not None and (node.get("status") or {}).get("conditions"):
            self._settle_pods(key.name, ready=condition_is_true(node, "Ready"))
        # Only a node that was never ready: a node that a client marked NotReady stays so.
        if node is None or (node.get("status") or {}).get("conditions") or node["metadata"]["uid"] in self._waiting:
            return
        # The network plugin of a cluster (CNI) comes as a DaemonSet, and without one no node is ready.
        if not self._has_network and not self._plane.store.list("daemonsets.apps"):
            return
        self._waiting.add(node["metadata"]["uid"])
        self._plane.later(self._plane.delay_s, lambda: self._become_ready(key))

    def _settle_pods(self, node: str, *, ready: bool) -> None:
        def write(pod: Obj) -> None:
            status = pod["status"]
            status["conditions"] = with_condition(status["conditions"], "Ready", status=ready, reason="")

        for pod in self._plane.store.list("pods"):
            # The kubelet of a node that is ready again reports what its containers do; they have run on.
            if (
                value_at(pod, "spec", "nodeName") == node
                and condition_is_true(pod, "ContainersReady")
                and condition_is_true(pod, "Ready") != ready
            ):
                self._plane.registry.change("pods", key_of(pod), write)

    def _become_ready(self, key: Key) -> None:
        def write(node: Obj) -> None:
            if condition_is_true(node, "Ready"):
                return
            conditions: list[Obj] = []
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
                reason = f"KubeletHasSufficient{kind.removesuffix('Pressure')}"
                conditions = with_condition(
                    conditions, kind, status=False, reason=reason, message="", times=("lastHeartbeatTime",)
                )
            conditions = with_condition(
                conditions,
                "Ready",
                status=True,
                reason="KubeletReady",
                message="kubelet is posting ready status",
                times=("lastHeartbeatTime",),
            )
            node["status"] = {**(node.get("status") or {}), "conditions": conditions}

        self._plane.registry.change("nodes", key, write)


def node_object(name: str, *, control_plane: bool, index: int) -> Obj:
    """Return the Node that a joining kubelet registers, with the taint that kubeadm sets on control planes."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
    }
    spec: Obj = {"podCIDR": f"10.244.{index % 256}.0/24"}
    if control_plane:
        labels |= {_CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
        spec["taints"] = [{"key": _CONTROL_PLANE, "effect": "NoSchedule"}]
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": spec,
    }


def node_status(node: Obj, *, address: str, version: str) -> Obj:
    """Return the status that the kubelet reports about its machine; conditions follow when it is ready."""
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "250", "ephemeral-storage": "100Gi"}
    return {
        **(node.get("status") or {}),
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ],
        "capacity": capacity,
        "allocatable": capacity,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": node["metadata"]["uid"],
            "containerRuntimeVersion": "containerd://1.7.24",
            "kernelVersion": "5.15.0-126-generic",
            "kubeProxyVersion": version,
            "kubeletVersion": version,
            "machineID": node["metadata"]["uid"].replace("-", ""),
            "operatingSystem": "linux",
            "osImage": "Ubuntu 22.04.5 LTS",
            "systemUUID": node["metadata"]["uid"],
        },
    }
