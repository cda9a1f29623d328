"""MachineHealthChecks: a Machine that is annotated for remediation, and that one of them selects, is replaced by its owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CHECKS,
    MACHINES,
    REMEDIATE_MACHINE,
    cluster_name,
    cluster_of,
    is_paused,
)
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, is_terminating, labels_of
from kubevnfm_lab.kubernetes.selectors import matches_selector
from kubevnfm_lab.kubernetes.store import Change

_SKIPPED: Final = "cluster.x-k8s.io/skip-remediation"


class HealthChecks:
    """Remediates Machines on request. The owner deletes the Machine in Cluster API; here it is done in its place."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {MACHINES: itself, CHECKS: self._machines}

    def _machines(self, change: Change) -> Iterable[Key]:
        found = self._plane.store.list(MACHINES, change.key.namespace)
        return [Key(change.key.namespace, each["metadata"]["name"]) for each in found]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        machine = self._plane.store.get(MACHINES, key)
        if machine is None or is_terminating(machine) or is_paused(cluster_of(self._plane, machine)):
            return
        annotations = annotations_of(machine)
        if REMEDIATE_MACHINE in annotations and _SKIPPED not in annotations and self._is_checked(machine):
            self._plane.delete(MACHINES, machine)

    def _is_checked(self, machine: Obj) -> bool:
        return any(
            each["spec"].get("clusterName") == cluster_name(machine)
            and matches_selector(each["spec"].get("selector"), labels_of(machine))
            for each in self._plane.store.list(CHECKS, machine["metadata"]["namespace"])
        )
