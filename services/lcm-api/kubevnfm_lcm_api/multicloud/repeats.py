"""``Idempotency-Key`` at ``/multicloud/v1``: each POST runs once for a key (multicloud.md MC-005)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import replace
from email.message import Message
from functools import partial, wraps
from typing import Final

from aiohttp import web
from kubevnfm_access.caller import DRY_RUN
from kubevnfm_access.middleware import CALLER, Handler
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.run import background, repeat

from kubevnfm_lcm_api.http.bodies import FORM, read_body
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Parameter, Route
from kubevnfm_lcm_api.multicloud.idempotency import LEASE_S, Claim, IdempotencyKeys, KeptAnswer, answer_too_large

_HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[ -~]{1,128}")
_KEPT_HEADERS: Final = ("Content-Type", "Location", "ETag", "Preference-Applied")
_SEED: Final = web.RequestKey("idempotency_seed", str)
_DESCRIBED: Final = Parameter(
    _HEADER, "1 to 128 printable characters: a request with the same key and body has the first answer, for 24 hours"
)
_REFUSED: Final = "Idempotency-Key was used with another body, or its first request is running"


def once_for_a_key(route: Route) -> Route:
    """Return a route that runs a POST once for each key of a caller; other routes as they are."""
    if route.method != "POST":
        return route
    conflict = f"{route.refusals[409]}; or {_REFUSED}" if 409 in route.refusals else _REFUSED
    return replace(
        route,
        handler=_once(route.handler),
        headers=(*route.headers, _DESCRIBED),
        refusals={**route.refusals, 409: conflict},
    )


def seed_of(request: web.Request) -> str | None:
    """Return a random id that every run of this request has, also one after a crash; None without a key.

    A handler that would choose a random name takes this id, so that a repeat finds what the first run has made.
    """
    return request.get(_SEED)


def _once(handler: Handler) -> Handler:
    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        key = _key(request)
        # A dry run makes nothing, so its repeat need not be recognised.
        if key is None or DRY_RUN in request.query:
            return await handler(request)
        known = context(request)
        keys = IdempotencyKeys(known.store, known.ring, known.clock, known.owners)
        claim = await keys.claim(_record_id(request, key), await _digest(request))
        if isinstance(claim, KeptAnswer):
            return _again(claim)
        return await _run(request, handler, keys, claim)

    return handle


async def _run(request: web.Request, handler: Handler, keys: IdempotencyKeys, claim: Claim) -> web.StreamResponse:
    request[_SEED] = claim.seed
    answer: web.StreamResponse | None = None
    is_refused = False
    every_s = LEASE_S / 3
    try:
        async with background(idempotency_lease=repeat(partial(keys.renew, claim), every_s=every_s, after_s=every_s)):
            answer = await handler(request)
    except (VnfmError, web.HTTPException) as error:
        # An error below 500 is found before anything is made. After one above, something may exist: the same request
        # has to continue with it.
        is_refused = error.status < 500
        raise
    finally:
        if answer is None:
            await keys.release(claim, is_refused=is_refused)
    await keys.finish(claim, _kept(answer))
    return answer


def _key(request: web.Request) -> str | None:
    given = request.headers.getall(_HEADER, [])
    if not given:
        return None
    if len(given) > 1 or _KEY.fullmatch(given[0]) is None:
        raise InvalidInput(_HEADER, "one header with 1 to 128 printable characters of ASCII expected")
    return given[0]


def _record_id(request: web.Request, key: str) -> str:
    """Return the id of the record of a key: no other caller's, and of this path alone."""
    caller = request[CALLER]
    facts = [caller.mode, caller.subject, caller.project, request.path, key]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


async def _digest(request: web.Request) -> str:
    """Return the hash of what the request asks for: media type, query and body."""
    raw = await read_body(request)
    header = request.headers.get("Content-Type", "")
    asked = [request.content_type, sorted(request.query.items())]
    is_form = request.content_type == FORM

    def digest() -> str:
        body = _without_boundary(raw, header) if is_form else raw
        return hashlib.sha256(json.dumps(asked).encode() + b"\0" + body).hexdigest()

    # In a thread: a body may have 8 MiB.
    return await asyncio.to_thread(digest)


def _without_boundary(raw: bytes, content_type: str) -> bytes:
    """Return a form whose boundary is always the same: clients draw a new one for each request."""
    message = Message()
    message["Content-Type"] = content_type
    boundary = message.get_boundary()
    return raw if boundary is None else raw.replace(b"--" + boundary.encode(errors="surrogateescape"), b"--")


def _kept(answer: web.StreamResponse) -> KeptAnswer:
    headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
    body = answer.body if isinstance(answer, web.Response) else None
    return KeptAnswer(status=answer.status, headers=headers, body=body if isinstance(body, bytes) else b"")


def _again(kept: KeptAnswer) -> web.Response:
    if kept.body is None:
        raise answer_too_large(kept)
    return web.Response(status=kept.status, headers=kept.headers, body=kept.body)
