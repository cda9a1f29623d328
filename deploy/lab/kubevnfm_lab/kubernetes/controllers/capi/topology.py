"""Clusters of a ClusterClass: the objects that the topology controller makes for them."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLASSES,
    CLUSTERS,
    DEPLOYMENTS,
    INFRASTRUCTURES,
    NAME_LABEL,
    OWNED_LABEL,
    PLANES,
    is_paused,
    owner_reference,
)
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, value_at
from kubevnfm_lab.kubernetes.store import Change

_DEPLOYMENT_NAME = "topology.cluster.x-k8s.io/deployment-name"
_TEMPLATES = {
    "infrastructure": "openstackclustertemplates.infrastructure.cluster.x-k8s.io",
    "control plane": "kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io",
}


class Topologies:
    """Makes and keeps the control plane, the workers and the infrastructure of every Cluster of a class."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {CLUSTERS: itself, CLASSES: self._users}

    def _users(self, change: Change) -> list[Key]:
        found = self._plane.store.list(CLUSTERS, change.key.namespace)
        return [Key(change.key.namespace, each["metadata"]["name"]) for each in found if _topology(each)]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        cluster = self._plane.store.get(CLUSTERS, key)
        if cluster is None or is_terminating(cluster) or is_paused(cluster):
            return
        topology = _topology(cluster)
        reference = value_at(topology, "classRef", "name") or value_at(topology, "class")
        found = self._plane.store.get(CLASSES, Key(key.namespace, str(reference))) if topology else None
        if topology is None or found is None:
            return
        version, labels = topology["version"], {NAME_LABEL: key.name, OWNED_LABEL: ""}
        infrastructure = self._template(key, found, "infrastructure", "infrastructure")
        self._keep(cluster, INFRASTRUCTURES, key.name, labels, infrastructure)
        plane_spec = self._template(key, found, "control plane", "controlPlane")
        replicas = value_at(topology, "controlPlane", "replicas")
        sized = {} if replicas is None else {"replicas": replicas}
        machines = _referred(value_at(found, "spec", "controlPlane", "machineInfrastructure"))
        sized["machineTemplate"] = {"spec": {"infrastructureRef": machines}}
        self._keep(cluster, PLANES, key.name, labels, {**plane_spec, **sized, "version": version})
        workers = value_at(found, "spec", "workers", "machineDeployments") or []
        classes = {each["class"]: each.get("template", each) for each in workers}
        for each in value_at(topology, "workers", "machineDeployments") or []:
            worker_labels = {**labels, _DEPLOYMENT_NAME: each["name"]}
            spec = {
                "clusterName": key.name,
                # Left out where an autoscaler owns the number.
                **({"replicas": each["replicas"]} if "replicas" in each else {}),
                "template": {
                    "metadata": {"labels": worker_labels},
                    "spec": {
                        "version": version,
                        "bootstrap": {"configRef": _referred(value_at(classes.get(each["class"]), "bootstrap"))},
                        "infrastructureRef": _referred(value_at(classes.get(each["class"]), "infrastructure")),
                    },
                },
            }
            annotations = value_at(each, "metadata", "annotations") or {}
            self._keep(cluster, DEPLOYMENTS, f"{key.name}-{each['name']}", worker_labels, spec, annotations)
        self._refer(key)

    def _template(self, key: Key, found: Obj, name: str, field: str) -> Obj:
        part = value_at(found, "spec", field) or {}
        reference = value_at(part, "templateRef", "name") or value_at(part, "ref", "name")
        template = self._plane.store.get(_TEMPLATES[name], Key(key.namespace, str(reference)))
        spec: Obj = value_at(template, "spec", "template", "spec") or {}
        return spec

    def _keep(
        self,
        cluster: Obj,
        resource: str,
        name: str,
        labels: Mapping[str, str],
        spec: Obj,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        namespace = cluster["metadata"]["namespace"]
        if self._plane.store.get(resource, Key(namespace, name)) is None:
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": dict(labels),
                "annotations": dict(annotations or {}),
                "ownerReferences": [owner_reference(cluster)],
            }
            self._plane.create(resource, {"metadata": metadata, "spec": dict(spec)})
            return
        # Fields that other controllers set, as the endpoint, stay; replicas set by hand are reverted.
        self._plane.registry.change(resource, Key(namespace, name), lambda obj: obj["spec"].update(spec))

    def _refer(self, key: Key) -> None:
        references = {
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster"},
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane"},
        }
        named = {field: {**reference, "name": key.name} for field, reference in references.items()}
        self._plane.registry.change(CLUSTERS, key, lambda obj: obj["spec"].update(named))


def _referred(part: Obj | None) -> Obj:
    """Return the reference to a template of a class. Cluster API copies templates, and refers to the copies."""
    return dict(value_at(part, "templateRef") or value_at(part, "ref") or {})


def _topology(cluster: Obj) -> Obj | None:
    found: Obj | None = value_at(cluster, "spec", "topology")
    return found
