"""The audit log: each caller that changed a resource or tried to, without bodies and credentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aiohttp import web

from kubevnfm_access.caller import is_changing, is_for_machines
from kubevnfm_access.middleware import CALLER, Handler, Proxies

log = structlog.get_logger()

Facts = Callable[[web.Request, web.StreamResponse], Mapping[str, object]]
"""Returns what else an interface writes down about a request."""


def audited(proxies: Proxies, facts: Facts = lambda _, __: {}) -> Any:
    """Return the middleware: one event ``audit`` for each request that changes something, rejected requests too."""

    @web.middleware
    async def audit(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        # A request for an unknown path or method cannot change anything.
        is_unknown = request.match_info.http_exception is not None
        if is_changing(request.method) and not is_unknown and not is_for_machines(request.method, request.path):
            caller = request.get(CALLER)
            log.info(
                "audit",
                subject=caller.subject if caller else None,
                mode=caller.mode if caller else None,
                roles=sorted(str(role) for role in caller.roles) if caller else [],
                project=caller.project if caller else None,
                address=proxies.address(request),
                method=request.method,
                path=request.path,
                status=response.status,
                **facts(request, response),
            )
        return response

    return audit
