"""Fetches a manifest from a URL in a request, limited in size and time, and from allowed addresses only.

`kubevnfm_clients.outbound` judges the address of each connection, which prevents server-side request forgery (SSRF).
Source: capi.md CR-008, multicloud.md MC-123.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from kubevnfm_clients.outbound import AddressRules, outbound_session, refusal_in, trouble
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable

from kubevnfm_infra_k8s.domain.reading.manifests import FIELD

_LARGEST: Final = 10 * 2**20
_TIMEOUT_S: Final = 30.0
_MOST_REDIRECTS: Final = 3
_CHUNK: Final = 2**16
_UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""The session does not decompress, because the limit counts what arrives."""


class Downloads:
    """Fetches texts from URLs."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls, rules: AddressRules, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Self]:
        """Yield the downloads. ``tls``: the trusted CAs."""
        async with outbound_session(rules, tls=tls) as session:
            yield cls(session)

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
                async with self._session.get(at, allow_redirects=False, headers=_UNCOMPRESSED) as response:
                    if response.status in (301, 302, 303, 307, 308) and response.headers.get("Location"):
                        at = _joined(at, response.headers["Location"])
                        continue
                    return await self._content(response, url)
            except aiohttp.ClientConnectorError as error:
                if (refusal := refusal_in(error)) is not None:
                    raise InvalidInput(FIELD, f"{_shown(url)}: {refusal}") from error
                raise OutsideUnavailable(f"{_shown(url)}: cannot be reached") from error
            # UnicodeError: a host with an empty or a long part.
            except (aiohttp.InvalidURL, UnicodeError) as error:
                raise InvalidInput(FIELD, f"{_shown(url)}: not an http(s) URL") from error
            except aiohttp.ClientError as error:
                raise OutsideUnavailable(f"{_shown(url)}: {trouble(error)}") from error
        raise InvalidInput(FIELD, f"{_shown(url)}: more than {_MOST_REDIRECTS} redirects")

    def _check(self, url: str, *, asked: str) -> None:
        """Raise InvalidInput for a URL that may not be fetched."""
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_url = False
        if not is_url:
            raise InvalidInput(FIELD, f"{_shown(asked)}: an http(s) URL expected, also in redirects")

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


def _joined(base: str, location: str) -> str:
    """Return where a redirect leads; a target that is no URL stays as it is, and is refused by the check."""
    try:
        return urljoin(base, location)
    except ValueError:
        return location


def _shown(url: str) -> str:
    """Return the URL without user and query, which may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    return f"{parts.scheme}://{parts.hostname}{parts.path}"
