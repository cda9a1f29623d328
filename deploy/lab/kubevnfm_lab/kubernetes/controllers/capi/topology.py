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
from kubevnfm_lab.kubernetes.controllers.capi.sets import random_name
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, is_terminating, labels_of, value_at
from kubevnfm_lab.kubernetes.store import Change

_DEPLOYMENT_NAME = "topology.cluster.x-k8s.io/deployment-name"
_MADE_FROM = "cluster.x-k8s.io/cloned-from-name"
"""On a copy of a template of the class: the name of that."""
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
        infrastructure = self._keep(
            cluster, INFRASTRUCTURES, key.name, labels, self._template(key, found, "infrastructure", "infrastructure")
        )
        plane_spec = self._template(key, found, "control plane", "controlPlane")
        replicas = value_at(topology, "controlPlane", "replicas")
        sized = {} if replicas is None else {"replicas": replicas}
        machines = self._copied(cluster, value_at(found, "spec", "controlPlane", "machineInfrastructure"), labels)
        sized["machineTemplate"] = {"spec": {"infrastructureRef": machines}}
        plane = self._keep(cluster, PLANES, key.name, labels, {**plane_spec, **sized, "version": version})
        workers = value_at(found, "spec", "workers", "machineDeployments") or []
        classes = {each["class"]: each.get("template", each) for each in workers}
        for each in value_at(topology, "workers", "machineDeployments") or []:
            worker_labels = {**labels, _DEPLOYMENT_NAME: each["name"]}
            described = classes.get(each["class"])
            spec = {
                "clusterName": key.name,
                # Left out where an autoscaler owns the number.
                **({"replicas": each["replicas"]} if "replicas" in each else {}),
                "template": {
                    "metadata": {"labels": worker_labels},
                    "spec": {
                        "version": version,
                        "bootstrap": {
                            "configRef": self._copied(cluster, value_at(described, "bootstrap"), worker_labels)
                        },
                        "infrastructureRef": self._copied(
                            cluster, value_at(described, "infrastructure"), worker_labels
                        ),
                    },
                },
            }
            annotations = value_at(each, "metadata", "annotations") or {}
            self._keep(cluster, DEPLOYMENTS, f"{key.name}-{each['name']}", worker_labels, spec, annotations)
        self._refer(key, infrastructure, plane)

    def _template(self, key: Key, found: Obj, name: str, field: str) -> Obj:
        part = value_at(found, "spec", field) or {}
        reference = value_at(part, "templateRef", "name") or value_at(part, "ref", "name")
        template = self._plane.store.get(_TEMPLATES[name], Key(key.namespace, str(reference)))
        spec: Obj = value_at(template, "spec", "template", "spec") or {}
        return spec

    def _copied(self, cluster: Obj, part: Obj | None, labels: Mapping[str, str]) -> Obj:
        """Return the reference to a copy of a template of the class for this Cluster, made if there is none of its spec."""
        reference: Obj = value_at(part, "templateRef") or value_at(part, "ref") or {}
        resource = self._plane.registry.table.by_kind(str(reference.get("apiVersion")), str(reference.get("kind")))
        namespace = cluster["metadata"]["namespace"]
        store = self._plane.store
        template = store.get(resource.store_name, Key(namespace, reference["name"])) if resource is not None else None
        if resource is None or template is None:
            return dict(reference)
        group, kind, made_from = resource.group, resource.kind, {_MADE_FROM: str(reference["name"])}
        for each in store.list(resource.store_name, namespace):
            if labels_of(each) == labels and each["spec"] == template["spec"] and annotations_of(each) == made_from:
                return {"apiGroup": group, "kind": kind, "name": each["metadata"]["name"]}
        prefix = "-".join(
            [cluster["metadata"]["name"], *([labels[_DEPLOYMENT_NAME]] if _DEPLOYMENT_NAME in labels else [])]
        )
        name = random_name(prefix)
        metadata = {
            "name": name, "namespace": namespace, "labels": dict(labels), "annotations": made_from,
            "ownerReferences": [owner_reference(cluster)],
        }  # fmt: skip
        self._plane.create(resource.store_name, {"metadata": metadata, "spec": template["spec"]})
        return {"apiGroup": group, "kind": kind, "name": name}

    def _keep(
        self,
        cluster: Obj,
        resource: str,
        name: str,
        labels: Mapping[str, str],
        spec: Obj,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Make the object, or change it to the spec; return its name, which is ``name`` and a random end."""
        namespace = cluster["metadata"]["namespace"]
        there = [
            each
            for each in self._plane.store.list(resource, namespace)
            if all(labels_of(each).get(label) == value for label, value in labels.items())
        ]
        if not there:
            made = random_name(name)
            metadata = {
                "name": made,
                "namespace": namespace,
                "labels": dict(labels),
                "annotations": dict(annotations or {}),
                "ownerReferences": [owner_reference(cluster)],
            }
            self._plane.create(resource, {"metadata": metadata, "spec": dict(spec)})
            return made
        name = str(there[0]["metadata"]["name"])
        # Fields that other controllers set, as the endpoint, stay; replicas set by hand are reverted.
        self._plane.registry.change(resource, Key(namespace, name), lambda obj: obj["spec"].update(spec))
        return name

    def _refer(self, key: Key, infrastructure: str, plane: str) -> None:
        infra, control = "infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
        named = {
            "infrastructureRef": {"apiGroup": infra, "kind": "OpenStackCluster", "name": infrastructure},
            "controlPlaneRef": {"apiGroup": control, "kind": "KubeadmControlPlane", "name": plane},
        }
        self._plane.registry.change(CLUSTERS, key, lambda obj: obj["spec"].update(named))


def _topology(cluster: Obj) -> Obj | None:
    found: Obj | None = value_at(cluster, "spec", "topology")
    return found
