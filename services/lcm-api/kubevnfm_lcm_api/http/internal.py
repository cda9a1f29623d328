"""``/internal/v1``: access for the other services of kubevnfm, by a token that they share."""

from __future__ import annotations

import hmac

from aiohttp import web
from kubevnfm_access.errors import Unauthenticated
from kubevnfm_access.middleware import Handler

from kubevnfm_lcm_api.http.context import context


def for_services(handler: Handler) -> Handler:
    """Return the handler behind the internal token."""

    async def handle(request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        # Compared in constant time: the time of a comparison must not reveal how much of a guess fits.
        if not hmac.compare_digest(given.encode(), context(request).internal_token.encode()):
            raise Unauthenticated("the internal token is required")
        return await handler(request)

    return handle
