"""StatefulSets: numbered pods with claims of their own, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, its_controller, itself
from kubevnfm_lab.kubernetes.controllers.pods import (
    adopt,
    create_pod,
    delete_pod,
    is_available,
    is_ready,
    new_pod,
    owned_pods,
    template_hash,
)
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    controller_of,
    controller_reference,
    copy_of,
    is_terminating,
    key_of,
    labels_of,
    value_at,
)

_COMPONENT: Final = "statefulset-controller"
_SETS: Final = "statefulsets.apps"
_REVISION: Final = "controller-revision-hash"


class StatefulSets:
    """Keeps the numbered pods of every StatefulSet."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_SETS: itself, "pods": its_controller("StatefulSet")}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        stateful_set = self._plane.store.get(_SETS, key)
        if stateful_set is None:
            return
        if not is_terminating(stateful_set):
            self._step(stateful_set)
        self._write_status(stateful_set)

    def _revision(self, stateful_set: Obj) -> str:
        return f"{stateful_set['metadata']['name']}-{template_hash(stateful_set['spec']['template'])}"

    def _pods(self, stateful_set: Obj) -> dict[int, Obj]:
        """Return the pods by their number."""
        found = {}
        for pod in owned_pods(self._plane, stateful_set):
            number = pod["metadata"]["name"].rpartition("-")[2]
            if number.isdigit():
                found[int(number)] = pod
        return found

    def _numbers(self, stateful_set: Obj) -> Sequence[int]:
        start = value_at(stateful_set, "spec", "ordinals", "start") or 0
        return range(start, start + stateful_set["spec"]["replicas"])

    def _step(self, stateful_set: Obj) -> None:
        """Create, delete or replace pods, one at a time unless the policy is Parallel."""
        spec, pods, numbers = stateful_set["spec"], self._pods(stateful_set), self._numbers(stateful_set)
        one_by_one = spec["podManagementPolicy"] != "Parallel"
        for number in numbers:
            pod = pods.get(number)
            if pod is None:
                self._make_or_adopt(stateful_set, number)
            # A pod that ended keeps its name, which the replacement needs: so it is deleted first.
            elif value_at(pod, "status", "phase") in {"Succeeded", "Failed"} and not is_terminating(pod):
                delete_pod(self._plane, stateful_set, pod, component=_COMPONENT)
            elif is_ready(pod) and not is_terminating(pod):
                continue
            if one_by_one:
                return
        # The highest number leaves first, since the others may depend on lower ones.
        for number in sorted(pods.keys() - set(numbers), reverse=True):
            if not is_terminating(pods[number]):
                delete_pod(self._plane, stateful_set, pods[number], component=_COMPONENT)
            if one_by_one:
                return
        self._renew(stateful_set, pods)

    def _renew(self, stateful_set: Obj, pods: Mapping[int, Obj]) -> None:
        """Delete the highest pod of an old template; the next step creates its replacement."""
        strategy = stateful_set["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        partition, current = value_at(strategy, "rollingUpdate", "partition") or 0, self._revision(stateful_set)
        for number in sorted(pods, reverse=True):
            pod = pods[number]
            if number >= partition and labels_of(pod).get(_REVISION) != current and not is_terminating(pod):
                delete_pod(self._plane, stateful_set, pod, component=_COMPONENT)
                return
            # Only one pod is missing at a time: the next is replaced once this one is ready again.
            if is_terminating(pod) or not is_ready(pod):
                return

    def _make_or_adopt(self, stateful_set: Obj, number: int) -> None:
        metadata = stateful_set["metadata"]
        there = self._plane.store.get("pods", Key(metadata["namespace"], f"{metadata['name']}-{number}"))
        if there is None:
            self._make(stateful_set, number)
        elif controller_of(there) is None and not is_terminating(there):
            adopt(self._plane, stateful_set, "pods", there)

    def _make(self, stateful_set: Obj, number: int) -> None:
        spec, metadata = stateful_set["spec"], stateful_set["metadata"]
        name = f"{metadata['name']}-{number}"
        labels = {
            _REVISION: self._revision(stateful_set),
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        pod = new_pod(stateful_set, labels=labels)
        pod["metadata"]["name"] = name
        pod["spec"] |= {"hostname": name, "subdomain": spec["serviceName"]}
        volumes = list(pod["spec"].get("volumes") or [])
        for claim in spec.get("volumeClaimTemplates") or []:
            claim_name = f"{claim['metadata']['name']}-{name}"
            self._make_claim(stateful_set, claim, claim_name)
            # A claim template overrides a volume of the pod template that has its name, as the API reference says.
            volumes = [v for v in volumes if v["name"] != claim["metadata"]["name"]]
            volumes.append(
                {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}},
            )
        if volumes:
            pod["spec"]["volumes"] = volumes
        create_pod(self._plane, stateful_set, pod, component=_COMPONENT)

    def _make_claim(self, stateful_set: Obj, template: Obj, name: str) -> None:
        namespace = stateful_set["metadata"]["namespace"]
        if self._plane.store.get("persistentvolumeclaims", Key(namespace, name)) is not None:
            return
        spec = stateful_set["spec"]
        labels = {
            **(value_at(template, "metadata", "labels") or {}),
            **(value_at(spec, "selector", "matchLabels") or {}),
        }
        annotations = dict(value_at(template, "metadata", "annotations") or {})
        metadata: Obj = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        # Claims have no owner by default: data outlives the StatefulSet, and a new one of the same name finds it.
        if value_at(spec, "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
            metadata["ownerReferences"] = [controller_reference(stateful_set)]
        try:
            self._plane.create("persistentvolumeclaims", {"metadata": metadata, "spec": copy_of(template["spec"])})
        except ApiError as error:
            message = f"create Claim {name} failed: {error.message}"
            self._plane.record(stateful_set, "Warning", "FailedCreate", message, component=_COMPONENT)

    def _write_status(self, stateful_set: Obj) -> None:
        spec, current = stateful_set["spec"], self._revision(stateful_set)
        pods = [pod for pod in self._pods(stateful_set).values() if not is_terminating(pod)]
        updated = [pod for pod in pods if labels_of(pod).get(_REVISION) == current]
        status: Obj = {
            "observedGeneration": stateful_set["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
            "availableReplicas": sum(is_available(pod, spec.get("minReadySeconds") or 0) for pod in pods),
            "updateRevision": current,
            "collisionCount": 0,
        }
        before = value_at(stateful_set, "status", "currentRevision") or current
        done = len(updated) == len(pods) == spec["replicas"] and status["readyReplicas"] == len(pods)
        # The revision counts as current only after the last pod has it, by which clients see the end of a rollout.
        status["currentRevision"] = current if done else before
        if done or before == current:
            status |= {"updatedReplicas": len(updated), "currentReplicas": len(updated)}
        else:
            old = sum(labels_of(pod).get(_REVISION) == before for pod in pods)
            status |= {"updatedReplicas": len(updated), "currentReplicas": old}
        self._plane.registry.set_status(_SETS, key_of(stateful_set), status)
        if status["availableReplicas"] < status["readyReplicas"]:
            key = key_of(stateful_set)
            self._plane.later(spec["minReadySeconds"], lambda: self._plane.enqueue(self, key))
