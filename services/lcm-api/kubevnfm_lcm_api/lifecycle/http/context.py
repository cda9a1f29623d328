"""The services that the handlers of VNF instances and operations work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Final

from aiohttp import web
from kubevnfm_clients.ports import NodeLogs
from kubevnfm_events import ApiVersion

from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.routes import Answer
from kubevnfm_lcm_api.lifecycle.core.claim_errors import InstanceChanged
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.lifecycle.http.render import base_url
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.workloads.awaited_callbacks import AwaitedCallbacks


@dataclass(frozen=True)
class LifecycleServices:
    """The services of the life cycle."""

    engine: Engine
    instances: Instances
    requests: RequestServices
    progress: Progress
    node_logs: NodeLogs
    awaited_callbacks: AwaitedCallbacks


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_REPETITIONS: Final = 3
SERVICES: Final = web.AppKey("lifecycle", LifecycleServices)


def services(request: web.Request) -> LifecycleServices:
    """Return the services behind a request."""
    return request.app[SERVICES]


def api_version(request: web.Request) -> ApiVersion:
    """Return v1 or v2 by the request's path."""
    return "v1" if request.path.startswith("/vnflcm/v1/") else "v2"


def repeated(handler: Handler) -> Handler:
    """Return the handler, called again if the instance was written between the check of the request and its claim.

    A comparison with the cloud writes instances too (`lifecycle.drift_watch`), and no caller should notice that.
    """

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        for _ in range(_REPETITIONS):
            with suppress(InstanceChanged):
                return await handler(request)
        return await handler(request)

    return handle


ACCEPTED: Final = {202: Answer("Accepted; Location is the operation occurrence", has_location=True)}


def accepted(request: web.Request, occurrence_id: str) -> web.Response:
    """Return 202 without a body (SOL003 tasks): existing clients print their message only if the body is empty."""
    base = base_url(api_version(request), api_root(request))
    return web.Response(status=202, headers={"Location": f"{base}/vnf_lcm_op_occs/{occurrence_id}"})
