"""A&AI over HTTPS (`domain.exporting.ports.Graph`).

Source: A&AI's REST API and bulk API (onap/aai-aai-common, docs/AAI REST API Documentation): ``X-FromAppId`` and ``X-TransactionId`` in
each request, basic authentication, GET of a node, and ``bulk/single-transaction``, of which all operations are made or none.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.printable import printable
from kubevnfm_kit.tls import ClientTls, client_context

from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics
from kubevnfm_infra_k8s.domain.exporting.ports import AaiAway, AaiRefused, Operation

# A&AI itself gives up after 60 s.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=70.0, sock_connect=5.0)
_LARGEST: Final = 8 * 2**20
_CHUNK: Final = 2**16
_REASON_BYTES: Final = 512
_AWAY: Final = frozenset({401, 403, 407, 408, 429, 502, 503, 504})
"""Statuses that say nothing of what was sent."""


class AaiGraph:
    """One A&AI."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, version: str, metrics: ExportMetrics, auth: str | None
    ) -> None:
        """``auth``: the value of the header ``Authorization``."""
        self._session, self._root, self.version = session, f"{url.rstrip('/')}/aai/{version}", version
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
        status, raw = await self._call("GET", f"{path}?depth=all")
        if status == 404:
            return None
        if status != 200:
            raise AaiRefused(status, _reason(raw))
        found = _json(raw)
        if not isinstance(found, dict):
            raise AaiAway("A&AI did not answer with a JSON object")
        return found

    async def transact(self, operations: Sequence[Operation]) -> None:
        asked = [{"action": each.action, "uri": each.path, "body": each.body} for each in operations]
        status, raw = await self._call("POST", "/bulk/single-transaction", {"operations": asked})
        if status not in (200, 201):
            raise AaiRefused(status, _reason(raw))

    async def _call(self, method: str, path: str, body: JsonMapping | None = None) -> tuple[int, bytes]:
        headers = {"X-FromAppId": "kubevnfm", "X-TransactionId": new_id(), "Accept": "application/json"}
        if self._auth is not None:
            headers["Authorization"] = self._auth
        try:
            # A redirect would have the password sent elsewhere.
            async with self._session.request(
                method, f"{self._root}{path}", json=body, headers=headers, allow_redirects=False
            ) as response:
                status, raw = response.status, await _content(response)
        except (aiohttp.ClientError, TimeoutError, UnicodeError) as error:
            self._metrics.request("none")
            raise AaiAway(f"A&AI does not answer ({type(error).__name__})") from error
        self._metrics.request(str(status))
        if status in _AWAY or 300 <= status < 400:
            raise AaiAway(f"A&AI answered {status}: {_reason(raw)}")
        return status, raw


def _session(context: ssl.SSLContext, parallel: int) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=context, limit=4 * parallel)
    return aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > _LARGEST:
            raise AaiAway(f"A&AI answered with more than {_LARGEST} bytes")
    return bytes(content)


def _json(raw: bytes) -> Any:
    try:
        return read_foreign(raw)
    except ValueError as error:
        raise AaiAway("A&AI did not answer with JSON") from error


def _reason(raw: bytes) -> str:
    """Return what A&AI says of an error: the texts of its ``requestError``."""
    try:
        found = read_foreign(raw)
        error = found["requestError"]
        exception = error.get("serviceException") or error["policyException"]
        variables = [str(each) for each in exception.get("variables") or ()]
        text = f"{exception['messageId']}: {' | '.join(variables) or exception['text']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        text = raw[:_REASON_BYTES].decode(errors="replace")
    return bounded(printable(text), _REASON_BYTES)
