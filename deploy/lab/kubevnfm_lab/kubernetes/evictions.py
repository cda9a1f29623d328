"""Eviction: deletion of a pod that disruption budgets may refuse."""

from __future__ import annotations

from kubevnfm_lab.kubernetes.errors import ApiError, too_many_requests
from kubevnfm_lab.kubernetes.objects import Key, Obj, condition_is_true, is_terminating, labels_of, value_at
from kubevnfm_lab.kubernetes.registry import Deletion, Registry
from kubevnfm_lab.kubernetes.selectors import matches_selector
from kubevnfm_lab.kubernetes.verbs import Target

_BUDGETS = "poddisruptionbudgets.policy"


class Evictions:
    """Evicts pods."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def evict(self, target: Target, how: Deletion) -> Obj:
        """Delete the pod as a drain does.

        Raises: ApiError 404, 429 when a budget allows no further disruption, 500 when several budgets select the pod.
        """
        pod = self._registry.get(target.resource, target.key)
        budgets = [
            budget
            for budget in self._registry.store.list(_BUDGETS, target.namespace)
            if matches_selector(value_at(budget, "spec", "selector"), labels_of(pod))
        ]
        finished = value_at(pod, "status", "phase") in {"Succeeded", "Failed", "Pending"}
        if len(budgets) > 1 and not finished:
            raise ApiError(
                500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if budgets and not finished and not is_terminating(pod) and condition_is_true(pod, "Ready"):
            self._spend(budgets[0], dry_run=how.dry_run)
        self._registry.delete(target.resource, target.key, how)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _spend(self, budget: Obj, *, dry_run: bool) -> None:
        """Use up one of the permitted disruptions; raise ApiError 429 if none is left."""
        status = budget.get("status") or {}
        name = budget["metadata"]["name"]
        if not status.get("disruptionsAllowed"):
            wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            message = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
            raise too_many_requests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[{"reason": "DisruptionBudget", "message": message}],
            )
        if not dry_run:
            left = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1}
            self._registry.set_status(_BUDGETS, Key(budget["metadata"]["namespace"], name), left)
