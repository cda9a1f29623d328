"""The routes of the web page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import web
from kubevnfm_access.caller import PAGE

from kubevnfm_lcm_api.http.routes import add_routes
from kubevnfm_lcm_api.page import login
from kubevnfm_lcm_api.page.files import HEADERS, page_file
from kubevnfm_lcm_api.page.openid import OpenIdLogins
from kubevnfm_lcm_api.page.sessions import StoredSessions

_FOR_EVER = "public, max-age=31536000, immutable"
_EACH_TIME = "no-cache"


async def show(request: web.Request) -> web.Response:
    """GET ui/{path}: a file of the page; at the other places the index, whose script shows the place."""
    path = request.match_info["path"]
    file = await asyncio.to_thread(page_file, path)  # the first call reads and compresses
    encoding, content, tag = file.encoded(request.headers.get("Accept-Encoding", ""))
    headers = {**HEADERS, "ETag": tag, "Cache-Control": _FOR_EVER if file.is_immutable else _EACH_TIME}
    if any(f'"{known.value}"' == tag for known in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    if encoding != "identity":
        headers["Content-Encoding"] = encoding
    return web.Response(body=content, headers={**headers, "Content-Type": file.content_type})


async def enter(request: web.Request) -> web.Response:
    """GET ui: leads to the page."""
    return web.Response(status=308, headers={"Location": f"{PAGE}/"})


def add_to(
    app: web.Application, *, sessions: StoredSessions, ways: Sequence[str], openid: OpenIdLogins | None = None
) -> None:
    """Add the page to an application; ``ways``: those of authentication that are on; ``openid``: as of `Login`."""
    add_routes(app, login.routes(login.Login(sessions, ways, openid)))
    # Not in the OpenAPI document: a browser reads them, with queries that only the page's script reads.
    app.router.add_get(PAGE, enter)
    app.router.add_get(f"{PAGE}/{{path:.*}}", show)
