"""ReplicaSets: a fixed number of pods of one template."""

from __future__ import annotations

from collections.abc import Mapping
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
)
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, is_terminating, key_of, value_at, with_condition

_COMPONENT: Final = "replicaset-controller"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets:
    """Keeps the number of pods of every ReplicaSet."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"replicasets.apps": itself, "pods": its_controller("ReplicaSet")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        replica_set = self._plane.store.get("replicasets.apps", key)
        if replica_set is None:
            return
        refusal = None
        if not is_terminating(replica_set):
            refusal = self._keep_number(replica_set)
        self._write_status(replica_set, refusal)

    def _keep_number(self, replica_set: Obj) -> ApiError | None:
        active = [pod for pod in owned_pods(self._plane, replica_set) if is_active(pod)]
        wanted = replica_set["spec"]["replicas"]
        for _ in range(wanted - len(active)):
            pod = new_pod(replica_set)
            pod["metadata"]["generateName"] = f"{replica_set['metadata']['name']}-"
            if refusal := create_pod(self._plane, replica_set, pod, component=_COMPONENT):
                return refusal
        for pod in sorted(active, key=_worth_keeping)[: max(0, len(active) - wanted)]:
            delete_pod(self._plane, replica_set, pod, component=_COMPONENT)
        return None

    def _write_status(self, replica_set: Obj, refusal: ApiError | None) -> None:
        active = [pod for pod in owned_pods(self._plane, replica_set) if is_active(pod)]
        min_ready_s = replica_set["spec"].get("minReadySeconds") or 0
        ready = [pod for pod in active if is_ready(pod)]
        available = [pod for pod in ready if is_available(pod, min_ready_s)]
        status: Obj = {
            "replicas": len(active),
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        if active:
            status["fullyLabeledReplicas"] = len(active)
        if ready:
            status["readyReplicas"] = len(ready)
        if available:
            status["availableReplicas"] = len(available)
        if refusal is not None:
            status["conditions"] = with_condition(
                value_at(replica_set, "status", "conditions") or [],
                "ReplicaFailure",
                status=True,
                reason="FailedCreate",
                message=refusal.message,
            )
        self._plane.registry.set_status("replicasets.apps", key_of(replica_set), status)
        if len(available) < len(ready):
            self._plane.later(min_ready_s, lambda: self._plane.enqueue(self, key_of(replica_set)))


def _worth_keeping(pod: Obj) -> tuple[bool, bool, int, float]:
    """Return the sort key by which pods are deleted: unscheduled, not ready, cheap and young ones first."""
    try:
        cost = int(annotations_of(pod).get(_COST, "0"))
    except ValueError:
        cost = 0
    return (bool(value_at(pod, "spec", "nodeName")), is_ready(pod), cost, -float(pod["metadata"]["resourceVersion"]))
