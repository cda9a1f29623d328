"""Binds PersistentVolumes to claims, and reserves them (MC-101, MC-102).

A PersistentVolume is never without a ``claimRef``. Each change of it names the version that was read, so of two processes one has
to look again (RevisionConflict). Every function looks first and may be repeated: a crash needs no journal.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched
from kubevnfm_infra_k8s.domain.volumes import bodies
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.record import Volume
from kubevnfm_infra_k8s.domain.watching.not_ready_report import EVENTS

_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4)
_LOOK_AGAIN: Final = "kubevnfm.io/look-again"
"""On a claim: changes whenever its controller is to look at it again."""


async def reserved_for(cluster: Cluster, volume: Volume, pv: Body, wanted: ObjectKey, uid: str = "") -> Body:
    """Return a PersistentVolume that only this claim can take; claims of the volume that no user wants any more are removed.

    ``uid``: that of the claim; "" for one that does not exist. Raises NotYet (a claim is being removed, or another party's deleted),
    Broken (another party has it).
    """
    has = bodies.claim_of(pv)
    if has == (wanted, uid):
        return pv
    if not uid and await _foreign(cluster, volume, wanted):
        raise Broken(_not_ours(wanted))
    if has is not None and has[0] != wanted:
        key, has_uid = has
        claim = await _foreign(cluster, volume, key)
        if claim is not None and uid_of(claim) == has_uid:
            raise Broken(
                f"PersistentVolume {pv['metadata']['name']} is bound to the claim of another party: {_named(key)}"
            )
    return await _exchanged(cluster, pv, wanted, uid)


async def _foreign(cluster: Cluster, volume: Volume, key: ObjectKey) -> Body | None:
    """Return the claim of this name if it is of another party; one of the volume is removed.

    Raises NotYet until it is gone, and while that of another party is being deleted.
    """
    claim = await cluster.get(CLAIMS, key)
    if claim is not None and bodies.is_own(volume, claim):
        await without_claim(cluster, volume, key)
        return None
    if claim is not None:
        _check_stays(key, claim)
    return claim


def _check_stays(key: ObjectKey, claim: Body) -> None:
    """Raise NotYet if a claim of another party is being deleted."""
    if field_at(claim, "metadata", "deletionTimestamp"):
        reason = f"{_named(key)} of another party is being deleted: a pod that uses it keeps it"
        raise NotYet(reason, Watched.from_body(CLAIMS, key, claim))


async def bound(cluster: Cluster, volume: Volume, pv: Body, key: ObjectKey) -> Body:
    """Return the claim, bound to a PersistentVolume. Raises NotYet, Broken (a claim of this name, or the volume, is of another party).

    The claim is made first, so that the PersistentVolume is reserved for it alone, not for whatever has its name.
    """
    claim = await own_claim(cluster, volume, key, bodies.bound_claim(volume, key, pv))
    await reserved_for(cluster, volume, pv, key, uid_of(claim))
    if not _is_bound(claim):
        claim = await _awaited(cluster, claim, key)
    if not _is_bound(claim):
        raise NotYet(await why_unbound(cluster, claim, key), Watched.from_body(CLAIMS, key, claim))
    change = bodies.change_of_claim(volume, claim)
    return (await cluster.patch(CLAIMS, key, change) or claim) if change is not None else claim


async def _awaited(cluster: Cluster, claim: Body, key: ObjectKey) -> Body:
    """Return the claim once it is bound, or after a moment.

    Its controller has seen the claim before the PersistentVolume was reserved for it. It looks at the claim again at its next change only,
    or after 15 s (seen with Kubernetes 1.34); so the claim is changed.
    """
    for pause_s in _PAUSES_S:
        asked = {"metadata": {"annotations": {_LOOK_AGAIN: new_id()}}}
        claim = await cluster.patch(CLAIMS, key, asked) or claim
        await asyncio.sleep(pause_s)
        present = await cluster.get(CLAIMS, key)
        if present is None or _is_bound(present):
            return present or claim
    return claim


def _is_bound(claim: Body) -> bool:
    return bool(field_at(claim, "status", "phase") == "Bound")


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
    if pv is None or not bodies.is_of(volume, pv):
        return
    await cluster.delete(VOLUMES, pv_key(name), uid=uid_of(pv))
    left = await cluster.get(VOLUMES, pv_key(name))
    if left is not None:
        raise NotYet(f"PersistentVolume {name} is being removed", Watched.from_body(VOLUMES, pv_key(name), left))


async def made_pv(cluster: Cluster, volume: Volume, name: str) -> Body:
    """Return the PersistentVolume with the volume's source; made and reserved if it is absent.

    Raises: Broken (there is one of another party), NotYet.
    """
    pv = await cluster.get(VOLUMES, pv_key(name))
    if pv is None:
        pv = await cluster.create(VOLUMES, pv_key(name), bodies.pv_body(volume, name, volume.reserved_claim))
    if pv is None:
        raise RevisionConflict(f"PersistentVolume {name} was made at this moment")
    if field_at(pv, "metadata", "deletionTimestamp"):
        raise NotYet(
            f"PersistentVolume {name} is being deleted by another party", Watched.from_body(VOLUMES, pv_key(name), pv)
        )
    if not bodies.is_of(volume, pv):
        raise Broken(f"PersistentVolume {name} exists and is not of this volume")
    return pv


async def own_claim(cluster: Cluster, volume: Volume, key: ObjectKey, body: Body) -> Body:
    """Return the claim of the volume by this name; made if it is absent. Raises Broken (there is one of another party), NotYet."""
    claim = await cluster.get(CLAIMS, key)
    if claim is None:
        claim = await cluster.create(CLAIMS, key, body)
    if claim is None:
        raise RevisionConflict(f"{_named(key)} was made at this moment")
    if not bodies.is_own(volume, claim):
        _check_stays(key, claim)
        raise Broken(_not_ours(key))
    if field_at(claim, "metadata", "deletionTimestamp"):
        raise NotYet(_removed(key), Watched.from_body(CLAIMS, key, claim))
    return claim


async def volume_of(cluster: Cluster, volume: Volume, key: ObjectKey) -> str | None:
    """Return the name of the PersistentVolume that a claim of the volume has; None if there is none."""
    claim = await cluster.get(CLAIMS, key)
    if claim is None or not bodies.is_own(volume, claim):
        return None
    return str(field_at(claim, "spec", "volumeName") or "") or None


async def why_unbound(cluster: Cluster, claim: Body, key: ObjectKey) -> str:
    """Return why a claim is not bound: with the newest event about it."""
    text = f"{_named(key)} is {field_at(claim, 'status', 'phase') or 'Pending'}"
    try:
        events = await cluster.list(EVENTS, namespace=key.namespace)
    except ObjectRefused:  # not everybody may read events; the text is useful without them too
        return text
    about = [event for event in events if field_at(event, "involvedObject", "uid") == uid_of(claim)]
    newest = max(about, key=_time_of, default=None)
    return text if newest is None else f"{text}: {newest.get('reason', '')}: {newest.get('message', '')}"


async def _exchanged(cluster: Cluster, pv: Body, wanted: ObjectKey, uid: str) -> Body:
    name = str(pv["metadata"]["name"])
    try:
        changed = await cluster.patch(VOLUMES, pv_key(name), bodies.exchange(pv, wanted, uid))
    except ObjectRefused as refusal:
        if refusal.http_status != 409:
            raise
        # Its controller, or another process, has written it since it was read.
        changed = None
    if changed is None:
        raise RevisionConflict(f"PersistentVolume {name} was changed at this moment")
    return changed


def _named(key: ObjectKey) -> str:
    return f"claim {key.namespace}/{key.name}"


def _not_ours(key: ObjectKey) -> str:
    return f"{_named(key)} exists and is not of this volume"


def _removed(key: ObjectKey) -> str:
    return f"{_named(key)} is being removed: a pod that uses it keeps it"


def _time_of(event: Body) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
