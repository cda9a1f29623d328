"""Deployments: one ReplicaSet per template, rolled over as the strategy says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import adopt, template_hash
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    annotations_of,
    condition,
    controller_of,
    controller_reference,
    copy_of,
    is_terminating,
    key_of,
    now,
    value_at,
    with_condition,
)

_COMPONENT: Final = "deployment-controller"
_REVISION: Final = "deployment.kubernetes.io/revision"
_SETS: Final = "replicasets.apps"
_HASH: Final = "pod-template-hash"


class Deployments:
    """Rolls out every Deployment."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._deadlines: set[Key] = set()
        """Deployments with a pending timer for their progress deadline."""

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"deployments.apps": itself, _SETS: its_controller("Deployment")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        deployment = self._plane.store.get("deployments.apps", key)
        if deployment is None:
            return
        if not is_terminating(deployment):
            current = self._current_set(deployment)
            if current is None:
                return
            if not deployment["spec"].get("paused"):
                self._roll(deployment, current)
            self._forget_old_sets(deployment)
        self._write_status(deployment)

    def _sets(self, deployment: Obj) -> Sequence[Obj]:
        uid = deployment["metadata"]["uid"]
        return [
            owned
            for resource, owned in self._plane.store.dependents(uid)
            if resource == _SETS and (controller_of(owned) or {}).get("uid") == uid
        ]

    # The name follows from the template, so returning to an old template finds its ReplicaSet.
    def _set_name(self, deployment: Obj) -> str:
        return f"{deployment['metadata']['name']}-{template_hash(deployment['spec']['template'])}"

    def _current_set(self, deployment: Obj) -> Obj | None:
        """Return the ReplicaSet of the current template, created if needed; None if it was refused."""
        metadata, spec = deployment["metadata"], deployment["spec"]
        name = self._set_name(deployment)
        revisions = [int(annotations_of(s).get(_REVISION, "0")) for s in self._sets(deployment)]
        found = self._plane.store.get(_SETS, Key(metadata["namespace"], name))
        # kubectl delete --cascade=orphan leaves such a ReplicaSet behind.
        if found is not None and controller_of(found) is None:
            adopt(self._plane, deployment, _SETS, found)
        if found is not None and int(annotations_of(found).get(_REVISION, "0")) == max(revisions, default=0):
            return found
        revision = str(max(revisions, default=0) + 1)
        self._plane.registry.change(
            "deployments.apps", key_of(deployment), lambda obj: _annotate(obj, _REVISION, revision)
        )
        if found is not None:  # rolled back to an old template
            return self._plane.registry.change(_SETS, key_of(found), lambda obj: _annotate(obj, _REVISION, revision))
        template: Obj = copy_of(spec["template"])
        digest = template_hash(spec["template"])
        template["metadata"]["labels"] = {**(value_at(template, "metadata", "labels") or {}), _HASH: digest}
        selector: Obj = copy_of(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH: digest}
        made = {
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": {_REVISION: revision},
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {
                # Created empty; the roll below sizes it, so that surge and availability are respected.
                "replicas": 0,
                "selector": selector,
                "template": template,
                **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            },
        }
        try:
            return self._plane.create(_SETS, made)
        except ApiError as error:
            message = f"Failed to create new replica set {name!r}: {error.message}"
            self._plane.record(deployment, "Warning", "ReplicaSetCreateError", message, component=_COMPONENT)
            return None

    def _roll(self, deployment: Obj, current: Obj) -> None:
        spec = deployment["spec"]
        wanted = spec["replicas"]
        others = [s for s in self._sets(deployment) if s["metadata"]["uid"] != current["metadata"]["uid"]]
        others_wanted = sum(s["spec"]["replicas"] for s in others)
        if spec["strategy"]["type"] == "Recreate":
            for old in others:
                self._scale(deployment, old, 0)
            # Recreate starts new pods only when the last old one is gone.
            if not any(value_at(old, "status", "replicas") for old in others):
                self._scale(deployment, current, wanted)
            return
        surge, unavailable = _limits(spec)
        room = wanted + surge - others_wanted
        # Old pods go as far as availability permits, new ones come as far as the surge permits.
        self._scale(deployment, current, min(wanted, max(current["spec"]["replicas"], room)))
        # Scaling has just changed the stored object, so the copy in hand is outdated.
        current = self._plane.store.get(_SETS, key_of(current)) or current
        ready_new = min(value_at(current, "status", "availableReplicas") or 0, current["spec"]["replicas"])
        may_go = sum(_available(old) for old in others) + ready_new - (wanted - unavailable)
        for old in others:
            size, healthy = old["spec"]["replicas"], _available(old)
            # Removing a pod that is unavailable anyway costs no availability.
            gone = (size - healthy) + min(healthy, max(0, may_go))
            may_go -= max(0, gone - (size - healthy))
            self._scale(deployment, old, size - gone)

    def _scale(self, deployment: Obj, replica_set: Obj, replicas: int) -> None:
        before = replica_set["spec"]["replicas"]
        if before == replicas:
            return
        self._plane.registry.change(_SETS, key_of(replica_set), lambda obj: obj["spec"].update(replicas=replicas))
        direction = "up" if replicas > before else "down"
        name = replica_set["metadata"]["name"]
        message = f"Scaled {direction} replica set {name} from {before} to {replicas}"
        self._plane.record(deployment, "Normal", "ScalingReplicaSet", message, component=_COMPONENT)

    def _forget_old_sets(self, deployment: Obj) -> None:
        current = self._set_name(deployment)
        # Only sets that are scaled down and empty can be forgotten without losing pods.
        empty = [
            s
            for s in self._sets(deployment)
            if s["metadata"]["name"] != current and not s["spec"]["replicas"] and not value_at(s, "status", "replicas")
        ]
        empty.sort(key=lambda s: int(annotations_of(s).get(_REVISION, "0")))
        for old in empty[: max(0, len(empty) - deployment["spec"]["revisionHistoryLimit"])]:
            self._plane.delete(_SETS, old)

    def _write_status(self, deployment: Obj) -> None:
        # Setting the revision annotation may have changed the stored object meanwhile.
        deployment = self._plane.store.get("deployments.apps", key_of(deployment)) or deployment
        spec, sets = deployment["spec"], self._sets(deployment)
        current = next((s for s in sets if s["metadata"]["name"] == self._set_name(deployment)), None)

        def total(field: str) -> int:
            return sum(value_at(s, "status", field) or 0 for s in sets)

        replicas, ready, available = total("replicas"), total("readyReplicas"), total("availableReplicas")
        updated = value_at(current, "status", "replicas") or 0
        wanted = spec["replicas"]
        status: Obj = {"observedGeneration": deployment["metadata"]["generation"]}
        counts = {
            "replicas": replicas,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": available,
            "unavailableReplicas": max(0, max(wanted, replicas) - available),
        }
        # Kubernetes omits zero counts; clients treat an absent field as zero.
        status |= {name: count for name, count in counts.items() if count}
        complete = updated == wanted == replicas == available
        status["conditions"] = self._conditions(deployment, current, available=available, complete=complete)
        self._plane.registry.set_status("deployments.apps", key_of(deployment), status)

    def _conditions(self, deployment: Obj, current: Obj | None, *, available: int, complete: bool) -> list[Obj]:
        spec, conditions = deployment["spec"], value_at(deployment, "status", "conditions") or []
        _, unavailable = _limits(spec)
        enough = available >= spec["replicas"] - unavailable
        times = ("lastUpdateTime",)
        conditions = with_condition(
            conditions,
            "Available",
            status=enough,
            reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
            times=times,
        )
        failure = condition(current or {}, "ReplicaFailure")
        conditions = [c for c in conditions if c["type"] != "ReplicaFailure"]
        if failure is not None:
            conditions = [*conditions, failure]
        name = current["metadata"]["name"] if current is not None else ""
        if complete:
            reason, message, fine = "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.', True
        elif self._is_overdue(deployment, available):
            reason, message, fine = "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.', False
        else:
            reason, message, fine = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', True
        return with_condition(conditions, "Progressing", status=fine, reason=reason, message=message, times=times)

    def _is_overdue(self, deployment: Obj, available: int) -> bool:
        """Return whether the progress deadline has passed; otherwise reconcile again when it does."""
        old = condition(deployment, "Progressing")
        # A new generation restarts the deadline, even if no pod has changed yet.
        generation_is_new = value_at(deployment, "status", "observedGeneration") != deployment["metadata"]["generation"]
        moved = generation_is_new or available != (value_at(deployment, "status", "availableReplicas") or 0)
        if old is None or moved or old["reason"] == "NewReplicaSetAvailable":
            since = now()
        elif old["reason"] == "ProgressDeadlineExceeded":
            return True
        else:
            since = old["lastUpdateTime"]
        started = datetime.fromisoformat(since.replace("Z", "+00:00"))
        left = deployment["spec"]["progressDeadlineSeconds"] - (datetime.now(UTC) - started).total_seconds()
        if left <= 0:
            return True
        key = key_of(deployment)
        if key not in self._deadlines:
            self._deadlines.add(key)
            self._plane.later(left, lambda: self._look_again(key))
        return False

    def _look_again(self, key: Key) -> None:
        self._deadlines.discard(key)
        self._plane.enqueue(self, key)


def _limits(spec: Mapping[str, Any]) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) in pods; if both are 0 nothing could move, so maxUnavailable becomes 1."""
    rolling = value_at(dict(spec), "strategy", "rollingUpdate")
    if rolling is None:
        return 0, 0
    surge = _pods(rolling["maxSurge"], spec["replicas"], round_up=True)
    unavailable = _pods(rolling["maxUnavailable"], spec["replicas"], round_up=False)
    # Kubernetes rounds so that a rollout can always move: 0/0 becomes one unavailable pod.
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _pods(value: int | str, replicas: int, *, round_up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * replicas / 100
    return math.ceil(share) if round_up else math.floor(share)


def _available(replica_set: Obj) -> int:
    available: int = value_at(replica_set, "status", "availableReplicas") or 0
    return min(available, int(replica_set["spec"]["replicas"]))


def _annotate(obj: Obj, name: str, value: str) -> None:
    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), name: value}
