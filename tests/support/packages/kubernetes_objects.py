"""Manifests of small Kubernetes objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def a_pod(*, annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod template with the label ``app: web``; the annotation ``stage`` chooses an image of its own."""
    metadata: dict[str, Any] = {"labels": {"app": "web"}, **({"annotations": dict(annotations)} if annotations else {})}
    image = f"stage/{annotations['stage']}" if annotations else "nginx:1.27"
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def an_object(kind: str, name: str, *, api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    """Return an object of any kind."""
    return {"apiVersion": api_version, "kind": kind, **rest, "metadata": {"name": name, **rest.get("metadata", {})}}


def a_deployment(name: str = "web", *, replicas: int = 2, pod: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a Deployment of the template."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod or a_pod()}
    return an_object("Deployment", name, api_version="apps/v1", spec=spec)


def a_job(
    name: str, *, command: str = "true", annotations: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return a Job that does not retry."""
    pod = a_pod(annotations=annotations, restartPolicy="Never")
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", command]
    return an_object("Job", name, api_version="batch/v1", spec={"template": pod, "backoffLimit": 0, **spec})


def things_of(group: str) -> dict[str, Any]:
    """Return a definition of the kind Thing in a group of its own."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    return an_object("CustomResourceDefinition", f"things.{group}", api_version="apiextensions.k8s.io/v1", spec=spec)
