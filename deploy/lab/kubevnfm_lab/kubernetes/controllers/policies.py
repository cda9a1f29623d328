"""Disruption budgets, autoscalers and API services: kinds whose controllers only report here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.controllers.pods import is_active, is_ready
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    controller_of,
    copy_of,
    key_of,
    labels_of,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.podmetrics import API_SERVICE, GROUP
from kubevnfm_lab.kubernetes.podmetrics import RESOURCES as METRICS
from kubevnfm_lab.kubernetes.selectors import matches_selector
from kubevnfm_lab.kubernetes.store import Change

_BUDGETS: Final = "poddisruptionbudgets.policy"
_AUTOSCALERS: Final = "horizontalpodautoscalers.autoscaling"
_MANAGER: Final = "kube-controller-manager"
_API_SERVICES: Final = "apiservices.apiregistration.k8s.io"


class Budgets:
    """Counts how many pods of each disruption budget may be evicted."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_BUDGETS: itself, "pods": self._selecting}

    def _selecting(self, change: Change) -> Iterable[Key]:
        budgets = self._plane.store.list(_BUDGETS, change.key.namespace)
        return [key_of(b) for b in budgets if matches_selector(value_at(b, "spec", "selector"), labels_of(change.obj))]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        budget = self._plane.store.get(_BUDGETS, key)
        if budget is None:
            return
        spec = budget["spec"]
        pods = [
            pod
            for pod in self._plane.store.list("pods", key.namespace)
            if is_active(pod) and matches_selector(spec.get("selector"), labels_of(pod))
        ]
        # Percentages are shares of the number that the controllers want, not of the pods that happen to exist.
        expected = self._expected(pods)
        healthy = sum(is_ready(pod) for pod in pods)
        if spec.get("maxUnavailable") is not None:
            wanted = max(0, expected - _share(spec["maxUnavailable"], expected))
        else:
            wanted = _share(spec.get("minAvailable", 1), expected)
        allowed = max(0, healthy - wanted)
        enough = allowed > 0
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": expected,
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": allowed,
            "conditions": with_condition(
                value_at(budget, "status", "conditions") or [],
                "DisruptionAllowed",
                status=enough,
                reason="SufficientPods" if enough else "InsufficientPods",
            ),
        }
        self._plane.registry.set_status(_BUDGETS, key, status)

    def _expected(self, pods: Iterable[Obj]) -> int:
        """Return the expected number of pods by the sizes of their controllers; a bare pod counts as one."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            found = None
            if owner is not None:
                resource = self._plane.registry.table.by_kind(owner["apiVersion"], owner["kind"])
                place = Key(pod["metadata"]["namespace"], owner["name"])
                found = self._plane.store.get(resource.store_name, place) if resource is not None else None
            if owner is None or found is None:
                sizes[pod["metadata"]["uid"]] = 1
            else:
                sizes[owner["uid"]] = value_at(found, "spec", "replicas") or 0
        return sum(sizes.values())


def _share(value: int | str, of: int) -> int:
    # Rounded up for both limits, so that 50 % of 7 pods is 4: a budget of Kubernetes rounds the same way.
    return value if isinstance(value, int) else math.ceil(int(value.rstrip("%")) * of / 100)


class Autoscalers:
    """Keeps replicas within an autoscaler's bounds; without metrics nothing else moves them."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        targets: Keys = self._aimed_at
        return {
            _AUTOSCALERS: itself,
            "deployments.apps": targets,
            "statefulsets.apps": targets,
            "replicasets.apps": targets,
        }

    def _aimed_at(self, change: Change) -> Iterable[Key]:
        kind, name = change.obj["kind"], change.key.name
        return [
            key_of(autoscaler)
            for autoscaler in self._plane.store.list(_AUTOSCALERS, change.key.namespace)
            if (
                value_at(autoscaler, "spec", "scaleTargetRef", "kind"),
                value_at(autoscaler, "spec", "scaleTargetRef", "name"),
            )
            == (kind, name)
        ]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        autoscaler = self._plane.store.get(_AUTOSCALERS, key)
        if autoscaler is None:
            return
        spec = autoscaler["spec"]
        ref = spec["scaleTargetRef"]
        resource = self._plane.registry.table.by_kind(ref.get("apiVersion", ""), ref["kind"])
        place = Key(key.namespace, ref["name"])
        target = self._plane.store.get(resource.store_name, place) if resource is not None else None
        conditions = value_at(autoscaler, "status", "conditions") or []
        if resource is None or target is None:
            message = f'the HPA controller was unable to get the target\'s current scale: {ref["kind"]} "{ref["name"]}" not found'
            conditions = with_condition(
                conditions, "AbleToScale", status=False, reason="FailedGetScale", message=message
            )
            self._plane.registry.set_status(
                _AUTOSCALERS, key, {"currentReplicas": 0, "desiredReplicas": 0, "conditions": conditions}
            )
            return
        replicas = target["spec"].get("replicas") or 0
        # Zero replicas switch an autoscaler off.
        wanted = min(max(replicas, spec["minReplicas"]), spec["maxReplicas"]) if replicas else 0
        if wanted != replicas:
            scaled: Obj = copy_of(self._plane.registry.get(resource, place))
            scaled["spec"]["replicas"] = wanted
            # It writes through the subresource, as its owner of the field shows.
            self._plane.registry.replace(resource, scaled, subresource="scale", manager=_MANAGER)
        conditions = with_condition(
            conditions,
            "AbleToScale",
            status=True,
            reason="SucceededGetScale",
            message="the HPA controller was able to get the target's current scale",
        )
        conditions = with_condition(
            conditions,
            "ScalingActive",
            status=False,
            reason="FailedGetResourceMetric" if replicas else "ScalingDisabled",
            message="no metrics are served here" if replicas else "scaling is disabled since the replica count is zero",
        )
        status = {
            "currentReplicas": value_at(target, "status", "replicas") or 0,
            "desiredReplicas": wanted,
            "conditions": conditions,
        }
        self._plane.registry.set_status(_AUTOSCALERS, key, status)


class ApiServices:
    """Reports API services as available: at once if local, otherwise when their Service has a ready endpoint."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_API_SERVICES: itself, "endpoints": self._behind}

    def _behind(self, change: Change) -> Iterable[Key]:
        return [
            key_of(api_service)
            for api_service in self._plane.store.list(_API_SERVICES)
            if (value_at(api_service, "spec", "service", "namespace"), value_at(api_service, "spec", "service", "name"))
            == tuple(change.key)
        ]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        api_service = self._plane.store.get(_API_SERVICES, key)
        if api_service is None:
            self._serve(key, is_there=False, is_available=False)
            return
        fine, reason, message = self._judge(value_at(api_service, "spec", "service"))
        conditions = value_at(api_service, "status", "conditions") or []
        conditions = with_condition(conditions, "Available", status=fine, reason=reason, message=message)
        self._plane.registry.set_status(_API_SERVICES, key, {"conditions": conditions})
        self._serve(key, is_there=True, is_available=fine)

    def _serve(self, key: Key, *, is_there: bool, is_available: bool) -> None:
        """Serve the metrics of pods and nodes, the one group that the lab itself has a server for."""
        if key.name != API_SERVICE:
            return
        table = self._plane.registry.table
        for resource in METRICS:
            if is_there:
                table.add(resource)
            else:
                table.remove(resource.group, resource.plural)
        if is_there and not is_available:
            table.away.add(GROUP)
        else:
            table.away.discard(GROUP)

    def _judge(self, service: Obj | None) -> tuple[bool, str, str]:
        if not service:
            return True, "Local", "Local APIServices are always available"
        place = Key(service["namespace"], service["name"])
        shown = f"{place.namespace}/{place.name}"
        if self._plane.store.get("services", place) is None:
            message = f'service/{place.name} in "{place.namespace}" is not present'
            return False, "ServiceNotFound", message
        subsets = value_at(self._plane.store.get("endpoints", place), "subsets") or []
        if not any(subset.get("addresses") for subset in subsets):
            return False, "MissingEndpoints", f"endpoints for service {shown} have no addresses"
        return True, "Passed", "all checks passed"
