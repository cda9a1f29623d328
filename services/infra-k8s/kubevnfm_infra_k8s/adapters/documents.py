"""The stored documents: releases, holders of shared objects, the start of step attempts, and answers of deletions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_events.objects import ObjectsDeleted
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Index, Op, Query, Stored, by
from kubevnfm_worker.outcome import StepContext
from pydantic import TypeAdapter

from kubevnfm_infra_k8s.adapters.stored_inventory import NOTED_S, RELEASES, ReleaseNotes
from kubevnfm_infra_k8s.domain.beginning import Beginning
from kubevnfm_infra_k8s.domain.errors import SharedObjectDiffers
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Sharing
from kubevnfm_infra_k8s.domain.release import Release, release_id

SHARED: Final = "k8s_shared_objects"
START_TIMES: Final = "k8s_step_beginnings"
DELETIONS: Final = "k8s_ended_deletions"
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    RELEASES: [Index(["cluster"]), Index(["vimId"])],
    SHARED: [],
    START_TIMES: [Index(["vnfInstanceId"])],
    DELETIONS: [Index(["endedAt"])],
}
_RELEASES: Final = TypeAdapter(Release)
_KEPT: Final = timedelta(days=7)
"""How long the answer of a deletion is stored: as long as a worker keeps the records of commands that are done."""
_PURGE_EACH: Final = timedelta(minutes=1)
_TRIES: Final = 50
"""How often a write is retried if others change the document at the same time."""
_MOST_SILENCES: Final = 1000
_MOST_FORMER: Final = 50
"""Stored former holders. Only those that leave at the same time matter, because each passes its label on."""


class StoredReleases:
    """`ports.Releases`: one document for each part of a VNF instance's objects."""

    def __init__(self, store: DocumentStore, *, noted_s: float = NOTED_S) -> None:
        self._store, self._notes = store, ReleaseNotes(store, noted_s=noted_s)

    async def get(self, vnf_instance_id: str, part: str = "") -> Release | None:
        stored = await self._store.get(RELEASES, release_id(vnf_instance_id, part))
        if stored is None:
            return None
        # Members that an earlier version has not stored have their defaults.
        entries = [{**each, "key": each} for each in stored.body["objects"]]
        more = {"vnfInstanceId": vnf_instance_id, "entries": entries, "revision": stored.revision, "part": part}
        return _RELEASES.validate_python({**stored.body, **more})

    async def note(self, release: Release) -> None:
        await self._notes.note(release)

    async def save(self, release: Release) -> Release:
        # First: a crash in between costs a watch that sees nothing.
        await self.note(release)
        body = _RELEASES.dump_python(
            release, mode="json", by_alias=True, exclude={"vnf_instance_id", "revision", "part"}
        )
        body["objects"] = [{**each.pop("key"), **each} for each in body.pop("entries")]
        if release.revision:
            stored = await self._store.replace(RELEASES, release.id, body, if_revision=release.revision)
        else:
            try:
                stored = await self._store.insert(RELEASES, release.id, body)
            except AlreadyExists as error:
                raise RevisionConflict(f"release {release.id}: created by another worker") from error
        return replace(release, revision=stored.revision)

    async def delete(self, vnf_instance_id: str, part: str = "") -> None:
        await self._store.delete(RELEASES, release_id(vnf_instance_id, part))

    async def others_in(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        return await self._with(cluster, [by(namespace=namespace)], than)

    async def strangers_in(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        implied = by(apiVersion="v1", kind="Namespace", name=namespace, isImplied=True)
        # First: a release that goes between the two is no stranger.
        holding = {each.id for each in await self._having(cluster, [implied], limit=None)}
        found = await self._having(cluster, [by(namespace=namespace)], limit=None)
        return [each.id for each in found if each.id != than and each.id not in holding][:10]

    async def owners_of(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        itself = by(apiVersion="v1", kind="Namespace", name=namespace)
        return await self._with(cluster, [by(namespace=namespace), itself], than)

    async def _with(self, cluster: str, any_of: Sequence[AllOf], than: str) -> Sequence[str]:
        """Return the ids of up to 10 releases but one that have such an object in the cluster."""
        return [each.id for each in await self._having(cluster, any_of, limit=11) if each.id != than][:10]

    async def _having(self, cluster: str, any_of: Sequence[AllOf], *, limit: int | None) -> Sequence[Stored]:
        there = AllOf([by(cluster=cluster), AnyOf([Element("objects", each) for each in any_of])])
        return await self._store.find(RELEASES, Query(there, limit=limit, exclude=["objects", "hooks", "stages"]))


class StoredSharedObjects:
    """`ports.SharedObjects`: one document for each cluster-scoped object, with its holders in the order of joining."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def hold(self, cluster: str, key: ObjectKey, digest: str, vnf_instance_id: str) -> Sequence[str]:
        document_id = _shared_id(cluster, key)
        for _ in range(_TRIES):
            stored = await self._store.get(SHARED, document_id)
            holders = [] if stored is None else list(stored.body["holders"])
            others = _without(vnf_instance_id, holders)
            # The last holder may change the content, because no other instance depends on it.
            if stored is not None and others and stored.body["digest"] != digest:
                raise SharedObjectDiffers(key, others)
            body = {
                "cluster": cluster,
                "object": str(key),
                "digest": digest,
                "holders": holders if vnf_instance_id in holders else [*holders, vnf_instance_id],
                "former": [] if stored is None else _without(vnf_instance_id, stored.body["former"]),
            }
            try:
                if stored is None:
                    await self._store.insert(SHARED, document_id, body)
                elif body != stored.body:
                    await self._store.replace(SHARED, document_id, body, if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            return others
        raise RevisionConflict(f"{key}: too many VNF instances join its holders at the same time")

    async def holders(self, cluster: str, key: ObjectKey) -> Sequence[str]:
        stored = await self._store.get(SHARED, _shared_id(cluster, key))
        return list(stored.body["holders"]) if stored is not None else []

    async def release(self, cluster: str, key: ObjectKey, vnf_instance_id: str) -> Sharing:
        # The document stays after its last holder has left, because that one may repeat the call; `forget` deletes it.
        document_id = _shared_id(cluster, key)
        for _ in range(_TRIES):
            stored = await self._store.get(SHARED, document_id)
            if stored is None:
                return Sharing([], [vnf_instance_id])
            others = _without(vnf_instance_id, stored.body["holders"])
            former = [*_without(vnf_instance_id, stored.body["former"]), vnf_instance_id][-_MOST_FORMER:]
            if len(others) == len(stored.body["holders"]):
                return Sharing(others, former)
            body = {**stored.body, "holders": others, "former": former}
            try:
                await self._store.replace(SHARED, document_id, body, if_revision=stored.revision)
            except RevisionConflict:
                continue
            return Sharing(others, former)
        raise RevisionConflict(f"{key}: too many VNF instances leave its holders at the same time")

    async def forget(self, cluster: str, key: ObjectKey) -> None:
        document_id = _shared_id(cluster, key)
        stored = await self._store.get(SHARED, document_id)
        if stored is None or stored.body["holders"]:
            return
        with suppress(RevisionConflict):  # an instance has joined meanwhile
            await self._store.delete(SHARED, document_id, if_revision=stored.revision)


def _without(vnf_instance_id: str, ids: Sequence[str]) -> list[str]:
    return [each for each in ids if each != vnf_instance_id]


def _shared_id(cluster: str, key: ObjectKey) -> str:
    return derived_id("shared-object", cluster, key.group, key.kind, key.name)


class StoredDeletions:
    """`ports.Deletions`: one document for each step attempt; those of long ago go with a later one."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._purge_at = clock.now()

    async def answered(self, context: StepContext) -> ObjectsDeleted | None:
        stored = await self._store.get(DELETIONS, _attempt_id(context))
        return None if stored is None else ObjectsDeleted.model_validate(stored.body["answer"])

    async def record(self, context: StepContext, answer: ObjectsDeleted) -> None:
        now = self._clock.now()
        body = {"endedAt": rfc3339(now), "answer": answer.model_dump(mode="json")}
        # The first answer stays: a repeat finds less, because the first one has deleted it.
        with suppress(AlreadyExists):
            await self._store.insert(DELETIONS, _attempt_id(context), body)
        if now >= self._purge_at:
            self._purge_at = now + _PURGE_EACH
            await self._store.delete_many(DELETIONS, Compare("endedAt", Op.LT, [rfc3339(now - _KEPT)]))


def _attempt_id(context: StepContext) -> str:
    return f"{context.operation_id}/{context.step_id}/{context.attempt}"


class StoredStartTimes:
    """`ports.StartTimes`: one document for each step attempt."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def started_at(self, context: StepContext, vnf_instance_id: str) -> datetime:
        _, body = await self._begun(context, vnf_instance_id)
        return datetime.fromisoformat(body["beganAt"])

    async def beginning(self, context: StepContext, vnf_instance_id: str) -> Beginning:
        document_id, body = await self._begun(context, vnf_instance_id)
        silences = list(body.get("silences", []))
        if body.get("isSilent"):
            # Until now. If the cluster does not answer this call either, the silence goes on.
            silences[-1] = {**silences[-1], "end": self._clock.now().isoformat()}
            await self._store.update(START_TIMES, document_id, {"silences": silences, "isSilent": False})
        read = datetime.fromisoformat
        return Beginning(read(body["beganAt"]), [(read(each["begin"]), read(each["end"])) for each in silences])

    async def _begun(self, context: StepContext, vnf_instance_id: str) -> tuple[str, JsonMapping]:
        """Return the document of an attempt, which is new at the first call for it."""
        document_id = _attempt_id(context)
        # A step that waits asks again and again, so it is looked up before it is inserted.
        stored = await self._store.get(START_TIMES, document_id)
        if stored is None:
            body = {"vnfInstanceId": vnf_instance_id, "beganAt": self._clock.now().isoformat()}
            try:
                await self._store.insert(START_TIMES, document_id, body)
            except AlreadyExists:  # another delivery was first
                stored = await self._store.get(START_TIMES, document_id)
        return document_id, body if stored is None else stored.body

    async def note_silence(self, context: StepContext, since: datetime) -> None:
        stored = await self._store.get(START_TIMES, _attempt_id(context))
        if stored is None:
            return
        silences = list(stored.body.get("silences", []))
        begin, now = max(since, datetime.fromisoformat(stored.body["beganAt"])), self._clock.now()
        # One call follows the other.
        if silences and datetime.fromisoformat(silences[-1]["end"]) >= since:
            silences[-1] = {**silences[-1], "end": now.isoformat()}
        else:
            silences.append({"begin": begin.isoformat(), "end": now.isoformat()})
        fields = {"silences": silences[-_MOST_SILENCES:], "isSilent": True}
        with suppress(RevisionConflict):  # forgotten meanwhile
            await self._store.update(START_TIMES, stored.id, fields, if_revision=stored.revision)

    async def forget(self, vnf_instance_id: str) -> None:
        await self._store.delete_many(START_TIMES, Compare("vnfInstanceId", Op.EQ, [vnf_instance_id]))
