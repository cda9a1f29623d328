"""The markers of pages (SOL013 5.4): what a list request asked for and where its next page begins, sealed.

Sealed, because a caller must not change the position or use it for another list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from aiohttp import web
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import UnknownKey

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.routes import Parameter

_NAME: Final = "nextpage_opaque_marker"
MARKER: Final = Parameter(_NAME, "Where the next page begins: from the Link header of the page before")
_LIVE: Final = timedelta(hours=24)


def read_marker(request: web.Request, of_list: str, given: Mapping[str, str]) -> JsonMapping | None:
    """Return what the marker of a request carries (``q``, ``a`` and what the list has added); None if it has none.

    ``of_list``: the name of the list; ``given``: the parameters beside the marker. Raises InvalidInput for a marker of another list,
    one that has expired, and parameters that differ from those of the page before.
    """
    if _NAME not in request.query:
        return None
    shared = context(request)
    try:
        marker: JsonMapping = json.loads(shared.ring.open(request.query[_NAME], bound_to=f"marker:{of_list}"))
    except (UnknownKey, ValueError) as error:
        raise InvalidInput(_NAME, "not a marker of this resource") from error
    if shared.clock.now() - datetime.fromisoformat(marker["t"]) > _LIVE:
        raise InvalidInput(_NAME, "the marker has expired: start again with the first page")
    if any(marker["q"].get(name) != value for name, value in given.items()):
        raise InvalidInput(_NAME, "the other parameters differ from those of the previous page")
    return marker


def next_page(
    request: web.Request, of_list: str, asked: Mapping[str, str], after: object, **more: object
) -> dict[str, str]:
    """Return the ``Link`` header with the next page; ``asked``: the parameters; ``after``: where it begins."""
    return link_to(next_href(request, of_list, asked, after, **more))


def next_href(request: web.Request, of_list: str, asked: Mapping[str, str], after: object, **more: object) -> str:
    """Return the address of the next page, as `next_page`."""
    shared = context(request)
    text = json.dumps({"q": dict(asked), "a": after, "t": rfc3339(shared.clock.now()), **more})
    marker = shared.ring.seal(text, bound_to=f"marker:{of_list}")
    return f"{api_root(request)}{request.path}?{urlencode({_NAME: marker})}"


def link_to(href: str) -> dict[str, str]:
    """Return the ``Link`` header that names the next page."""
    return {"Link": f'<{href}>; rel="next"'}
