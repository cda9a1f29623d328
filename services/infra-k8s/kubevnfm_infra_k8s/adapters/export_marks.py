"""The marks of what A&AI does not have yet.

An object is marked in its own document, by the write that changes it. One that is gone leaves its document without what the
inventory finds it by, until A&AI has it no more. Links and features are marked in documents of their own, before they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Stored

from kubevnfm_infra_k8s.domain.exporting.ports import Subject
from kubevnfm_infra_k8s.domain.inventory.record import ObjectExport, ObjectRecord
from kubevnfm_infra_k8s.domain.inventory.seen_object import is_placed

EXPORTS: Final = "k8s_exports"
_TRIES: Final = 50
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


def is_gone(stored: Stored) -> bool:
    """Return whether a document of the inventory stands for an object that is gone."""
    return "gone" in stored.body


def subject_doc(subject: str, subject_id: str) -> str:
    """Return the id of the document of a link, or of the features of a region."""
    return f"{subject}:{subject_id}"


class ExportMarks:
    """Marks what is written."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def written(self, old: ObjectRecord | None, new: ObjectRecord) -> ObjectRecord:
        """Return a record that is written, with its mark."""
        before = ObjectExport() if old is None else old.export
        is_moved = old is not None and old.vnf_instance_id != new.vnf_instance_id
        if before.due is None and old is not None and not is_moved and not is_placed(new.api_version, new.kind):
            # A&AI has nothing but the VNF of others.
            return new.model_copy(update={"export": before})
        if old is not None and old.is_exported_as(new):
            return new.model_copy(update={"export": before})
        left = old.vnf_instance_id if old is not None and is_moved else before.left_vnf_id
        return new.model_copy(update={"export": self._due(before, new.vim_id, left)})

    def written_again(self, gone: Stored, new: ObjectRecord) -> ObjectRecord:
        """Return the record of an object in the place of one that is gone."""
        before = ObjectExport.model_validate(gone.body["export"])
        vnf_id = str(gone.body["gone"]["vnf_id"])
        left = vnf_id if vnf_id != new.vnf_instance_id else before.left_vnf_id
        return new.model_copy(update={"export": self._due(before, new.vim_id, left)})

    def removed(self, old: ObjectRecord) -> JsonObject:
        """Return the document of an object that is gone: without its attributes no filter finds it, and no list shows it."""
        return {
            "gone": {
                "vnf_id": old.vnf_instance_id,
                "namespace": old.namespace,
                "placed": is_placed(old.api_version, old.kind),
            },
            "export": self._due(old.export, old.vim_id, old.export.left_vnf_id).model_dump(exclude_none=True),
        }

    def _due(self, before: ObjectExport, vim_id: str, left: str) -> ObjectExport:
        now = rfc3339(self._clock.now())
        return ObjectExport(
            due=now,
            since=before.since or now,
            vim_id=vim_id,
            known=before.known,
            asked_at=before.asked_at,
            left_vnf_id=left,
        )

    async def announce(self, subject: Subject, subject_id: str, *, expected: int) -> None:
        """Mark a link or features that are about to be written; ``expected``: the revision after that, 0 for a removal."""
        now = rfc3339(self._clock.now())
        mark: JsonObject = {"expected": expected, "due": now, "announced_at": now}
        await self._mark(subject, subject_id, new={**mark, "sent": {}, "since": now}, again=lambda _: mark)

    async def send_again(self, subject: Subject, subject_id: str) -> None:
        """Mark a link or features of which A&AI may have lost what it got, so all of it is sent."""
        now = rfc3339(self._clock.now())
        settled: JsonObject = {"expected": 0, "announced_at": rfc3339(_LONG_AGO)}

        def again(stored: Stored) -> JsonObject:
            # A writer that has announced a write may be about to do it. Nothing else is waited for.
            announced = {} if "due" in stored.body else settled
            # The ids stay: they remove from A&AI what has gone since.
            return {"due": now, "sent": dict.fromkeys(stored.body["sent"], ""), **announced}

        new: JsonObject = {"due": now, "sent": {}, "since": now, **settled}
        await self._mark(subject, subject_id, new=new, again=again)

    async def _mark(
        self, subject: Subject, subject_id: str, *, new: JsonObject, again: Callable[[Stored], JsonObject]
    ) -> None:
        doc = subject_doc(subject, subject_id)
        for _ in range(_TRIES):
            stored = await self._store.get(EXPORTS, doc)
            try:
                if stored is None:
                    await self._store.insert(EXPORTS, doc, {"subject": subject, "subject_id": subject_id, **new})
                else:
                    mark = {"since": stored.body.get("since") or new["since"], **again(stored)}
                    await self._store.update(EXPORTS, doc, mark, unset=["tries", "error"], if_revision=stored.revision)
            except (AlreadyExists, RevisionConflict):
                continue
            return
        raise RevisionConflict(f"export of {subject} {subject_id}: marked by others all the time")
