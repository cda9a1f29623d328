"""The results of deliveries to a subscriber, as its subscription has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.notifications.domain.callback import Refused, Taken, Untaken

FAILING_SINCE = "failingSince"
"""The path of the time since which the subscriber has accepted nothing; absent: it has accepted the last notification."""
_DROPPED, _NOTIFIED = "lastDropped", "lastNotified"
# They are beside the other facts, as earlier versions read `delivery` and know no further one in it.


@dataclass
class DeliveryRecord:
    """The subscription's ``delivery``, and beside it ``lastDropped``, ``lastNotified`` and ``failingSince``."""

    failures: int = 0
    """In a row."""
    dropped: int = 0
    last_success_at: str | None = None
    last_failure_at: str | None = None
    last_failure: str | None = None
    counted: str = ""
    """The newest notification that ``dropped`` counts. It may still be in the queue."""
    notified_at: str = ""
    """When the last notification was sent, whatever became of it."""
    notified_status: int | None = None
    """The status that was answered; None: there was no answer."""
    failing_since: str = ""
    """When the first of the notifications was sent that were not accepted, without one that was; empty: the last one was."""

    @classmethod
    def from_subscription(cls, subscription: Stored) -> DeliveryRecord:
        """Return what was stored."""
        last = subscription.body.get(_NOTIFIED, {})
        return cls(
            **subscription.body.get("delivery", {}),
            counted=subscription.body.get(_DROPPED, ""),
            notified_at=last.get("at", ""),
            notified_status=last.get("status"),
            failing_since=subscription.body.get(FAILING_SINCE, ""),
        )

    def fields(self) -> JsonObject:
        """Return the attributes of the subscription to store; None: it is to have none."""
        facts = {name: value for name, value in vars(self).items() if value is not None}
        at, status = facts.pop("notified_at"), facts.pop("notified_status", None)
        last = {_NOTIFIED: {"at": at, "status": status}} if at else {}
        since = facts.pop("failing_since") or None
        return {_DROPPED: facts.pop("counted"), "delivery": facts, FAILING_SINCE: since, **last}

    def note(self, answer: Taken | Untaken | Refused, at: str) -> None:
        """Note what the subscriber has answered."""
        self.notified_at, self.notified_status = at, answer.status
        if not isinstance(answer, Taken):
            self.last_failure_at, self.last_failure = at, answer.reason
            self.failing_since = self.failing_since or at
        if isinstance(answer, Untaken):
            self.failures += 1

    def delivered(self, entry_id: str, at: str) -> None:
        """Note that a notification is delivered; a process that died may have counted it as dropped."""
        self.failures, self.last_success_at, self.failing_since = 0, at, ""
        if self.counted == entry_id:
            self.dropped, self.counted = self.dropped - 1, ""

    def count(self, entry_id: str) -> None:
        """Count a dropped notification, once."""
        if self.counted != entry_id:
            self.dropped, self.counted = self.dropped + 1, entry_id

    def rest_s(self, interval_s: float, now: datetime) -> float:
        """Return how long nothing is to be sent yet, as the last notification was sent less than the interval ago.

        One that was not accepted is repeated after the back-off alone.
        """
        if self.failures or not (self.notified_at and interval_s):
            return 0.0
        # A clock that was set back must not make it longer than the interval.
        return min(interval_s, interval_s - (now - datetime.fromisoformat(self.notified_at)).total_seconds())
