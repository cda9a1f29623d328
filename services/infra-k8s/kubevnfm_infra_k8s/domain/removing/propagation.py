"""How the objects that an object owns go with it (capi.md CR-023)."""

from __future__ import annotations

from typing import Final

from kubevnfm_infra_k8s.domain.capi.contract import GROUPS
from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, KEEPING_MANAGER, Body, ObjectKey, field_at
from kubevnfm_infra_k8s.domain.ports import Propagation

_OWNERS: Final = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"}
)
"""The built-in kinds whose controllers make pods. A Service's EndpointSlices do nothing without it."""


def propagation_of(key: ObjectKey, body: Body) -> Propagation:
    """Return how to delete the object: in the foreground if it may own others (capi.md CR-023).

    The garbage collector learns of a new custom kind after up to 30 s, and a deletion in the foreground waits for it. So a
    custom resource that no controller has touched is not deleted in that way. Neither is an object of Cluster API: its
    controllers delete what it owns in an order, and need the infrastructure and the kubeconfig until the Machines are gone,
    which a garbage collector that deletes in the foreground takes from them.
    """
    if key.group in GROUPS:
        return Propagation.BACKGROUND
    if not key.is_custom:
        return Propagation.FOREGROUND if key.kind in _OWNERS else Propagation.BACKGROUND
    writers = {each.get("manager") for each in field_at(body, "metadata", "managedFields") or []}
    is_touched = bool(writers - {FIELD_MANAGER, KEEPING_MANAGER}) or bool(field_at(body, "metadata", "finalizers"))
    return Propagation.FOREGROUND if is_touched else Propagation.BACKGROUND
