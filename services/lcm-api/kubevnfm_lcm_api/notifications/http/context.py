"""The services that the handlers of subscriptions and events work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from kubevnfm_lcm_api.notifications.event_feed import EventFeed
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions


@dataclass(frozen=True)
class NotificationServices:
    """The services of subscriptions and events."""

    subscriptions: Subscriptions
    feed: EventFeed


SERVICES: Final = web.AppKey("notifications", NotificationServices)


def services(request: web.Request) -> NotificationServices:
    """Return the services behind a request."""
    return request.app[SERVICES]
