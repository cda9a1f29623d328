"""A&AI over HTTPS (`domain.exporting.ports.Graph`).

Source: A&AI's REST API and bulk API (onap/aai-aai-common, docs/AAI REST API Documentation): ``X-FromAppId`` and ``X-TransactionId`` in
each request, basic authentication, GET of a node, and ``bulk/single-transaction``, of which all operations are made or none.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.http_client import HttpConnector, ProxyFailure
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.printable import printable
from kubevnfm_kit.tls import ClientTls, client_context
from yarl import URL

from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics
from kubevnfm_infra_k8s.domain.exporting.ports import AaiAway, AaiForbidden, AaiRefused, Operation

# A&AI itself gives up after 60 s.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=70.0, sock_connect=5.0)
_LARGEST: Final = 2**20
"""The limit of an answer, which is read and compared between other work. A node with its children has some KiB."""
_CHUNK: Final = 2**16
_REASON_BYTES: Final = 512
_ACCEPTED: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}
_AWAY: Final = frozenset({401, 407, 408, 429, 502, 503, 504})
"""Statuses that say nothing of what was sent."""


class AaiGraph:
    """One A&AI."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, version: str, metrics: ExportMetrics, auth: str | None
    ) -> None:
        """``auth``: the value of the header ``Authorization``."""
        self._session, self._root, self.version = session, str(URL(f"{url.rstrip('/')}/aai/{version}")), version
        self._metrics, self._auth = metrics, auth

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, version: str, metrics: ExportMetrics, *, tls: ClientTls, user: str, password: str, parallel: int
    ) -> AsyncIterator[AaiGraph]:
        """Yield it; certificates are reloaded when they are replaced."""
        async with client_context(tls) as context, _session(context, parallel) as session:
            auth = aiohttp.encode_basic_auth(user, password) if user else None
            yield cls(session, url, version, metrics, auth)

    async def get(self, path: str) -> JsonMapping | None:
        return await self._node(f"{path}?depth=all")

    async def head(self, path: str) -> JsonMapping | None:
        return await self._node(f"{path}?depth=0&nodes-only=true")

    async def _node(self, path: str) -> JsonMapping | None:
        status, raw = await self._call("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise _refused(status, raw)
        found = _object(status, raw)
        if not isinstance(found.get("resource-version"), str | int):
            raise AaiRefused(status, "a node without a resource-version")
        return found

    async def transact(self, operations: Sequence[Operation]) -> None:
        asked = [{"action": each.action, "uri": each.path, "body": each.body} for each in operations]
        status, raw = await self._call("POST", "/bulk/single-transaction", {"operations": asked})
        if status not in (200, 201):
            raise _refused(status, raw)
        made = _object(status, raw).get("operation-responses")
        results = [_result(each) for each in made] if isinstance(made, list) else []
        failed = [each for each in results if not 200 <= each < 300]
        if failed:
            error = AaiForbidden if failed[0] == 403 else AaiRefused
            raise error(failed[0], "the status of one operation of the transaction")
        if len(results) != len(operations):
            raise AaiRefused(status, f"the results of {len(results)} operations, not of {len(operations)}")

    async def check_allowed(self) -> None:
        # It changes nothing: whether A&AI takes it or finds fault with it, the caller may send transactions.
        status, raw = await self._call("POST", "/bulk/single-transaction", {"operations": []})
        if status == 403:
            raise AaiAway(f"A&AI answered 403: {_reason(raw)}")

    async def _call(self, method: str, path: str, body: JsonMapping | None = None) -> tuple[int, bytes]:
        headers = {"X-FromAppId": "kubevnfm", "X-TransactionId": new_id(), **_ACCEPTED}
        if self._auth is not None:
            headers["Authorization"] = self._auth
        try:
            # A redirect would have the password sent elsewhere.
            # Paths are encoded, and would otherwise be made shorter where a name has dots.
            async with self._session.request(
                method, URL(f"{self._root}{path}", encoded=True), json=body, headers=headers, allow_redirects=False
            ) as response:
                status, raw = response.status, await _content(response)
        except ProxyFailure as error:
            self._metrics.request(None)
            raise AaiAway(f"A&AI is not reached: {error}") from error
        except (aiohttp.ClientError, TimeoutError, UnicodeError) as error:
            self._metrics.request(None)
            raise AaiAway(f"A&AI does not answer ({type(error).__name__})") from error
        self._metrics.request(status)
        # Another 404 is that of a proxy, which does not say that there is no such node.
        if status in _AWAY or 300 <= status < 400 or (status == 404 and _error(raw) is None):
            raise AaiAway(f"A&AI answered {status}: {_reason(raw)}")
        return status, raw


def _session(context: ssl.SSLContext, parallel: int) -> aiohttp.ClientSession:
    connector = HttpConnector(ssl=context, limit=4 * parallel)
    return client_session(connector=connector, timeout=_TIMEOUT)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > _LARGEST:
            # That of one node, which must not hold up the others.
            raise AaiRefused(response.status, f"an answer of more than {_LARGEST} bytes")
    return bytes(content)


def _object(status: int, raw: bytes) -> Mapping[str, Any]:
    try:
        found = read_foreign(raw)
    except ValueError as error:
        if raw.lstrip()[:1] == b"{":
            raise AaiRefused(status, f"JSON that cannot be read: {error}") from error
        raise AaiAway("A&AI did not answer with JSON") from error
    if not isinstance(found, dict):
        raise AaiAway("A&AI did not answer with a JSON object")
    return found


def _result(response: object) -> int:
    """Return the status of an operation; 0 if A&AI does not say it."""
    status = response.get("response-status-code") if isinstance(response, Mapping) else None
    return status if isinstance(status, int) else 0


def _error(raw: bytes) -> str | None:
    """Return what A&AI says of an error, the texts of its ``requestError``; None if it is no answer of A&AI."""
    try:
        error = read_foreign(raw)["requestError"]
        exception = error.get("serviceException") or error["policyException"]
        variables = [str(each) for each in exception.get("variables") or ()]
        return f"{exception['messageId']}: {' | '.join(variables) or exception['text']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _refused(status: int, raw: bytes) -> AaiRefused:
    return (AaiForbidden if status == 403 else AaiRefused)(status, _reason(raw))


def _reason(raw: bytes) -> str:
    text = _error(raw) or raw[:_REASON_BYTES].decode(errors="replace")
    return bounded(printable(text), _REASON_BYTES)
