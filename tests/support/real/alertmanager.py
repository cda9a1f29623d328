"""Messages of Alertmanager, as it posts them for rules in the form that users of Tacker have."""

from __future__ import annotations

from typing import Any, Final

FINGERPRINT: Final = "5ef77f1f8a3ecb8d"
STARTED: Final = "2026-06-21T23:47:36.453867251Z"
ENDED: Final = "2026-06-21T23:51:06.453867251Z"
_NO_END: Final = "0001-01-01T00:00:00Z"
URL: Final = "http://prometheus.example:9090/graph?g0.expr=up%7Bjob%3D%22node%22%7D+%3D%3D+0&g0.tab=1"


def message(*alerts: Any, **more: Any) -> dict[str, Any]:
    """Return a message with all attributes that Alertmanager writes."""
    return {
        "receiver": "tacker",
        "status": "firing",
        "alerts": list(alerts),
        "groupLabels": {"function_type": "vnffm"},
        "commonLabels": {"receiver_type": "tacker", "job": "kube-state-metrics"},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example:9093",
        "version": "4",
        "groupKey": '{}/{function_type="vnffm"}:{}',
        "truncatedAlerts": 0,
        **more,
    }


def alert(labels: dict[str, Any], annotations: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an alert; ``more``: other attributes of it."""
    return {
        "status": "firing",
        "labels": {"receiver_type": "tacker", "alertname": "FromRule", "job": "kube-state-metrics", **labels},
        "annotations": {} if annotations is None else annotations,
        "startsAt": STARTED,
        "endsAt": _NO_END,
        "generatorURL": URL,
        "fingerprint": FINGERPRINT,
        **more,
    }


def fault(instance_id: str, *, labels: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an alert for ``/alert``."""
    given = {
        "function_type": "vnffm",
        "vnf_instance_id": instance_id,
        "perceived_severity": "WARNING",
        "event_type": "PROCESSING_ERROR_ALARM",
        "node": "worker-1",
        **(labels or {}),
    }
    said = {
        "probable_cause": "The server cannot be connected.",
        "fault_type": "Server Down",
        "fault_details": "No answer.",
    }
    return alert(given, said, **more)


def resolved(given: dict[str, Any], ended: str = ENDED) -> dict[str, Any]:
    """Return the message about the end of an alert."""
    return {**given, "status": "resolved", "endsAt": ended}


def heal(instance_id: str, vnfc_id: str, **more: Any) -> dict[str, Any]:
    """Return an alert for ``/alert/auto_healing``."""
    return alert({"function_type": "auto_heal", "vnf_instance_id": instance_id, "vnfc_info_id": vnfc_id}, **more)


def scale(instance_id: str, aspect_id: str, direction: str = "SCALE_OUT", **more: Any) -> dict[str, Any]:
    """Return an alert for ``/alert/auto_scaling``."""
    labels = {"vnf_instance_id": instance_id, "aspect_id": aspect_id, "auto_scale_type": direction}
    return alert({"function_type": "auto_scale", **labels}, **more)


def value(kind: str, owner_id: str, instance_id: str, given: Any = "42.5", **more: Any) -> dict[str, Any]:
    """Return an alert for ``/pm_event`` (kind ``vnfpm``) or ``/pm_threshold`` (kind ``vnfpm_threshold``)."""
    owner = {"vnfpm": "job_id", "vnfpm_threshold": "threshold_id"}[kind]
    labels = {
        "function_type": kind,
        owner: owner_id,
        "metric": f"VCpuUsageMeanVnf.{instance_id}",
        "object_instance_id": instance_id,
        "sub_object_instance_id": None,
    }
    return alert(labels, {"value": given}, **more)
