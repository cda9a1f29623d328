"""The objects by which metrics-server is in a cluster: the lab's clusters play it where they are."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = "metrics-server"
_NAMESPACE: Final = "kube-system"


def api_service() -> dict[str, Any]:
    """Return the object that makes the API group known; it is not available without the others."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": _NAME, "namespace": _NAMESPACE},
        },
    }


def server() -> list[dict[str, Any]]:
    """Return its Service and a pod."""
    labels = {"k8s-app": _NAME}
    containers = [{"name": _NAME, "image": "registry.example/metrics-server:v0.9.0"}]
    metadata = {"name": _NAME, "namespace": _NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels, "ports": [{"port": 443}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "labels": labels}, "spec": {"containers": containers}},
    ]  # fmt: skip
