"""``/multicloud/v1/virtual-links``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, get_args

from aiohttp import web
from kubevnfm_clients.multicloud.links import (
    VNF_REFERENCE,
    LinkReference,
    LinkRequest,
    ReferenceRequest,
    VirtualLink,
    is_reference,
)
from kubevnfm_events.links import LinkStatus
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.bodies import parsed, read
from kubevnfm_lcm_api.multicloud.maintenance import suspension_tag
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.repeats import seed_of
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_MANY: Final = f"{PREFIX}/virtual-links"
_ONE: Final = f"{_MANY}/{{id}}"
_REFERENCES: Final = f"{_ONE}/references"
_REFERENCE: Final = f"{_REFERENCES}/{{reference}}"
_VARIANT: Final = "virtual-links"
_CALL_S: Final = 20
"""The longest wait of one call of the owner; a longer one is several calls."""
_FILTERS: Final = (
    Parameter("cloud_region_id", "Equal to this"),
    Parameter("name", "Equal to this"),
    Parameter("type", "Equal to this"),
    Parameter("status", "Equal to this", values=get_args(LinkStatus)),
    Parameter("namespace", "A namespace of one of its users"),
)


async def create(request: web.Request) -> web.Response:
    """POST virtual-links: 201, 200 if it existed, 202 if it is not finished in time."""
    wanted = await read(request, LinkRequest)
    if wanted.reference is not None:
        _check_reference(wanted.reference)
    elif (seed := seed_of(request)) is not None:
        # The owner would generate one: a repeat of the request after a crash would be a second user.
        wanted = wanted.model_copy(update={"reference": seed})
    preference = read_preference(request)
    until = asyncio.get_running_loop().time() + preference.wait_s
    made = await services(request).links.create(wanted, wait_s=min(preference.wait_s, _CALL_S))
    link = await _decided(request, made.link, until)
    headers = {**preference.headers, "Location": f"{api_root(request)}{_MANY}/{link.id}"}
    status = (201 if made.is_new else 200) if _is_finished(link) else 202
    return _answer(link, status, headers, reference=made.reference)


async def list_all(request: web.Request) -> web.Response:
    """GET virtual-links: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    page = await services(request).links.find(asked.filters, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, _shown)


async def show(request: web.Request) -> web.Response:
    """GET virtual-links/{id}: 200 with ETag, or 304."""
    link = await services(request).links.get(request.match_info["id"])
    return answer(request, _shown(link), _tag(link), link.updated_at)


async def remove(request: web.Request) -> web.Response:
    """DELETE virtual-links/{id}: 204, 200 if others use it, 202 if its objects are not deleted in time."""
    reference = request.query.get("reference")
    if reference is not None:
        _check_reference(reference)
    return await _released(request, reference)


async def list_references(request: web.Request) -> web.Response:
    """GET virtual-links/{id}/references: the users."""
    link = await services(request).links.get(request.match_info["id"])
    return web.json_response([LinkReference(reference=each).model_dump() for each in link.references])


async def hold(request: web.Request) -> web.Response:
    """PUT virtual-links/{id}/references/{reference}: 200, or 202 if it is not finished in time."""
    reference = request.match_info["reference"]
    _check_reference(reference)
    wanted = await read(request, ReferenceRequest) if request.can_read_body else parsed(ReferenceRequest, {})
    preference = read_preference(request)
    until = asyncio.get_running_loop().time() + preference.wait_s
    link_id, wait_s = request.match_info["id"], min(preference.wait_s, _CALL_S)
    link = await services(request).links.hold(link_id, reference, wanted, wait_s=wait_s)
    link = await _decided(request, link, until)
    return _answer(link, 200 if _is_finished(link) else 202, preference.headers)


async def release(request: web.Request) -> web.Response:
    """DELETE virtual-links/{id}/references/{reference}: as DELETE of the link with the reference."""
    _check_reference(request.match_info["reference"])
    return await _released(request, request.match_info["reference"])


async def _released(request: web.Request, reference: str | None) -> web.Response:
    links, link_id = services(request).links, request.match_info["id"]
    revision: int | None = None
    if {"If-Match", "If-Unmodified-Since"} & set(request.headers):
        seen = await links.get(link_id)
        check_unchanged(request, _tag(seen), seen.updated_at)
        revision = seen.revision
    preference = read_preference(request)
    until = asyncio.get_running_loop().time() + preference.wait_s
    wait_s = min(preference.wait_s, _CALL_S)
    left = await links.release(link_id, reference, wait_s=wait_s, if_revision=revision)
    if left is not None and left.status == "REMOVING":
        left = await _gone(request, left, until)
    if left is None:
        return web.Response(status=204, headers=preference.headers)
    return _answer(left, 202 if left.status == "REMOVING" else 200, preference.headers)


async def _decided(request: web.Request, link: VirtualLink, until: float) -> VirtualLink:
    """Return the link once its status is decided, or at this time."""
    while not link.is_decided and (left_s := until - asyncio.get_running_loop().time()) > 0:
        link = await services(request).links.get(link.id, wait_s=min(left_s, _CALL_S))
    return link


def _is_finished(link: VirtualLink) -> bool:
    """Return whether the work on the link is done. One that waits for a namespace is PENDING, and waiting here would not change it."""
    return link.is_decided and link.status != "PENDING"


async def _gone(request: web.Request, link: VirtualLink, until: float) -> VirtualLink | None:
    """Return None once the link is gone; the link at this time."""
    while (left_s := until - asyncio.get_running_loop().time()) > 0:
        try:
            link = await services(request).links.get(link.id, wait_s=min(left_s, _CALL_S))
        except NotFound:
            return None
    return link


def _check_reference(reference: str) -> None:
    if not is_reference(reference):
        raise Unprocessable("reference", "1 to 255 printable characters without spaces expected")
    if reference.startswith(VNF_REFERENCE):
        raise Unprocessable(
            "reference", f"another beginning than {VNF_REFERENCE} expected: operations of VNFs have these"
        )


def _answer(link: VirtualLink, status: int, headers: dict[str, str], *, reference: str | None = None) -> web.Response:
    shown = _shown(link.model_copy(update={"reference": reference}))
    return web.json_response(shown, status=status, headers={**headers, "ETag": _tag(link)})


def _tag(link: VirtualLink) -> str:
    # That of its region changes without a write of the link.
    return entity_tag(_VARIANT, link, *suspension_tag(link.suspended))


def _shown(link: VirtualLink) -> JsonObject:
    return link.model_dump(mode="json", exclude={"revision", "is_decided"})


def routes() -> Iterator[Route]:
    """Yield the routes of virtual links."""
    tag = "Virtual links"
    made = {
        201: Answer("Created", VirtualLink, has_location=True, has_etag=True),
        200: Answer("It existed, and has the reference", VirtualLink, has_location=True, has_etag=True),
        202: Answer("Not finished in time", VirtualLink, has_location=True, has_etag=True),
    }
    held = {
        200: Answer("It has the reference", VirtualLink, has_etag=True),
        202: Answer("Not finished in time", VirtualLink, has_etag=True),
    }
    left = {
        204: Answer("It is gone"),
        200: Answer("Others use it", VirtualLink, has_etag=True),
        202: Answer("Its objects are not deleted yet", VirtualLink, has_etag=True),
    }
    wrong = {422: "An attribute is not as expected, or the region lacks what the type needs"}
    taken = {409: "Another link has the name, a subnet or a VLAN; or it is being removed"}
    used = {409: "Others use it"}
    shown, page = {200: Answer("The link", VirtualLink, has_etag=True)}, page_of(VirtualLink)
    users = {200: Answer("Its references", LinkReference, is_list=True)}
    query = (Parameter("reference", "The user that leaves; without it, the creator must be the only one"),)
    refused = {**wrong, **taken}
    yield Route(tag, "POST", _MANY, create, "Create a link, or refer to it", made, LinkRequest, refusals=refused)
    yield Route(tag, "GET", _MANY, list_all, "List links", page, query=(*_FILTERS, *PARAMETERS))
    yield Route(tag, "GET", _ONE, show, "Show a link", shown)
    yield Route(
        tag, "DELETE", _ONE, remove, "Leave a link", left, query=query, conditions=True, refusals={**wrong, **used}
    )
    yield Route(tag, "GET", _REFERENCES, list_references, "List the users of a link", users)
    yield Route(
        tag,
        "PUT",
        _REFERENCE,
        hold,
        "Refer to a link",
        held,
        ReferenceRequest,
        is_body_required=False,
        refusals=refused,
    )
    yield Route(tag, "DELETE", _REFERENCE, release, "Leave a link", left, conditions=True, refusals={**wrong, **used})
