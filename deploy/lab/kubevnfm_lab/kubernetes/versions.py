"""One object in several versions: stored in one, read and written in any that is served.

Custom resources change only their apiVersion (conversion strategy None); those of Cluster API change their status too, as
their webhooks do. Two built-in kinds really differ.
"""

from __future__ import annotations

from kubevnfm_lab.kubernetes.capi_rules import is_of_cluster_api, status_in_v1beta1, status_in_v1beta2
from kubevnfm_lab.kubernetes.objects import Obj, copy_of, value_at
from kubevnfm_lab.kubernetes.resources import Resource

_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
"""Field of ``events.k8s.io/v1``, by field of ``v1``."""


def in_version(obj: Obj, resource: Resource) -> Obj:
    """Return a stored object in the resource's version; the stored one is not changed."""
    if obj["apiVersion"] == resource.api_version:
        return obj
    shown = {**obj, "apiVersion": resource.api_version}
    if resource.name == "horizontalpodautoscalers.autoscaling":
        return _autoscaler_v1(shown)
    if resource.name == "events.events.k8s.io":
        back = {old: new for new, old in _EVENT_FIELDS.items()}
        return {back.get(name, name): value for name, value in shown.items()}
    # The newer form is the stored one.
    if is_of_cluster_api(resource.group) and resource.version == "v1beta1" and shown.get("status"):
        return {**shown, "status": status_in_v1beta1(shown["status"])}
    return shown


def for_storage(obj: Obj, resource: Resource) -> Obj:
    """Return an object of the resource's version in its stored form."""
    if resource.storage_api_version == resource.api_version:
        return obj
    stored = {**obj, "apiVersion": resource.storage_api_version}
    if resource.name == "horizontalpodautoscalers.autoscaling":
        return _autoscaler_v2(stored)
    if resource.name == "events.events.k8s.io":
        return {_EVENT_FIELDS.get(name, name): value for name, value in stored.items()}
    if is_of_cluster_api(resource.group) and resource.version == "v1beta1" and stored.get("status"):
        return {**stored, "status": status_in_v1beta2(resource.kind, stored["status"])}
    return stored


def _autoscaler_v1(obj: Obj) -> Obj:
    shown: Obj = copy_of(obj)
    for metric in shown["spec"].pop("metrics", None) or []:
        utilization = value_at(metric, "resource", "target", "averageUtilization")
        if value_at(metric, "resource", "name") == "cpu" and utilization is not None:
            shown["spec"]["targetCPUUtilizationPercentage"] = utilization
    status = shown.get("status") or {}
    status.pop("conditions", None)
    status.pop("currentMetrics", None)
    return shown


def _autoscaler_v2(obj: Obj) -> Obj:
    stored: Obj = copy_of(obj)
    utilization = stored["spec"].pop("targetCPUUtilizationPercentage", None)
    if utilization is not None:
        target = {"type": "Utilization", "averageUtilization": utilization}
        stored["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return stored
