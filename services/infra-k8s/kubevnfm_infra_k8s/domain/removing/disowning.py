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
    MACHINE_INSTANCES,
    MACHINE_OWNERS,
    MANAGED_BY,
    OPERATION_ANNOTATION,
    PODS,
    REPLICA_SETS,
    VIRTUAL_MACHINES,
    WORKLOADS,
    Body,
    ObjectKey,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.preparing import ordered_labels
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.vdus import bears_machines, owned_parts, owner_uid

_MADE: Final = WORKLOADS - MACHINE_OWNERS - {("", PODS.kind)} | {("batch", "Job")}
"""The built-in kinds whose pods name them, or name a ReplicaSet that does."""


def without_owner(uid: str, *, kept_from: str | None = None) -> Body:
    """Return the merge patch that takes our labels off an object; ``kept_from``: the VNF that it names afterwards."""
    labels = dict.fromkeys([*ordered_labels(""), *MANAGED_BY])
    marks = {} if kept_from is None else {KEPT_FROM_ANNOTATION: kept_from}
    annotations = {OPERATION_ANNOTATION: None, CLAIM_OF_ANNOTATION: None, **marks}
    return {"metadata": {"uid": uid, "labels": labels, "annotations": annotations}}


async def give_back_made(cluster: Cluster, key: ObjectKey, uid: str, vnf_instance_id: str) -> None:
    """Take the labels off what a controller has made of a workload: pods, ReplicaSets, virtual machines."""
    is_of_pods = key.group_kind in _MADE
    if not is_of_pods and not bears_machines(key):
        return
    try:
        found = await running_parts(cluster, vnf_instance_id, [key])
    except Forbidden:
        # Then nothing of the instance is looked for by its label either.
        return
    parts = PODS if is_of_pods else MACHINE_INSTANCES
    made = [(parts, body) for body, _ in owned_parts({uid}, found) if uid_of(body) != uid]
    made += [(REPLICA_SETS, each) for each in found.replica_sets if owner_uid(each) == uid]
    made += [(VIRTUAL_MACHINES, each) for each in found.pooled if owner_uid(each) == uid]
    await each_of(made, lambda each: cluster.patch(each[0], each[0].key(each[1]), without_owner(uid_of(each[1]))))
