"""``/openapi.json`` and ``/docs``."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.gateway.openapi.operations import HTML
from kubevnfm_lcm_api.gateway.openapi.page import POLICY, make_page
from kubevnfm_lcm_api.http.bodies import check_accept, check_query


class Documents:
    """The document and its page, made when they are first asked for: then all routes are there, and they stay."""

    def __init__(self) -> None:
        self._document: JsonObject | None = None
        self._page: str | None = None

    def document(self, app: web.Application) -> JsonObject:
        """Return the document."""
        if self._document is None:
            self._document = make_document(app, version=version("kubevnfm-lcm-api"))
        return self._document

    def page(self, app: web.Application) -> str:
        """Return the page."""
        if self._page is None:
            self._page = make_page(self.document(app))
        return self._page


DOCUMENTS: Final = web.AppKey("documents", Documents)


async def show(request: web.Request) -> web.Response:
    """GET /openapi.json: 200."""
    check_query(request)
    check_accept(request, "application/json")
    return web.json_response(request.app[DOCUMENTS].document(request.app))


async def read(request: web.Request) -> web.Response:
    """GET /docs: 200, one page that needs nothing else."""
    check_query(request)
    check_accept(request, HTML)
    text = request.app[DOCUMENTS].page(request.app)
    return web.Response(text=text, content_type=HTML, headers={"Content-Security-Policy": POLICY})


def routes() -> list[web.RouteDef]:
    """Return the routes of the document."""
    return [web.get("/openapi.json", show), web.get("/docs", read)]
