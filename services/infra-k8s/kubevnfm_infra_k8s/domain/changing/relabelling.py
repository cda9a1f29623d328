"""Puts our labels back on objects from which another party has removed them: by these labels objects are watched."""

from __future__ import annotations

import structlog

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, MANAGED_BY, Body, ObjectKey, Resource, labels_of
from kubevnfm_infra_k8s.domain.planning.preparing import instance_labels
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.release import Release

log = structlog.get_logger()


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
