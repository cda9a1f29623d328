"""The HTTP API: signed call-backs, reading and deleting by operators, and an internal path for vim-registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import structlog
from aiohttp import web
from kubevnfm_access.audit import audited
from kubevnfm_access.errors import TooManyRequests, Unauthenticated
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Handler, Proxies, admitted
from kubevnfm_clients import callback as signing
from kubevnfm_kit.clock import Clock, machine_now
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable, VnfmError
from kubevnfm_kit.internal import internal_app
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.request_ids import present_request_id

from kubevnfm_credentials_receiver.adapters.failures import Failures
from kubevnfm_credentials_receiver.adapters.metrics import CallbackMetrics
from kubevnfm_credentials_receiver.domain.callback_body import read_callback
from kubevnfm_credentials_receiver.domain.errors import (
    HeaderMissing,
    NotJson,
    NotSigned,
    OtherInstance,
    TooLarge,
    TooManyFailures,
)
from kubevnfm_credentials_receiver.domain.proof import VerifiedSender, check_body, verify
from kubevnfm_credentials_receiver.domain.record import Record
from kubevnfm_credentials_receiver.nonces import Nonces
from kubevnfm_credentials_receiver.receiver import Receiver

log = structlog.get_logger()

_PAGE: Final = 100
_LARGEST_PAGE: Final = 1000
_KEY: Final = re.compile(r"[!-~]{1,256}")
_RETRY_AFTER_S: Final = 5


class CallbackApi:
    """The handlers of the HTTP API."""

    def __init__(
        self,
        receiver: Receiver,
        nonces: Nonces,
        failures: Failures,
        clock: Clock,
        *,
        master_keys: Sequence[bytes],
        credentials_token: str,
        gate: Gate,
        proxies: Proxies,
        metrics: Metrics,
    ) -> None:
        self._receiver, self._nonces, self._failures, self._clock = receiver, nonces, failures, clock
        self._keys, self._credentials_token = master_keys, credentials_token
        self._gate, self._proxies = gate, proxies
        self._metrics = CallbackMetrics(metrics)

    def app(self) -> web.Application:
        """Return the application."""
        one = f"{signing.PATH}/{{id}}"
        app = internal_app(
            [
                web.post(signing.PATH, self.receive),
                web.get(signing.PATH, self.list),
                web.get(one, self.show),
                web.delete(one, self.delete),
                web.get("/internal/v1/credentials/{id}", self.content),
            ],
            token=self._credentials_token,
            name="credentials token",
        )
        # The audit log needs the status of every answer, so it is outside of what turns errors into answers.
        app.middlewares.insert(0, audited(self._proxies))
        app.middlewares.extend([_refusals, admitted(self._gate, self._proxies)])
        return app

    async def receive(self, request: web.Request) -> web.Response:
        """POST: accept a call-back."""
        async with self._metrics.counted() as count:
            response = await self._received(request)
            count(response.status)
            return response

    async def _received(self, request: web.Request) -> web.Response:
        """Make the checks, in the order of CR-065, and store."""
        _check_announced(request)
        # Everything before the signature must be cheap, because anyone on the network can send it.
        with self._counted_failures(request):
            sender = self._verified(request)
            body = await _body(request)
            check_body(sender, body)
        key = request.headers.get(signing.IDEMPOTENCY_KEY, "")
        # A header may hold bytes that are no text, which no store takes.
        if not _KEY.fullmatch(key):
            raise HeaderMissing(signing.IDEMPOTENCY_KEY, "1 to 256 visible ASCII characters expected")
        await self._nonces.claim(sender.vnf_instance_id, sender.nonce)
        callback = read_callback(body)
        if callback.vnf_instance_id != sender.vnf_instance_id:
            raise OtherInstance("vnfInstanceId: the VNF instance of the signing key expected")
        answer = await self._receiver.store(callback, idempotency_key=key, body=body, signed_at=sender.signed_at)
        return web.json_response(
            _receipt(answer.record),
            status=201 if answer.is_new else 200,
            headers={"Location": f"{signing.PATH}/{answer.record.id}"},
        )

    async def list(self, request: web.Request) -> web.Response:
        """GET: a page of metadata; query parameters are ``vnfInstanceId``, ``limit`` and ``after``."""
        limit = _limit(request.query.get("limit"))
        # One record more than requested shows whether there is a next page.
        found = await self._receiver.list(
            vnf_instance_id=request.query.get("vnfInstanceId"), after=request.query.get("after"), limit=limit + 1
        )
        page = found[:limit]
        return web.json_response(
            {
                "items": [record.view() for record in page],
                "next": page[-1].id if len(found) > limit else None,
            }
        )

    async def show(self, request: web.Request) -> web.Response:
        """GET by id: the metadata of one record."""
        return web.json_response((await self._receiver.get(request.match_info["id"])).view())

    async def delete(self, request: web.Request) -> web.Response:
        """DELETE by id: erase the credentials."""
        await self._receiver.delete(request.match_info["id"])
        return web.Response(status=204)

    async def content(self, request: web.Request) -> web.Response:
        """GET /internal/v1/credentials/{id}: the encrypted kubeconfig."""
        return web.json_response({"sealed": await self._receiver.resealed(request.match_info["id"])})

    @contextmanager
    def _counted_failures(self, request: web.Request) -> Iterator[None]:
        """Count NotSigned against the address. Raises TooManyFailures in place of it, once there are too many."""
        try:
            yield
        except NotSigned as refusal:
            address = self._proxies.address(request)
            self._failures.note(address)
            log.warning("callback_refused", address=address, cause=refusal.cause)
            raise

    def _verified(self, request: web.Request) -> VerifiedSender:
        return verify(
            request.headers,
            method=request.method,
            target=request.raw_path,
            keys=self._keys,
            now=machine_now(self._clock).timestamp(),
        )


def _check_announced(request: web.Request) -> None:
    """Raise TooLarge and NotJson for what the headers say of the body."""
    if (request.content_length or 0) > signing.LARGEST_BODY:
        raise TooLarge(f"at most {signing.LARGEST_BODY} bytes expected")
    if request.content_type != "application/json":
        raise NotJson("Content-Type: application/json expected")


async def _body(request: web.Request) -> bytes:
    """Return the body. Raises TooLarge before the whole body is read."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        # A chunked body has no announced length.
        if len(body) > signing.LARGEST_BODY:
            raise TooLarge(f"at most {signing.LARGEST_BODY} bytes expected")
    return bytes(body)


def _receipt(record: Record) -> dict[str, str | None]:
    return {"id": record.id, "vimId": None, "status": record.status}


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer the errors whose headers say how a caller gets further: when to come again, or how to authenticate."""
    try:
        return await handler(request)
    except Unauthenticated as refusal:
        return _refused(refusal, [("WWW-Authenticate", challenge) for challenge in refusal.challenges])
    except (TooManyFailures, TooManyRequests) as refusal:
        return _refused(refusal, [("Retry-After", str(refusal.retry_after_s))])
    except OutsideUnavailable as refusal:
        return _refused(refusal, [("Retry-After", str(_RETRY_AFTER_S))])


def _refused(error: VnfmError, headers: Sequence[tuple[str, str]]) -> web.Response:
    """Return the error as a problem document."""
    # aiohttp adds the Date header, with which a sender can correct its clock.
    problem = {"type": error.code, "title": error.title, "status": error.status, "detail": str(error)}
    return web.Response(
        status=error.status,
        text=json.dumps({**problem, "requestId": present_request_id()}),
        content_type="application/problem+json",
        headers=headers,
    )


def _limit(text: str | None) -> int:
    if text is None:
        return _PAGE
    # Few digits: int() raises for thousands of them, and for the digits that only isdigit() accepts.
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= _LARGEST_PAGE:
        raise InvalidInput("limit", f"1 to {_LARGEST_PAGE} expected")
    return int(text)
