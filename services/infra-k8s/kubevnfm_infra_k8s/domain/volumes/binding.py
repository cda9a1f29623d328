"""Binds PersistentVolumes to claims, and reserves them (MC-101, MC-102).

A PersistentVolume is never without a ``claimRef``. Each change of it names the version that was read, so of two processes one has
to look again (RevisionConflict). Every function looks first and may be repeated: a crash needs no journal.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.record import Volume

_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4)
_LOOK_AGAIN: Final = "kubevnfm.io/look-again"
"""On a claim: how often its controller was asked to look at it again."""
_EVENTS: Final = Resource("v1", "Event", "events", namespaced=True)


async def reserved_for(cluster: Cluster, volume: Volume, pv: Body, wanted: ObjectKey) -> Body:
    """Return a PersistentVolume that only this claim can take; claims of the volume that no user wants any more are removed.

    Raises: NotYet (a claim is being removed), Broken (another party has it).
    """
    has = bodies.claim_of(pv)
    if has is None:
        return await _exchanged(cluster, pv, wanted)
    key, uid = has
    if key == wanted and not uid:
        return pv
    claim = await cluster.get(CLAIMS, key)
    if claim is None:
        return await _exchanged(cluster, pv, wanted)
    is_bound = uid_of(claim) == uid
    if key == wanted:
        return pv if is_bound else await _exchanged(cluster, pv, wanted)
    if bodies.is_own(volume, claim):
        await without_claim(cluster, volume, key)
        return await _exchanged(cluster, pv, wanted)
    if is_bound:
        raise Broken(
            f"PersistentVolume {pv['metadata']['name']} is bound to the claim {key.namespace}/{key.name} of another party"
        )
    return await _exchanged(cluster, pv, wanted)


async def bound_by(cluster: Cluster, volume: Volume, pv: Body, key: ObjectKey) -> Body:
    """Return the claim, bound to a PersistentVolume that is reserved for it. Raises NotYet, Broken (a claim of another party)."""
    claim = await _claim(cluster, key, bodies.bound_claim(volume, key, pv))
    if not bodies.is_own(volume, claim):
        raise Broken(f"claim {key.namespace}/{key.name} exists and is not of this volume")
    if field_at(claim, "metadata", "deletionTimestamp"):
        raise NotYet(_removed(key), Watched.from_body(CLAIMS, key, claim))
    if not _is_bound(claim):
        claim = await _awaited(cluster, claim, key)
    if not _is_bound(claim):
        raise NotYet(await why_unbound(cluster, claim, key), Watched.from_body(CLAIMS, key, claim))
    change = bodies.growth(volume, claim)
    return (await cluster.patch(CLAIMS, key, change) or claim) if change is not None else claim


async def _awaited(cluster: Cluster, claim: Body, key: ObjectKey) -> Body:
    """Return the claim once it is bound, or after a moment.

    Its controller may see the new claim before the PersistentVolume's new ``claimRef``. It then looks at the claim at its next change only,
    or after 15 s (seen with Kubernetes 1.34); so the claim is changed.
    """
    for count, pause_s in enumerate(_PAUSES_S, 1):
        await asyncio.sleep(pause_s)
        present = await cluster.get(CLAIMS, key)
        if present is None or _is_bound(present):
            return present or claim
        claim = await cluster.patch(CLAIMS, key, {"metadata": {"annotations": {_LOOK_AGAIN: str(count)}}}) or claim
    return claim


def _is_bound(claim: Body) -> bool:
    return bool(field_at(claim, "status", "phase") == "Bound")


async def check_free(cluster: Cluster, volume: Volume, key: ObjectKey) -> None:
    """Raise Broken if another party has a claim of this name."""
    claim = await cluster.get(CLAIMS, key)
    if claim is not None and not bodies.is_own(volume, claim):
        raise Broken(f"claim {key.namespace}/{key.name} exists and is not of this volume")


async def without_claim(cluster: Cluster, volume: Volume, key: ObjectKey) -> None:
    """Have no claim of the volume by this name; one of others stays. Raises NotYet until it is gone."""
    claim = await cluster.get(CLAIMS, key)
    if claim is None or not bodies.is_own(volume, claim):
        return
    await cluster.delete(CLAIMS, key, uid=uid_of(claim))
    left = await cluster.get(CLAIMS, key)
    if left is not None:
        raise NotYet(_removed(key), Watched.from_body(CLAIMS, key, left))


async def without_pv(cluster: Cluster, volume: Volume, name: str) -> None:
    """Have no PersistentVolume of the volume by this name. Raises NotYet until it is gone."""
    pv = await cluster.get(VOLUMES, pv_key(name))
    if pv is None or not bodies.is_own(volume, pv):
        return
    await cluster.delete(VOLUMES, pv_key(name), uid=uid_of(pv))
    left = await cluster.get(VOLUMES, pv_key(name))
    if left is not None:
        raise NotYet(f"PersistentVolume {name} is being removed", Watched.from_body(VOLUMES, pv_key(name), left))


async def made_pv(cluster: Cluster, volume: Volume, name: str, claim: ObjectKey) -> Body:
    """Return the PersistentVolume with the volume's source; made if it is absent. Raises Broken (there is one of another party), NotYet."""
    pv = await cluster.get(VOLUMES, pv_key(name))
    if pv is None:
        pv = await cluster.create(VOLUMES, pv_key(name), bodies.pv_body(volume, name, claim))
    if pv is None:
        raise RevisionConflict(f"PersistentVolume {name} was made at this moment")
    if not bodies.is_own(volume, pv):
        raise Broken(f"PersistentVolume {name} exists and is not of this volume")
    if field_at(pv, "metadata", "deletionTimestamp"):
        raise NotYet(
            f"PersistentVolume {name} is being deleted by another party", Watched.from_body(VOLUMES, pv_key(name), pv)
        )
    return pv


async def claim_for_class(cluster: Cluster, volume: Volume, key: ObjectKey) -> Body:
    """Return the claim for which the volume's class provisions; made if it is absent. Raises Broken (there is one of another party), NotYet."""
    claim = await _claim(cluster, key, bodies.provisioning_claim(volume, key))
    if not bodies.is_own(volume, claim):
        raise Broken(f"claim {key.namespace}/{key.name} exists and is not of this volume")
    return claim


async def why_unbound(cluster: Cluster, claim: Body, key: ObjectKey) -> str:
    """Return why a claim is not bound: with the newest event about it."""
    text = f"claim {key.namespace}/{key.name} is {field_at(claim, 'status', 'phase') or 'Pending'}"
    try:
        events = await cluster.list(_EVENTS, namespace=key.namespace)
    except ObjectRefused:  # not everybody may read events; the text is useful without them too
        return text
    about = [event for event in events if field_at(event, "involvedObject", "uid") == uid_of(claim)]
    newest = max(about, key=_time_of, default=None)
    return text if newest is None else f"{text}: {newest.get('reason', '')}: {newest.get('message', '')}"


async def _claim(cluster: Cluster, key: ObjectKey, body: Body) -> Body:
    claim = await cluster.get(CLAIMS, key)
    if claim is None:
        claim = await cluster.create(CLAIMS, key, body)
    if claim is None:
        raise RevisionConflict(f"claim {key.namespace}/{key.name} was made at this moment")
    return claim


async def _exchanged(cluster: Cluster, pv: Body, wanted: ObjectKey) -> Body:
    name = str(pv["metadata"]["name"])
    try:
        changed = await cluster.patch(VOLUMES, pv_key(name), bodies.exchange(pv, wanted))
    except ObjectRefused as refusal:
        if refusal.http_status != 409:
            raise
        # Its controller, or another process, has written it since it was read.
        changed = None
    if changed is None:
        raise RevisionConflict(f"PersistentVolume {name} was changed at this moment")
    return changed


def _removed(key: ObjectKey) -> str:
    return f"claim {key.namespace}/{key.name} is being removed: a pod that uses it keeps it"


def _time_of(event: Body) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
