"""The audit log: each caller that changed a resource or tried to, without bodies and credentials."""

from __future__ import annotations

import re
from typing import Any, Final

import structlog
from aiohttp import web
from kubevnfm_access.caller import is_changing
from kubevnfm_access.middleware import CALLER, Handler, Proxies

from kubevnfm_lcm_api.http.errors import REQUEST_ID

log = structlog.get_logger()

_OCCURRENCE: Final = re.compile(r"/vnf_lcm_op_occs/([^/]+)")


def audited(proxies: Proxies) -> Any:
    """Return the middleware: one event ``audit`` for each request that changes something, rejected requests too."""

    @web.middleware
    async def audit(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        # A request for an unknown path or method cannot change anything.
        if is_changing(request.method) and request.match_info.http_exception is None:
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
                occurrence_id=_occurrence(request, response),
                request_id=request.get(REQUEST_ID),
            )
        return response

    return audit


def _occurrence(request: web.Request, response: web.StreamResponse) -> str | None:
    """Return the operation occurrence that the request has created or acted on."""
    fits = _OCCURRENCE.search(response.headers.get("Location", "")) or _OCCURRENCE.search(request.path)
    return fits[1] if fits else None
