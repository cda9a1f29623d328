"""A stand-in for KubeVirt: it works wherever KubeVirt's definitions are served.

A VirtualMachine has an instance as its run strategy says, a set and a pool have as many machines as their number of replicas,
and each instance runs in a pod, from which it has its node and address. There is no guest: an instance ends as its pod does.

Source: KubeVirt's user guide, "Run Strategies", "VirtualMachineInstanceReplicaSet" and "VirtualMachinePool", and virt-controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.errors import conflict, not_found
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    annotations_of,
    condition_is_true,
    controller_of,
    controller_reference,
    copy_of,
    is_terminating,
    key_of,
    labels_of,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.registry import Registry
from kubevnfm_lab.kubernetes.selectors import selector_text

SUBRESOURCES: Final = "subresources.kubevirt.io"
"""The API group by which KubeVirt itself answers."""
_MACHINES: Final = "virtualmachines.kubevirt.io"
_INSTANCES: Final = "virtualmachineinstances.kubevirt.io"
_SETS: Final = "virtualmachineinstancereplicasets.kubevirt.io"
_POOLS: Final = "virtualmachinepools.pool.kubevirt.io"
_FINALIZER: Final = "foregroundDeleteVirtualMachine"
_GENERATION: Final = "kubevirt.io/vm-generation"
_LAUNCHER: Final = "quay.io/kubevirt/virt-launcher:v1.6.0"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def kubevirt_controllers(plane: ControlPlane) -> None:
    """Register the controllers with the control plane."""
    for controller in (Instances(plane), VirtualMachines(plane), InstanceSets(plane), Pools(plane)):
        plane.add(controller)


def restart(registry: Registry, key: Key) -> None:
    """Have a VirtualMachine stopped and started again. Raises ApiError 404, 409."""
    machine = registry.store.get(_MACHINES, key)
    if machine is None:
        raise not_found("kubevirt.io", "virtualmachines", key.name)
    instance = registry.store.get(_INSTANCES, key)
    if run_strategy(machine) in {"Halted", "Once"}:
        why = f"{run_strategy(machine)} does not support manual restart requests"
        raise conflict("kubevirt.io", "virtualmachines", key.name, why)
    if instance is None or is_terminating(instance):
        raise conflict("kubevirt.io", "virtualmachines", key.name, "VM is not running")
    if value_at(machine, "status", "stateChangeRequests"):
        raise conflict(
            "kubevirt.io", "virtualmachines", key.name, "unable to complete request: stop/start already underway"
        )
    requests = [{"action": "Stop", "uid": instance["metadata"]["uid"]}, {"action": "Start"}]
    registry.set_status(_MACHINES, key, {**(machine.get("status") or {}), "stateChangeRequests": requests})


def run_strategy(machine: Obj) -> str:
    """Return the run strategy of a VirtualMachine."""
    spec = machine["spec"]
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))


def _owned(plane: ControlPlane, resource: str, owner: Obj) -> Sequence[Obj]:
    uid = owner["metadata"]["uid"]
    found = (each for name, each in plane.store.dependents(uid) if name == resource)
    return sorted(
        (each for each in found if (controller_of(each) or {}).get("uid") == uid), key=lambda one: key_of(one).name
    )


def _made(owner: Obj, template: Obj, *, name: str = "", prefix: str = "") -> Obj:
    """Return an object of a template, controlled by the owner."""
    metadata = copy_of(template.get("metadata") or {})
    metadata |= {"namespace": owner["metadata"]["namespace"], "ownerReferences": [controller_reference(owner)]}
    metadata |= {"name": name} if name else {"generateName": prefix}
    return {"metadata": metadata, "spec": copy_of(template.get("spec") or {})}


class Instances:
    """Runs every VirtualMachineInstance in a pod."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_INSTANCES: itself, "pods": its_controller("VirtualMachineInstance")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        instance = self._plane.store.get(_INSTANCES, key)
        if instance is None:
            return
        pods = _owned(self._plane, "pods", instance)
        if is_terminating(instance):
            for pod in pods:
                self._plane.delete("pods", pod)
            if not pods:
                self._plane.registry.change(_INSTANCES, key, lambda obj: obj["metadata"].update(finalizers=[]))
            return
        phase = value_at(instance, "status", "phase")
        if not pods and phase not in _ENDED:
            self._plane.registry.change(_INSTANCES, key, lambda obj: obj["metadata"].update(finalizers=[_FINALIZER]))
            self._plane.create("pods", self._launcher(instance))
        elif pods:
            self._plane.registry.set_status(_INSTANCES, key, _instance_status(instance, pods[0]))

    @staticmethod
    def _launcher(instance: Obj) -> Obj:
        pod = _made(instance, {}, prefix=f"virt-launcher-{instance['metadata']['name']}-")
        pod["metadata"]["labels"] = {**labels_of(instance), "kubevirt.io": "virt-launcher"}
        spec = {"containers": [{"name": "compute", "image": _LAUNCHER}], "restartPolicy": "Never"}
        if instance["spec"].get("nodeSelector"):
            spec["nodeSelector"] = instance["spec"]["nodeSelector"]
        return {**pod, "spec": spec}


def _instance_status(instance: Obj, pod: Obj) -> Obj:
    phase = value_at(pod, "status", "phase")
    is_ready = phase == "Running" and condition_is_true(pod, "Ready")
    node, address = value_at(pod, "spec", "nodeName"), value_at(pod, "status", "podIP")
    status: Obj = {
        "phase": phase if phase in _ENDED else "Running" if is_ready else "Scheduled" if node else "Scheduling",
        "conditions": with_condition(
            value_at(instance, "status", "conditions") or [],
            "Ready",
            status=is_ready,
            reason="Ready" if is_ready else "GuestNotRunning",
        ),
    }
    if node:
        status["nodeName"] = node
    if is_ready:
        status["interfaces"] = [{"name": "default", "ipAddress": address, "ipAddresses": [address]}]
    return status


class VirtualMachines:
    """Gives every VirtualMachine an instance, as its run strategy and the requests to it say."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_MACHINES: itself, _INSTANCES: its_controller("VirtualMachine")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        machine = self._plane.store.get(_MACHINES, key)
        if machine is None or is_terminating(machine):
            return
        instance, strategy = self._plane.store.get(_INSTANCES, key), run_strategy(machine)
        requests = list(value_at(machine, "status", "stateChangeRequests") or [])
        if instance is None:
            requests = [each for each in requests if each["action"] != "Stop"]
            if self._is_to_start(machine, strategy, requests):
                requests = []
                made = _made(machine, machine["spec"]["template"], name=key.name)
                made["metadata"]["annotations"] = {
                    **annotations_of(made), _GENERATION: str(machine["metadata"]["generation"])
                }  # fmt: skip
                self._plane.create(_INSTANCES, made)
        elif not is_terminating(instance) and _is_to_end(instance, strategy, requests):
            if strategy == "RerunOnFailure" and value_at(instance, "status", "phase") == "Failed":
                requests.append({"action": "Start"})
            self._plane.delete(_INSTANCES, instance)
        shown = self._plane.store.get(_INSTANCES, key)
        self._plane.registry.set_status(_MACHINES, key, _machine_status(machine, shown, strategy, requests))

    @staticmethod
    def _is_to_start(machine: Obj, strategy: str, requests: Sequence[Obj]) -> bool:
        is_asked = any(each["action"] == "Start" for each in requests)
        is_new = value_at(machine, "status", "runStrategy") != strategy
        return {
            "Halted": False,
            "Manual": is_asked,
            # An instance that was deleted is not started again, unless by a request.
            "RerunOnFailure": is_asked or is_new,
        }.get(strategy, True)


def _is_to_end(instance: Obj, strategy: str, requests: Sequence[Obj]) -> bool:
    uid = instance["metadata"]["uid"]
    is_asked = any(each["action"] == "Stop" and each.get("uid") == uid for each in requests)
    has_ended = value_at(instance, "status", "phase") in _ENDED
    return is_asked or strategy == "Halted" or (has_ended and strategy in {"Always", "RerunOnFailure"})


def _machine_status(machine: Obj, instance: Obj | None, strategy: str, requests: list[Obj]) -> Obj:
    is_ready = instance is not None and condition_is_true(instance, "Ready") and not is_terminating(instance)
    if instance is None:
        shown = "Stopped"
    elif is_terminating(instance):
        shown = "Stopping"
    else:
        shown = "Running" if is_ready else "Starting"
    generation = machine["metadata"]["generation"]
    runs = annotations_of(instance or {"metadata": {}}).get(_GENERATION, str(generation))
    conditions = with_condition(
        value_at(machine, "status", "conditions") or [], "Ready", status=is_ready, reason="Ready" if is_ready else shown
    )
    has_changed = instance is not None and instance["spec"] != value_at(machine, "spec", "template", "spec")
    conditions = [each for each in conditions if each["type"] != "RestartRequired"]
    if has_changed:
        conditions = with_condition(
            conditions, "RestartRequired", status=True, reason="RestartRequired", message="a non-live-updatable field was changed"
        )  # fmt: skip
    return {
        "printableStatus": shown,
        "runStrategy": strategy,
        "created": instance is not None,
        "ready": is_ready,
        "observedGeneration": int(runs),
        "desiredGeneration": generation,
        "conditions": conditions,
        **({"stateChangeRequests": requests} if requests else {}),
    }


def _write_counts(plane: ControlPlane, resource: str, owner: Obj, machines: Sequence[Obj], selector: str) -> None:
    alive = [each for each in machines if not is_terminating(each)]
    ready = sum(condition_is_true(each, "Ready") for each in alive)
    status = {"replicas": len(alive), "readyReplicas": ready, "labelSelector": selector}
    plane.registry.set_status(resource, key_of(owner), status)


class InstanceSets:
    """Keeps the number of instances of every VirtualMachineInstanceReplicaSet."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_SETS: itself, _INSTANCES: its_controller("VirtualMachineInstanceReplicaSet")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        found = self._plane.store.get(_SETS, key)
        if found is None or is_terminating(found):
            return
        spec = found["spec"]
        if not spec.get("paused"):
            machines = _owned(self._plane, _INSTANCES, found)
            for each in machines:
                if value_at(each, "status", "phase") in _ENDED and not is_terminating(each):
                    self._plane.delete(_INSTANCES, each)
            alive = [each for each in _owned(self._plane, _INSTANCES, found) if not is_terminating(each)]
            wanted = spec.get("replicas", 1)
            for _ in range(wanted - len(alive)):
                self._plane.create(_INSTANCES, _made(found, spec["template"], prefix=key.name))
            for each in sorted(alive, key=lambda one: condition_is_true(one, "Ready"))[: max(0, len(alive) - wanted)]:
                self._plane.delete(_INSTANCES, each)
        machines = _owned(self._plane, _INSTANCES, found)
        _write_counts(self._plane, _SETS, found, machines, selector_text(spec.get("selector")) or "")


class Pools:
    """Keeps the number of VirtualMachines of every VirtualMachinePool, whose names have the lowest free numbers."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_POOLS: itself, _MACHINES: its_controller("VirtualMachinePool")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        pool = self._plane.store.get(_POOLS, key)
        if pool is None or is_terminating(pool):
            return
        spec = pool["spec"]
        if not spec.get("paused"):
            alive = [each for each in _owned(self._plane, _MACHINES, pool) if not is_terminating(each)]
            wanted = spec.get("replicas", 1)
            for name in self._free_names(key, wanted - len(alive)):
                self._plane.create(_MACHINES, _made(pool, spec["virtualMachineTemplate"], name=name))
            for each in alive[wanted:]:
                self._plane.delete(_MACHINES, each)
        machines = _owned(self._plane, _MACHINES, pool)
        _write_counts(self._plane, _POOLS, pool, machines, selector_text(spec.get("selector")) or "")

    def _free_names(self, key: Key, most: int) -> Iterable[str]:
        names = (f"{key.name}-{number}" for number in count())
        free = (name for name in names if self._plane.store.get(_MACHINES, Key(key.namespace, name)) is None)
        return [next(free) for _ in range(most)]
