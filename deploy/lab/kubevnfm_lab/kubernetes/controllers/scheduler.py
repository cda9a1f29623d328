"""The scheduler: binds each pod to a ready node that accepts it, or reports why none does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    condition_is_true,
    is_terminating,
    key_of,
    labels_of,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.store import Change
from kubevnfm_lab.kubernetes.validation import quantity

_COMPONENT: Final = "default-scheduler"


class Scheduler:
    """Binds pods to nodes, the emptiest node first."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        # Kept by the scheduler itself: counting pods from the store for each decision would be quadratic.
        self._pods_by_node: defaultdict[str, dict[Key, Obj]] = defaultdict(dict)
        self._waiting: dict[Key, None] = {}

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`. Any change that may free capacity or add a node wakes the pods that wait for one."""
        return {
            "pods": self._pods,
            "nodes": self._wake,
            "persistentvolumeclaims": self._wake,
            "storageclasses.storage.k8s.io": self._wake,
        }

    def _pods(self, change: Change) -> Iterable[Key]:
        key, pod = change.key, change.obj
        node = value_at(pod, "spec", "nodeName")
        over = change.kind == "DELETED" or value_at(pod, "status", "phase") in {"Succeeded", "Failed"}
        if node and over:
            self._pods_by_node[node].pop(key, None)
        elif node:
            self._pods_by_node[node][key] = pod
        if node or over:
            self._waiting.pop(key, None)
            # A finished pod frees its resources, so waiting pods are tried again.
            return tuple(self._waiting) if over else ()
        return (key,)

    def _wake(self, change: Change) -> Iterable[Key]:
        return tuple(self._waiting)

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        pod = self._plane.store.get("pods", key)
        if pod is None or is_terminating(pod) or value_at(pod, "spec", "nodeName"):
            self._waiting.pop(key, None)
            return
        node, why = self._place(pod)
        if node is None:
            self._waiting[key] = None
            self._refuse(pod, why)
            return
        self._waiting.pop(key, None)
        name = node["metadata"]["name"]

        def bind(obj: Obj) -> None:
            obj["spec"]["nodeName"] = name
            status = obj.setdefault("status", {})
            status["conditions"] = with_condition(
                status.get("conditions") or [], "PodScheduled", status=True, reason="", message=""
            )

        bound = self._plane.registry.change("pods", key, bind)
        if bound is not None:
            message = f"Successfully assigned {key} to {name}"
            self._plane.record(bound, "Normal", "Scheduled", message, component=_COMPONENT)

    def _refuse(self, pod: Obj, why: str) -> None:
        def write(obj: Obj) -> None:
            status = obj.setdefault("status", {})
            status["conditions"] = with_condition(
                status.get("conditions") or [], "PodScheduled", status=False, reason="Unschedulable", message=why
            )

        # An unchanged reason is not recorded again; each retry would otherwise add an Event.
        if self._plane.registry.change("pods", key_of(pod), write) is not pod:
            self._plane.record(pod, "Warning", "FailedScheduling", why, component=_COMPONENT)

    def _place(self, pod: Obj) -> tuple[Obj | None, str]:
        """Return (node, ""), or (None, reason)."""
        nodes = self._plane.store.list("nodes")
        if not nodes:
            return None, "no nodes available to schedule pods"
        total = f"0/{len(nodes)} nodes are available"
        if trouble := self._claims_trouble(pod):
            return (
                None,
                f"{total}: {trouble}. preemption: {total}: {len(nodes)} Preemption is not helpful for scheduling.",
            )
        reasons: Counter[str] = Counter()
        fitting: list[Obj] = []
        for node in nodes:
            why = self._why_not(pod, node)
            if why:
                reasons[why] += 1
            else:
                fitting.append(node)
        if fitting:
            # Ties go to the first node by name, which makes placements reproducible.
            return min(fitting, key=lambda n: len(self._pods_by_node[n["metadata"]["name"]])), ""
        listed = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
        return None, f"{total}: {listed}. preemption: {total}: {len(nodes)} Preemption is not helpful for scheduling."

    def _claims_trouble(self, pod: Obj) -> str:
        for volume in value_at(pod, "spec", "volumes") or []:
            name = value_at(volume, "persistentVolumeClaim", "claimName")
            if not name:
                continue
            claim = self._plane.store.get("persistentvolumeclaims", Key(pod["metadata"]["namespace"], name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if value_at(claim, "status", "phase") == "Bound":
                continue
            storage_class = self._plane.store.get(
                "storageclasses.storage.k8s.io", Key("", value_at(claim, "spec", "storageClassName") or "")
            )
            # WaitForFirstConsumer provisions the volume only once the pod has a node.
            if storage_class is None or storage_class["volumeBindingMode"] != "WaitForFirstConsumer":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _why_not(self, pod: Obj, node: Obj) -> str:
        """Return why the node refuses the pod, in the scheduler's words; empty if it accepts it."""
        spec = pod["spec"]
        if value_at(node, "spec", "unschedulable") and not _tolerates(
            spec, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        ):
            return "node(s) were unschedulable"
        for taint in taints(node):
            if taint.get("effect") in {"NoSchedule", "NoExecute"} and not _tolerates(spec, taint):
                return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        if not matches_node(spec, node):
            return "node(s) didn't match Pod's node affinity/selector"
        return self._short_of(pod, node)

    def _short_of(self, pod: Obj, node: Obj) -> str:
        # Nodes without a status yet take pods up to the kubelet's default of 110.
        allocatable = value_at(node, "status", "allocatable") or {}
        there = self._pods_by_node[node["metadata"]["name"]].values()
        if len(there) >= quantity(allocatable.get("pods", "110")):
            return "Too many pods"
        for name in ("cpu", "memory"):
            wanted = requested(pod, name)
            if wanted and sum(requested(other, name) for other in there) + wanted > quantity(allocatable.get(name, 0)):
                return f"Insufficient {name}"
        return ""


def requested(pod: Obj, name: str) -> float:
    """Return how much of a resource the pod's containers request."""
    containers: Sequence[Obj] = pod["spec"].get("containers") or []
    return sum(quantity(value_at(container, "resources", "requests", name) or 0) for container in containers)


def taints(node: Obj) -> Sequence[Obj]:
    """Return the node's taints, including those that its conditions imply."""
    found = list(value_at(node, "spec", "taints") or [])
    if not condition_is_true(node, "Ready"):
        found.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    return found


def _tolerates(spec: Obj, taint: Mapping[str, Any]) -> bool:
    for toleration in spec.get("tolerations") or []:
        # An empty effect tolerates all effects of the key.
        if toleration.get("effect") not in {None, "", taint.get("effect")}:
            continue
        # An empty key with Exists tolerates everything; with any other operator it is invalid.
        if not toleration.get("key"):
            if toleration.get("operator") == "Exists":
                return True
            continue
        if toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def tolerates_all(spec: Obj, node: Obj) -> bool:
    """Return whether a pod with this spec tolerates every taint of the node that repels pods."""
    return all(
        taint.get("effect") not in {"NoSchedule", "NoExecute"} or _tolerates(spec, taint) for taint in taints(node)
    )


def matches_node(spec: Obj, node: Obj) -> bool:
    """Return whether node selector and required node affinity permit the node."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = value_at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    # DaemonSet pods are pinned by this field rather than by a label.
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(_holds(e, labels) for e in term.get("matchExpressions") or [])
        and all(_holds(e, fields) for e in term.get("matchFields") or [])
        for term in required.get("nodeSelectorTerms") or []
    )


def _holds(expression: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    value, wanted = values.get(expression["key"]), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and int(value) < int(wanted[0])
        case _:
            return False
