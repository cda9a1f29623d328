"""The ``Version`` header and the Accept header (SOL013 9.1 and 5.2.1; api.md 1.3 and 1.4), as one table by path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.http.errors import NotAcceptable

_FORM: Final = re.compile(r"^(\d+\.\d+\.\d+)(-impl:\S+)?$")


@dataclass(frozen=True)
class Api:
    """One versioned API of the gateway."""

    prefix: str
    versions: tuple[str, ...]
    """The announced versions, the oldest first."""
    is_version_required: bool = False
    also_accepted: tuple[str, ...] = ()


V1: Final = Api("/vnflcm/v1", ("1.3.0",), also_accepted=("1.0.0", "1.1.0", "1.2.0"))
V2: Final = Api("/vnflcm/v2", ("2.0.0", "2.3.0"), is_version_required=True)
PACKAGES: Final = Api("/vnfpkgm/v1", ("1.0.0",))
APIS: Final = (V1, V2, PACKAGES)


def api_of(path: str) -> Api | None:
    """Return the versioned API that a path belongs to."""
    return next((api for api in APIS if path.startswith(f"{api.prefix}/")), None)


def used_version(api: Api, asked: str | None) -> str:
    """Return the version to answer with. Raises InvalidInput (400) and NotAcceptable (406)."""
    newest = api.versions[-1]
    if asked is None:
        if api.is_version_required:
            raise InvalidInput("Version", f"the header is required; one of {', '.join(api.versions)} expected")
        return newest
    fits = _FORM.match(asked.strip())
    if fits is None:
        raise InvalidInput("Version", f"MAJOR.MINOR.PATCH expected, got {asked[:40]!r}")
    version = fits[1]
    if api is PACKAGES or version in api.versions or version in api.also_accepted:
        return version if version in api.versions else newest
    raise NotAcceptable(f"Version: one of {', '.join(api.versions)} expected, got {version}")


VERSION: Final = web.RequestKey("api_version_used", str)


@web.middleware
async def version_in_answers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the used version to every answer of a versioned API, also to errors: the outermost middleware."""
    response = await handler(request)
    api = api_of(request.path)
    # The headers of a stream are sent already.
    if api is not None and not response.prepared:
        response.headers["Version"] = request.get(VERSION, api.versions[-1])
    return response


@web.middleware
async def check_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check Version if an API has versions; an unknown path or method is reported first (api.md 1.2)."""
    api = api_of(request.path)
    if api is not None and request.match_info.http_exception is None and not request.path.endswith("/api_versions"):
        request[VERSION] = used_version(api, request.headers.get("Version"))
    return await handler(request)
