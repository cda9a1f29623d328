"""Puts our labels back on objects from which another party has removed them: by these labels objects are watched."""

from __future__ import annotations

import structlog

from kubevnfm_infra_k8s.domain.errors import ObjectMissing
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    MANAGED_BY,
    Body,
    ObjectKey,
    Resource,
    Wanted,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.preparing import instance_labels, ordered_labels
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.release import Release

log = structlog.get_logger()


async def with_labels(cluster: Cluster, wanted: Wanted, there: Body, vnf_instance_id: str) -> Body:
    """Return an object that is never changed, with our labels; it lacks them if it was adopted or others have removed them."""
    if INSTANCE_LABEL in labels_of(there):
        return there
    labels = {**ordered_labels(vnf_instance_id), **MANAGED_BY}
    found = await cluster.patch(wanted.resource, wanted.key, {"metadata": {"uid": uid_of(there), "labels": labels}})
    if found is None:
        raise ObjectMissing(wanted.key)
    return found


async def is_ours(cluster: Cluster, resource: Resource, key: ObjectKey, body: Body, release: Release) -> bool:
    """Return whether an object belongs to the instance; one that has lost its label gets it back."""
    mine = release.vnf_instance_id
    if labels_of(body).get(INSTANCE_LABEL) == mine:
        return True
    if not release.has_lost_label(key, body):
        return False
    await cluster.patch(resource, key, {"metadata": {"labels": {**instance_labels(mine), **MANAGED_BY}}})
    log.warning("labels_restored", object=str(key))
    return True
