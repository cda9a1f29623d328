"""``/openapi.json`` and ``/docs``."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.gateway.openapi.page import POLICY, make_page
from kubevnfm_lcm_api.http.routes import Answer, Route

TAG: Final = "Versions and health"
_HTML: Final = "text/html"


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
    return web.json_response(request.app[DOCUMENTS].document(request.app))


async def read(request: web.Request) -> web.Response:
    """GET /docs: 200, one page that needs nothing else."""
    text = request.app[DOCUMENTS].page(request.app)
    return web.Response(text=text, content_type=_HTML, headers={"Content-Security-Policy": POLICY})


def routes() -> list[Route]:
    """Return the routes of the document."""
    document, page = Answer("OpenAPI 3.1", is_any_object=True), Answer("A page to read", media_types=(_HTML,))
    return [
        Route(TAG, "GET", "/openapi.json", show, "This document", {200: document}),
        Route(TAG, "GET", "/docs", read, "This document for people", {200: page}),
    ]
