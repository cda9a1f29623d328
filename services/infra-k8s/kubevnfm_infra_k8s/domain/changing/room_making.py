"""Deletes an object whose successor has its name: of the object itself alone, and not of its data (capi.md CR-035)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from kubevnfm_infra_k8s.domain.errors import ForeignObjects, ObjectRefused, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import (
    CLAIMS,
    INSTANCE_LABEL,
    Body,
    Wanted,
    field_at,
    labels_of,
    name_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.removing.deletion_state import deletion_obstacle
from kubevnfm_infra_k8s.domain.removing.propagation import propagation_of
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

_FIRST_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0
_SET: Final = ("apps", "StatefulSet")
_RETENTION: Final = "persistentVolumeClaimRetentionPolicy"


async def make_room(wait: ReadinessWait, progress: Progress, wanted: Wanted, uid: str) -> tuple[Body, Body | None]:
    """Delete the object with this uid, and return when it is gone: what is sent of its successor, and what is in its place.

    The latter is what another party has put there meanwhile, with the label of the instance. Raises ForeignObjects if it lacks that, and
    ObjectsNotReady at the deadline.
    """
    cluster, key, pause_s = wait.cluster, wanted.key, _FIRST_LOOK_S
    sent = wanted.body
    while (body := await cluster.get(wanted.resource, key)) is not None:
        if uid_of(body) != uid:
            if labels_of(body).get(INSTANCE_LABEL) != wait.vnf_instance_id:
                raise ForeignObjects([key], way_out="delete or rename them")
            return wanted.body, body
        sent = _with_number(wanted, body)
        obstacle = deletion_obstacle(key, body)
        if not field_at(body, "metadata", "deletionTimestamp"):
            if data := await _what_would_go(wait, wanted, body):
                obstacle = f"{key}: {data}"
            else:
                await cluster.delete(wanted.resource, key, uid=uid, propagation=propagation_of(key, body))
        await progress.on(str(key), "is replaced, because a field of it cannot be changed", done=0, total=1)
        if wait.left_s() <= pause_s:
            raise ObjectsNotReady(f"to be replaced: {obstacle}")
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_LOOK_S)
    return sent, None


def _with_number(wanted: Wanted, present: Body) -> Body:
    """Return the body with the number of replicas that an autoscaler has chosen: without one it would begin with 1."""
    path = wanted.autoscaled_at
    number = field_at(present, *path) if path else None
    if number is None or field_at(wanted.body, *path) is not None:
        return wanted.body
    part = number
    for name in reversed(path[1:]):
        part = {name: part}
    # A number of replicas is in an object of the manifest.
    return {**wanted.body, path[0]: {**(wanted.body.get(path[0]) or {}), **part}}


async def _what_would_go(wait: ReadinessWait, wanted: Wanted, present: Body) -> str:
    """Have the claims of a StatefulSet stay that would go with it (``whenDeleted: Delete``); return what is left to do for that.

    The controller owns claims for such a set. Once the policy is another one, it gives back those of present pods, and not those
    of pods that a scaling has removed.
    """
    if wanted.key.group_kind != _SET:
        return ""
    cluster, uid = wait.cluster, uid_of(present)
    if field_at(present, "spec", _RETENTION, "whenDeleted") == "Delete":
        change = {"metadata": {"uid": uid}, "spec": {_RETENTION: {"whenDeleted": "Retain"}}}
        await cluster.patch(wanted.resource, wanted.key, change)
        return "its claims would be deleted with it"
    if field_at(present, "metadata", "generation") != field_at(present, "status", "observedGeneration"):
        return "its controller has not seen yet that its claims stay"
    claims = await cluster.list(CLAIMS, namespace=wanted.key.namespace)
    owned = [each for each in claims if uid in {owner.get("uid") for owner in _owners(each)}]
    for each in owned:
        metadata = {
            "uid": uid_of(each),
            "resourceVersion": field_at(each, "metadata", "resourceVersion"),
            "ownerReferences": [owner for owner in _owners(each) if owner.get("uid") != uid] or None,
        }
        with suppress(ObjectRefused):  # it has changed meanwhile
            await cluster.patch(CLAIMS, CLAIMS.key(each), {"metadata": metadata})
    return f"it owns the claim {name_of(owned[0])}" if owned else ""


def _owners(body: Body) -> list[Body]:
    return field_at(body, "metadata", "ownerReferences") or []
