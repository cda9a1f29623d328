"""The record of each command: the worker that handles it, until when, and the outcome.

Because of the record the work of a command happens once. A worker holds a lease on it, written by compare-and-set. A
lease that is not renewed expires, and so does that of a process that is known to have ended; the next delivery takes the
command over with a higher fencing number. The outcome and the event that reports it are one write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_events import Envelope, Event, Message, from_document
from kubevnfm_kit.clock import Clock, lease_left_s, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import AlreadyExists, DocumentStore, Outgoing, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Exists, Index, Op, Query, Stored, by

from kubevnfm_worker.leases import lease_end
from kubevnfm_worker.relay import OutboxRelay, outgoing
from kubevnfm_worker.suspects import PARKED_AFTER, PARKED_AT_LAST, Suspects

_CLAIMED: Final = "claimed"
_RESTING: Final = "resting"
_DONE: Final = "done"
_PARKED_SHOWN: Final = timedelta(days=1)
_MOST_PARKED: Final = 50


@dataclass(frozen=True)
class Wait:
    """Why and since when a command is tried again, or waits."""

    since: datetime
    """The time of the first retryable error in the row, or at which its handler said first what it waits for."""
    reason: str
    """The last error, or what the handler waits for."""
    code: str = ""
    """The code of the error; empty: nothing has failed. Earlier versions have stored errors without it."""


@dataclass(frozen=True)
class Claim:
    """The right to work on a command, until the lease expires."""

    message_id: str
    owner: str
    fencing: int
    claimed_at: datetime
    begun_at: datetime
    """The time of the first claim."""
    tries: int
    """Number of retryable errors in a row."""
    is_cancelled: bool = False
    """The command must be aborted, not handled."""
    unavailable_since: datetime | None = None
    """The time of the first failure in the row of tries before this one that an outside system did not answer."""
    waits: Wait | None = None
    """The end of the try before this one: a row of retryable errors, or a wait; None if it was neither."""
    made_nothing: bool = True
    """Whether no delivery before this one has changed anything outside."""
    ends: int = 0
    """Number of claims in a row before this one that had no outcome: the process ended, as far as is known."""
    best: int = 0
    """How many tasks the best of these claims had completed."""
    is_taken_over: bool = False
    """The claim before this one was neither released nor ended."""
    is_parked: bool = False
    """The process has ended too often: the command must fail, not be handled."""


@dataclass(frozen=True)
class Taken:
    """Another worker holds the command."""

    for_s: float
    """The rest of its lease."""


@dataclass(frozen=True)
class Queued:
    """The command must wait until another one was handled (suspects.py); it is not claimed."""


@dataclass(frozen=True)
class Finished:
    """The work was done earlier, and its event published."""

    outcome: Envelope[Message]


class CommandCancelled(Exception):
    """The command was marked as cancelled: its worker aborts it."""


class LeaseLost(Exception):
    """Another worker has taken the command over; this one must stop without writing."""


class Inbox:
    """The records of one service's commands in one collection. Every method may raise StoreUnavailable."""

    def __init__(
        self,
        store: DocumentStore,
        relay: OutboxRelay,
        key_ring: KeyRing,
        *,
        collection: str,
        owner: str,
        lease_s: float,
        clock: Clock,
        suspects: Suspects | None = None,
        owners: Owners | None = None,
    ) -> None:
        """``suspects``: of this process; None: no other worker in it shares them."""
        self._suspects = suspects or Suspects()
        self._store, self._relay, self._ring, self._clock = store, relay, key_ring, clock
        self._collection, self._owner, self._lease_s = collection, owner, lease_s
        self._owners = owners or Owners()

    async def prepare(self) -> None:
        """Create the indexes."""
        await self._store.ensure_indexes(self._collection, [Index(["doneAt"]), Index(["parkedAt"], sparse=True)])

    async def claim(
        self, command: Envelope[Message], *, in_any_case: bool = False
    ) -> Claim | Taken | Queued | Finished:
        """Claim the command if it is new or its lease has expired; a new one costs one write.

        ``in_any_case``: it is not handled, so it does not wait until suspects were.
        """
        now = self._clock.now()
        claim = Claim(command.id, self._owner, fencing=1, claimed_at=now, begun_at=now, tries=0)
        try:
            # Insert first, read only on a conflict: nearly every command is new, and costs one round trip so.
            await self._store.insert(
                self._collection,
                command.id,
                {"type": command.type, "operationId": command.operationid, "tries": 0, **self._lease(claim)},
            )
        except AlreadyExists:
            return await self._claim_again(command.id, in_any_case=in_any_case)
        return claim

    async def renew(
        self, claim: Claim, *, unavailable_since: datetime | None, completed: int = 0, is_alone: bool = False
    ) -> None:
        """Prolong the lease; the silence is stored as `rest` does. Raises LeaseLost, CommandCancelled.

        ``completed``: tasks under this claim. If they are more than under the claims before it, these do not count as ended
        without an outcome any more: each of them brought the work further. ``is_alone``: as `Suspects` says.
        """
        fields: JsonObject = {"leaseUntil": self._lease_end(), "alone": is_alone, **_silence(unavailable_since)}
        if completed > claim.best:
            fields |= {"best": completed, "unended": []}
        record = await self._write(claim, fields)
        if record.body.get("cancelled"):
            raise CommandCancelled(claim.message_id)

    async def mark_cancelled(self, command: Envelope[Message]) -> None:
        """Mark the command as cancelled, delivered or not yet.

        Its worker finds the mark when it renews the lease, otherwise the next worker that claims it. A command whose
        work is done is left as it is.
        """
        fresh = {
            "type": command.type,
            "operationId": command.operationid,
            "tries": 0,
            "state": _RESTING,
            "owner": "",
            # The first claim takes number 1, as that of a new command does.
            "fencing": 0,
            "leaseUntil": self._now(),
            "cancelled": True,
            "madeNothing": True,
        }
        # The record may be created, changed or purged by a worker between two calls; each round decides on a fresh read.
        while True:
            try:
                await self._store.insert(self._collection, command.id, fresh)
            except AlreadyExists:
                record = await self._store.get(self._collection, command.id)
            else:
                return
            if record is None:  # purged between the two reads
                continue
            if record.body["state"] == _DONE or record.body.get("cancelled"):
                return
            try:
                await self._store.update(self._collection, command.id, {"cancelled": True}, if_revision=record.revision)
            except RevisionConflict:
                continue
            return

    async def rest(
        self,
        claim: Claim,
        *,
        tries: int,
        unavailable_since: datetime | None = None,
        waits: Wait | None = None,
        made_nothing: bool = False,
        is_outcome: bool = True,
    ) -> None:
        """Release the lease, so that any process can continue at the next delivery. Raises LeaseLost.

        ``is_outcome``: whether the handler has ended by itself.

        The arguments are what the next claim gets; ``unavailable_since``: None if the outside system has answered.
        """
        fields = {
            "state": _RESTING,
            "tries": tries,
            "leaseUntil": self._now(),
            "waits": None
            if waits is None
            else {"since": rfc3339(waits.since), "reason": waits.reason, "code": waits.code},
            "madeNothing": made_nothing,
            **_silence(unavailable_since),
        }
        await self._write(claim, {**fields, "unended": [], "best": 0} if is_outcome else fields)

    async def survived(self, claim: Claim) -> None:
        """Note that the process lives although it has lost the claim, so that the claim counts against no command."""
        # Another worker may take the command over between two calls; each round decides on a fresh read.
        while True:
            record = await self._store.get(self._collection, claim.message_id)
            if record is None or record.body["state"] == _DONE:
                return
            counted = [number for number in record.body.get("unended", ()) if number != claim.fencing]
            fields: JsonObject = {"unended": counted}
            if (record.body["owner"], record.body["fencing"]) == (claim.owner, claim.fencing):
                fields |= {"state": _RESTING, "leaseUntil": self._now()}
            try:
                await self._store.update(self._collection, claim.message_id, fields, if_revision=record.revision)
            except RevisionConflict:
                continue
            return

    async def parked(self) -> Sequence[JsonObject]:
        """Return what was parked within the last day: type, operation and time of each command, at most 50."""
        since = rfc3339(self._clock.now() - _PARKED_SHOWN)
        # MongoDB reads a sparse index only for a search that asks whether the field is there.
        late = AllOf([Exists("parkedAt"), Compare("parkedAt", Op.GTE, [since])])
        found = await self._store.find(self._collection, Query(late, limit=_MOST_PARKED, exclude=["outcome"]))
        return [
            {"command": one.body["type"], "operationId": one.body["operationId"], "parkedAt": one.body["parkedAt"]}
            for one in found
        ]

    async def finish(self, claim: Claim, command: Envelope[Message], event: Event, *, source: str) -> None:
        """Store the outcome together with its event, and publish the event. Raises LeaseLost."""
        answer = command.follow_up(event, source=source)
        # The id of the outcome depends on the command only, so consumers recognise an outcome that is published twice.
        outcome = Envelope(**{**vars(answer), "id": derived_id(command.id, "outcome")})
        stored = outgoing(outcome, self._ring)
        done = {"state": _DONE, "doneAt": self._now(), "leaseUntil": self._now(), "outcome": dict(stored.document)}
        if claim.is_parked:
            done["parkedAt"] = self._now()
        # The relay must know the outcome before it is stored, otherwise a sweep in between could publish it as well.
        with self._relay.writing([outcome]):
            await self._write(claim, done, outbox=[stored])
            self._relay.kick(self._collection, claim.message_id, [outcome])

    def publish_again(self, message_id: str, finished: Finished) -> None:
        """Publish the stored outcome once more, unchanged."""
        self._relay.kick(self._collection, message_id, [finished.outcome])

    async def purge(self, *, older_than: timedelta) -> int:
        """Delete the records of work that was done before that time; return how many."""
        # RFC 3339 texts in UTC with equal precision sort as their moments do.
        before = rfc3339(self._clock.now() - older_than)
        return await self._store.delete_many(self._collection, AllOf([Compare("doneAt", Op.LT, [before])]))

    async def _claim_again(self, message_id: str, *, in_any_case: bool) -> Claim | Taken | Queued | Finished:
        record = await self._store.get(self._collection, message_id)
        if record is None:  # purged between the two reads: its work was done long ago, and this is a late repeat
            return Taken(for_s=1.0)
        if record.body["state"] == _DONE:
            return Finished(from_document(record.body["outcome"]))
        left_s = self._left_s(record)
        if left_s > 0 and not self._owners.has_ended(record.body["owner"]):
            return Taken(for_s=left_s)
        body = record.body
        is_cancelled = bool(body.get("cancelled"))
        since = body.get("unavailableSince")  # missing in records of earlier releases
        unended = self._unended(body)
        is_parked, now = _is_parked(body, unended), self._clock.now()
        if not is_parked and not in_any_case and not self._suspects.enter(message_id, len(unended)):
            return Queued()
        claim = Claim(
            message_id,
            self._owner,
            fencing=body["fencing"] + 1,
            claimed_at=now,
            # Missing in records of earlier releases, and of commands that were cancelled before they were claimed.
            begun_at=datetime.fromisoformat(body["begunAt"]) if "begunAt" in body else now,
            tries=body["tries"],
            is_cancelled=is_cancelled,
            unavailable_since=None if since is None else datetime.fromisoformat(since),
            waits=_waits(body.get("waits")),
            made_nothing=bool(body.get("madeNothing")),
            ends=len(unended),
            best=body.get("best", 0),
            is_taken_over=body["state"] == _CLAIMED,
            is_parked=is_parked,
        )
        fields = {**self._lease(claim), "unended": unended, "alone": self._suspects.is_alone(message_id)}
        try:
            # Several workers may see the same expired lease: the revision lets one of them win.
            await self._store.update(self._collection, message_id, fields, if_revision=record.revision)
        except RevisionConflict:
            return Taken(for_s=self._lease_s)
        return claim

    def _unended(self, body: JsonMapping) -> list[int]:
        """Return the fencing numbers of the claims in a row that had no outcome; the last one was not released."""
        before = [int(number) for number in body.get("unended", ())]
        # A lease that this process itself has lost, because the database was away, was not lost by its end.
        has_ended = body["state"] == _CLAIMED and body["owner"] != self._owner
        return [*before, body["fencing"]] if has_ended else before

    async def _write(self, claim: Claim, fields: JsonObject, *, outbox: Sequence[Outgoing] = ()) -> Stored:
        try:
            return await self._store.update(
                self._collection,
                claim.message_id,
                fields,
                # Not by revision: `mark_cancelled` may write the record meanwhile, which must not cost the worker its
                # lease.
                where=by(owner=claim.owner, fencing=claim.fencing, state=_CLAIMED),
                outbox=outbox,
            )
        except RevisionConflict as error:
            raise LeaseLost(claim.message_id) from error

    def _lease(self, claim: Claim) -> JsonObject:
        return {
            "state": _CLAIMED,
            "owner": claim.owner,
            "fencing": claim.fencing,
            "begunAt": rfc3339(claim.begun_at),
            "leaseUntil": self._lease_end(),
            # Until the worker reports otherwise: if it is killed, what it has done is not known.
            "madeNothing": False,
        }

    def _lease_end(self) -> str:
        return lease_end(self._clock.now(), self._lease_s)

    def _left_s(self, record: Stored) -> float:
        return lease_left_s(record.body["leaseUntil"], self._clock.now(), self._lease_s)

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _is_parked(body: JsonMapping, unended: Sequence[int]) -> bool:
    # A record that was released keeps its number, and its last claim was not the end of a process.
    if body["state"] != _CLAIMED or not unended or unended[-1] != body["fencing"]:
        return False
    return len(unended) >= (PARKED_AFTER if body.get("alone") else PARKED_AT_LAST)


def _waits(stored: JsonObject | None) -> Wait | None:
    if stored is None:
        return None
    return Wait(datetime.fromisoformat(stored["since"]), str(stored["reason"]), str(stored.get("code", "")))


def _silence(unavailable_since: datetime | None) -> JsonObject:
    return {"unavailableSince": None if unavailable_since is None else rfc3339(unavailable_since)}
