"""Conditional requests (RFC 9110 clause 13): entity tags, 304 and 412."""

from __future__ import annotations

import hashlib
from datetime import datetime
from email.utils import format_datetime
from typing import Protocol

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, PreconditionFailed
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.json_types import JsonMapping


class Revised(Protocol):
    """A document with its revision: of this service's store, or as another service answers it."""

    @property
    def id(self) -> str: ...

    @property
    def revision(self) -> int: ...


def entity_tag(variant: str, stored: Revised, *more: str) -> str:
    """Return the strong tag of a document in one API version; ``more``: other values that the answer depends on."""
    text = ":".join((variant, stored.id, str(stored.revision), *more))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def answer(request: web.Request, body: JsonMapping, tag: str, changed_at: str | None = None) -> web.Response:
    """Return 200 with the body and its tag, or 304 if the caller has it already. ``changed_at``: RFC 3339."""
    headers = {"ETag": tag}
    if changed_at is not None:
        headers["Last-Modified"] = format_datetime(datetime.fromisoformat(changed_at), usegmt=True)
    if is_known(request, tag):
        return web.Response(status=304, headers=headers)
    return web.json_response(body, headers=headers)


def is_known(request: web.Request, tag: str) -> bool:
    """Return whether the caller reads the resource and has it with this tag already (If-None-Match)."""
    known = request.headers.get("If-None-Match")
    return known is not None and request.method in {"GET", "HEAD"} and _names(known, tag, weak=True)


def check_unchanged(request: web.Request, tag: str, changed_at: str) -> None:
    """Raise PreconditionFailed if If-Match or If-Unmodified-Since is not met, InvalidInput if it is malformed."""
    # If-Unmodified-Since is ignored if there is an If-Match (RFC 9110 13.1.4).
    wanted = request.headers.get("If-Match")
    if wanted is not None:
        if not _names(wanted, tag, weak=False):
            raise PreconditionFailed("If-Match: the resource has changed since it was read")
        return
    since = request.headers.get("If-Unmodified-Since")
    if since is None:
        return
    moment = read_http_date(since)
    if moment is None:
        raise InvalidInput("If-Unmodified-Since", "an HTTP date expected")
    # HTTP dates have no fractions of a second.
    if datetime.fromisoformat(changed_at).replace(microsecond=0).timestamp() > moment.timestamp():
        raise PreconditionFailed(f"If-Unmodified-Since: the resource was changed at {changed_at}")


def seen_revision(request: web.Request, revision: int) -> int | None:
    """Return the revision that a request is about, if it has a condition, which ``revision`` fulfils.

    None: any. Work in the background and the monitors write such documents too, which no caller must notice.
    """
    return revision if {"If-Match", "If-Unmodified-Since"} & set(request.headers) else None


def _names(header: str, tag: str, *, weak: bool) -> bool:
    """Return whether a list of tags contains the tag; weak tags (``W/``) count for If-None-Match only."""
    given = [each.strip() for each in header.split(",")]
    if weak:
        given = [each.removeprefix("W/") for each in given]
    return "*" in given or tag in given
