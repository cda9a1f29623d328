"""The answers about subscriptions; only the document uses them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kubevnfm_lcm_api.http.models import Link, Linked, Shown
from kubevnfm_lcm_api.notifications.domain.lifecycle import LifecycleChangeFilter
from kubevnfm_lcm_api.notifications.domain.packages import PkgmNotificationsFilter


class LccnSubscription(Shown):
    """Clause 5.5.2.16; authentication is never shown."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    verbosity: Literal["FULL", "SHORT"]
    filter: LifecycleChangeFilter | None = None
    metadata: dict[str, str] | None = None
    """Ours: as the request had it."""
    links: dict[str, Link] = Field(alias="_links")


class PkgmSubscription(Shown):
    """Clause 10.5.2.4; authentication is never shown."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    filter: PkgmNotificationsFilter | None = None
    links: dict[str, Link] = Field(alias="_links")


class DeliveriesView(Linked):
    """The state of a subscription's deliveries."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    state: Literal["IDLE", "DELIVERING", "WAITING"]
    """WAITING: the subscriber has not accepted a notification; the next try is at nextTryAt."""
    pending: int
    oldestPendingAt: str | None = None  # noqa: N815  # as it is on the wire
    failuresInARow: int  # noqa: N815  # as it is on the wire
    dropped: int
    """Notifications that were given up since the subscription was created."""
    lastSuccessAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailureAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailure: str | None = None  # noqa: N815  # as it is on the wire
    nextTryAt: str | None = None  # noqa: N815  # as it is on the wire
