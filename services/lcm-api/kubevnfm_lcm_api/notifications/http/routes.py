"""The routes of subscriptions and events."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.notifications.http import events, subscriptions
from kubevnfm_lcm_api.notifications.http.context import SERVICES, NotificationServices


def add_to(app: web.Application, services: NotificationServices) -> None:
    """Add the resources of subscriptions and events to an application."""
    app[SERVICES] = services
    app.on_shutdown.append(events.end_streams)
    add_routes(app, [*subscriptions.routes(), *events.routes()])
