"""MachineDeployments, one MachineSet for each template, and MachineSets, a fixed number of Machines."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.machines import new_machine
from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLUSTERS,
    DELETE_MACHINE,
    DEPLOYMENTS,
    MACHINES,
    SETS,
    add_finalizer,
    cluster_of,
    is_due,
    is_paused,
    of_the_same_cluster,
    own,
    owner_reference,
    remove_finalizer,
    roll_out_after,
    write_status,
)
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import template_hash
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    annotations_of,
    condition_is_true,
    is_terminating,
    key_of,
    labels_of,
    value_at,
)

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_DEPLOYMENT_LABEL: Final = "cluster.x-k8s.io/deployment-name"
_SET_FINALIZER: Final = "cluster.x-k8s.io/machineset"
_DEPLOYMENT_FINALIZER: Final = "cluster.x-k8s.io/machinedeployment"


def owned(plane: ControlPlane, resource: str, owner: Obj) -> Sequence[Obj]:
    """Return the objects of a resource that the owner controls."""
    uid = owner["metadata"]["uid"]
    return [each for name, each in plane.store.dependents(uid) if name == resource]


def create_owned(plane: ControlPlane, resource: str, owner: Obj, obj: Obj) -> None:
    """Create an object of the owner, unless it exists or its namespace ends."""
    obj["metadata"]["ownerReferences"] = [owner_reference(owner)]
    try:
        plane.create(resource, obj)
    except ApiError as error:
        if error.code not in {403, 404, 409}:
            raise


def random_name(prefix: str) -> str:
    """Return the name of a Machine."""
    return f"{prefix}-{''.join(random.choices(_LETTERS, k=5))}"


def by_worth(machines: Sequence[Obj]) -> Sequence[Obj]:
    """Return Machines in the order in which they are deleted: chosen ones, those that are not ready, the newest."""

    def worth(machine: Obj) -> tuple[bool, bool, int]:
        is_chosen = DELETE_MACHINE in annotations_of(machine)
        return (not is_chosen, condition_is_true(machine, "Ready"), -int(machine["metadata"]["resourceVersion"]))

    return sorted(machines, key=worth)


def counted(machines: Sequence[Obj], wanted: int) -> Obj:
    """Return the counts of an owner of Machines."""
    ready = sum(condition_is_true(each, "Ready") for each in machines)
    available = sum(condition_is_true(each, "Available") for each in machines)
    return {
        "replicas": len(machines),
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
    }


def first_message(machines: Sequence[Obj]) -> str:
    """Return the message of the first condition of a Machine that is False."""
    messages = (
        f"Machine {machine['metadata']['name']}: {condition['message']}"
        for machine in machines
        for condition in value_at(machine, "status", "conditions") or []
        if condition["status"] == "False" and condition.get("message")
    )
    return next(messages, "")


class MachineSets:
    """Keeps the number of Machines of every MachineSet."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {SETS: itself, MACHINES: its_controller("MachineSet"), CLUSTERS: of_the_same_cluster(self._plane, SETS)}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        found = self._plane.store.get(SETS, key)
        if found is None:
            return
        cluster = cluster_of(self._plane, found)
        if cluster is None or is_paused(cluster):
            return
        if is_terminating(found):
            machines = owned(self._plane, MACHINES, found)
            for machine in machines:
                self._plane.delete(MACHINES, machine)
            if not machines:
                remove_finalizer(self._plane, SETS, key, _SET_FINALIZER)
            return
        if is_terminating(cluster):
            return
        add_finalizer(self._plane, SETS, key, _SET_FINALIZER)
        wanted = found["spec"].get("replicas", 1)
        alive = [each for each in owned(self._plane, MACHINES, found) if not is_terminating(each)]
        template = found["spec"]["template"]
        for _ in range(wanted - len(alive)):
            labels = {**labels_of(found), **(value_at(template, "metadata", "labels") or {})}
            machine = new_machine(found, name=random_name(key.name), labels=labels, spec=dict(template["spec"]))
            create_owned(self._plane, MACHINES, found, machine)
        for machine in by_worth(alive)[: max(0, len(alive) - wanted)]:
            self._plane.delete(MACHINES, machine)
        machines = owned(self._plane, MACHINES, found)
        counts = counted(machines, wanted)
        write_status(
            self._plane, SETS, key, new={"MachinesReady": (counts["readyReplicas"] == wanted, "")},
            old={"Ready": (counts["readyReplicas"] == wanted, "")}, more=counts,
        )  # fmt: skip


class MachineDeployments:
    """Rolls out every MachineDeployment: a new MachineSet for a new template, the old ones emptied when it is ready."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {
            DEPLOYMENTS: itself,
            SETS: its_controller("MachineDeployment"),
            CLUSTERS: of_the_same_cluster(self._plane, DEPLOYMENTS),
        }

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        deployment = self._plane.store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        cluster = cluster_of(self._plane, deployment)
        if cluster is None or is_paused(cluster):
            return
        if is_terminating(deployment):
            sets = owned(self._plane, SETS, deployment)
            for each in sets:
                self._plane.delete(SETS, each)
            if not sets:
                remove_finalizer(self._plane, DEPLOYMENTS, key, _DEPLOYMENT_FINALIZER)
            return
        if is_terminating(cluster):
            return
        add_finalizer(self._plane, DEPLOYMENTS, key, _DEPLOYMENT_FINALIZER)
        own(self._plane, DEPLOYMENTS, key, cluster)
        self._plane.registry.change(DEPLOYMENTS, key, _with_replicas)
        deployment = self._plane.store.get(DEPLOYMENTS, key) or deployment
        current = self._current(deployment)
        self._roll(deployment, current)
        self._write(key)

    def _name(self, deployment: Obj) -> str:
        template, after = deployment["spec"]["template"], roll_out_after(deployment)
        made_from = {**template, "rollOutAfter": str(after)} if is_due(after) else template
        return f"{deployment['metadata']['name']}-{template_hash(made_from)}"

    def _current(self, deployment: Obj) -> Obj | None:
        """Return the MachineSet of the present template, made if needed."""
        key = Key(deployment["metadata"]["namespace"], self._name(deployment))
        found = self._plane.store.get(SETS, key)
        if found is not None:
            return found
        template = deployment["spec"]["template"]
        labels = {_DEPLOYMENT_LABEL: deployment["metadata"]["name"], **(value_at(template, "metadata", "labels") or {})}
        made = {
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
            "spec": {
                "clusterName": deployment["spec"]["clusterName"],
                "replicas": deployment["spec"].get("replicas", 1),
                "template": template,
            },
        }
        create_owned(self._plane, SETS, deployment, made)
        return self._plane.store.get(SETS, key)

    def _roll(self, deployment: Obj, current: Obj | None) -> None:
        wanted = deployment["spec"].get("replicas", 1)
        if current is None:
            return
        self._size(current, wanted)
        if (value_at(current, "status", "readyReplicas") or 0) < wanted:
            return
        for each in owned(self._plane, SETS, deployment):
            if each["metadata"]["uid"] == current["metadata"]["uid"]:
                continue
            self._size(each, 0)
            if not value_at(each, "status", "replicas"):
                self._plane.delete(SETS, each)

    def _size(self, machine_set: Obj, replicas: int) -> None:
        self._plane.registry.change(SETS, key_of(machine_set), lambda obj: obj["spec"].update(replicas=replicas))

    def _write(self, key: Key) -> None:
        deployment = self._plane.store.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        wanted, sets = deployment["spec"].get("replicas", 1), owned(self._plane, SETS, deployment)
        machines = [machine for each in sets for machine in owned(self._plane, MACHINES, each)]
        current = [each for each in sets if each["metadata"]["name"] == self._name(deployment)]
        counts = counted(machines, wanted)
        updated = sum(len(owned(self._plane, MACHINES, each)) for each in current)
        available = counts["availableReplicas"] >= wanted
        why = "" if available else first_message(machines)
        changing = counts["replicas"] != updated
        write_status(
            self._plane, DEPLOYMENTS, key,
            new={
                "Available": (available, why),
                "RollingOut": (changing, ""),
                "ScalingUp": (counts["replicas"] < wanted, ""),
                "ScalingDown": (counts["replicas"] > wanted and not changing, ""),
            },
            old={"Available": (available, why), "MachineSetReady": (available, why), "Ready": (available, why)},
            more={**counts, "upToDateReplicas": updated, "phase": "Running" if available else "ScalingUp"},
        )  # fmt: skip


def _with_replicas(deployment: Obj) -> None:
    """As the webhook: a number that was left out is the least one of the autoscaler."""
    least = annotations_of(deployment).get("cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size", "1")
    deployment["spec"].setdefault("replicas", int(least))
