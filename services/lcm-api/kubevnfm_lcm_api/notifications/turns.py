"""The turns to deliver a subscription's notifications: one process at a time, by a lease in the subscription.

After a failed delivery the turn has no owner during the back-off. It holds the command that the bus delivers again when
the back-off ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AnyOf, Compare, Exists, Op, Stored

from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION

_NO_OWNER: Final = "-"


class Turns:
    """The turns that this process takes."""

    def __init__(self, store: DocumentStore, clock: Clock, *, lease_s: float) -> None:
        """``lease_s``: how long a process that was killed keeps its turn."""
        self._store, self._clock, self._lease_s = store, clock, lease_s
        self._me = new_id()

    async def acquire(self, subscription_id: str, command_id: str) -> Stored | None:
        """Return the subscription, this process's until `end`; None if it is taken, or does not exist."""
        now = self._clock.now()
        is_free = AnyOf([Exists("turn/owner", exists=False), Compare("turn/until", Op.LT, [rfc3339(now)])])
        turn = {"owner": self._me, "command": command_id, "until": rfc3339(now + timedelta(seconds=self._lease_s))}
        try:
            # One conditional write: if two processes try at once, only one of them gets the turn.
            return await self._store.update(COLLECTION, subscription_id, {"turn": turn}, where=is_free)
        except RevisionConflict:
            return None

    async def renew(self, subscription_id: str) -> None:
        """Renew the turn periodically; return when it is lost."""
        loop = asyncio.get_running_loop()
        held_until = loop.time() + self._lease_s
        while True:
            await asyncio.sleep(self._lease_s / 3)
            asked_at = loop.time()
            until = rfc3339(self._clock.now() + timedelta(seconds=self._lease_s))
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
        """Store facts about the subscription during the turn; return False if the turn was lost before."""
        return await self._update(subscription_id, facts, unset=())

    async def end(
        self, subscription_id: str, command_id: str, facts: JsonMapping, *, back_off_s: float | None = None
    ) -> bool:
        """Release the turn and store facts about the subscription; return False if the turn was lost before.

        ``back_off_s``: until it can be acquired again.
        """
        fields, unset = dict(facts), ["turn"]
        if back_off_s is not None:
            until = rfc3339(self._clock.now() + timedelta(seconds=back_off_s))
            fields["turn"], unset = {"owner": _NO_OWNER, "command": command_id, "until": until}, []
        return await self._update(subscription_id, fields, unset=unset)

    async def _update(self, subscription_id: str, fields: JsonMapping, *, unset: Sequence[str]) -> bool:
        try:
            await self._store.update(
                COLLECTION, subscription_id, fields, unset=unset, where=Compare("turn/owner", Op.EQ, [self._me])
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
        return bool(turn) and datetime.fromisoformat(turn["until"]) >= self._clock.now()

    @staticmethod
    def command_of(subscription: Stored) -> str | None:
        """Return the command that the turn was acquired for."""
        command: str | None = subscription.body.get("turn", {}).get("command")
        return command
