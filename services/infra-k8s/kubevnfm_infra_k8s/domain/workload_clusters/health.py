"""Which Machines are not healthy, and which of them the control plane can lose (capi.md CR-114 to CR-116): pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kubevnfm_events.capi import ClusterTimeouts

from kubevnfm_infra_k8s.domain.capi.contract import Conditions
from kubevnfm_infra_k8s.domain.capi.machines import is_leaving, is_of_control_plane, owner_name
from kubevnfm_infra_k8s.domain.errors import QuorumAtRisk, majority_of
from kubevnfm_infra_k8s.domain.objects import Body, annotations_of, field_at, labels_of, name_of, uid_of
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import ClusterObjects

_MEMBER: Final = "EtcdMemberHealthy"
"""The control plane writes this condition on its Machines; in v1beta1 it is not part of Ready."""
_SKIPPED: Final = "cluster.x-k8s.io/skip-remediation"


def owners_in(objects: ClusterObjects) -> Sequence[Body]:
    """Return the objects that make Machines."""
    return [each for each in (objects.control_plane, *objects.workers) if each is not None]


def owner_of(objects: ClusterObjects, machine: Body) -> Body | None:
    """Return the object that makes another Machine in place of this one; None if there is none."""
    name = owner_name(machine)
    return next((each for each in owners_in(objects) if name_of(each) == name), None)


def illness_of(machine: Body, seen: Observation) -> str:
    """Return why the Machine is not healthy by the table of chapter 8; "" if it is."""
    verdict = judge(machine, seen)
    if not verdict.is_current:
        return verdict.message or str(verdict.status)
    member = Conditions(machine)[_MEMBER]
    return member.in_words if member is not None and member.status == "False" else ""


def is_being_built(machine: Body, timeouts: ClusterTimeouts, seen: Observation) -> bool:
    """Return whether the Machine has not joined yet, has not failed, and still has time to join."""
    if field_at(machine, "status", "nodeRef") or judge(machine, seen).is_final:
        return False
    limit_s = timeouts.control_plane if is_of_control_plane(machine) else timeouts.workers
    try:
        made = datetime.fromisoformat(str(field_at(machine, "metadata", "creationTimestamp"))).astimezone(UTC)
    except ValueError:
        return False
    return (seen.now - made).total_seconds() < limit_s


def check_quorum(objects: ClusterObjects, machine: Body, seen: Observation) -> None:
    """Raise QuorumAtRisk if the control plane would have no majority without the Machine; workers have none to keep."""
    if not is_of_control_plane(machine):
        return
    others = [each for each in objects.machines if is_of_control_plane(each) and uid_of(each) != uid_of(machine)]
    # A Machine that is being deleted is a member until the control plane has removed it.
    ill = [name_of(each) for each in others if is_leaving(each) or illness_of(each, seen)]
    healthy = len(others) - len(ill)
    if healthy < majority_of(len(others)):
        raise QuorumAtRisk(name_of(machine), healthy=healthy, members=len(others), ill=ill)


def is_health_checked(machine: Body, checks: Sequence[Body], cluster: str) -> bool:
    """Return whether a MachineHealthCheck among ``checks`` watches over the Machine, and so replaces it on request."""
    if _SKIPPED in annotations_of(machine):
        return False
    return any(
        field_at(each, "spec", "clusterName") == cluster
        and not is_leaving(each)
        and _selects(field_at(each, "spec", "selector"), labels_of(machine))
        for each in checks
    )


def _selects(selector: object, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector selects the labels; Cluster API refuses an empty one, which would select all."""
    wanted = field_at(selector, "matchLabels") or {}
    expressions = field_at(selector, "matchExpressions") or []
    return (
        bool(wanted or expressions)
        and all(labels.get(key) == value for key, value in wanted.items())
        and all(_holds(each, labels) for each in expressions)
    )


def _holds(expression: Body, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(expression.get("key"))), expression.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(str(expression.get("operator")), False)
