"""``/multicloud/v1/inventory``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.inventory import InventoryReport, InventoryResource, Resync
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import read_body
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_ROOT: Final = f"{PREFIX}/inventory"
_MANY: Final = f"{_ROOT}/resources"
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FILTERS: Final = (
    Parameter("cloud_region_id", "The region: <owner>/<region>, or the id of a VIM"),
    Parameter("vnf_id", "The VNF instance"),
    Parameter("kind", "Equal to this"),
    Parameter("namespace", "Equal to this"),
    Parameter("name", "Equal to this"),
    Parameter("uid", "The uid of the object"),
    Parameter("ip", "An address of a pod or virtual machine, in any form of writing"),
)


async def list_all(request: web.Request) -> web.Response:
    """GET inventory/resources: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    filters = dict(asked.filters)
    if "uid" in filters and not _UID.fullmatch(filters["uid"]):
        raise InvalidInput("uid", "a UUID in lower case expected")
    if "ip" in filters:
        filters["ip"] = _address(filters["ip"])
    page = await services(request).inventory.find(filters, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, _shown)


async def health(request: web.Request) -> web.Response:
    """GET inventory/health: 200, also if nothing is watched or exported now."""
    return web.json_response((await services(request).inventory.health()).model_dump(mode="json"))


async def resync(request: web.Request) -> web.Response:
    """POST inventory/resync: 202; what it does is in inventory/health."""
    if await read_body(request):
        raise InvalidInput("", "no body expected")
    return web.json_response((await services(request).inventory.resync()).model_dump(mode="json"), status=202)


def _address(text: str) -> str:
    """Return an address in the form in which the inventory has it."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise InvalidInput("ip", "an IPv4 or IPv6 address expected") from error
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        raise InvalidInput("ip", "an address without a zone expected")
    return str(address)


def _shown(resource: InventoryResource) -> JsonObject:
    return resource.model_dump(mode="json")


def routes() -> Iterator[Route]:
    """Yield the routes of the inventory."""
    tag = "Inventory"
    states = {200: Answer("The watches that do not work, and the state of the export", InventoryReport)}
    yield Route(tag, "GET", f"{_ROOT}/health", health, "Show whether the inventory is current and exported", states)
    asked, refusals = {202: Answer("It has begun", Resync)}, {409: "The inventory is not exported"}
    yield Route(tag, "POST", f"{_ROOT}/resync", resync, "Export everything again to A&AI", asked, refusals=refusals)
    yield Route(
        tag,
        "GET",
        _MANY,
        list_all,
        "List the objects of VNFs that exist",
        page_of(InventoryResource),
        query=(*_FILTERS, *PARAMETERS),
    )
