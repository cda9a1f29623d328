"""The turns to deliver a subscription's notifications: one process at a time, by a lease in the subscription.

After a failed delivery the turn has no owner during the back-off. It holds the command that the bus delivers again when
the back-off ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from kubevnfm_kit.clock import Clock, lease_left_s, rfc3339
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Op, Stored
from kubevnfm_worker.leases import lease_end, lease_is_over

from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION

_NO_OWNER: Final = "-"


class Turns:
    """The turns that this process takes."""

    def __init__(self, store: DocumentStore, clock: Clock, *, lease_s: float, owners: Owners) -> None:
        """``lease_s``: how long a process that was killed keeps its turn, unless ``owners`` know that it has ended."""
        self._store, self._clock, self._lease_s, self._owners = store, clock, lease_s, owners
        self._me = owners.new()

    async def acquire(self, subscription_id: str, command_id: str) -> Stored | None:
        """Return the subscription, this process's until `end`; None if it is taken, or does not exist."""
        now = self._clock.now()
        has_lease = Compare("turn/owner", Op.NEQ, [_NO_OWNER])
        is_free = AnyOf(
            [
                Exists("turn/owner", exists=False),
                Compare("turn/until", Op.LT, [rfc3339(now)]),
                AllOf([has_lease, lease_is_over("turn/until", now, self._lease_s)]),
            ]
        )
        return await self._take(subscription_id, command_id, is_free) or await self._inherit(
            subscription_id, command_id
        )

    async def _take(self, subscription_id: str, command_id: str, where: Filter) -> Stored | None:
        turn = {"owner": self._me, "command": command_id, "until": lease_end(self._clock.now(), self._lease_s)}
        try:
            # One conditional write: if two processes try at once, only one of them gets the turn.
            return await self._store.update(COLLECTION, subscription_id, {"turn": turn}, where=where)
        except RevisionConflict:
            return None

    async def _inherit(self, subscription_id: str, command_id: str) -> Stored | None:
        """Take the turn of a process that has ended."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None or not self._has_owner_ended(stored.body.get("turn", {})):
            return None
        theirs = Compare("turn/owner", Op.EQ, [stored.body["turn"]["owner"]])
        return await self._take(subscription_id, command_id, theirs)

    def _has_owner_ended(self, turn: JsonMapping) -> bool:
        owner = str(turn.get("owner", _NO_OWNER))
        return owner != _NO_OWNER and self._owners.has_ended(owner)

    async def renew(self, subscription_id: str) -> None:
        """Renew the turn periodically; return when it is lost."""
        loop = asyncio.get_running_loop()
        held_until = loop.time() + self._lease_s
        while True:
            await asyncio.sleep(self._lease_s / 3)
            asked_at = loop.time()
            until = lease_end(self._clock.now(), self._lease_s)
            try:
                async with asyncio.timeout_at(held_until):
                    await self._store.update(
                        COLLECTION,
                        subscription_id,
                        {"turn/until": until},
                        where=Compare("turn/owner", Op.EQ, [self._me]),
                    )
                # Counted from before the call: the database may have written the lease at any moment of it.
                held_until = asked_at + self._lease_s
            except RevisionConflict:
                return
            # Until the lease ends, no other process can have the turn, even if the database does not answer.
            except (StoreUnavailable, TimeoutError):
                if loop.time() >= held_until:
                    return

    async def record(self, subscription_id: str, facts: JsonMapping) -> bool:
        """Store facts about the subscription during the turn, of None: remove them; return False if the turn was lost before."""
        return await self._update(subscription_id, facts, unset=())

    async def end(
        self, subscription_id: str, command_id: str, facts: JsonMapping, *, back_off_s: float | None = None
    ) -> bool:
        """Release the turn and store facts about the subscription; return False if the turn was lost before.

        ``back_off_s``: until it can be acquired again.
        """
        fields, unset = dict(facts), ["turn"]
        if back_off_s is not None:
            until = lease_end(self._clock.now(), back_off_s)
            fields["turn"], unset = {"owner": _NO_OWNER, "command": command_id, "until": until}, []
        return await self._update(subscription_id, fields, unset=unset)

    async def _update(self, subscription_id: str, fields: JsonMapping, *, unset: Sequence[str]) -> bool:
        facts = {name: value for name, value in fields.items() if value is not None}
        none = [name for name, value in fields.items() if value is None]
        try:
            await self._store.update(
                COLLECTION,
                subscription_id,
                facts,
                unset=[*unset, *none],
                where=Compare("turn/owner", Op.EQ, [self._me]),
            )
        # The subscription was deleted, or another process has taken over.
        except RevisionConflict:
            return False
        return True

    def back_off_left_s(self, subscription: Stored) -> float | None:
        """Return the rest of the subscriber's back-off; None if there is none."""
        turn = subscription.body.get("turn", {})
        if turn.get("owner") != _NO_OWNER:
            return None
        return max(0.0, (datetime.fromisoformat(turn["until"]) - self._clock.now()).total_seconds())

    def is_taken(self, subscription: Stored) -> bool:
        """Return whether a process delivers, or the subscriber's back-off lasts."""
        turn = subscription.body.get("turn", {})
        if not turn or self._has_owner_ended(turn):
            return False
        if turn.get("owner") == _NO_OWNER:
            return datetime.fromisoformat(turn["until"]) >= self._clock.now()
        return lease_left_s(turn["until"], self._clock.now(), self._lease_s) > 0

    @staticmethod
    def command_of(subscription: Stored) -> str | None:
        """Return the command that the turn was acquired for."""
        command: str | None = subscription.body.get("turn", {}).get("command")
        return command
