"""``/v1/rb``: definitions and profiles of resource bundles, and their content (multicloud.md MC-131)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.errors import NotFound, Unprocessable

from kubevnfm_lcm_api.http.bodies import read_body
from kubevnfm_lcm_api.http.routes import ANY_TYPE, Answer, Route
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.onap.answers import GONE, NO_BODY, WRONG, ShownDefinition, ShownProfile, listed
from kubevnfm_lcm_api.onap.bundle_store import Bundles, Definition, Profile
from kubevnfm_lcm_api.onap.plain import EmptyBody, read_plain

BUNDLES: Final = web.AppKey("onap-bundles", Bundles)
_MANY: Final = "/v1/rb/definition"
_ONE: Final = f"{_MANY}/{{name}}/{{version}}"
_PROFILES: Final = f"{_ONE}/profile"
_PROFILE: Final = f"{_PROFILES}/{{profile}}"
_NOT_KEPT: Final = {
    "extra-resource-types": "the status has all objects of the VNF and its pods: leave it out",
}
"""Members of profiles that would do nothing."""


def bundles(request: web.Request) -> Bundles:
    """Return the definitions and profiles."""
    return request.app[BUNDLES]


async def define(request: web.Request) -> web.Response:
    """POST definition: 201."""
    wanted = parsed(Definition, await read_plain(request))
    return web.json_response(await bundles(request).define(wanted), status=201)


async def list_definitions(request: web.Request) -> web.Response:
    """GET definition: 200."""
    return web.json_response(await bundles(request).definitions())


async def list_versions(request: web.Request) -> web.Response:
    """GET definition/{name}: 200, or 404 if it has no version."""
    found = await bundles(request).definitions(request.match_info["name"])
    if not found:
        raise NotFound(f"definition {request.match_info['name']} does not exist")
    return web.json_response(found)


async def show_definition(request: web.Request) -> web.Response:
    """GET definition/{name}/{version}: 200."""
    return web.json_response((await bundles(request).definition(*_names(request))).body)


async def redefine(request: web.Request) -> web.Response:
    """PUT definition/{name}/{version}: 201."""
    wanted = parsed(Definition, {**_in_path(request), **await read_plain(request)})
    return web.json_response(await bundles(request).redefine(*_names(request), wanted), status=201)


async def undefine(request: web.Request) -> web.Response:
    """DELETE definition/{name}/{version}: 204, or 409 while VNFs are made of it."""
    await bundles(request).undefine(*_names(request))
    return web.Response(status=204)


async def upload_definition(request: web.Request) -> web.Response:
    """POST definition/{name}/{version}/content: 200 once the chart was checked."""
    await bundles(request).upload(*_names(request), await _content(request))
    return web.Response(status=200)


async def add_profile(request: web.Request) -> web.Response:
    """POST profile: 201."""
    wanted = await _profile_in(request, {})
    return web.json_response(await bundles(request).add_profile(*_names(request), wanted), status=201)


async def list_profiles(request: web.Request) -> web.Response:
    """GET profile: 200."""
    return web.json_response(await bundles(request).profiles(*_names(request)))


async def show_profile(request: web.Request) -> web.Response:
    """GET profile/{profile}: 200."""
    return web.json_response((await bundles(request).profile(*_profile(request))).body)


async def change_profile(request: web.Request) -> web.Response:
    """PUT profile/{profile}: 200."""
    wanted = await _profile_in(request, {"profile-name": request.match_info["profile"]})
    return web.json_response(await bundles(request).change_profile(*_profile(request), wanted))


async def remove_profile(request: web.Request) -> web.Response:
    """DELETE profile/{profile}: 204, or 409 while VNFs are made of it."""
    await bundles(request).remove_profile(*_profile(request))
    return web.Response(status=204)


async def upload_profile(request: web.Request) -> web.Response:
    """POST profile/{profile}/content: 200 once it was laid over the chart."""
    await bundles(request).upload_profile(*_profile(request), await _content(request))
    return web.Response(status=200)


async def _profile_in(request: web.Request, named: Mapping[str, str]) -> Profile:
    body: dict[str, Any] = {**_in_path(request), **named, **await read_plain(request)}
    for name, reason in _NOT_KEPT.items():
        if body.pop(name, None):
            raise Unprocessable(name, reason)
    return parsed(Profile, {name: value or None for name, value in body.items()})


async def _content(request: web.Request) -> bytes:
    content = await read_body(request)
    if not content:
        raise EmptyBody("", "a tar.gz is required")
    return content


def _in_path(request: web.Request) -> dict[str, str]:
    name, version = _names(request)
    return {"rb-name": name, "rb-version": version}


def _names(request: web.Request) -> tuple[str, str]:
    return request.match_info["name"], request.match_info["version"]


def _profile(request: web.Request) -> tuple[str, str, str]:
    return *_names(request), request.match_info["profile"]


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag = "Resource bundles"
    taken = {409: "It exists already"}
    used = {409: "VNFs are made of it"}
    wrong = {**NO_BODY, **WRONG}
    stored = {200: Answer("The content is stored")}
    one, made = {200: Answer("The definition", ShownDefinition)}, {201: Answer("The definition", ShownDefinition)}
    several = listed(ShownDefinition, "The definitions")
    yield Route(tag, "POST", _MANY, define, "Make a definition", made, Definition, refusals={**wrong, **taken})
    yield Route(tag, "GET", _MANY, list_definitions, "List definitions", several)
    yield Route(tag, "GET", f"{_MANY}/{{name}}", list_versions, "List the versions of a definition", several)
    yield Route(tag, "GET", _ONE, show_definition, "Show a definition", one)
    yield Route(tag, "PUT", _ONE, redefine, "Change a definition", made, Definition, refusals=wrong)
    yield Route(tag, "DELETE", _ONE, undefine, "Delete a definition with its profiles", GONE, refusals=used)
    content, tar = "Send its content: a tar.gz", (ANY_TYPE,)
    refused = {**wrong, **used}
    yield Route(tag, "POST", f"{_ONE}/content", upload_definition, content, stored, body_types=tar, refusals=refused)
    profile = {200: Answer("The profile", ShownProfile)}
    new = {201: Answer("The profile", ShownProfile)}
    yield Route(tag, "POST", _PROFILES, add_profile, "Make a profile", new, Profile, refusals={**wrong, **taken})
    yield Route(tag, "GET", _PROFILES, list_profiles, "List profiles", listed(ShownProfile, "The profiles"))
    yield Route(tag, "GET", _PROFILE, show_profile, "Show a profile", profile)
    yield Route(tag, "PUT", _PROFILE, change_profile, "Change a profile", profile, Profile, refusals=wrong)
    yield Route(tag, "DELETE", _PROFILE, remove_profile, "Delete a profile", GONE, refusals=used)
    yield Route(tag, "POST", f"{_PROFILE}/content", upload_profile, content, stored, body_types=tar, refusals=refused)
