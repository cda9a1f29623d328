"""``/multicloud/v1/inventory/resources``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.routes import Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.pages import PARAMETERS, page_answer, read_page
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_MANY: Final = f"{PREFIX}/inventory/resources"
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
    """Yield the route of the inventory."""
    yield Route(
        "Inventory",
        "GET",
        _MANY,
        list_all,
        "List the objects of VNFs that exist",
        page_of(InventoryResource),
        query=(*_FILTERS, *PARAMETERS),
    )
