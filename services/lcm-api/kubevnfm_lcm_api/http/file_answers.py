"""Files as answers: whole, or one range of bytes (RFC 9110 clause 14), read in pieces so that memory use is constant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, NotFound

from kubevnfm_lcm_api.http.conditions import is_known
from kubevnfm_lcm_api.http.errors import RangeNotSatisfiable

SERVES_RANGES: Final = web.RequestKey("serves_ranges", bool)
"""Whether the file that was asked for is served in ranges too; absent if no file was."""
SANDBOX: Final = "sandbox; default-src 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of files: a browser that shows one all the same runs and fetches nothing in our origin."""
_CHUNK: Final = 256 * 1024
_RANGE: Final = re.compile(r"([0-9]{0,100})-([0-9]{0,100})")
"""Far more digits than the size of a file has; Python converts 4,300 of them and raises for more."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class ByteRange:
    """A part of a file."""

    start: int
    count: int


def read_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """Return the range of a ``Range`` header; None for the whole file: without the header, or for another unit.

    Raises: InvalidInput for several ranges or an invalid one; RangeNotSatisfiable for a range after the end.
    """
    if header is None or not header.strip().lower().startswith("bytes="):
        return None
    found = _RANGE.fullmatch(header.partition("=")[2].strip())
    if found is None or not (found[1] or found[2]):
        raise InvalidInput("Range", "one range of bytes expected")
    if not found[1]:  # a suffix: the last bytes of the file
        count = min(int(found[2]), size_bytes)
        if count == 0:
            raise RangeNotSatisfiable(size_bytes)
        return ByteRange(size_bytes - count, count)
    start = int(found[1])
    if found[2] and int(found[2]) < start:
        raise InvalidInput("Range", "the range ends before it begins")
    if start >= size_bytes:
        raise RangeNotSatisfiable(size_bytes)
    end = min(int(found[2]), size_bytes - 1) if found[2] else size_bytes - 1
    return ByteRange(start, end - start + 1)


async def answer_file(
    request: web.Request, path: Path, *, name: str, content_type: str, tag: str, has_ranges: bool = True
) -> web.Response:
    """Return the file: 200, 206 for a range of it, or 304 if the caller has it. ``tag``: its strong entity tag.

    ``name`` is the file name for a browser, which stores the file and does not show it: the maker of a package decides
    on content and media type, so a page in it would run in the gateway's origin (cross-site scripting). The answer is
    never compressed, even if the caller accepts that: the package's checksums are those of its bytes.
    Raises: InvalidInput, RangeNotSatisfiable; NotFound if the file was deleted after the request began.
    """
    try:
        size_bytes = (await asyncio.to_thread(path.stat)).st_size
    except FileNotFoundError as error:
        raise NotFound("the package was deleted") from error
    request[SERVES_RANGES] = has_ranges
    headers = {
        "Content-Type": content_type,
        "Content-Disposition": _attachment(name),
        "Content-Security-Policy": SANDBOX,
        "ETag": tag,
    }
    # If-None-Match has precedence over ranges (RFC 9110 13.2.2).
    if is_known(request, tag):
        return web.Response(status=304, headers={"ETag": tag})
    asked = None
    # With another tag the file has changed, and the caller wants all of it.
    if has_ranges and request.headers.get("If-Range", tag).strip() == tag:
        asked = read_range(request.headers.get("Range"), size_bytes)
    part = asked or ByteRange(0, size_bytes)
    if asked is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.start + part.count - 1}/{size_bytes}"
    headers["Content-Length"] = str(part.count)
    status = 200 if asked is None else 206
    if request.method == "HEAD" or part.count == 0:
        return web.Response(status=status, headers=headers)
    return web.Response(status=status, headers=headers, body=_pieces(path, part))


def _attachment(name: str) -> str:
    """Return the Content-Disposition (RFC 6266): the name in signs that every client reads, and as it is."""
    return f"attachment; filename=\"{_UNSAFE.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


async def _pieces(path: Path, part: ByteRange) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    with file:
        await asyncio.to_thread(file.seek, part.start)
        left = part.count
        while left and (piece := await asyncio.to_thread(file.read, min(_CHUNK, left))):
            left -= len(piece)
            yield piece
