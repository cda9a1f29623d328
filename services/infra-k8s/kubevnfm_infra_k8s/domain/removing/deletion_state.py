"""Says how far the deletion of an object is, and what holds it (capi.md CR-108, CR-109)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.domain.capi.contract import Conditions, is_cluster
from kubevnfm_infra_k8s.domain.objects import OF_KUBERNETES, Body, ObjectKey, conditions, field_at
from kubevnfm_infra_k8s.domain.reading.readiness import age_s, in_words, last_condition

_NAMESPACE: Final = ("", "Namespace")
_LATE_S: Final = 10.0
"""How long after its period of grace a pod is gone at the latest, if the kubelet of its node works."""


def deletion_progress(key: ObjectKey, body: Body) -> str:
    """Return how far a deletion is: what a Cluster or a Namespace says of it in its conditions, since when, and what holds it."""
    said = _stage(key, body)
    begin = [said] if said and is_cluster(key) else ["is being deleted", *([said] if said else [])]
    return printable(", ".join([*begin, *_hold(body)]))


def deletion_obstacle(key: ObjectKey, body: Body) -> str:
    """Return what holds an object whose deletion has taken too long, and what its controller says."""
    said = _stage(key, body) or ("" if key.group_kind == _NAMESPACE else last_condition(body))
    return printable(f"{key}: {', '.join([*(_hold(body) or ['still exists']), *([said] if said else [])])}")


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
    finalizers = field_at(body, "metadata", "finalizers") or []
    since = field_at(body, "metadata", "deletionTimestamp")
    if not finalizers:
        return []
    holders = ", ".join(each for each in finalizers if each not in OF_KUBERNETES)
    what = f"held by {holders}" if holders else "waits for what belongs to it"
    return [what, *([f"since {since}"] if since else [])]


def pod_obstacle(body: Body, now: datetime) -> str:
    """Return why a pod that is being deleted is not gone; "" if it still may take its time to end."""
    if not field_at(body, "metadata", "deletionTimestamp"):
        return ""
    return printable(", ".join(_hold(body))) or silence_of_node(body, now)


def silence_of_node(body: Body, now: datetime) -> str:
    """Return for how long the end of a pod that is being deleted is not confirmed; "" if it may take its time, or is on no node."""
    node = field_at(body, "spec", "nodeName")
    # The time of its deletion is that at which its period of grace is over.
    if not node or age_s(body, now, "deletionTimestamp") < _LATE_S:
        return ""
    return printable(
        f"its node {node} does not confirm its end since {field_at(body, 'metadata', 'deletionTimestamp')}"
    )
