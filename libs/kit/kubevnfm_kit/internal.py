"""A service's internal HTTP API: authenticated by a token, errors as ProblemDetails (RFC 7807)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from types import MappingProxyType

import structlog
from aiohttp import web

from kubevnfm_kit.connections import Handler
from kubevnfm_kit.errors import InUse, InvalidInput, VnfmError
from kubevnfm_kit.http import check_ids
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.request_ids import CALLER_NAME, present_request_id

log = structlog.get_logger()

PREFIX = "/internal/"
SERVICE = "a service"
"""The caller of an internal request, in its log line: they share tokens."""
_LARGEST = 8 * 2**20
"""Bytes of a body, as at the gateway."""


def has_token(request: web.Request, token: str) -> bool:
    """Return whether a request has ``Authorization: Bearer <token>``."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    # In constant time: the time of a comparison must not reveal how much of a guess fits. As bytes, because
    # compare_digest refuses texts beyond ASCII. A header may hold bytes that are not UTF-8, which aiohttp keeps as surrogates.
    return hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode())


def internal_app(
    routes: Iterable[web.AbstractRouteDef], *, token: str, name: str = "internal token"
) -> web.Application:
    """Return an application with the routes; those under ``/internal/`` require ``Authorization: Bearer <token>``.

    ``name``: how errors call the token.
    """
    if not token:
        raise ValueError(f"{name}: must not be empty")

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(PREFIX) and not has_token(request, token):
            return _problem(401, "unauthenticated", "Unauthenticated", f"the {name} is required")
        if request.path.startswith(PREFIX):
            request[CALLER_NAME] = SERVICE
        try:
            check_ids(request)
            return await handler(request)
        except VnfmError as error:
            places = error.places if isinstance(error, InvalidInput) else ()
            named = [{"name": name, "reason": reason} for name, reason in places]
            users = {"holders": error.holders, "holder_count": error.holder_count} if isinstance(error, InUse) else {}
            return _problem(error.status, error.code, error.title, str(error), named, users)
        except web.HTTPException as refusal:
            return _problem(refusal.status, "about:blank", refusal.reason, refusal.reason)
        except Exception:  # the edge: the log gets the whole error, the caller none of it
            log.exception("request_failed", method=request.method, path=request.path)
            return _problem(500, "internal-error", "Internal error", "unexpected error")

    app = web.Application(middlewares=[guard], client_max_size=_LARGEST)
    app.add_routes(routes)
    return app


def _problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    places: Sequence[JsonMapping] = (),
    more: JsonMapping = MappingProxyType({}),
) -> web.Response:
    body: JsonObject = {"type": code, "title": title, "status": status, "detail": detail, **more}
    body["requestId"] = present_request_id()
    if places:
        body["invalidParams"] = list(places)
    return web.json_response(body, status=status, content_type="application/problem+json")
