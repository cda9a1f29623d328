"""The records behind ``Idempotency-Key`` (multicloud.md MC-005): a request runs once, and its answer is given again.

A record is claimed by compare-and-set, so one of several processes runs the request. The claim is a lease: after the end of the
process another request of the same key and body continues. Digests and answers are encrypted: a body may be a kubeconfig,
which its digest would confirm to a reader of the database.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, lease_left_s, rfc3339
from kubevnfm_kit.errors import Conflict, IdempotencyKeyReused
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Compare, Index, Op, Stored, by
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.http.errors import RequestRunning

log = structlog.get_logger()

COLLECTION: Final = "idempotency_keys"
INDEXES: Final = {COLLECTION: [Index(["expiresAt"])]}
LARGEST_ANSWER: Final = 2**20
"""Bytes of a body that is kept."""
LEASE_S: Final = 30.0
_KEPT: Final = timedelta(hours=24)
_RUNNING: Final = "running"
_FREE: Final = "free"
_ANSWERED: Final = "answered"


@dataclass(frozen=True)
class Claim:
    """The right to run a request, until the lease expires."""

    record_id: str
    owner: str
    seed: str
    """A random id that a later claim has too, if the request is run again after this one has ended without an answer."""


class KeptAnswer(BaseModel):
    """An answer that was given before."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    """None: it was too large to be kept."""


class IdempotencyKeys:
    """The records. Every method may raise StoreUnavailable."""

    def __init__(self, store: DocumentStore, ring: KeyRing, clock: Clock, owners: Owners) -> None:
        self._store, self._ring, self._clock, self._owners = store, ring, clock, owners

    async def claim(self, record_id: str, digest: str) -> Claim | KeptAnswer:
        """Return the right to run the request, or its answer. Raises IdempotencyKeyReused, RequestRunning."""
        claim = Claim(record_id, owner=self._owners.new(), seed=new_id())
        fresh = self._fresh(claim, digest)
        try:
            await self._store.insert(COLLECTION, record_id, fresh)
        except AlreadyExists:
            record = await self._store.get(COLLECTION, record_id)
            if record is None:  # it has expired, and was removed between the two calls
                raise RequestRunning from None
            return await self._claim_again(record, claim, digest, fresh)
        return claim

    async def renew(self, claim: Claim) -> None:
        """Prolong the lease, if no other request has it."""
        await self._write(claim, {"leaseUntil": self._in(timedelta(seconds=LEASE_S))})

    async def finish(self, claim: Claim, answer: KeptAnswer) -> None:
        """Keep the answer. It was given, so it is no error if it cannot be kept: the request is then run again."""
        if answer.body is not None and len(answer.body) > LARGEST_ANSWER:
            answer = answer.model_copy(update={"body": None})
        sealed = self._ring.seal(answer.model_dump_json(), bound_to=claim.record_id)
        try:
            await self._write(claim, {"state": _ANSWERED, "answer": sealed})
        except StoreUnavailable as error:
            log.warning("answer_not_kept", reason=str(error))

    async def release(self, claim: Claim, *, is_refused: bool) -> None:
        """End the claim without an answer; ``is_refused``: nothing was made, so another body may follow under the key."""
        await self._write(claim, {"state": _FREE} if is_refused else {"leaseUntil": self._in(timedelta())})

    async def remove_old(self) -> None:
        """Remove records that have expired."""
        await self._store.delete_many(COLLECTION, Compare("expiresAt", Op.LT, [self._in(timedelta())]))

    async def _claim_again(self, record: Stored, claim: Claim, digest: str, fresh: JsonObject) -> Claim | KeptAnswer:
        body = record.body
        now = self._in(timedelta())
        try:
            # Texts of RFC 3339 in UTC with equal precision sort as their moments do.
            if body["state"] == _FREE or body["expiresAt"] <= now:
                await self._store.replace(COLLECTION, record.id, fresh, if_revision=record.revision)
                return claim
            if not hmac.compare_digest(self._ring.open(body["digest"], bound_to=record.id), digest):
                raise IdempotencyKeyReused(
                    "Idempotency-Key: a new key expected, this one was used with another request"
                )
            if body["state"] == _ANSWERED:
                return self._answer(record)
            left_s = lease_left_s(body["leaseUntil"], self._clock.now(), LEASE_S)
            if left_s > 0 and not self._owners.has_ended(body["owner"]):
                raise RequestRunning
            again = Claim(record.id, claim.owner, body["seed"])
            fields = {name: fresh[name] for name in ("owner", "leaseUntil")}
            await self._store.update(COLLECTION, record.id, fields, if_revision=record.revision)
        except RevisionConflict:
            raise RequestRunning from None
        return again

    def _answer(self, record: Stored) -> KeptAnswer:
        return KeptAnswer.model_validate_json(self._ring.open(record.body["answer"], bound_to=record.id))

    def _fresh(self, claim: Claim, digest: str) -> JsonObject:
        return {
            "state": _RUNNING,
            "owner": claim.owner,
            "seed": claim.seed,
            "digest": self._ring.seal(digest, bound_to=claim.record_id),
            "leaseUntil": self._in(timedelta(seconds=LEASE_S)),
            "expiresAt": self._in(_KEPT),
        }

    async def _write(self, claim: Claim, fields: JsonObject) -> None:
        where = by(owner=claim.owner, state=_RUNNING)
        try:
            await self._store.update(COLLECTION, claim.record_id, fields, where=where)
        except RevisionConflict:
            # The lease had expired, as the process or the database stood still: another request has the claim.
            log.warning("idempotency_lease_lost")

    def _in(self, time: timedelta) -> str:
        return rfc3339(self._clock.now() + time)


def answer_too_large(answer: KeptAnswer) -> Conflict:
    """Return the error for an answer whose body was not kept."""
    place = answer.headers.get("Location", "the resource")
    return Conflict(f"the request was answered with {answer.status}; the answer was too large to be kept: read {place}")
