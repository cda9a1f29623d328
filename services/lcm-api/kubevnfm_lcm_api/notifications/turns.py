"""Whose turn it is to deliver a subscription's notifications: one process at a time, by a lease in the subscription.

While a subscriber rests, the turn belongs to nobody, and names the command that comes back when the rest is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AnyOf, Compare, Exists, Op, Stored

from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION

log = structlog.get_logger()

_NOBODY: Final = "-"


class Turns:
    """The turns that this process takes."""

    def __init__(self, store: DocumentStore, clock: Clock, *, lease_s: float) -> None:
        """``lease_s``: how long a turn stays a killed process's."""
        self._store, self._clock, self._lease_s = store, clock, lease_s
        self._me = new_id()

    async def take(self, subscription_id: str, command_id: str) -> Stored | None:
        """Return the subscription, ours until `end`; None when it is another's turn, or there is none."""
        now = self._clock.now()
        is_free = AnyOf([Exists("turn/owner", exists=False), Compare("turn/until", Op.LT, [rfc3339(now)])])
        turn = {"owner": self._me, "command": command_id, "until": rfc3339(now + timedelta(seconds=self._lease_s))}
        try:
            return await self._store.update(COLLECTION, subscription_id, {"turn": turn}, where=is_free)
        except RevisionConflict:
            return None

    async def keep(self, subscription_id: str) -> None:
        """Prolong our turn, again and again; return when we have lost it."""
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
                held_until = asked_at + self._lease_s
            except RevisionConflict:
                return
            except (StoreUnavailable, TimeoutError):
                if loop.time() >= held_until:
                    return

    async def end(
        self, subscription_id: str, command_id: str, facts: Mapping[str, Any], *, rest_s: float | None = None
    ) -> None:
        """Give the turn back, with facts about the subscription; ``rest_s``: before anybody may take it."""
        fields, unset = dict(facts), ["turn"]
        if rest_s is not None:
            until = rfc3339(self._clock.now() + timedelta(seconds=rest_s))
            fields["turn"], unset = {"owner": _NOBODY, "command": command_id, "until": until}, []
        try:
            await self._store.update(
                COLLECTION, subscription_id, fields, unset=unset, where=Compare("turn/owner", Op.EQ, [self._me])
            )
        except RevisionConflict:
            log.debug("turn_lost", subscription_id=subscription_id)  # deleted meanwhile, or another has taken over

    def rest_left_s(self, subscription: Stored) -> float | None:
        """Return what is left of the subscriber's rest; None while it has none."""
        turn = subscription.body.get("turn", {})
        if turn.get("owner") != _NOBODY:
            return None
        return max(0.0, (datetime.fromisoformat(turn["until"]) - self._clock.now()).total_seconds())

    def is_taken(self, subscription: Stored) -> bool:
        """Tell whether somebody delivers, or the subscriber rests."""
        turn = subscription.body.get("turn", {})
        return bool(turn) and datetime.fromisoformat(turn["until"]) >= self._clock.now()

    @staticmethod
    def command_of(subscription: Stored) -> str | None:
        """Return the command that the turn was taken for."""
        command: str | None = subscription.body.get("turn", {}).get("command")
        return command
