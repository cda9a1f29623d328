"""Stores the credentials of verified call-backs and publishes events about them, once for each call-back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_clients import callback as signing
from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.ports import AwaitedCallbacks
from kubevnfm_events import Envelope, Event
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import IdempotencyKeyReused
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, Query, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_credentials_receiver.domain.callback_body import Callback
from kubevnfm_credentials_receiver.domain.errors import CredentialsUnknown, NameTaken, Superseded
from kubevnfm_credentials_receiver.domain.expectation import check_awaited
from kubevnfm_credentials_receiver.domain.record import Record, Request, new_record

log = structlog.get_logger()

COLLECTION: Final = "credentials"
SOURCE: Final = "/kubevnfm/credentials-receiver"
_RACES: Final = 10


@dataclass(frozen=True)
class Answer:
    """The result for the sender of a call-back."""

    record: Record
    is_new: bool


@dataclass(frozen=True)
class _StoredRecord:
    record: Record
    revision: int


class Receiver:
    """Stores the credentials of workload clusters."""

    def __init__(
        self, *, store: DocumentStore, outbox: Outbox, awaiting: AwaitedCallbacks, key_ring: KeyRing, clock: Clock
    ) -> None:
        self._store, self._outbox, self._awaiting = store, outbox, awaiting
        self._ring, self._clock = key_ring, clock

    async def prepare(self) -> None:
        """Make the indexes."""
        await self._store.ensure_indexes(COLLECTION, [Index(["vnf_instance_id"])])

    async def store(self, callback: Callback, *, idempotency_key: str, body: bytes, signed_at: int) -> Answer:
        """Store, replace or erase credentials; a repeat of the same request changes nothing.

        Raises: IdempotencyKeyReused, NotAwaited, NameTaken, Superseded; Unprocessable (the kubeconfig, or what differs from the operation);
        OutsideUnavailable (lcm-api).
        """
        request = Request(key=idempotency_key, body_sha256=signing.sha256_hex(body))
        awaited: AwaitedCallback | None = None
        for _ in range(_RACES):
            records = [_read(stored) for stored in await self._records_of(callback.vnf_instance_id)]
            repeated = _repeated(records, request)
            if repeated is not None:
                return Answer(repeated, is_new=False)
            # After the repeats: the operation of an accepted request may have gone on, and the sender must learn that it is done.
            if awaited is None:
                awaited = await self._awaited(callback)
            try:
                return await self._store_callback(callback, awaited, records, request, signed_at)
            except (AlreadyExists, RevisionConflict):
                continue  # another replica has stored a call-back of the same cluster meanwhile: read again
        raise RuntimeError(f"cluster {callback.cluster.uid}: {_RACES} writes lost in a row")

    async def list(self, *, vnf_instance_id: str | None, after: str | None, limit: int) -> Sequence[Record]:
        """Return a page of the records that are not erased, sorted by id."""
        conditions: list[Filter] = [Compare("status", Op.EQ, ["STORED"])]
        if vnf_instance_id is not None:
            conditions.append(Compare("vnf_instance_id", Op.EQ, [vnf_instance_id]))
        page = Query(AllOf(conditions), limit=limit, after=None if after is None else (after, after))
        return [_read(stored).record for stored in await self._store.find(COLLECTION, page)]

    async def get(self, credentials_id: str) -> Record:
        """Return one record. Raises CredentialsUnknown, also for an erased one."""
        return (await self._get(credentials_id)).record

    async def delete(self, credentials_id: str) -> None:
        """Erase credentials for an operator. Raises CredentialsUnknown."""
        stored = await self._get(credentials_id)
        signed_at = int(self._clock.now().timestamp())
        await self._replace(stored, stored.record.erased(now=self._now(), signed_at=signed_at), _deleted(stored.record))

    async def resealed(self, credentials_id: str) -> str:
        """Return the kubeconfig, encrypted with the common key ring for another service. Raises CredentialsUnknown."""
        record = await self.get(credentials_id)
        # Decrypted and encrypted again, because the stored text can be opened only together with the instance id.
        return self._ring.seal(record.kubeconfig(self._ring))

    async def _awaited(self, callback: Callback) -> AwaitedCallback:
        """Return what lcm-api awaits now. Raises NotAwaited, Unprocessable, OutsideUnavailable."""
        operation = callback.vnf_lcm_op_occ_id
        return check_awaited(callback, await self._awaiting.awaited(callback.vnf_instance_id, operation))

    async def _store_callback(
        self,
        callback: Callback,
        awaited: AwaitedCallback,
        records: Sequence[_StoredRecord],
        request: Request,
        signed_at: int,
    ) -> Answer:
        wanted_id = signing.credentials_id(callback.vnf_instance_id, callback.cluster.uid)
        same = next((one for one in records if one.record.id == wanted_id), None)
        if callback.event == "DELETED":
            return await self._erase(callback, awaited, same, request, signed_at)
        # In a thread, because reading a large one takes a second.
        kubeconfig = await asyncio.to_thread(lambda: callback.kubeconfig)
        # A request can be minutes on its way. The one that the sender has signed last is true; DELETED alone is always obeyed,
        # since clocks of senders differ and erasing is safe.
        if same is not None and signed_at < same.record.signed_at:
            raise Superseded(
                f"X-Vnfm-Timestamp: a later call-back about cluster {callback.cluster.uid} was stored before"
            )
        # Erased with the cluster, or by an operator: a rotation replaces what is stored, and restores nothing.
        if callback.event == "ROTATED" and same is not None and same.record.status == "DELETED":
            return Answer(same.record, is_new=False)
        # The VIM gets the cluster's name, so two living clusters of the same name could not be distinguished.
        for one in records:
            is_namesake = (one.record.cluster_name, one.record.cluster_namespace) == (
                awaited.cluster_name,
                awaited.cluster_namespace,
            )
            if is_namesake and one is not same and one.record.status == "STORED":
                raise NameTaken(
                    f"cluster.name: {callback.cluster.name} is the name of another cluster ({one.record.cluster_uid})"
                )
        record = new_record(
            callback,
            awaited,
            sealed=self._ring.seal(kubeconfig, bound_to=callback.vnf_instance_id),
            content_sha256=signing.sha256_hex(kubeconfig.encode()),
            now=self._now(),
            signed_at=signed_at,
        )
        if same is None:
            record = record.with_request(request)
            await self._outbox.insert(
                COLLECTION, record.id, record.document(), events=[_envelope(record, _received(record))]
            )
            log.info("credentials_stored", credentials_id=record.id, cluster=record.cluster_name)
            return Answer(record, is_new=True)
        # A rotation keeps the age and the handled requests of the record.
        record = record.model_copy(
            update={"created_at": same.record.created_at, "requests": same.record.requests}
        ).with_request(request)
        # A new CREATED for an erased cluster is a new start: its VIM does not exist any more.
        was_erased = same.record.status == "DELETED"
        event = _received(record) if was_erased or callback.event == "CREATED" else _rotated(record)
        await self._replace(same, record, event)
        return Answer(record, is_new=was_erased)

    async def _erase(
        self,
        callback: Callback,
        awaited: AwaitedCallback,
        same: _StoredRecord | None,
        request: Request,
        signed_at: int,
    ) -> Answer:
        now = self._now()
        if same is None:
            # Nothing is stored, which is what the sender wants; the CREATED before it may still be on its way.
            none = new_record(callback, awaited, sealed="", content_sha256="", now=now, signed_at=signed_at)
            erased = none.erased(now=now, signed_at=signed_at).with_request(request)
            await self._outbox.insert(COLLECTION, erased.id, erased.document())
            return Answer(erased, is_new=False)
        erased = same.record.erased(now=now, signed_at=signed_at).with_request(request)
        was_erased = same.record.status == "DELETED"
        if not was_erased or signed_at > same.record.signed_at:
            await self._replace(same, erased, None if was_erased else _deleted(erased))
        return Answer(erased, is_new=False)

    async def _replace(self, stored: _StoredRecord, record: Record, event: Event | None) -> None:
        events = [] if event is None else [_envelope(record, event)]
        await self._outbox.replace(COLLECTION, record.id, record.document(), if_revision=stored.revision, events=events)
        log.info("credentials_changed", credentials_id=record.id, cluster=record.cluster_name, status=record.status)

    async def _get(self, credentials_id: str) -> _StoredRecord:
        stored = await self._store.get(COLLECTION, credentials_id)
        if stored is None or stored.body["status"] != "STORED":
            raise CredentialsUnknown(f"no credentials have the id {credentials_id}")
        return _read(stored)

    async def _records_of(self, vnf_instance_id: str) -> Sequence[Stored]:
        return await self._store.find(COLLECTION, Query(by(vnf_instance_id=vnf_instance_id)))

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _read(stored: Stored) -> _StoredRecord:
    return _StoredRecord(Record.model_validate({**stored.body, "id": stored.id}), stored.revision)


def _repeated(records: Sequence[_StoredRecord], request: Request) -> Record | None:
    """Return the record on which the request was done before. Raises IdempotencyKeyReused if that request had another body."""
    for one in records:
        for done in one.record.requests:
            if done.key == request.key:
                if done.body_sha256 != request.body_sha256:
                    raise IdempotencyKeyReused(
                        "Idempotency-Key: a new key expected, this one was used with another body"
                    )
                return one.record
    return None


def _envelope(record: Record, event: Event) -> Envelope[Event]:
    return Envelope(event, source=SOURCE, subject=record.vnf_instance_id)


def _received(record: Record) -> CredentialsReceived:
    return CredentialsReceived(
        credentials_id=record.id,
        vnf_instance_id=record.vnf_instance_id,
        cluster_name=record.cluster_name,
        cluster_uid=record.cluster_uid,
        content_sha256=record.content_sha256,
        register_vim=record.register_vim,
        vim_name=record.vim_name,
        vim_default=record.vim_default,
        management_vim_id=record.management_vim_id,
    )


def _rotated(record: Record) -> CredentialsRotated:
    return CredentialsRotated(**_received(record).model_dump())


def _deleted(record: Record) -> CredentialsDeleted:
    return CredentialsDeleted(
        credentials_id=record.id,
        vnf_instance_id=record.vnf_instance_id,
        cluster_name=record.cluster_name,
        cluster_uid=record.cluster_uid,
    )
