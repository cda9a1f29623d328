"""The routes of our own views."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.views import (
    instances,
    kubeconfigs,
    logs,
    measured,
    operation_list,
    operations,
    packages,
    processes,
    search,
    shared,
    subscriptions,
    topology,
    traces,
    vims,
)
from kubevnfm_lcm_api.views.forms import serving as forms
from kubevnfm_lcm_api.views.services import SERVICES, ViewServices

_SUBJECTS: Final = (
    operation_list,
    operations,
    traces,
    logs,
    instances,
    vims,
    kubeconfigs,
    packages,
    forms,
    search,
    topology,
    subscriptions,
    processes,
    shared,
    measured,
)


def add_to(app: web.Application, *, services: ViewServices) -> None:
    """Add the views to an application."""
    app[SERVICES] = services
    for subject in _SUBJECTS:
        add_routes(app, subject.routes())
    app.on_shutdown.append(logs.end_followed)
