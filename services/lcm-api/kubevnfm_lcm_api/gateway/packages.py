"""``/vnfpkgm/v1/vnf_packages`` (SOL005 clause 9, the read side of SOL003 clause 10; api.md chapter 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import ClientPayloadError, web
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api import packages
from kubevnfm_lcm_api.gateway.bodies import PATCH, check_accept, check_query, read_json
from kubevnfm_lcm_api.gateway.conditions import answer, entity_tag
from kubevnfm_lcm_api.gateway.context import api_root, gateway
from kubevnfm_lcm_api.gateway.errors import RangeNotSatisfiable, UnsupportedMediaType
from kubevnfm_lcm_api.gateway.listing import PACKAGES, list_page
from kubevnfm_lcm_api.gateway.render import without_secret_leaves

_OURS = ("createdAt", "sizeBytes")
_CHUNK = 256 * 1024


def check_range(request: web.Request, size_bytes: int) -> None:
    """Raise InvalidInput for what is no single range of bytes, RangeNotSatisfiable for one behind the end."""
    try:
        wanted = request.http_range
    except ValueError as error:
        raise InvalidInput("Range", "one range of bytes expected") from error
    if wanted.start is not None and wanted.start >= size_bytes:
        raise RangeNotSatisfiable(size_bytes)


class UploadBroken(InvalidInput):
    """The sender went away in the middle; nobody reads this answer, but the upload ends in order."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


async def view(request: web.Request, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return VnfPkgInfo; usageState follows the instances."""
    used = await gateway(request).packages.is_in_use(document)
    me = f"{api_root(request)}/vnfpkgm/v1/vnf_packages/{document['id']}"
    links = {"self": {"href": me}, "packageContent": {"href": f"{me}/package_content"}}
    if document["onboardingState"] == "ONBOARDED":
        links["vnfd"] = {"href": f"{me}/vnfd"}
    shown = without_secret_leaves({name: value for name, value in document.items() if name not in _OURS})
    if not shown.get("userDefinedData"):
        shown.pop("userDefinedData", None)
    if document["onboardingState"] != "ONBOARDED":
        shown.pop("checksum", None)
    return {**shown, "usageState": "IN_USE" if used else "NOT_IN_USE", "_links": links}


async def create(request: web.Request) -> web.Response:
    """POST vnf_packages: 201 with the package in state CREATED."""
    check_query(request)
    check_accept(request, "application/json")
    body = await read_json(request, is_required=False)
    user_data = body.get("userDefinedData", {}) if isinstance(body, Mapping) else None
    if not isinstance(user_data, Mapping):
        raise InvalidInput("userDefinedData", "an object expected")
    document = await gateway(request).packages.create(user_data)
    shown = await view(request, document)
    return web.json_response(shown, status=201, headers={"Location": shown["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    """GET vnf_packages: a page, filtered."""
    check_accept(request, "application/json")

    async def shown(document: Mapping[str, Any]) -> dict[str, Any]:
        return await view(request, document)

    return await list_page(request, packages.COLLECTION, PACKAGES, shown)


async def show(request: web.Request) -> web.Response:
    """GET vnf_packages/{id}: 200 with ETag, or 304."""
    check_query(request)
    check_accept(request, "application/json")
    stored = await gateway(request).packages.get(request.match_info["id"])
    shown = await view(request, stored.body)
    return answer(request, shown, entity_tag("packages", stored, shown["usageState"]))


async def modify(request: web.Request) -> web.Response:
    """PATCH vnf_packages/{id}: 200 with only what was changed."""
    check_query(request)
    check_accept(request, "application/json")
    body = await read_json(request, PATCH)
    if not isinstance(body, Mapping):
        raise InvalidInput("", "a JSON object expected")
    changed = await gateway(request).packages.modify(request.match_info["id"], body)
    return web.json_response(without_secret_leaves(changed))


async def delete(request: web.Request) -> web.Response:
    """DELETE vnf_packages/{id}: 204."""
    check_query(request)
    await gateway(request).packages.delete(request.match_info["id"])
    return web.Response(status=204)


async def upload(request: web.Request) -> web.Response:
    """PUT .../package_content: 202 once the archive is on disk; it is checked in the background."""
    check_query(request)
    if request.content_type not in {"application/zip", "application/octet-stream"}:
        raise UnsupportedMediaType(f"Content-Type: application/zip expected, got {request.content_type}")
    await gateway(request).packages.upload(request.match_info["id"], _chunks(request))
    return web.Response(status=202)


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the body. Raises UploadBroken when the sender goes away before its end."""
    try:
        async for chunk in request.content.iter_chunked(_CHUNK):
            yield chunk
    except (ConnectionError, ClientPayloadError) as error:
        raise UploadBroken("the sender went away before the end of the archive") from error


async def content(request: web.Request) -> web.StreamResponse:
    """GET .../package_content: the uploaded bytes."""
    check_query(request)
    check_accept(request, "application/zip")
    stored = await gateway(request).packages.get(request.match_info["id"])
    if stored.body["onboardingState"] != "ONBOARDED":
        raise packages.PackageBusy(f"the package is {stored.body['onboardingState']}, not ONBOARDED")
    path = gateway(request).files.content(stored.id)
    check_range(request, stored.body["sizeBytes"])
    return web.FileResponse(path, headers={"Content-Type": "application/zip"})


def routes() -> list[web.RouteDef]:
    """Return the routes of package management."""
    base = "/vnfpkgm/v1/vnf_packages"
    return [
        web.post(base, create),
        web.get(base, list_all),
        web.get(f"{base}/{{id}}", show),
        web.patch(f"{base}/{{id}}", modify),
        web.delete(f"{base}/{{id}}", delete),
        web.put(f"{base}/{{id}}/package_content", upload),
        web.get(f"{base}/{{id}}/package_content", content),
    ]
