"""KubeadmControlPlanes: the Machines of a control plane, one after another, and the kubeconfig of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.machines import new_machine
from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLUSTERS,
    CONTROL_PLANE_LABEL,
    DEPLOYMENTS,
    MACHINES,
    NAME_LABEL,
    PLANES,
    SETS,
    add_finalizer,
    cluster_of,
    endpoint_of,
    is_due,
    is_paused,
    is_true,
    made_at,
    of_cluster,
    of_the_same_cluster,
    remove_finalizer,
    roll_out_after,
    write_status,
)
from kubevnfm_lab.kubernetes.controllers.capi.sets import (
    by_worth,
    counted,
    create_owned,
    first_message,
    owned,
    random_name,
)
from kubevnfm_lab.kubernetes.controllers.capi.workloads import Workloads, encoded, kubeconfig_of
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import template_hash
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    annotations_of,
    condition_is_true,
    is_terminating,
    labels_of,
    value_at,
)

_FINALIZER: Final = "kubeadm.controlplane.cluster.x-k8s.io"
_MADE_FROM: Final = "lab.kubevnfm.io/made-from"
"""On a Machine: the hash of what it was made from. Cluster API compares the objects themselves."""


class ControlPlanes:
    """Keeps the Machines of every KubeadmControlPlane."""

    def __init__(self, plane: ControlPlane, workloads: Workloads) -> None:
        self._plane, self._workloads = plane, workloads

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        in_cluster = of_the_same_cluster(self._plane, PLANES)
        return {
            PLANES: itself,
            CLUSTERS: in_cluster,
            # Its kubeconfig, if that was deleted. Cluster API makes it again at its next look.
            "secrets": its_controller("KubeadmControlPlane"),
            # Workers too: the control plane is deleted after them.
            MACHINES: lambda change: {*its_controller("KubeadmControlPlane")(change), *in_cluster(change)},
        }

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        found = self._plane.store.get(PLANES, key)
        if found is None:
            return
        cluster = cluster_of(self._plane, found)
        if cluster is None or is_paused(cluster):
            return
        if is_terminating(found):
            self._remove(key, found, cluster)
            return
        if is_terminating(cluster):
            return
        add_finalizer(self._plane, PLANES, key, _FINALIZER)
        if endpoint_of(cluster) is not None:
            self._ensure_kubeconfig(found, cluster)
            self._keep_number(found)
        self._write(key)

    def _ensure_kubeconfig(self, found: Obj, cluster: Obj) -> None:
        name, workload = cluster["metadata"]["name"], self._workloads.find(cluster)
        key = Key(found["metadata"]["namespace"], f"{name}-kubeconfig")
        if workload is None or self._plane.store.get("secrets", key) is not None:
            return
        secret = {
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": {NAME_LABEL: name}},
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": encoded(kubeconfig_of(workload, name))},
        }
        create_owned(self._plane, "secrets", found, secret)

    def _keep_number(self, found: Obj) -> None:
        wanted, version = found["spec"].get("replicas", 1), found["spec"]["version"]
        everything = owned(self._plane, MACHINES, found)
        alive = [each for each in everything if not is_terminating(each)]
        # One Machine at a time in each direction, as etcd members join and leave.
        if any(not condition_is_true(each, "InfrastructureReady") for each in alive):
            return
        is_started = any(value_at(each, "status", "nodeRef") for each in alive)
        outdated = [each for each in alive if _is_outdated(each, found)]
        if len(alive) < wanted + (1 if outdated else 0) and (not alive or is_started):
            labels = {**labels_of(found), CONTROL_PLANE_LABEL: ""}
            spec = {"version": version}
            machine = new_machine(found, name=random_name(found["metadata"]["name"]), labels=labels, spec=spec)
            machine["metadata"]["annotations"] = {**annotations_of(machine), _MADE_FROM: _made_from(found)}
            create_owned(self._plane, MACHINES, found, machine)
        elif len(alive) > wanted and len(everything) == len(alive):
            candidates = outdated or alive
            if all(condition_is_true(each, "Ready") for each in alive if each not in candidates):
                self._plane.delete(MACHINES, by_worth(candidates)[0])

    def _remove(self, key: Key, found: Obj, cluster: Obj) -> None:
        workers = [SETS, DEPLOYMENTS, MACHINES]
        mine = owned(self._plane, MACHINES, found)
        uids = {each["metadata"]["uid"] for each in mine}
        if any(
            each["metadata"]["uid"] not in uids for name in workers for each in of_cluster(self._plane, name, cluster)
        ):
            return
        for machine in mine:
            self._plane.delete(MACHINES, machine)
        if not mine:
            remove_finalizer(self._plane, PLANES, key, _FINALIZER)

    def _write(self, key: Key) -> None:
        found = self._plane.store.get(PLANES, key)
        if found is None:
            return
        wanted, machines = found["spec"].get("replicas", 1), owned(self._plane, MACHINES, found)
        counts = counted(machines, wanted)
        versions = [str(value_at(each, "spec", "version")) for each in machines] or [found["spec"]["version"]]
        updated = sum(not _is_outdated(each, found) for each in machines)
        is_initialized = is_true(found, "status", "initialization", "controlPlaneInitialized") or any(
            value_at(each, "status", "nodeRef") for each in machines
        )
        available, changing = counts["availableReplicas"] >= 1, counts["replicas"] != updated
        why = first_message(machines)
        is_sized = counts["replicas"] == wanted
        write_status(
            self._plane, PLANES, key,
            new={
                "Available": (available, why),
                "Initialized": (is_initialized, ""),
                "CertificatesAvailable": (True, ""),
                "EtcdClusterHealthy": (is_initialized, ""),
                "ControlPlaneComponentsHealthy": (is_initialized, ""),
                "MachinesUpToDate": (not changing, ""),
                "RollingOut": (changing, ""),
                "ScalingUp": (counts["replicas"] < wanted, ""),
                "ScalingDown": (counts["replicas"] > wanted and not changing, ""),
            },
            old={
                "Available": (is_initialized, ""),
                "Ready": (available and is_sized, why),
                "CertificatesAvailable": (True, ""),
                "MachinesSpecUpToDate": (not changing, ""),
                "Resized": (is_sized, ""),
            },
            more={
                **counts, "upToDateReplicas": updated, "version": min(versions),
                "initialization": {"controlPlaneInitialized": is_initialized},
            },
            for_v1beta1={"initialized": is_initialized, "ready": available},
        )  # fmt: skip


def _made_from(found: Obj) -> str:
    return template_hash(
        {name: found["spec"].get(name) for name in ("version", "machineTemplate", "kubeadmConfigSpec")}
    )


def _is_outdated(machine: Obj, found: Obj) -> bool:
    after = roll_out_after(found)
    is_old = after is not None and is_due(after) and made_at(machine) < after
    return is_old or annotations_of(machine).get(_MADE_FROM) != _made_from(found)
