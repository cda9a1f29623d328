"""The other forms of objects: the tables that kubectl prints, and their metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_lab.kubernetes.objects import Obj, condition, value_at
from kubevnfm_lab.kubernetes.resources import Resource


def wants_table(accept: str) -> bool:
    """Return whether the client prefers a table."""
    return "as=Table" in accept.partition(",")[0]


def wants_metadata(accept: str) -> bool:
    """Return whether the client prefers objects with nothing but their metadata."""
    return "as=PartialObjectMetadata" in accept.partition(",")[0]


def as_metadata(answer: Obj) -> Obj:
    """Return an object or a list with the metadata alone (``meta.k8s.io/v1``)."""
    known = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    if "items" not in answer:
        return {**known, "metadata": answer["metadata"]}
    items = [{**known, "metadata": each["metadata"]} for each in answer["items"]]
    return {**known, "kind": "PartialObjectMetadataList", "metadata": answer["metadata"], "items": items}


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _count(obj: Obj, *path: str) -> str:
    return str(value_at(obj, *path) or 0)


def _pod_ready(obj: Obj) -> str:
    statuses = value_at(obj, "status", "containerStatuses") or []
    return f"{sum(bool(s.get('ready')) for s in statuses)}/{len(obj['spec']['containers'])}"


def _pod_status(obj: Obj) -> str:
    # No phase says so: Terminating exists only in what kubectl prints.
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for status in value_at(obj, "status", "containerStatuses") or []:
        if reason := value_at(status, "state", "waiting", "reason"):
            return str(reason)
    return str(value_at(obj, "status", "phase") or "Unknown")


def _node_status(obj: Obj) -> str:
    ready = condition(obj, "Ready")
    text = "Ready" if ready is not None and ready["status"] == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if value_at(obj, "spec", "unschedulable") else text


def _roles(obj: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [name.removeprefix(prefix) for name in obj["metadata"].get("labels") or {} if name.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _ports(obj: Obj) -> str:
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in value_at(obj, "spec", "ports") or [])


_COLUMNS: Final[Mapping[str, Sequence[tuple[str, Callable[[Obj], str]]]]] = {
    "pods": (
        ("Ready", _pod_ready),
        ("Status", _pod_status),
        ("Node", lambda o: str(value_at(o, "spec", "nodeName") or "<none>")),
    ),
    "nodes": (
        ("Status", _node_status),
        ("Roles", _roles),
        ("Version", lambda o: str(value_at(o, "status", "nodeInfo", "kubeletVersion"))),
    ),
    "namespaces": (("Status", lambda o: str(value_at(o, "status", "phase"))),),
    "services": (
        ("Type", lambda o: str(value_at(o, "spec", "type"))),
        ("Cluster-IP", lambda o: str(value_at(o, "spec", "clusterIP"))),
        ("Port(s)", _ports),
    ),
    "deployments.apps": (
        ("Ready", lambda o: f"{_count(o, 'status', 'readyReplicas')}/{_count(o, 'spec', 'replicas')}"),
        ("Up-to-date", lambda o: _count(o, "status", "updatedReplicas")),
        ("Available", lambda o: _count(o, "status", "availableReplicas")),
    ),
    "statefulsets.apps": (
        ("Ready", lambda o: f"{_count(o, 'status', 'readyReplicas')}/{_count(o, 'spec', 'replicas')}"),
    ),
    "persistentvolumeclaims": (
        ("Status", lambda o: str(value_at(o, "status", "phase"))),
        ("Volume", lambda o: str(value_at(o, "spec", "volumeName") or "")),
    ),
    "events": (
        ("Type", lambda o: str(o.get("type"))),
        ("Reason", lambda o: str(o.get("reason"))),
        ("Message", lambda o: str(o.get("message"))),
    ),
}


def as_table(answer: Obj, resource: Resource) -> Obj:
    """Return an object or a list as a ``meta.k8s.io/v1`` Table."""
    is_list = "items" in answer
    columns = (("Name", _name), *_COLUMNS.get(resource.store_name, ()), ("Age", _age))
    rows = [
        {
            "cells": [cell(obj) for _, cell in columns],
            "object": as_metadata({"metadata": obj["metadata"]}),
        }
        for obj in (answer["items"] if is_list else [answer])
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": answer["metadata"] if is_list else {"resourceVersion": answer["metadata"]["resourceVersion"]},
        "columnDefinitions": [_column(name) for name, _ in columns],
        "rows": rows,
    }


def _column(name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "type": "string",
        "format": "name" if name == "Name" else "",
        "description": "",
        "priority": 0,
    }


def _age(obj: Obj) -> str:
    made = datetime.fromisoformat(obj["metadata"]["creationTimestamp"].replace("Z", "+00:00"))
    seconds = int((datetime.now(UTC) - made).total_seconds())
    return f"{seconds // 60}m" if seconds >= 120 else f"{seconds}s"
