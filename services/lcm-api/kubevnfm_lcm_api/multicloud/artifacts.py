"""``/multicloud/v1/artifacts``: the packages, those fetched on demand too, and what a request can set in them (multicloud.md MC-022, MC-125)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Final, Literal, Protocol

from aiohttp import web
from kubevnfm_clients.multicloud.types import MultiCloudType, Page
from kubevnfm_clients.multicloud.variables import PackageVariable
from kubevnfm_events import PackageRef
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.http.conditions import is_known
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, add_routes, page_of
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key
from kubevnfm_lcm_api.multicloud.services import PREFIX

_ORDER: Final = "order_artifact"
_QUERY: Final = (Parameter(_ORDER, "The order artifact to take, if the package has several"),)
_FORM: Final = "1"
"""Changes when the same package gives another answer: it is a part of the entity tag."""


class Variables(Protocol):
    """The variables of onboarded packages."""

    async def reference(self, package_id: str) -> PackageRef:
        """Return an onboarded package. Raises NotFound, Conflict."""
        ...

    async def variables(self, package: PackageRef, order_artifact: str | None) -> bytes:
        """Return the variables, by name, as JSON; none if the package has no order. Raises Unprocessable for a package at fault."""
        ...


class Copies(Protocol):
    """The packages that are held, and those that are fetched on demand."""

    def check(self, csar_id: str, source: JsonMapping, place: str) -> None:
        """Raise Unprocessable at this place of a request unless the package could be fetched."""
        ...

    async def shown(self, csar_id: str) -> JsonMapping | None:
        """Return what is shown of a package; None if it is neither held nor being fetched."""
        ...

    async def page(self, *, limit: int, after: str | None) -> list[JsonMapping]:
        """Return what is shown of packages by id, after one."""
        ...

    async def ensure(self, csar_id: str, source: JsonMapping) -> JsonMapping:
        """Begin the fetch of a package, unless it is held or being fetched; return what is shown of it."""
        ...

    async def remove(self, csar_id: str) -> None:
        """Remove a copy. Raises NotFound, InUse, Conflict."""
        ...


class HeldPackage(MultiCloudType):
    """A package."""

    csar_id: str
    status: Literal["CREATED", "FETCHING", "CHECKING", "READY", "DISABLED", "FAILED"]
    """CREATED: without content. READY: VNFs can be made of it."""
    origin: Literal["uploaded", "fetched"]
    vnfd_id: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    in_use: bool
    used_at: str | None = None
    """When a fetched one was last used for a VNF, or its fetch began."""
    done_bytes: int | None = None
    """While it is fetched: how much has arrived."""
    total_bytes: int | None = None
    error: str | None = None
    """FAILED: the reason."""


_COPIES: Final = web.AppKey("multicloud-copies", Copies)
_MANY: Final = f"{PREFIX}/artifacts"
_ONE: Final = f"{_MANY}/{{csar_id}}"
_RUNNING: Final = ("FETCHING", "CHECKING")
_PAUSES: Final = BackOff(first_s=0.05, longest_s=1.0)


async def list_all(request: web.Request) -> web.Response:
    """GET artifacts: a page of them, by id."""
    asked = read_page(request, ())
    found = await request.app[_COPIES].page(limit=asked.limit + 1, after=asked.after)
    shown = found[: asked.limit]
    page = Page(shown, str(shown[-1]["csar_id"]) if len(found) > asked.limit else None)
    return page_answer(request, asked, page, dict)


async def show(request: web.Request) -> web.Response:
    """GET artifacts/{csar_id}."""
    return web.json_response(await _existing(request))


async def fetch(request: web.Request) -> web.Response:
    """POST artifacts/{csar_id}: 200 once it is held, or its fetch has failed; 202 while it is fetched."""
    copies, csar_id, preference = request.app[_COPIES], request.match_info["csar_id"], read_preference(request)
    if await copies.shown(csar_id) is None:
        try:
            copies.check(csar_id, {}, "csar_id")
        except Unprocessable as error:
            raise NotFound(error.reason) from error
    shown = await copies.ensure(csar_id, {})
    loop, looks = asyncio.get_running_loop(), 0
    until = loop.time() + preference.wait_s
    while shown["status"] in _RUNNING and (left_s := until - loop.time()) > 0:
        looks += 1
        await asyncio.sleep(min(_PAUSES.after(looks), left_s))
        shown = await _existing(request)
    status = 202 if shown["status"] in _RUNNING else 200
    headers = {**preference.headers, "Location": f"{api_root(request)}{request.path}"} if status == 202 else {}
    return web.json_response(shown, status=status, headers=headers or preference.headers)


async def remove(request: web.Request) -> web.Response:
    """DELETE artifacts/{csar_id}: 204; it can be fetched again."""
    await request.app[_COPIES].remove(request.match_info["csar_id"])
    return web.Response(status=204)


async def _existing(request: web.Request) -> JsonMapping:
    csar_id = request.match_info["csar_id"]
    shown = await request.app[_COPIES].shown(csar_id)
    if shown is None:
        raise NotFound(f"VNF package {csar_id} is not held")
    return shown


_VARIABLES: Final = web.AppKey("multicloud-variables", Variables)


async def show_variables(request: web.Request) -> web.Response:
    """GET artifacts/{csar_id}/variables: 200 with ETag, or 304."""
    variables, asked = request.app[_VARIABLES], request.query.get(_ORDER)
    package = await variables.reference(request.match_info["csar_id"])
    # A package never changes.
    text = "\0".join((_FORM, package.package_id, package.checksum, asked or ""))
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    if is_known(request, tag):
        return web.Response(status=304, headers={"ETag": tag})
    try:
        listed = await variables.variables(package, asked)
    except InvalidInput as error:
        # The places are those of a request that would use the package.
        first, *more = (("csar_id", reason) for _, reason in error.places)
        raise Unprocessable(*first, *more) from error
    return web.Response(body=listed, content_type="application/json", headers={"ETag": tag})


def add_to(app: web.Application, variables: Variables, copies: Copies) -> None:
    """Add the resources to an application."""
    app[_VARIABLES], app[_COPIES] = variables, copies
    add_routes(app, map(once_for_a_key, routes()))


def routes() -> Iterator[Route]:
    """Yield the routes of artifacts."""
    tag, shown = "Artifacts", {200: Answer("The package", HeldPackage)}
    fetched = {
        200: Answer("It is held, or could not be fetched: status says how", HeldPackage),
        202: Answer("It is being fetched", HeldPackage, has_location=True),
    }
    page, gone = page_of(HeldPackage), {204: Answer("It is not held any more")}
    used = {409: "VNFs use it, it is being fetched, or it was uploaded"}
    yield Route(tag, "GET", _MANY, list_all, "List packages", page, query=PARAMETERS)
    yield Route(tag, "GET", _ONE, show, "Show a package", shown)
    yield Route(tag, "POST", _ONE, fetch, "Fetch a package", fetched)
    yield Route(tag, "DELETE", _ONE, remove, "Remove the copy of a package", gone, refusals=used)
    yield Route(
        "Artifacts",
        "GET",
        f"{_ONE}/variables",
        show_variables,
        "List what can be set in a package",
        {200: Answer("The variables, by name", PackageVariable, is_list=True, has_etag=True)},
        query=_QUERY,
        refusals={409: "The package is not onboarded", 422: "Its order, its schema or an artifact is at fault"},
    )
