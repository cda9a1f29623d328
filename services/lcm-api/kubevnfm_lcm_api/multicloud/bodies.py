"""Reading requests of ``/multicloud/v1``: a body that is JSON, and is not as expected, is 422 with a pointer to each place."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

import aiohttp
from aiohttp import BodyPartReader, MultipartReader, StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpProcessingError
from kubevnfm_clients.multicloud.types import MultiCloudType
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import BODY_LIMIT, JSON, json_of, parse, read_body, read_json
from kubevnfm_lcm_api.http.errors import BodyTooLarge

_PARTS: Final = ("metadata", "file")
_CHUNK: Final = 64 * 1024

R = TypeVar("R", bound=MultiCloudType)


async def read(request: web.Request, model: type[R], media_types: Collection[str] = JSON) -> R:
    """Return the body as the type. Raises as `read_json`; Unprocessable with the wrong attributes."""
    return parsed(model, await read_json(request, media_types))


async def read_form(request: web.Request, file_name: str, *, limit_bytes: int) -> JsonObject:
    """Return the JSON of the part ``metadata`` with the part ``file`` in it, in base64 under ``file_name``.

    Raises: BodyTooLarge (413), InvalidInput (400: no form, no JSON), Unprocessable (other parts).
    """
    parts: dict[str, bytes] = {}
    try:
        async for part in await _form(request):
            name = part.name if isinstance(part, BodyPartReader) else None
            if not isinstance(part, BodyPartReader) or name not in _PARTS or name in parts:
                raise Unprocessable(str(name or ""), "one part metadata and one part file expected")
            parts[name] = await _part(part, limit_bytes)
    # aiohttp raises these for what is no form, for one that ends in the middle, and for long headers of a part.
    except (ValueError, AssertionError, aiohttp.ClientError, web.HTTPException, HttpProcessingError) as error:
        raise InvalidInput("", "the body is not multipart/form-data") from error
    for name in _PARTS:
        if name not in parts:
            raise Unprocessable(name, "one part of this name expected")
    document = json_of(parts["metadata"])
    if not isinstance(document, dict):
        raise InvalidInput("metadata", "a JSON object expected")
    if file_name in document:
        raise Unprocessable(file_name, "no value expected beside the part file")
    return {**document, file_name: b64encode(parts["file"]).decode()}


async def _form(request: web.Request) -> MultipartReader:
    """Return the reader of a form. The whole body is read first: its Idempotency-Key needs it too."""
    # It would pause its connection, which it does not have, at twice the limit.
    content = StreamReader(BaseProtocol(asyncio.get_running_loop()), limit=BODY_LIMIT)
    content.feed_data(await read_body(request))
    content.feed_eof()
    return MultipartReader(request.headers, content)


async def _part(part: BodyPartReader, limit_bytes: int) -> bytes:
    content = bytearray()
    while chunk := await part.read_chunk(_CHUNK):
        content += chunk
        if len(content) > limit_bytes:
            raise BodyTooLarge(f"a part of the form may have up to {limit_bytes} bytes")
    return bytes(content)


def parsed(model: type[R], document: object) -> R:
    """Return a document as the type. Raises InvalidInput (400) if it is no object; Unprocessable with the wrong attributes."""
    if not isinstance(document, Mapping):
        raise InvalidInput("", "a JSON object expected")
    try:
        return parse(model, document)
    except InvalidInput as error:
        raise Unprocessable(*error.places[0], *error.places[1:]) from error
