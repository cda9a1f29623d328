"""Reading requests of ``/multicloud/v1``: a body that is JSON, and is not as expected, is 422 with a pointer to each place."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.types import MultiCloudRequest
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.http.bodies import JSON, parse, read_json

R = TypeVar("R", bound=MultiCloudRequest)


async def read(request: web.Request, model: type[R], media_types: Collection[str] = JSON) -> R:
    """Return the body as the type. Raises as `read_json`; Unprocessable with the wrong attributes."""
    return parsed(model, await read_json(request, media_types))


def parsed(model: type[R], document: object) -> R:
    """Return a document as the type. Raises Unprocessable with the wrong attributes."""
    try:
        return parse(model, document)
    except InvalidInput as error:
        raise Unprocessable(*error.places[0], *error.places[1:]) from error
