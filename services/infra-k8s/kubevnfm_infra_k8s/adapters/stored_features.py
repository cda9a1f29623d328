"""The features of each region that were published last."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubevnfm_events import Envelope
from kubevnfm_events.vim import VimFeaturesChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_worker.outbox import Outbox

from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks

FEATURES: Final = "k8s_region_features"
SOURCE: Final = "/kubevnfm/infra-k8s"


class StoredFeatures:
    """`domain.inventory.ports.FeatureRecords`: a document for each VIM."""

    def __init__(self, store: DocumentStore, outbox: Outbox, clock: Clock, marks: ExportMarks | None = None) -> None:
        """``marks``: marks changes for the export to A&AI; None: there is no export."""
        self._store, self._outbox, self._clock, self._marks = store, outbox, clock, marks

    async def last(self, vim_id: str) -> tuple[str, datetime | None]:
        stored = await self._store.get(FEATURES, vim_id)
        if stored is None:
            return "", None
        return str(stored.body["digest"]), datetime.fromisoformat(stored.body["changedAt"])

    async def found(self, vim_id: str, digest: str) -> None:
        body = {"digest": digest, "changedAt": rfc3339(self._clock.now())}
        stored = await self._store.get(FEATURES, vim_id)
        if self._marks is not None and (stored is None or stored.body["digest"] != digest):
            # The export reads the features themselves, so it finds these or newer ones.
            await self._marks.announce("features", vim_id, expected=1)
        if stored is None:
            # The features that a region has when it is seen first are no change.
            try:
                await self._store.insert(FEATURES, vim_id, body)
            except AlreadyExists as error:
                raise RevisionConflict(f"features of VIM {vim_id}: stored by another process") from error
        elif stored.body["digest"] != digest:
            events = [Envelope(VimFeaturesChanged(vim_id=vim_id), source=SOURCE, subject=vim_id)]
            await self._outbox.update(FEATURES, vim_id, body, if_revision=stored.revision, events=events)

    async def forget(self, vim_id: str) -> None:
        stored = await self._store.get(FEATURES, vim_id)
        if stored is not None:
            await self._store.delete(FEATURES, vim_id, if_revision=stored.revision)
