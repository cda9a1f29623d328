"""Manifests of virtual machines, and KubeVirt's definitions in short: their subresources are as in the real ones."""

from __future__ import annotations

from typing import Any, Final

from packages.kubernetes_objects import an_object

_SCALE: Final = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.labelSelector",
}
_KINDS: Final = (
    ("VirtualMachine", "kubevirt.io", "v1", False),
    ("VirtualMachineInstance", "kubevirt.io", "v1", False),
    ("VirtualMachineInstanceReplicaSet", "kubevirt.io", "v1", True),
    ("VirtualMachinePool", "pool.kubevirt.io", "v1beta1", True),
)


def kubevirt_definitions() -> list[dict[str, Any]]:
    """Return the definitions of the four kinds."""
    open_schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    found = []
    for kind, group, version, is_scalable in _KINDS:
        plural = f"{kind.lower()}s"
        served = {
            "name": version, "served": True, "storage": True, "schema": open_schema,
            "subresources": {"status": {}, **({"scale": _SCALE} if is_scalable else {})},
        }  # fmt: skip
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
        found.append(
            an_object("CustomResourceDefinition", f"{plural}.{group}", api_version="apiextensions.k8s.io/v1", spec=spec)
        )
    return found


def a_guest(name: str = "main") -> dict[str, Any]:
    """Return the template of an instance."""
    disk = {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:42"}}
    return {
        "metadata": {"labels": {"vm": name}},
        "spec": {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {}}]}, "memory": {"guest": "1Gi"}},
            "volumes": [disk],
        },
    }


def a_machine(name: str, *, run_strategy: str = "Always") -> dict[str, Any]:
    """Return a VirtualMachine."""
    spec = {"runStrategy": run_strategy, "template": a_guest(name)}
    return an_object("VirtualMachine", name, api_version="kubevirt.io/v1", spec=spec)


def an_instance(name: str) -> dict[str, Any]:
    """Return a VirtualMachineInstance without a VirtualMachine."""
    spec = a_guest(name)["spec"]
    return an_object("VirtualMachineInstance", name, api_version="kubevirt.io/v1", spec=spec)


def an_instance_set(name: str, *, replicas: int = 2) -> dict[str, Any]:
    """Return a VirtualMachineInstanceReplicaSet."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"vm": name}}, "template": a_guest(name)}
    return an_object("VirtualMachineInstanceReplicaSet", name, api_version="kubevirt.io/v1", spec=spec)


def a_pool(name: str, *, replicas: int = 2) -> dict[str, Any]:
    """Return a VirtualMachinePool."""
    machine = {"metadata": {"labels": {"vm": name}}, "spec": a_machine(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"vm": name}}, "virtualMachineTemplate": machine}
    return an_object("VirtualMachinePool", name, api_version="pool.kubevirt.io/v1beta1", spec=spec)
