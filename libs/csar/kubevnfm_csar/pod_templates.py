"""Where objects of Kubernetes have the pods, or the machines of KubeVirt, that their controllers make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ApiKind = tuple[str, str]
"""API group and kind."""

POD_TEMPLATES: Final[Mapping[ApiKind, tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): ("spec", "template"),
}
"""The path of what has a pod's ``metadata`` and ``spec``, by API group and kind: all kinds of Kubernetes that bear pods. It is not
known which pods controllers make of custom resources."""
MACHINE_TEMPLATES: Final[Mapping[ApiKind, tuple[str, ...]]] = {
    ("kubevirt.io", "VirtualMachine"): ("spec", "template"),
    ("kubevirt.io", "VirtualMachineInstance"): (),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): ("spec", "template"),
    ("pool.kubevirt.io", "VirtualMachinePool"): ("spec", "virtualMachineTemplate", "spec", "template"),
}
"""The same of what has the ``metadata`` and ``spec`` of a VirtualMachineInstance."""
OWNED_MACHINE_TEMPLATES: Final[Mapping[ApiKind, tuple[str, ...]]] = {
    ("pool.kubevirt.io", "VirtualMachinePool"): ("spec", "virtualMachineTemplate"),
}
"""The same of what has the ``metadata`` and ``spec`` of VirtualMachines, which a controller makes."""
REPLICATED: Final[frozenset[ApiKind]] = frozenset(
    {
        ("", "ReplicationController"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("kubevirt.io", "VirtualMachineInstanceReplicaSet"),
        ("pool.kubevirt.io", "VirtualMachinePool"),
    }
)
"""The kinds of both whose ``spec.replicas`` is the number of pods or machines. A VirtualMachine is one machine."""


def api_kind(body: Mapping[str, Any]) -> ApiKind:
    """Return the API group and the kind of an object, "" for what it does not have."""
    version = str(body.get("apiVersion") or "")
    return version.rpartition("/")[0], str(body.get("kind") or "")
