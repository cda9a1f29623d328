"""Says how far the deletion of an object is, and what holds it (capi.md CR-108, CR-109)."""

from __future__ import annotations

from kubevnfm_infra_k8s.domain.capi.contract import Conditions, is_cluster
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, field_at
from kubevnfm_infra_k8s.domain.reading.readiness import last_condition


def deletion_progress(key: ObjectKey, body: Body) -> str:
    """Return how far a deletion is: what a Cluster says of it in its condition, since when, and what holds it."""
    return ", ".join([_stage(key, body) or "is being deleted", *_hold(body)])


def deletion_obstacle(key: ObjectKey, body: Body) -> str:
    """Return what holds an object whose deletion has taken too long, and what its controller says."""
    said = _stage(key, body) or last_condition(body)
    return f"{key}: {', '.join([*(_hold(body) or ['still exists']), *([said] if said else [])])}"


def _stage(key: ObjectKey, body: Body) -> str:
    """Return what a Cluster says of its deletion; "" if it says nothing."""
    said = Conditions(body)["Deleting"] if is_cluster(key) else None
    return said.in_words if said is not None and said.is_true else ""


def _hold(body: Body) -> list[str]:
    finalizers = ", ".join(field_at(body, "metadata", "finalizers") or [])
    since = field_at(body, "metadata", "deletionTimestamp")
    if not finalizers:
        return []
    return [f"held by {finalizers}", *([f"since {since}"] if since else [])]
