"""The stored state of the export to A&AI: what is marked, what A&AI has got, and whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from kubevnfm_clients.multicloud.inventory import ExportFailure, ExportHealth, Resync
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.outages import unless_said
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Sort, Stored, by

from kubevnfm_infra_k8s.adapters.export_marks import EXPORTS, ExportMarks, is_gone, subject_doc
from kubevnfm_infra_k8s.adapters.stored_features import FEATURES
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS
from kubevnfm_infra_k8s.adapters.stored_links import LINKS
from kubevnfm_infra_k8s.domain.exporting.nodes import RegionKey, is_segment
from kubevnfm_infra_k8s.domain.exporting.ports import DueObject, DueSubject
from kubevnfm_infra_k8s.domain.inventory.ports import Term
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord
from kubevnfm_infra_k8s.domain.inventory.seen_object import is_placed
from kubevnfm_infra_k8s.domain.links.record import Link

log = structlog.get_logger()

# They are created where there is an export: without one no document has these.
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    OBJECTS: [Index(["export/due"]), Index(["export/since"]), Index(["export/tries"]), Index(["gone/vnf_id"])],
    EXPORTS: [Index(["due"]), Index(["since"]), Index(["tries"])],
}
_STATE: Final = "state"
_RETRY_S: Final = 1.0
_YOUNG: Final = timedelta(seconds=60)
"""A write ends within this time after its mark, or it has failed."""
_PAGE: Final = 200
_MOST_COUNTED: Final = 10_000
_MOST_SHOWN: Final = 10
_MOST_LAGS: Final = 1000
_REASON_BYTES: Final = 1024
_IN_FLIGHT: Final = timedelta(minutes=5)
"""Longer than a request to A&AI with the read before it, and A&AI's own work after its caller has gone."""
_MARKS: Final = ("due", "since", "vim_id", "left_vnf_id", "tries", "error")


class StoredExports:
    """`domain.exporting.ports.ExportRecords`."""

    def __init__(self, store: DocumentStore, clock: Clock, marks: ExportMarks, url: str) -> None:
        """``url``: that of A&AI, which has nothing yet if it is another one."""
        self._store, self._clock, self._marks, self._url = store, clock, marks, url

    async def begin(self) -> None:
        stored = await self._store.get(EXPORTS, _STATE)
        if stored is None or stored.body["url"] != self._url:
            await self._resync(stored)

    async def objects(self, *, limit: int) -> Sequence[DueObject]:
        query = Query(self._is_due("export/due"), sort=Sort("export/due"), limit=limit, exclude=["ips", "scope"])
        return [self._due_object(each) for each in await self._store.find(OBJECTS, query)]

    async def intend(self, due: DueObject) -> DueObject | None:
        if due.unsettled_s:
            return due
        try:
            asked = {"export/asked_at": rfc3339(self._clock.now())}
            stored = await self._store.update(OBJECTS, due.id, asked, if_revision=due.revision)
        except RevisionConflict:
            return None
        return replace(due, revision=stored.revision)

    async def settle(self, due: DueObject) -> None:
        with suppress(RevisionConflict):
            if due.record is None and due.unsettled_s:
                again = {"export/due": self._in(due.unsettled_s)}
                await self._store.update(OBJECTS, due.id, again, if_revision=due.revision)
                return
            if due.record is None:
                await self._store.delete(OBJECTS, due.id, if_revision=due.revision)
                return
            # A creation that an earlier process has asked for may arrive after the object is gone.
            marks = _MARKS if due.unsettled_s else (*_MARKS, "asked_at")
            unset = [f"export/{name}" for name in marks]
            await self._store.update(OBJECTS, due.id, {"export/known": True}, unset=unset, if_revision=due.revision)

    async def put_off(self, due: DueObject, reason: str, *, again_s: float) -> None:
        fields: JsonObject = {
            "export/due": self._in(again_s),
            "export/tries": due.tries + 1,
            "export/error": bounded(reason, _REASON_BYTES),
        }
        # A&AI has answered what was asked for last.
        unset = () if due.unsettled_s else ("export/asked_at",)
        with suppress(RevisionConflict):
            await self._store.update(OBJECTS, due.id, fields, unset=unset, if_revision=due.revision)

    async def has_objects(self, vnf_id: str, *, gone: int) -> bool:
        if await self._store.count(OBJECTS, by(vnf_instance_id=vnf_id), limit=1):
            return True
        of_vnf = Compare("gone/vnf_id", Op.EQ, [vnf_id])
        return await self._store.count(OBJECTS, of_vnf, limit=gone + 1) > gone

    async def subjects(self, *, limit: int) -> Sequence[DueSubject]:
        query = Query(self._is_due("due"), sort=Sort("due"), limit=limit)
        return [self._due_subject(each) for each in await self._store.find(EXPORTS, query)]

    async def settle_subject(self, due: DueSubject, sent: Mapping[str, str]) -> None:
        if due.unsettled_s and due.sent.keys() - sent.keys():
            # A node that is removed now may be created by the request that is under way.
            await self.put_off_subject(due, "", again_s=due.unsettled_s)
            return
        doc, unset = subject_doc(due.subject, due.subject_id), ["due", "since", "tries", "error"]
        unset += [] if due.unsettled_s else ["asked_at"]
        with suppress(RevisionConflict):
            if sent:
                fields = {"sent": dict(sent)}
                await self._store.update(EXPORTS, doc, fields, unset=unset, if_revision=due.revision)
            else:
                await self._store.delete(EXPORTS, doc, if_revision=due.revision)

    async def keep_sent(self, due: DueSubject, sent: Mapping[str, str]) -> DueSubject:
        asked = {} if due.unsettled_s else {"asked_at": rfc3339(self._clock.now())}
        stored = await self._store.update(EXPORTS, due.id, {"sent": dict(sent), **asked}, if_revision=due.revision)
        return replace(due, revision=stored.revision, sent=sent)

    async def put_off_subject(self, due: DueSubject, reason: str, *, again_s: float) -> None:
        fields: JsonObject = {"due": self._in(again_s)}
        unset: Sequence[str] = ()
        if reason:
            fields |= {"tries": due.tries + 1, "error": bounded(reason, _REASON_BYTES)}
            unset = () if due.unsettled_s else ("asked_at",)
        with suppress(RevisionConflict):
            await self._store.update(EXPORTS, due.id, fields, unset=unset, if_revision=due.revision)

    async def link(self, link_id: str) -> Link | None:
        stored = await self._store.get(LINKS, link_id)
        return None if stored is None else Link.from_stored(stored)

    async def region(self, vim_id: str) -> RegionKey | None:
        stored = await self._store.get(EXPORTS, f"region:{vim_id}")
        return None if stored is None else RegionKey(str(stored.body["owner"]), str(stored.body["name"]))

    async def store_region(self, vim_id: str, key: RegionKey) -> None:
        with suppress(AlreadyExists):
            await self._store.insert(EXPORTS, f"region:{vim_id}", {"owner": key.owner, "name": key.name})

    async def said(self, *, is_reachable: bool, reason: str) -> None:
        stored = await self._store.get(EXPORTS, _STATE)
        state = {"is_reachable": is_reachable, "reason": bounded(reason, _REASON_BYTES)}
        if stored is None or state == {name: stored.body.get(name) for name in state}:
            return
        if stored.body.get("is_reachable") is not is_reachable:
            state["reachable_since"] = rfc3339(self._clock.now())
        with suppress(RevisionConflict):
            await self._store.update(EXPORTS, _STATE, state, if_revision=stored.revision)

    async def resync(self) -> None:
        await self._resync(await self._store.get(EXPORTS, _STATE))

    async def _resync(self, stored: Stored | None) -> None:
        resync: JsonObject = {"asked_at": rfc3339(self._clock.now()), "marked": 0, "after": ""}
        body: JsonObject = {"url": self._url, "resync": resync}
        if stored is None:
            with suppress(AlreadyExists):
                await self._store.insert(EXPORTS, _STATE, body)
        else:
            await self._store.update(EXPORTS, _STATE, body)

    async def mark_page(self) -> bool:
        state = await self._store.get(EXPORTS, _STATE)
        resync: Mapping[str, Any] | None = None if state is None else state.body.get("resync")
        if state is None or resync is None or "marked_at" in resync:
            return False
        after = str(resync["after"])
        if not after:
            await self._mark_gone()
            await self._mark_subjects()
        query = Query(_there("id"), sort=Sort("id"), after=(after, after) if after else None, limit=_PAGE)
        page = await self._store.find(OBJECTS, query)
        now = rfc3339(self._clock.now())
        for each in page:
            export = {**each.body.get("export", {}), "due": now, "vim_id": each.body["vim_id"]}
            export.setdefault("since", now)
            # If it is written meanwhile, the next page of a later resynchronization has it; a change of it is marked anyway.
            with suppress(RevisionConflict):
                await self._store.update(OBJECTS, each.id, {"export": export}, if_revision=each.revision)
        done = {**resync, "marked": resync["marked"] + len(page)}
        done |= {"after": page[-1].id} if len(page) == _PAGE else {"marked_at": now}
        with suppress(RevisionConflict):
            await self._store.update(EXPORTS, _STATE, {"resync": done}, if_revision=state.revision)
        return True

    async def _mark_gone(self) -> None:
        """Have the removals that A&AI has refused tried again; the others are due already."""
        query = Query(_there("export/tries"), sort=Sort("export/tries"), limit=_MOST_COUNTED)
        refused = await self._store.find(OBJECTS, query)
        for each in filter(is_gone, refused):
            # If there is one of its name again, that is due.
            with suppress(RevisionConflict):
                fields: JsonObject = {"export/due": rfc3339(self._clock.now())}
                await self._store.update(OBJECTS, each.id, fields, if_revision=each.revision)

    async def _mark_subjects(self) -> None:
        # Those that were sent may be gone since.
        sent = await self._store.find(EXPORTS, Query(exclude=["sent"]))
        links = {str(each.body["subject_id"]) for each in sent if each.body.get("subject") == "link"}
        found = await self._store.find(LINKS, Query(exclude=["spec", "metadata", "holders", "objects"]))
        for link_id in sorted(links.union(each.id for each in found)):
            await self._marks.send_again("link", link_id)
        for features in await self._store.find(FEATURES, Query()):
            await self._marks.send_again("features", features.id)

    async def health(self) -> ExportHealth:
        state = await self._store.get(EXPORTS, _STATE)
        body: Mapping[str, Any] = {} if state is None else state.body
        waiting = await self._count("due")
        oldest = min([since for prefix in ("export/", "") for since in await self._oldest(prefix)], default=None)
        return ExportHealth(
            reachable=body.get("is_reachable"),
            reachable_since=body.get("reachable_since"),
            reason=str(body.get("reason", "")),
            waiting=waiting,
            waiting_since=oldest,
            lag_s=self._lag(oldest),
            refused=await self._count("tries"),
            failures=await self._failures(),
            resync=None if "resync" not in body else Resync.model_validate(body["resync"]),
        )

    async def lags(self) -> Mapping[str, float]:
        """Return the lag in seconds of each region of which something waits, of those of the objects that wait longest."""
        query = Query(
            _there("export/since"), sort=Sort("export/since"), limit=_MOST_LAGS, exclude=["networks", "ips", "gone"]
        )
        found: dict[str, float] = {}
        for each in await self._store.find(OBJECTS, query):
            export = each.body["export"]
            found.setdefault(str(export["vim_id"]), self._lag(str(export["since"])))
        return found

    async def _count(self, name: str) -> int:
        marked = [(OBJECTS, f"export/{name}"), (EXPORTS, name)]
        return sum([await self._store.count(each, _there(path), limit=_MOST_COUNTED) for each, path in marked])

    async def _oldest(self, prefix: str) -> Sequence[str]:
        collection, path = (OBJECTS if prefix else EXPORTS), f"{prefix}since"
        found = await self._store.find(collection, Query(_there(path), sort=Sort(path), limit=1))
        return [str((each.body["export"] if prefix else each.body)["since"]) for each in found]

    async def _failures(self) -> Sequence[ExportFailure]:
        shown: list[ExportFailure] = []
        for collection, path in ((OBJECTS, "export/tries"), (EXPORTS, "tries")):
            query = Query(_there(path), sort=Sort(path, descending=True), limit=_MOST_SHOWN)
            for each in await self._store.find(collection, query):
                export = each.body["export"] if collection == OBJECTS else each.body
                shown.append(
                    ExportFailure(
                        id=each.id, reason=export["error"], tries=export["tries"], since=export["since"],
                        again_at=export["due"],
                    )
                )  # fmt: skip
        return shown[:_MOST_SHOWN]

    def _lag(self, since: str | None) -> float:
        if since is None:
            return 0.0
        return max(0.0, (self._clock.now() - datetime.fromisoformat(since)).total_seconds())

    def _is_due(self, path: str) -> Filter:
        return AllOf([Compare(path, Op.LTE, [rfc3339(self._clock.now())])])

    def _in(self, seconds: float) -> str:
        return rfc3339(self._clock.now() + timedelta(seconds=seconds))

    def _unsettled_s(self, asked_at: str | None) -> float:
        if asked_at is None:
            return 0.0
        left = datetime.fromisoformat(asked_at) + _IN_FLIGHT - self._clock.now()
        return max(0.0, left.total_seconds())

    def _due_object(self, stored: Stored) -> DueObject:
        body = stored.body
        export, tries = body["export"], int(body["export"].get("tries", 0))
        unsettled_s = self._unsettled_s(export.get("asked_at"))
        if is_gone(stored):
            gone = body["gone"]
            is_node = bool(gone["placed"]) and is_segment(str(gone["namespace"]))
            return DueObject(
                stored.id, stored.revision, None, str(export["vim_id"]), str(gone["namespace"]), str(gone["vnf_id"]),
                str(export.get("left_vnf_id", "")), is_node, bool(export.get("known")), tries, unsettled_s,
            )  # fmt: skip
        record = ObjectRecord.from_stored(stored)
        return DueObject(
            record.id, stored.revision, record, record.vim_id, record.namespace, record.vnf_instance_id,
            record.export.left_vnf_id, is_placed(record.api_version, record.kind) and is_segment(record.namespace),
            record.export.known, tries, unsettled_s,
        )  # fmt: skip

    def _due_subject(self, stored: Stored) -> DueSubject:
        body = stored.body
        age = self._clock.now() - datetime.fromisoformat(body["announced_at"])
        return DueSubject(
            stored.id, stored.revision, body["subject"], str(body["subject_id"]), int(body["expected"]),
            age < _YOUNG, body["sent"], int(body.get("tries", 0)), self._unsettled_s(body.get("asked_at")),
        )  # fmt: skip


class NoExport:
    """`domain.inventory.ports.Exporting` without A&AI: changes are not marked, so that the next export begins again."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def run(self, term: Term) -> None:
        while not await self._is_noted():
            await asyncio.sleep(_RETRY_S)
            term.check()
        await asyncio.Event().wait()

    async def _is_noted(self) -> bool:
        try:
            stored = await self._store.get(EXPORTS, _STATE)
            if stored is not None and stored.body["url"]:
                await self._store.update(EXPORTS, _STATE, {"url": ""})
        except VnfmError as error:
            unless_said(error).warning("end_of_export_not_stored", reason=str(error))
            return False
        return True


def _there(path: str) -> Filter:
    """Return the filter for documents with an attribute, by a range of its index: `Exists` would look through all documents."""
    return Compare(path, Op.GTE, [1]) if path.endswith("tries") else Compare(path, Op.GT, [""])
