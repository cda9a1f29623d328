"""Requests to one API server with kubernetes-asyncio's REST client, which handles TLS and connections."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.adapters.access import Access
from kubevnfm_infra_k8s.adapters.tokens import Authorization
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable, ObjectRefused, WebhookUnavailable

JSON: Final = "application/json"
_PAUSES_S: Final = (0.2, 0.8)
"""Pauses before the second and third attempt after a temporary failure. Later retries are the worker's task."""
_LONGEST_PAUSE_S: Final = 5.0
_TIMEOUT_S: Final = 30.0
_CONNECT_S: Final = 10.0
_SILENCE_S: Final = 330.0
"""The connection of a watch is dead if it is silent for longer than the requested duration of the watch."""
_CONNECTIONS: Final = 256
"""Each watch uses one."""
_WEBHOOK_SIGNS: Final = ("failed calling webhook", "failed to call webhook")
_SETTLING_SIGNS: Final = ("error looking up service account", "the object has been modified")
"""Temporary rejections: a new namespace has no default account yet, or two writes raced."""


@dataclass(frozen=True)
class Answer:
    """An answer of the API server."""

    status: int
    body: Any
    content_type: str = ""

    @property
    def message(self) -> str:
        """Its Status object's message."""
        return str(self.body.get("message") or self.body.get("reason") or "") if isinstance(self.body, Mapping) else ""


class Transport:
    """One connection pool with one identity."""

    def __init__(self, rest: Any, access: Access) -> None:
        self._rest, self.endpoint = rest, access.endpoint
        self._authorization = Authorization(access)

    @classmethod
    async def connect(cls, access: Access) -> Transport:
        """Return a pool; nothing is sent yet. Raises InvalidInput for invalid certificates."""
        settings = Configuration(host=access.endpoint)
        settings.verify_ssl = access.is_verified
        settings.connection_pool_maxsize = _CONNECTIONS
        # The files may be deleted at the end of the block: OpenSSL has read them by then.
        with ExitStack() as files:
            if access.ca_pem:
                settings.ssl_ca_cert = _file(files, access.ca_pem)
            if access.client_certificate:
                settings.cert_file = _file(files, access.client_certificate)
                settings.key_file = _file(files, access.client_key)
            try:
                return cls(RESTClientObject(settings), access)
            except OSError as error:  # ssl.SSLError is one
                raise InvalidInput(
                    "vimConnectionInfo",
                    "ssl_ca_cert, client_certificate, client_key: matching PEM texts expected",
                ) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()

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
    ) -> Answer:
        """Return an answer below 400, or a 404, 405, 409 or 415.

        Raises ClusterUnavailable, AccessRefused, WebhookUnavailable, ObjectRefused (with ``subject``).
        """
        for pause_s in (*_PAUSES_S, None):
            retry_after_s = 0.0
            failure: ClusterUnavailable | WebhookUnavailable | ObjectRefused
            try:
                answer, retry_after_s = await self._once(method, path, query, body, content_type, accept)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failure = ClusterUnavailable(f"{self.endpoint}: {_reason(error)}")
                failure.__cause__ = error
            else:
                if answer.status == 401:
                    # A token may have expired on the way, so the next attempt gets a new one.
                    self._authorization.forget()
                    failure = ClusterUnavailable(f"{self.endpoint}: unauthorized")
                    if pause_s is None:
                        raise AccessRefused(f"{self.endpoint}: the credentials of the VIM are not accepted")
                elif (judged := _failure(answer, subject, self.endpoint)) is None:
                    return answer
                else:
                    failure = judged
            if pause_s is None or not isinstance(failure, ClusterUnavailable):
                raise failure
            await asyncio.sleep(min(max(pause_s, retry_after_s), _LONGEST_PAUSE_S))
        raise AssertionError("unreachable")

    async def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Any, content_type: str, accept: str
    ) -> tuple[Answer, float]:
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "kubevnfm"}
        headers |= await self._identity()
        response = await self._rest.request(
            method,
            self.endpoint + path,
            query_params=list((query or {}).items()),
            headers=headers,
            body=body,
            # The REST client would turn error answers into its own exceptions before we can read them.
            _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S, sock_connect=_CONNECT_S),
        )
        async with response:
            raw = await response.read()
            retry_after = response.headers.get("Retry-After", "")
            kind = response.headers.get("Content-Type", "")
            parsed = _parsed(raw) if "json" in kind else raw.decode(errors="replace")
            return Answer(response.status, parsed, kind), float(retry_after) if retry_after.isdigit() else 0.0

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[Any]]:
        """Yield the JSON lines of an answer. Raises ClusterUnavailable, AccessRefused, ObjectRefused."""
        try:
            response = await self._rest.request(
                "GET",
                self.endpoint + path,
                query_params=list(query.items()),
                headers={"Accept": JSON, "Content-Type": JSON, "User-Agent": "kubevnfm"} | await self._identity(),
                _preload_content=False,
                _request_timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S),
            )
            async with response:
                if response.status >= 400:
                    answer = Answer(response.status, _parsed(await response.read()))
                    raise _failure(answer, path, self.endpoint) or ObjectRefused(
                        path, answer.message, http_status=answer.status
                    )
                yield _lines(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ClusterUnavailable(f"{self.endpoint}: {_reason(error)}") from error

    async def _identity(self) -> dict[str, str]:
        value = await self._authorization.header(self._rest.pool_manager)
        return {"Authorization": value} if value else {}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    async for line in response.content:
        if line.strip():
            yield _parsed(line)


def _failure(
    answer: Answer, subject: str, endpoint: str
) -> ClusterUnavailable | WebhookUnavailable | ObjectRefused | None:
    """Return the error of an answer, None if the caller can use it. The first two errors are temporary."""
    message = answer.message or f"HTTP {answer.status}"
    # These signs stand for a webhook that does not answer; a denial has status 4xx and another text.
    if answer.status >= 500 and any(sign in message for sign in _WEBHOOK_SIGNS):
        return WebhookUnavailable(f"{subject}: {message}")
    if answer.status == 429 or answer.status >= 500 or any(sign in message for sign in _SETTLING_SIGNS):
        return ClusterUnavailable(f"{endpoint}: {message}")
    # For these four, the right reaction depends on the request.
    if answer.status < 400 or answer.status in (404, 405, 409, 415):
        return None
    return ObjectRefused(subject, message, http_status=answer.status)


def _reason(error: Exception) -> str:
    """Return the reason as text."""
    # aiohttp's texts contain the host but no headers, so they reveal no credentials.
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return {"message": "the answer is not JSON"}


def _file(files: ExitStack, text: str) -> str:
    """Write a text to a temporary file, because OpenSSL reads certificates only from files."""
    file = files.enter_context(tempfile.NamedTemporaryFile("w", prefix="kubevnfm-", suffix=".pem"))  # noqa: SIM115
    Path(file.name).chmod(0o600)
    file.write(text)
    file.flush()
    return file.name
