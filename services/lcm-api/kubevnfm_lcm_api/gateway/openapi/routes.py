"""``openapi.json``, ``openapi.yaml`` and ``docs`` of each document, and ``swagger.json`` of those below a path."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Final

from aiohttp import web
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.foreign_yaml.writing import write_yaml
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.gateway.openapi.page import POLICY, make_page
from kubevnfm_lcm_api.gateway.openapi.swagger import to_swagger
from kubevnfm_lcm_api.http.documents import Document
from kubevnfm_lcm_api.http.routes import Answer, Route

TAG: Final = "Versions and health"
ROOT: Final = Document(
    "kubevnfm",
    "ETSI NFV SOL003 life-cycle management, VNF packages, VIMs",
    (
        "VNF instances",
        "Operation occurrences",
        "VNF snapshots",
        "Subscriptions",
        "Alarms",
        "PM jobs",
        "Thresholds",
        "Automatic operations",
        "Monitoring systems",
        "VNF packages",
        "VNF packages by VNFD",
        "VIMs",
        "Progress",
        "Views",
        "Web page",
        TAG,
        "Between the services",
    ),
)
_HTML: Final = "text/html"
_YAML: Final = "application/yaml"


class _Served:
    """One document and its page, made when they are first asked for: then all routes are there, and they stay."""

    def __init__(self, about: Document) -> None:
        self._about = about
        self._document: JsonObject | None = None
        self._yaml: str | None = None
        self._page: str | None = None
        self._swagger: JsonObject | None = None

    def document(self, app: web.Application) -> JsonObject:
        """Return the document."""
        if self._document is None:
            self._document = make_document(app, self._about, version=version("kubevnfm-lcm-api"))
        return self._document

    async def show(self, request: web.Request) -> web.Response:
        return web.json_response(self.document(request.app))

    async def show_yaml(self, request: web.Request) -> web.Response:
        if self._yaml is None:
            self._yaml = await asyncio.to_thread(_in_yaml, self.document(request.app))
        return web.Response(text=self._yaml, content_type=_YAML)

    async def show_swagger(self, request: web.Request) -> web.Response:
        if self._swagger is None:
            self._swagger = to_swagger(self.document(request.app))
        return web.json_response(self._swagger)

    async def read(self, request: web.Request) -> web.Response:
        """GET docs: 200, one page that needs nothing else."""
        if self._page is None:
            self._page = make_page(self.document(request.app))
        return web.Response(text=self._page, content_type=_HTML, headers={"Content-Security-Policy": POLICY})


def _in_yaml(document: JsonObject) -> str:
    # Through JSON, in which no two parts are one object: YAML would write the second as an alias.
    return write_yaml(read_foreign(json.dumps(document)))


def routes(about: Document) -> list[Route]:
    """Return the routes of one document, under its last heading but those of other services."""
    served, base = _Served(about), about.prefix
    tag = TAG if TAG in about.tags else about.tags[-1]
    document, page = Answer("OpenAPI 3.1", is_any_object=True), Answer("A page to read", media_types=(_HTML,))
    in_yaml = Answer("OpenAPI 3.1", media_types=(_YAML,))
    in_swagger = Answer("Swagger 2.0", is_any_object=True)
    swagger = Route(tag, "GET", f"{base}/swagger.json", served.show_swagger, "This document in 2.0", {200: in_swagger})
    return [
        # For clients of ONAP, which know the multi-cloud API alone.
        *([swagger] if base else []),
        Route(tag, "GET", f"{base}/openapi.json", served.show, "This document", {200: document}),
        Route(tag, "GET", f"{base}/openapi.yaml", served.show_yaml, "This document in YAML", {200: in_yaml}),
        Route(tag, "GET", f"{base}/docs", served.read, "This document for people", {200: page}),
    ]
