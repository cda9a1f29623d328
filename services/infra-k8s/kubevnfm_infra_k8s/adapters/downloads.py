"""Fetches a manifest from a URL in a request, limited in size and time, and never from an internal address.

This prevents server-side request forgery (SSRF) towards this host, the cloud's metadata service or the operator's
network. Names are resolved once, here, and the connector uses the checked result, so a second resolution cannot give
another address. Source: capi.md CR-008, multicloud.md MC-123.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable

from kubevnfm_infra_k8s.domain.manifests import FIELD

_LARGEST: Final = 10 * 2**20
_TIMEOUT_S: Final = 30.0
_MOST_REDIRECTS: Final = 3
_CHUNK: Final = 2**16


class _InnerAddress(OSError):
    """The name resolves to an address that requests may not reach."""


class _OuterResolver(AbstractResolver):
    """Resolves names to public addresses only."""

    def __init__(self, *, allow_inner: bool) -> None:
        self._allow_inner = allow_inner
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        good = [each for each in found if self._allow_inner or is_outer(each["host"])]
        if not good:
            raise _InnerAddress(f"{host} resolves to an internal address")
        return good

    async def close(self) -> None:
        await self._inner.close()


def is_outer(address: str) -> bool:
    """Return whether an address is public: not loopback, private, link-local, multicast or reserved."""
    known = ip_address(address.partition("%")[0])
    # ::ffff:127.0.0.1 reaches the same host as 127.0.0.1.
    mapped = getattr(known, "ipv4_mapped", None)
    checked = mapped or known
    return checked.is_global and not checked.is_multicast


class Downloads:
    """Fetches texts from URLs."""

    def __init__(self, session: aiohttp.ClientSession, *, allow_inner: bool) -> None:
        self._session, self._allow_inner = session, allow_inner

    @classmethod
    @asynccontextmanager
    async def open(cls, *, allow_inner: bool) -> AsyncIterator[Self]:
        """Yield the downloads; ``allow_inner`` permits addresses of the operator's own network."""
        # A cached name could have been resolved before it moved to an internal address, and a proxy from the
        # environment would resolve names without our check.
        connector = aiohttp.TCPConnector(resolver=_OuterResolver(allow_inner=allow_inner), use_dns_cache=False)
        async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
            yield cls(session, allow_inner=allow_inner)

    async def text(self, url: str) -> str:
        """Return the text at the URL.

        Raises InvalidInput if the URL or its content is not allowed, OutsideUnavailable if a repeat may help.
        """
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                raw = await self._follow(url)
            return raw.decode()
        except TimeoutError as error:
            raise OutsideUnavailable(f"{_shown(url)}: no answer within {_TIMEOUT_S:.0f} s") from error
        except UnicodeDecodeError as error:
            raise InvalidInput(FIELD, f"{_shown(url)}: UTF-8 text expected") from error

    async def _follow(self, url: str) -> bytes:
        at = url
        for _ in range(_MOST_REDIRECTS + 1):
            self._check(at, asked=url)
            try:
                # Redirects are followed here, because each target has to be checked.
                async with self._session.get(at, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308) and response.headers.get("Location"):
                        at = urljoin(at, response.headers["Location"])
                        continue
                    return await self._content(response, url)
            except aiohttp.ClientConnectorError as error:
                if isinstance(error.os_error, _InnerAddress):
                    raise InvalidInput(FIELD, f"{_shown(url)}: internal addresses are not allowed") from error
                raise OutsideUnavailable(f"{_shown(url)}: cannot be reached") from error
            except aiohttp.InvalidURL as error:
                raise InvalidInput(FIELD, f"{_shown(url)}: not an http(s) URL") from error
            except aiohttp.ClientError as error:
                raise OutsideUnavailable(f"{_shown(url)}: {type(error).__name__}") from error
        raise InvalidInput(FIELD, f"{_shown(url)}: more than {_MOST_REDIRECTS} redirects")

    def _check(self, url: str, *, asked: str) -> None:
        """Raise InvalidInput for a URL that may not be fetched."""
        # The connector does not pass literal addresses to the resolver, so they are checked here.
        host = urlsplit(url).hostname or ""
        if urlsplit(url).scheme not in ("http", "https") or not host:
            raise InvalidInput(FIELD, f"{_shown(asked)}: an http(s) URL expected, also in redirects")
        try:
            is_inner = not is_outer(host)
        except ValueError:  # a name
            return
        if is_inner and not self._allow_inner:
            raise InvalidInput(FIELD, f"{_shown(asked)}: internal addresses are not allowed")

    @staticmethod
    async def _content(response: aiohttp.ClientResponse, url: str) -> bytes:
        if response.status >= 500 or response.status == 429:
            raise OutsideUnavailable(f"{_shown(url)}: HTTP {response.status}")
        if response.status != 200:
            raise InvalidInput(FIELD, f"{_shown(url)}: HTTP {response.status}")
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            # Counted while reading, because Content-Length can be missing or wrong.
            if len(content) > _LARGEST:
                raise InvalidInput(FIELD, f"{_shown(url)}: larger than 10 MiB")
        return bytes(content)


def _shown(url: str) -> str:
    """Return the URL without user and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"
