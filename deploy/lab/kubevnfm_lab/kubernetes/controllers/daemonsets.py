"""DaemonSets: one pod on every node that accepts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import (
    create_pod,
    delete_pod,
    is_active,
    is_available,
    is_ready,
    new_pod,
    owned_pods,
    template_hash,
)
from kubevnfm_lab.kubernetes.controllers.scheduler import matches_node, tolerates_all
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, key_of, labels_of, value_at
from kubevnfm_lab.kubernetes.store import Change

_COMPONENT: Final = "daemonset-controller"
_SETS: Final = "daemonsets.apps"
_REVISION: Final = "controller-revision-hash"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("not-ready", "NoSchedule"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints under ``node.kubernetes.io/`` that every daemon pod tolerates."""


class DaemonSets:
    """Keeps one pod per node for every DaemonSet."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_SETS: itself, "pods": its_controller("DaemonSet"), "nodes": self._all}

    def _all(self, change: Change) -> Iterable[Key]:
        return [key_of(daemon_set) for daemon_set in self._plane.store.list(_SETS)]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        daemon_set = self._plane.store.get(_SETS, key)
        if daemon_set is None:
            return
        wanted = self._wanted_nodes(daemon_set)
        if not is_terminating(daemon_set):
            self._step(daemon_set, wanted)
        self._write_status(daemon_set, wanted)

    def _pod_spec(self, daemon_set: Obj) -> Obj:
        spec: Obj = {**daemon_set["spec"]["template"]["spec"]}
        own = [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in _TOLERATED
        ]
        spec["tolerations"] = [*(spec.get("tolerations") or []), *own]
        return spec

    def _wanted_nodes(self, daemon_set: Obj) -> set[str]:
        spec = self._pod_spec(daemon_set)
        nodes = self._plane.store.list("nodes")
        return {node["metadata"]["name"] for node in nodes if matches_node(spec, node) and tolerates_all(spec, node)}

    def _revision(self, daemon_set: Obj) -> str:
        return template_hash(daemon_set["spec"]["template"])

    def _step(self, daemon_set: Obj, wanted: set[str]) -> None:
        pods, revision = owned_pods(self._plane, daemon_set), self._revision(daemon_set)
        covered = {_node_of(pod) for pod in pods}
        for pod in pods:
            if not is_terminating(pod) and (_node_of(pod) not in wanted or not is_active(pod)):
                delete_pod(self._plane, daemon_set, pod, component=_COMPONENT)
        for node in sorted(wanted - covered):
            # The pod is bound by affinity, not by nodeName: since 1.12 the default scheduler places daemon pods.
            pod = new_pod(daemon_set, labels={_REVISION: revision})
            pod["metadata"]["generateName"] = f"{daemon_set['metadata']['name']}-"
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            pod["spec"] = {
                **self._pod_spec(daemon_set),
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            }
            create_pod(self._plane, daemon_set, pod, component=_COMPONENT)
        if daemon_set["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            self._renew(daemon_set, pods, wanted)

    def _renew(self, daemon_set: Obj, pods: Iterable[Obj], wanted: set[str]) -> None:
        """Delete pods of an old template, as many at once as may be unavailable."""
        limit = value_at(daemon_set, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable") or 1
        if isinstance(limit, str):
            # At least one: with 10 % of three nodes an update would never start.
            limit = max(1, int(limit.rstrip("%")) * len(wanted) // 100)
        live = [pod for pod in pods if _node_of(pod) in wanted and not is_terminating(pod)]
        room = limit - (len(wanted) - sum(is_ready(pod) for pod in live))
        old = [pod for pod in live if labels_of(pod).get(_REVISION) != self._revision(daemon_set)]
        # Pods that are not ready go first: they cost no availability.
        for pod in sorted(old, key=is_ready):
            if is_ready(pod):
                room -= 1
                if room < 0:
                    return
            delete_pod(self._plane, daemon_set, pod, component=_COMPONENT)

    def _write_status(self, daemon_set: Obj, wanted: set[str]) -> None:
        pods = [pod for pod in owned_pods(self._plane, daemon_set) if is_active(pod)]
        placed = [pod for pod in pods if _node_of(pod) in wanted]
        min_ready_s = daemon_set["spec"].get("minReadySeconds") or 0
        available = sum(is_available(pod, min_ready_s) for pod in placed)
        status: Obj = {
            "observedGeneration": daemon_set["metadata"]["generation"],
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len({_node_of(pod) for pod in placed}),
            "numberMisscheduled": len(pods) - len(placed),
            "numberReady": sum(is_ready(pod) for pod in placed),
            "updatedNumberScheduled": sum(labels_of(p).get(_REVISION) == self._revision(daemon_set) for p in placed),
        }
        if available:
            status["numberAvailable"] = available
        if available < len(wanted):
            status["numberUnavailable"] = len(wanted) - available
        self._plane.registry.set_status(_SETS, key_of(daemon_set), status)


def _node_of(pod: Obj) -> str:
    """Return the node that the pod runs on, or the one it is intended for while it is not scheduled."""
    if node := value_at(pod, "spec", "nodeName"):
        return str(node)
    required = value_at(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field in term.get("matchFields") or []:
            return str(field["values"][0])
    return ""
