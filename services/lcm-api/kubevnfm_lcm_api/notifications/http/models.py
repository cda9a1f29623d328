"""The answers about subscriptions; only the document uses them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kubevnfm_lcm_api.http.models import Link, Shown
from kubevnfm_lcm_api.notifications.domain.faults import FmNotificationsFilter
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


class FmSubscription(Shown):
    """Clause 7.5.2.3; authentication is never shown."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    filter: FmNotificationsFilter | None = None
    links: dict[str, Link] = Field(alias="_links")
