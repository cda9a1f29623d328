"""Packages fetched over HTTP (SOL005 9.4.6): a few redirects, Basic or OAuth 2.0 client credentials, streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import trouble
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret
from yarl import URL

_CHUNK: Final = 256 * 1024
_REDIRECTS: Final = 5
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_IDLE_S: Final = 60.0
_CONNECT_S: Final = 20.0


class SourceFailed(VnfmError, code="package-not-fetched", title="VNF package not fetched", status=502):
    """The content could not be fetched. The message has the address without its query, which may contain a secret."""

    def __init__(self, uri: URL, reason: str) -> None:
        super().__init__(f"{uri.with_query(None).with_fragment(None).with_user(None)}: {reason}")


class HttpPackageSources:
    """`domain.ports.PackageSources` over a session that checks its addresses."""

    def __init__(self, session: aiohttp.ClientSession, *, ring: KeyRing, longest_s: float) -> None:
        """``longest_s``: for one package, from the first connection to the last byte."""
        self._session, self._ring, self._longest_s = session, ring, longest_s
        self._tokens = ClientTokens()

    @asynccontextmanager
    async def open(self, source: JsonMapping) -> AsyncIterator[AsyncIterator[bytes]]:
        uri = URL(self._plain(source["uri"]))
        try:
            async with asyncio.timeout(self._longest_s):
                response = await self._answer(uri, await self._authorization(source))
                async with response:
                    yield self._chunks(uri, response)
        except TimeoutError as error:
            raise SourceFailed(uri, "it took too long") from error

    async def _authorization(self, source: JsonMapping) -> str | None:
        """Return the Authorization header."""
        if "paramsOauth2ClientCredentials" in source:
            return f"Bearer {await self._token(source['paramsOauth2ClientCredentials'])}"
        if "userName" in source:
            return aiohttp.encode_basic_auth(source["userName"], self._plain(source.get("password", "")))
        return None

    async def _token(self, params: JsonMapping) -> str:
        """Return an access token for the client's credentials."""
        endpoint = self._plain(params["tokenEndpoint"])
        client = Client(endpoint, self._plain(params["clientId"]), self._plain(params["clientPassword"]))
        try:
            return await self._tokens.token(client, self._session)
        except NoToken as error:
            raise SourceFailed(URL(endpoint), str(error)) from error

    async def _answer(self, uri: URL, authorization: str | None) -> aiohttp.ClientResponse:
        """Follow redirects to the content. Other origins do not receive the credentials."""
        asked = uri
        for _ in range(_REDIRECTS + 1):
            headers = {"Accept": "application/zip, application/octet-stream, */*;q=0.5", "Accept-Encoding": "identity"}
            if authorization is not None and asked.origin() == uri.origin():
                headers["Authorization"] = authorization
            try:
                response = await self._session.get(asked, headers=headers, allow_redirects=False, timeout=_timeout())
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise SourceFailed(uri, trouble(error)) from error
            if response.status not in _MOVED:
                break
            response.release()
            asked = _redirected(uri, asked, response.headers.get("Location", ""))
        else:
            raise SourceFailed(uri, f"more than {_REDIRECTS} redirects")
        if response.status != 200 or response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            packed = "with a content coding that was not asked for" if response.status == 200 else "200 expected"
            raise SourceFailed(uri, f"it answered {response.status}, {packed}")
        return response

    async def _chunks(self, uri: URL, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_chunked(_CHUNK):
                yield chunk
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            raise SourceFailed(uri, trouble(error)) from error

    def _plain(self, value: Any) -> str:
        return value.reveal(self._ring) if isinstance(value, Secret) else str(value)


def _redirected(uri: URL, asked: URL, location: str) -> URL:
    """Return where a redirect leads. Raises SourceFailed for a redirect to another scheme than http and https, or
    from https to http: that would expose what the caller wanted to protect with TLS.
    """
    try:
        target = asked.join(URL(location))
    except ValueError as error:
        raise SourceFailed(uri, "it redirects to an invalid address") from error
    if not location or target.scheme not in {"http", "https"} or (asked.scheme == "https" and target.scheme == "http"):
        raise SourceFailed(uri, "it redirects to an address that is not followed")
    return target


def _timeout() -> aiohttp.ClientTimeout:
    # The total is limited in `open`: a large package takes long, so here only silence ends the transfer.
    return aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_IDLE_S)
