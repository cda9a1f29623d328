"""Pages of lists of other services (multicloud.md MC-007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.markers import next_page
from kubevnfm_lcm_api.http.pages import PageRequest

T = TypeVar("T")


def page_answer(
    request: web.Request, asked: PageRequest, page: Page[T], shown: Callable[[T], JsonObject]
) -> web.Response:
    """Return a page; its Link header has the next one."""
    headers = {}
    if page.next_after is not None:
        headers = next_page(request, request.path, asked.filters, page.next_after, limit=asked.limit)
    return web.json_response([shown(item) for item in page.items], headers=headers)
