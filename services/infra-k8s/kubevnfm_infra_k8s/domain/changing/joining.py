"""Has a VNF instance use a Namespace that was made for VNF instances, so that none that leaves deletes it (multicloud.md MC-031).

The last holder deletes the Namespace in the version that it saw before it left. An instance that comes is a holder first, and then
writes the Namespace: either the last one sees it among the holders, or finds another version, or the write finds a Namespace that is
being deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import structlog

from kubevnfm_infra_k8s.domain.errors import ObjectRefused, StillWaiting
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    MANAGED_BY,
    OPERATION_ANNOTATION,
    Body,
    Wanted,
    annotations_of,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.preparing import ordered_labels
from kubevnfm_infra_k8s.domain.ports import Cluster

log = structlog.get_logger()

_OURS: Final = frozenset({*ordered_labels(""), *MANAGED_BY})


async def join(cluster: Cluster, wanted: Wanted, there: Body, sharers: Collection[str]) -> Body:
    """Return the Namespace after a write that gives it another version. Raises StillWaiting if it is another one by now, or ending.

    The label of another holder stays: it gives it to one of the others when it leaves.
    """
    operation_id = annotations_of(wanted.body)[OPERATION_ANNOTATION]
    is_of_holder = labels_of(there).get(INSTANCE_LABEL) in sharers
    ours = {name: text for name, text in labels_of(wanted.body).items() if name in _OURS}
    labels = {} if is_of_holder else ours
    # A repeat of the operation would change nothing otherwise.
    marks = (None, operation_id) if annotations_of(there).get(OPERATION_ANNOTATION) == operation_id else (operation_id,)
    body: Body | None = None
    for mark in marks:
        metadata = {"uid": uid_of(there), "labels": labels, "annotations": {OPERATION_ANNOTATION: mark}}
        try:
            body = await cluster.patch(wanted.resource, wanted.key, {"metadata": metadata})
        except ObjectRefused:
            # A patch with another uid is invalid (422) for the API server.
            body = await cluster.get(wanted.resource, wanted.key)
            if body is not None and uid_of(body) == uid_of(there):
                raise
            body = None
        if body is None or field_at(body, "metadata", "deletionTimestamp"):
            log.info("namespace_is_going", object=str(wanted.key))
            raise StillWaiting
    assert body is not None, "one of the marks at least is written"
    return body
