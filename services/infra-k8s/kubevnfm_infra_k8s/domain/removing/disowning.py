"""Takes the labels of an instance off objects that stay, and off what controllers have made of them (multicloud.md MC-106d).

The templates in them keep theirs: a changed template would start all pods again.
"""

from __future__ import annotations

from typing import Final

from kubevnfm_csar.object_treatment import KEPT_FROM_ANNOTATION

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import (
    CLAIM_OF_ANNOTATION,
    MANAGED_BY,
    OPERATION_ANNOTATION,
    PODS,
    REPLICA_SETS,
    WORKLOADS,
    Body,
    ObjectKey,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.preparing import ordered_labels
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import instance_pods
from kubevnfm_infra_k8s.domain.reading.vdus import owned_pods, owner_uid

_MADE: Final = WORKLOADS | {"Job"}
"""The built-in kinds whose pods name them, or name a ReplicaSet that does."""


def without_owner(uid: str, *, kept_from: str | None = None) -> Body:
    """Return the merge patch that takes our labels off an object; ``kept_from``: the VNF that it names afterwards."""
    labels = dict.fromkeys([*ordered_labels(""), *MANAGED_BY])
    marks = {} if kept_from is None else {KEPT_FROM_ANNOTATION: kept_from}
    annotations = {OPERATION_ANNOTATION: None, CLAIM_OF_ANNOTATION: None, **marks}
    return {"metadata": {"uid": uid, "labels": labels, "annotations": annotations}}


async def give_back_made(cluster: Cluster, key: ObjectKey, uid: str, vnf_instance_id: str) -> None:
    """Take the labels off the pods and ReplicaSets of a workload."""
    if key.kind not in _MADE or key.is_custom or key.kind == "Pod":
        return
    try:
        found = await instance_pods(cluster, vnf_instance_id, [key])
    except Forbidden:
        # Then nothing of the instance is looked for by its label either.
        return
    pods = [pod for pod, _ in owned_pods({uid}, pods=found.pods, replica_sets=found.replica_sets)]
    sets = [each for each in found.replica_sets if owner_uid(each) == uid]
    made = [(PODS, pod) for pod in pods] + [(REPLICA_SETS, each) for each in sets]
    await each_of(made, lambda each: cluster.patch(each[0], each[0].key(each[1]), without_owner(uid_of(each[1]))))
