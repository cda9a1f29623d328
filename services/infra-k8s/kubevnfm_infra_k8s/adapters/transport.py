"""Requests to one API server over connections of its own.

An API server can be hostile, or be another server behind the same address: its answers are limited in size and time, and
redirects are not followed, because they would take the credentials to another server.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from kubevnfm_clients.bounded import AnswerTooLarge, read_body
from kubevnfm_clients.cluster_access import ClusterAccess, cluster_tls
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable
from kubevnfm_clients.cluster_login import ClusterLogin, ClusterTokens
from kubevnfm_clients.cluster_proxy import ClusterProxy
from kubevnfm_clients.names import cluster_connector
from kubevnfm_clients.outbound import refused_in
from kubevnfm_clients.vnf_networks import AddressNotNamed, VnfNetworks
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.adapters.call_guard import CallGuard, RegionAway
from kubevnfm_infra_k8s.adapters.call_spans import call_span
from kubevnfm_infra_k8s.adapters.region_metrics import OpenWatch, Sent
from kubevnfm_infra_k8s.adapters.shared_connections import KEPT_S, SharedConnections
from kubevnfm_infra_k8s.domain import step_warnings
from kubevnfm_infra_k8s.domain.errors import (
    AccessRefused,
    AddressRefused,
    AddressUnnamed,
    ClusterUnavailable,
    GroupUnavailable,
    ObjectRefused,
    WebhookUnavailable,
)
from kubevnfm_infra_k8s.domain.objects import condition, field_at

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
_PAUSES_S: Final = (0.2, 0.8)
"""Pauses before the second and third attempt after a temporary failure. Later retries are the worker's task."""
_LONGEST_PAUSE_S: Final = 5.0
_CONNECT_S: Final = 10.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0, sock_connect=_CONNECT_S)
_WATCH_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=330.0)
"""The connection of a watch is dead if it is silent for longer than the requested duration of the watch."""
_CONNECTIONS: Final = 1536
"""Each watch uses one, of which the inventory, the comparison and one command have up to 400 each; calls share `MOST_KEPT` of
them. A call or watch for which none is left waits."""
_READ_BYTES: Final = 2**21
"""An event of a watch is one line, with at most the 1.5 MiB that etcd stores as one object (kubernetes issue 19781)."""
_WEBHOOK_SIGNS: Final = ("failed calling webhook", "failed to call webhook", "conversion webhook for ")
LARGEST_ANSWER: Final = 16 * 2**20
"""Bytes of one answer. A pod has about 10 KiB, and etcd stores at most 1.5 MiB as one object."""
_LONGEST_MESSAGE: Final = 4096
"""A message becomes part of the operation's error."""
_LONGEST_MASKED: Final = 2**20
"""So much of a message is searched for secrets; what follows is left out anyway."""
_SETTLING_SIGNS: Final = ('serviceaccount "default" not found', "the object has been modified")
"""Temporary rejections: a new namespace has no default account yet, or two writes raced."""
_REFUSAL_SIGNS: Final = (
    "failed to create typed patch object",
    "failed to create typed live object",
    "failed to convert new object",
    "failed to convert new typed object",
    "failed to convert to unversioned",
    "failed to prune fields",
    "etcdserver: request is too large",
    "trying to send message larger than max",
    "response.result.status was",
    "returned invalid converted object",
    "returned invalid metadata",
)
"""Texts of an HTTP 500 without a reason that are about the request: a repeat gets the same answer (Kubernetes 1.34).

Server-side apply answers so for a field that the schema lacks, a value of another type, a list key given twice, and a text that is
no quantity or no base64; the storage for an object that is larger than etcd's limit (1.5 MiB) or that of its messages (2 MiB),
which a dry run does not find; a conversion webhook that answers, but not with the object in the other version."""


_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_GROUP: Final = re.compile(r"/apis/([a-z0-9.-]+\.[a-z0-9.-]+)/(v[a-z0-9]+)(?:/|$)")
"""The path of a group with a dot in its name, and its version."""
_WRITING: Final = frozenset({"PATCH", "POST", "PUT"})
_WARNING: Final = re.compile(r'(?<!\d)299 \S+ "((?:[^"\\]|\\.){1,2000})"')
"""RFC 7234 5.5, as API servers write it: ``299 - "text"``."""
_MOST_WARNINGS: Final = 20
"""In one answer."""
_NO_SUCH_KIND: Final = "could not find the requested resource"


@dataclass(frozen=True)
class Answer:
    """An answer of the API server."""

    status: int
    body: Any
    content_type: str = ""
    size: int = 0
    """Bytes of the body."""
    mask: Callable[[str], str] | None = field(default=None, repr=False)
    """Removes secrets from the message."""
    warnings: tuple[str, ...] = ()
    """The texts of its headers ``Warning``."""

    @property
    def message(self) -> str:
        """Its Status object's message."""
        if not isinstance(self.body, Mapping):
            return ""
        text = printable(str(self.body.get("message") or self.body.get("reason") or "")[:_LONGEST_MASKED])
        # Masked before it is cut, and without control sequences: a part of a secret would not be found.
        return (self.mask(text) if text and self.mask is not None else text)[:_LONGEST_MESSAGE]

    @property
    def is_unserved(self) -> bool:
        """Whether nothing is served at the path; a group that is not served has no Status object as its answer."""
        return self.status == 404 and (not isinstance(self.body, Mapping) or _NO_SUCH_KIND in self.message)


_STARTING: Final = Answer(
    503, {"message": "the API server is starting, and forbids everything until it knows its rules"}
)


_Failure = ClusterUnavailable | WebhookUnavailable | ObjectRefused


class AnswerTooLong(ClusterUnavailable):
    """The answer has more than `LARGEST_ANSWER` bytes; a repeat would get the same one."""


@dataclass(frozen=True)
class _Request:
    """A request, without the credentials."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Any = None
    content_type: str = JSON
    accept: str = JSON


_DIRECT: Final = ClusterProxy()


class Transport:
    """One connection pool with one identity."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        endpoint: str,
        login: ClusterLogin,
        guard: CallGuard,
        proxy: ClusterProxy = _DIRECT,
    ) -> None:
        self._session, self.endpoint, self._login, self._proxy = session, endpoint, login, proxy
        self._guard = guard
        self._connections = SharedConnections()

    @classmethod
    async def connect(
        cls,
        access: ClusterAccess,
        networks: VnfNetworks,
        tokens: ClusterTokens | None = None,
        guard: CallGuard | None = None,
    ) -> Transport:
        """Return a pool; nothing is sent yet. ``networks`` judge each connection to a cluster of a VNF.

        ``guard``: that of this cluster, if it has been called before.

        Raises InvalidInput for invalid certificates.
        """
        # First: a caller that is cancelled in a wait leaves no session open.
        tls = await cluster_tls(access)
        if access.of_vnf:
            connector = networks.connector(limit=_CONNECTIONS, ssl=tls, keepalive_timeout=KEPT_S)
        else:
            connector = cluster_connector(limit=_CONNECTIONS, ssl=tls, keepalive_timeout=KEPT_S)
        judge = networks.through_proxy if access.of_vnf else None
        session = client_session(connector=connector, judge=judge, read_bufsize=_READ_BYTES)
        used = guard or CallGuard(access.endpoint)

        @asynccontextmanager
        async def guarded() -> AsyncIterator[Sent]:
            try:
                async with used.call("POST") as sent:
                    yield sent
            except RegionAway as error:
                # A token that is good for some time yet is used then.
                raise ApiUnavailable(access.endpoint, str(error)) from error

        login = ClusterLogin(access, tokens or ClusterTokens(), guarded)
        return cls(session, access.endpoint, login, used, ClusterProxy.from_access(access))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        subject: str = "",
        mask: Callable[[str], str] | None = None,
    ) -> Answer:
        """Return an answer below 400, or a 404, 405, 409 or 415; ``mask``: removes from its message what is secret.

        Raises ClusterUnavailable (AnswerTooLong is one), AccessRefused, WebhookUnavailable, ObjectRefused (with ``subject``).
        """
        request = _Request(method, path, query, body, content_type, accept)
        if content_type != APPLY or "dryRun" in (query or {}):
            return await self._tried(request, subject, mask)
        is_applied = False
        try:
            answer = await self._tried(request, subject, mask)
            is_applied = answer.status < 400
        finally:
            self._guard.meter.object(is_applied=is_applied)
        return answer

    async def _tried(self, request: _Request, subject: str, mask: Callable[[str], str] | None) -> Answer:
        for pause_s in (*_PAUSES_S, None):
            retry_after_s, answer = 0.0, None
            failure: _Failure
            try:
                answer, retry_after_s = await self._authorized(request)
            except AnswerTooLarge as error:
                raise AnswerTooLong(f"{self.endpoint}: {error}") from error
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failure = self._unavailable(error)
                failure.__cause__ = error
            else:
                if mask is not None:
                    answer = replace(answer, mask=mask)
                for text in answer.warnings:
                    shown = printable(text) if mask is None else mask(printable(text))
                    step_warnings.note(subject, f"the API server warns: {shown}")
                if answer.status == 401:
                    # A token may have expired on the way, so the next attempt has a new one.
                    failure = ClusterUnavailable(f"{self.endpoint}: unauthorized")
                    if pause_s is None:
                        raise AccessRefused(f"{self.endpoint}: the credentials of the VIM are not accepted")
                elif _has_lost_race(answer, request.body):
                    return answer
                else:
                    # API servers of extensions answer a deletion with nothing, or with a text.
                    judged = _failure(answer, subject, self.endpoint, is_free=request.method == "DELETE")
                    if judged is None:
                        return answer
                    failure = judged
            if pause_s is None and answer is not None and answer.status == 503:
                failure = await self._of_its_group(request.path, failure)
            if pause_s is None or not isinstance(failure, ClusterUnavailable):
                raise failure
            await asyncio.sleep(min(max(pause_s, retry_after_s), _LONGEST_PAUSE_S))
        raise AssertionError("unreachable")

    async def _of_its_group(self, path: str, failure: _Failure) -> _Failure:
        """Return the error of a path whose API group has a server of its own: with what the APIService says of it (CR-016)."""
        if not isinstance(failure, ClusterUnavailable) or (found := _GROUP.match(path)) is None:
            return failure
        group, version = found.groups()
        try:
            answer, _ = await self._once(_Request("GET", f"{_API_SERVICES}/{version}.{group}"))
        except (aiohttp.ClientError, OSError, TimeoutError, ClusterUnavailable, AccessRefused):
            return failure
        available = condition(answer.body, "Available") if answer.status == 200 else None
        service = field_at(answer.body, "spec", "service", "name") if answer.status == 200 else None
        if service and (available is None or available.get("status") == "True"):
            # The condition is renewed each half minute.
            return GroupUnavailable(f"{failure}: the server of API group {group} does not answer")
        if available is None or available.get("status") == "True":
            return failure
        said = ": ".join(str(available[name]) for name in ("reason", "message") if available.get(name))
        what = f"API group {group} is not available: APIService {version}.{group}: {said}"
        return GroupUnavailable(printable(f"{self.endpoint}: {what}"[:_LONGEST_MESSAGE]))

    async def _authorized(self, request: _Request) -> tuple[Answer, float]:
        """Return the answer; that of a server which starts, and forbids everything until it knows its rules, is a 503."""
        answer, retry_after_s = await self._once(request)
        if answer.status != 403:
            return answer, retry_after_s
        if await self._is_starting():
            return _STARTING, 0.0
        # It may have become ready between the two answers.
        return await self._once(request)

    async def _is_starting(self) -> bool:
        # ``/readyz`` also answers callers without any right, but not before the server has read its rules.
        was_forbidden = False
        for pause_s in (*_PAUSES_S, None):
            ready, _ = await self._once(_Request("GET", "/readyz", accept="*/*"))
            if ready.status != 403:
                return was_forbidden or ready.status >= 500
            was_forbidden = True
            if pause_s is not None:
                await asyncio.sleep(pause_s)
        # The rules of some clusters forbid it.
        return False

    async def _once(self, request: _Request) -> tuple[Answer, float]:
        async with (
            self._connections.turn() as is_kept,
            await self._sent(request, _TIMEOUT, is_kept=is_kept) as response,
        ):
            raw = await read_body(response, limit_bytes=LARGEST_ANSWER)
            retry_after = response.headers.get("Retry-After", "")
            kind = response.headers.get("Content-Type", "")
            parsed = _parsed(raw) if "json" in kind else raw.decode(errors="replace")
            seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
            warnings = _warnings(response) if request.method in _WRITING else ()
            return Answer(response.status, parsed, kind, len(raw), warnings=warnings), seconds

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], accept: str = JSON
    ) -> AsyncIterator[AsyncGenerator[tuple[Any, int]]]:
        """Yield the JSON lines of an answer, each with its size in bytes.

        Raises ClusterUnavailable, AccessRefused, ObjectRefused.
        """
        try:
            with self._guard.meter.watch() as watch:
                async with await self._sent(_Request("GET", path, query, accept=accept), _WATCH_TIMEOUT) as response:
                    if response.status != 200:
                        answer = Answer(response.status, _parsed(await read_body(response, limit_bytes=LARGEST_ANSWER)))
                        if answer.status == 401 and self._login.is_renewable:
                            raise ClusterUnavailable(f"{self.endpoint}: unauthorized")
                        if answer.status == 403 and await self._is_starting():
                            answer = _STARTING
                        raise _failure(answer, path, self.endpoint) or ObjectRefused.with_status(
                            path, answer.message, answer.status
                        )
                    yield _lines(response, watch)
        except LineTooLong as error:
            raise ClusterUnavailable(f"{self.endpoint}: an event of a watch is too long") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> ClusterUnavailable:
        """Return the error of a failed request. Raises AddressRefused if a repeat would not be connected either."""
        if (refusal := refused_in(error)) is not None:
            kind = AddressUnnamed if isinstance(refusal, AddressNotNamed) else AddressRefused
            raise kind(f"{self.endpoint}: {refusal}") from error
        # aiohttp's texts contain the host but no headers, so they reveal no credentials.
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return ClusterUnavailable(f"{self.endpoint}: {reason}")

    async def _sent(
        self, request: _Request, timeout: aiohttp.ClientTimeout, *, is_kept: bool = True
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": request.accept, "Content-Type": request.content_type, "User-Agent": "kubevnfm"}
        if not is_kept:
            headers["Connection"] = "close"
        headers |= await self._identity()
        async with self._guard.call(request.method) as sent:
            with call_span(request.method, request.path, self._guard.meter.vim_id) as span:
                response = await self._session.request(
                    request.method,
                    self.endpoint + request.path + (f"?{urlencode(request.query)}" if request.query else ""),
                    headers=headers,
                    data=None if request.body is None else json.dumps(request.body),
                    allow_redirects=False,
                    timeout=timeout,
                    proxy=self._proxy.url,
                    proxy_headers=self._proxy.headers,
                )
                sent.status = response.status
                span.note("http.response.status_code", response.status)
            if response.status == 401:
                self._login.reject(headers.get("Authorization", ""))
            return response

    async def _identity(self) -> dict[str, str]:
        try:
            value = await self._login.header()
        except (ApiUnauthorized, ApiRefused) as error:
            raise AccessRefused(str(error)) from error
        except ApiUnavailable as error:
            raise ClusterUnavailable(str(error)) from error
        return {"Authorization": value} if value else {}


def _warnings(response: aiohttp.ClientResponse) -> tuple[str, ...]:
    given = response.headers.getall("Warning", ())[:_MOST_WARNINGS]
    texts = [re.sub(r"\\(.)", r"\1", text) for one in given for text in _WARNING.findall(one)]
    return tuple(texts[:_MOST_WARNINGS])


async def _lines(response: aiohttp.ClientResponse, watch: OpenWatch) -> AsyncGenerator[tuple[Any, int]]:
    async for line in response.content:
        if line.strip():
            watch.heard()
            yield _parsed(line), len(line)


def _has_lost_race(answer: Answer, body: Any) -> bool:
    """Return whether a write named the version that it expects, and another one is there: no repeat of it can succeed."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return answer.status == 409 and isinstance(metadata, Mapping) and bool(metadata.get("resourceVersion"))


def _failure(
    answer: Answer, subject: str, endpoint: str, *, is_free: bool = False
) -> ClusterUnavailable | WebhookUnavailable | ObjectRefused | None:
    """Return the error of an answer, None if the caller can use it. The first two errors are temporary.

    ``is_free``: whether a success may have any body.
    """
    if answer.status < 300:
        # The message of an object, as an Event has one, is no message about the request.
        is_wrong = not is_free and "json" in answer.content_type and not isinstance(answer.body, Mapping)
        return ClusterUnavailable(f"{endpoint}: the answer is not a JSON object") if is_wrong else None
    message = answer.message or f"HTTP {answer.status}"
    if answer.status >= 500 and any(sign in message for sign in _REFUSAL_SIGNS):
        return ObjectRefused(subject, message, http_status=answer.status)
    # These signs stand for a webhook that does not answer; a denial has status 4xx and another text.
    if answer.status >= 500 and any(sign in message for sign in _WEBHOOK_SIGNS):
        return WebhookUnavailable(f"{subject}: {message}")
    if answer.status == 429 or answer.status >= 500 or any(sign in message for sign in _SETTLING_SIGNS):
        return ClusterUnavailable(f"{endpoint}: {message}")
    if 300 <= answer.status < 400:
        return ObjectRefused(
            subject or endpoint,
            f"{endpoint} redirects to another address, and redirects are not followed",
            http_status=answer.status,
        )
    # For these four, the right reaction depends on the request.
    if answer.status < 400 or answer.status in (404, 405, 409, 415):
        return None
    return ObjectRefused.with_status(subject, message, answer.status)


def _parsed(raw: bytes) -> Any:
    """Return the JSON value, None if it is not one."""
    try:
        return read_foreign(raw)
    except ValueError:
        return None
