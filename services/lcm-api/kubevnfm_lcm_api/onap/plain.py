"""Bodies and errors as clients of ONAP's plug-in know them: an empty body is 400, malformed JSON 422, errors are plain text (MC-133)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable, VnfmError

from kubevnfm_lcm_api.http.bodies import json_of, read_body
from kubevnfm_lcm_api.multicloud.services import services

_MOST_OWNERS = 100


class EmptyBody(InvalidInput):
    """The request has no body."""


class MissingParameter(InvalidInput):
    """A query parameter is missing, which is 400 in ONAP too."""


def status_of(error: VnfmError) -> int:
    """Return the status of an error: what is malformed is 422, but for an empty body and a parameter that is missing."""
    is_malformed = isinstance(error, InvalidInput) and not isinstance(error, EmptyBody | MissingParameter)
    return max(error.status, Unprocessable.status) if is_malformed and error.status == 400 else error.status


async def read_plain(request: web.Request, secrets_in: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON object of the body, whatever its media type. Raises EmptyBody (400), InvalidInput (422), BodyTooLarge."""
    raw = await read_body(request)
    if not raw.strip():
        raise EmptyBody("", "a body is required")
    document = json_of(raw, secrets_in)
    if not isinstance(document, dict):
        raise InvalidInput("", "a JSON object expected")
    return document


async def region_named(request: web.Request, name: str) -> CloudRegion:
    """Return the region of this name, or id. Raises NotFound; Conflict that lists the owners if there are several (MC-072)."""
    found = await services(request).regions.find({"cloud_region_id": name}, limit=_MOST_OWNERS)
    if not found.items:
        raise NotFound(f"cloud region {name} does not exist")
    if len(found.items) > 1:
        owners = ", ".join(region.cloud_owner for region in found.items)
        raise Conflict(f"several owners have a cloud region {name}: {owners}; /multicloud/v1 knows them apart")
    return found.items[0]
