"""The routes of the gateway: each with its handler, and with what the OpenAPI document says of its requests and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Final

from aiohttp import web
from kubevnfm_access.errors import Unauthenticated
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.internal import PREFIX, has_token
from pydantic import BaseModel

from kubevnfm_lcm_api.http.bodies import JSON, check_accept, check_query
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.documents import document_of

ANY_TYPE: Final = "*/*"


@dataclass(frozen=True)
class Parameter:
    """A query parameter."""

    name: str
    description: str
    is_flag: bool = False
    values: tuple[str, ...] = ()
    is_repeated: bool = False
    is_required: bool = False


@dataclass(frozen=True)
class Answer:
    """The content of an answer: nothing, a type, a list of it, any object, or other media types."""

    description: str
    model: type[BaseModel] | None = None
    is_list: bool = False
    has_pages: bool = True
    """Whether a list is answered in parts."""
    is_page: bool = False
    """Whether it is an object that has a part of a list."""
    is_any_object: bool = False
    media_types: tuple[str, ...] = JSON
    has_location: bool = False
    has_etag: bool = False

    @property
    def has_content(self) -> bool:
        """Whether there is a body."""
        return self.model is not None or self.is_any_object or self.media_types != JSON


@dataclass(frozen=True)
class Route:
    """One method of one path."""

    tag: str
    """The heading that the document shows it under."""
    method: str
    path: str
    handler: Handler
    summary: str
    answers: Mapping[int, Answer]
    body: type[BaseModel] | None = None
    body_types: tuple[str, ...] = JSON
    is_body_required: bool = True
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    """Headers of this method, in addition to those of conditions."""
    conditions: bool = False
    """Whether If-Match and If-Unmodified-Since are checked."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """The errors of this method, in addition to those of every request."""
    checks_accept: bool = True
    """Whether a request that accepts none of the answers' media types is refused before the handler is called."""
    also: str = ""
    """Another path of the same, which the document does not repeat."""


DELETED: Final = {204: Answer("Done; there is nothing to show")}


def page_of(model: type[BaseModel]) -> Mapping[int, Answer]:
    """Return the answers of a list request (`listing.list_page`)."""
    return {200: Answer("A page; Link names the next one", model, is_list=True)}


ROUTES: Final = web.AppKey("routes", dict[tuple[str, str], Route])
"""By method and path, as the router writes it."""


def add_routes(app: web.Application, routes: Iterable[Route]) -> None:
    """Add routes, each below every root of its document.

    Those under ``/internal/`` require the internal token, those for callers check query and Accept first.
    """
    for route in routes:
        handler, further = _checked(route), (route.also,) if route.also else ()
        for added in web.RouteDef(route.method, route.path, handler, {}).register(app.router):
            assert added.resource is not None
            app[ROUTES][route.method, added.resource.canonical] = route
        for path in further:
            app.router.add_route(route.method, path, handler)
        for root in document_of(app, route.path).roots:
            for path in (route.path, *further):
                web.RouteDef(route.method, f"{root}{path}", handler, {}).register(app.router)


def _checked(route: Route) -> Handler:
    if is_for_probes(route.path):
        return route.handler
    known = {parameter.name: parameter.is_repeated for parameter in route.query}
    kinds = (kind for answer in route.answers.values() if answer.has_content for kind in answer.media_types)
    accepted = tuple(dict.fromkeys(kinds)) if route.checks_accept else ()
    is_internal = route.path.startswith(PREFIX)

    @wraps(route.handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        if is_internal:
            if not has_token(request, context(request).internal_token):
                raise Unauthenticated("the internal token is required")
            return await route.handler(request)
        check_query(request, known)
        if accepted and ANY_TYPE not in accepted:
            check_accept(request, *accepted)
        return await route.handler(request)

    return handle


def is_for_probes(path: str) -> bool:
    """Return whether clients ask there before they know anything of the gateway: nothing of such a request is refused."""
    return path == "/" or path.startswith("/health/")
