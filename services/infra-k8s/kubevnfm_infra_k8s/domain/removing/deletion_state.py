"""Says how far the deletion of an object is, and what holds it (capi.md CR-108, CR-109)."""

from __future__ import annotations

from typing import Final

from kubevnfm_infra_k8s.domain.capi.contract import Conditions, is_cluster
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, conditions, field_at
from kubevnfm_infra_k8s.domain.reading.readiness import in_words, last_condition

_NAMESPACE: Final = ("", "Namespace")


def deletion_progress(key: ObjectKey, body: Body) -> str:
    """Return how far a deletion is: what a Cluster or a Namespace says of it in its conditions, since when, and what holds it."""
    said = _stage(key, body)
    begin = [said] if said and is_cluster(key) else ["is being deleted", *([said] if said else [])]
    return ", ".join([*begin, *_hold(body)])


def deletion_obstacle(key: ObjectKey, body: Body) -> str:
    """Return what holds an object whose deletion has taken too long, and what its controller says."""
    said = _stage(key, body) or ("" if key.group_kind == _NAMESPACE else last_condition(body))
    return f"{key}: {', '.join([*(_hold(body) or ['still exists']), *([said] if said else [])])}"


def _stage(key: ObjectKey, body: Body) -> str:
    """Return what a Cluster or a Namespace says of its deletion; "" if it says nothing."""
    if key.group_kind == _NAMESPACE:
        # Each of its conditions is one obstacle: resources or finalizers that remain, a group that is not served.
        return "; ".join(
            in_words(body, str(each.get("type"))) for each in conditions(body) if each.get("status") == "True"
        )
    said = Conditions(body)["Deleting"] if is_cluster(key) else None
    return said.in_words if said is not None and said.is_true else ""


def _hold(body: Body) -> list[str]:
    finalizers = ", ".join(field_at(body, "metadata", "finalizers") or [])
    since = field_at(body, "metadata", "deletionTimestamp")
    if not finalizers:
        return []
    return [f"held by {finalizers}", *([f"since {since}"] if since else [])]
