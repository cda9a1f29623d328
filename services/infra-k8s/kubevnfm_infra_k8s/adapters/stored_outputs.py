"""The stored outputs of instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from kubevnfm_events import Envelope
from kubevnfm_events.outputs import ObjectOutputsChanged
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Index, Query, Stored, by
from kubevnfm_worker.outbox import Outbox
from pydantic import TypeAdapter

from kubevnfm_infra_k8s.domain.outputs.record import InstanceOutputs

OUTPUTS: Final = "k8s_outputs"
SOURCE: Final = "/kubevnfm/infra-k8s"
INDEXES: Final[Mapping[str, Sequence[Index]]] = {OUTPUTS: [Index(["news"])]}
_RECORDS: Final = TypeAdapter(InstanceOutputs)
_PAGE: Final = 1000


class StoredOutputs:
    """`domain.outputs.ports.OutputRecords`: a document each."""

    def __init__(self, store: DocumentStore, outbox: Outbox) -> None:
        self._store, self._outbox = store, outbox
        self._writes = store.writes_to(OUTPUTS)

    async def get(self, vnf_instance_id: str) -> InstanceOutputs | None:
        stored = await self._store.get(OUTPUTS, vnf_instance_id)
        return None if stored is None else _record(stored)

    async def want(self, record: InstanceOutputs) -> None:
        body = {**_body(record), "news": True}
        if record.revision:
            # An update keeps the messages of the document that are on their way.
            await self._store.update(OUTPUTS, record.vnf_instance_id, body, if_revision=record.revision)
            return
        try:
            await self._store.insert(OUTPUTS, record.vnf_instance_id, body)
        except AlreadyExists as error:
            raise RevisionConflict(f"outputs {record.vnf_instance_id}: stored by another worker") from error

    async def read(self, record: InstanceOutputs, event: ObjectOutputsChanged) -> None:
        events = [Envelope(event, source=SOURCE, subject=record.vnf_instance_id)]
        fields = {"digest": record.digest, "number": record.number}
        await self._outbox.update(OUTPUTS, record.vnf_instance_id, fields, if_revision=record.revision, events=events)

    async def remove(self, vnf_instance_id: str) -> None:
        stored = await self._store.get(OUTPUTS, vnf_instance_id)
        if stored is not None:
            await self._store.delete(OUTPUTS, vnf_instance_id, if_revision=stored.revision)

    async def all(self) -> Sequence[InstanceOutputs]:
        found: list[InstanceOutputs] = []
        after: tuple[None, str] | None = None
        while page := await self._store.find(OUTPUTS, Query(after=after, limit=_PAGE)):
            found += map(_record, page)
            after = (None, page[-1].id)
        return found

    async def news(self) -> Sequence[InstanceOutputs]:
        return [_record(each) for each in await self._store.find(OUTPUTS, Query(by(news=True), limit=_PAGE))]

    async def await_news(self, *, look_s: float, longest_s: float) -> None:
        await self._writes.following(look_s=look_s, longest_s=longest_s)

    async def clear_news(self, record: InstanceOutputs) -> None:
        # If they are wanted otherwise meanwhile, they are news again.
        with suppress(RevisionConflict):
            await self._store.update(OUTPUTS, record.vnf_instance_id, {"news": False}, if_revision=record.revision)


def _body(record: InstanceOutputs) -> JsonObject:
    dumped: JsonObject = _RECORDS.dump_python(
        record, mode="json", by_alias=True, exclude={"vnf_instance_id", "revision"}
    )
    return dumped


def _record(stored: Stored) -> InstanceOutputs:
    more = {"vnfInstanceId": stored.id, "revision": stored.revision}
    return _RECORDS.validate_python({**stored.body, **more})
