"""The ``Version`` header as one table by path (SOL013 9.1; api.md 1.3), and the headers of every answer (api.md 1.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import Handler
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.http.errors import NotAcceptable
from kubevnfm_lcm_api.http.file_answers import SERVES_RANGES

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
PACKAGES_V1: Final = Api("/vnfpkgm/v1", ("1.0.0",))
PACKAGES_V2: Final = Api(
    "/vnfpkgm/v2", ("2.4.0",), is_version_required=True, also_accepted=("2.0.0", "2.1.0", "2.2.0", "2.3.0")
)
"""SOL003 V3.7.1 (2.4.0); what the earlier versions add to one another is in it."""
FAULTS: Final = Api("/vnffm/v1", ("1.3.0", "1.5.0"), is_version_required=True, also_accepted=("1.4.0",))
"""SOL003 V3.3.1, as Tacker, and V3.7.1."""
PERFORMANCE: Final = Api("/vnfpm/v2", ("2.1.0", "2.2.0"), is_version_required=True)
"""SOL003 V3.3.1, as Tacker, and V3.7.1."""
APIS: Final = (V1, V2, PACKAGES_V1, PACKAGES_V2, FAULTS, PERFORMANCE)
ANNOUNCED: Final[Mapping[str, tuple[Api, ...]]] = {
    **{api.prefix: (api,) for api in APIS},
    "/vnflcm": (V1, V2),
    "/vnfpkgm": (PACKAGES_V1, PACKAGES_V2),
    "/vnffm": (FAULTS,),
    "/vnfpm": (PERFORMANCE,),
}
"""The APIs of each ``api_versions`` resource, by its prefix (SOL013 9.3); the longer prefixes first."""


def api_of(path: str) -> Api | None:
    """Return the versioned API that a path belongs to."""
    return next((api for api in APIS if path.startswith(f"{api.prefix}/")), None)


def newest_version(path: str) -> str | None:
    """Return the newest version that is announced where a path leads; None outside of the versioned APIs."""
    apis = next((apis for prefix, apis in ANNOUNCED.items() if path.startswith(f"{prefix}/")), ())
    return apis[-1].versions[-1] if apis else None


def used_version(api: Api, asked: str | None) -> str:
    """Return the version to answer with. Raises InvalidInput (400) and NotAcceptable (406)."""
    newest, expected = api.versions[-1], " or ".join(api.versions)
    if asked is None:
        if api.is_version_required:
            raise InvalidInput("Version", f"the header is required; {expected} expected")
        return newest
    fits = _FORM.match(asked.strip())
    if fits is None:
        raise InvalidInput("Version", f"MAJOR.MINOR.PATCH expected, got {asked[:40]!r}")
    version = fits[1]
    if api is PACKAGES_V1 or version in api.versions or version in api.also_accepted:
        return version if version in api.versions else newest
    raise NotAcceptable(f"Version: {expected} expected, got {version}")


VERSION: Final = web.RequestKey("api_version_used", str)


async def headers_of_answers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the used version, whether ranges can be asked for, and nosniff to every answer, also to errors and streams."""
    # A browser must not guess another media type than the given one: output of machines is text, and no page.
    response.headers["X-Content-Type-Options"] = "nosniff"
    version = request.get(VERSION) or newest_version(request.path)
    if version is not None:
        response.headers["Version"] = version
    # Only `Response` may have no body, and for HEAD it may lack the body that GET has; streams and files have one.
    if not isinstance(response, web.Response) or response.body or request.method == "HEAD":
        response.headers.setdefault("Accept-Ranges", "bytes" if request.get(SERVES_RANGES) else "none")


@web.middleware
async def check_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check Version if an API has versions; an unknown path or method is reported first (api.md 1.2)."""
    api = api_of(request.path)
    if api is not None and request.match_info.http_exception is None and not request.path.endswith("/api_versions"):
        request[VERSION] = used_version(api, request.headers.get("Version"))
    return await handler(request)
