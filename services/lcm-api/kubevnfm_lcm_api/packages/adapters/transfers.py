"""One transfer over HTTP: a few redirects, credentials for their own server alone, and the rest of what broke off."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from kubevnfm_clients.bounded import read_body
from kubevnfm_clients.outbound import refusal_in, trouble
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from yarl import URL

from kubevnfm_lcm_api.packages.domain.ports import Checksum

_CHUNK: Final = 256 * 1024
_REDIRECTS: Final = 5
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_IDLE_S: Final = 60.0
_CONNECT_S: Final = 20.0
_RESUMES: Final = 20
"""How often one transfer is resumed: a server that sends a few bytes each time must not hold it for ever."""
_PAUSES: Final = BackOff(first_s=0.1, longest_s=5.0)
_ZIP: Final = "application/zip, application/octet-stream, */*;q=0.5"


class SourceFailed(VnfmError, code="package-not-fetched", title="VNF package not fetched", status=502):
    """The content could not be fetched. The message has the address without its query, which may contain a secret."""

    def __init__(self, uri: URL, reason: str, *, is_final: bool = False) -> None:
        """``is_final``: whether a repeat of the same request would fail for the same reason."""
        super().__init__(f"{shown(uri)}: {reason}")
        self.is_final = is_final


class WrongContent(SourceFailed, code="package-differs", status=422):
    """The content is not the one that was asked for."""

    def __init__(self, uri: URL, reason: str) -> None:
        super().__init__(uri, reason, is_final=True)


def is_final(status: int) -> bool:
    """Return whether a repeat of a request with this status would be answered with it too."""
    return 400 <= status < 500 and status not in (408, 429)


def shown(uri: URL) -> str:
    """Return an address without what may be a secret."""
    return str(uri.with_query(None).with_fragment(None).with_user(None))


@dataclass(frozen=True)
class Target:
    """Where content is fetched from, and with which credentials."""

    uri: URL
    authorization: str | None = field(default=None, repr=False)
    """For the server of the address alone."""
    headers: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] | None = None
    """Those that redirects may lead to, beside that of the address. None: any."""

    def admits(self, target: URL) -> bool:
        """Return whether a redirect may lead there."""
        return self.hosts is None or target.host == self.uri.host or target.host in self.hosts


@dataclass(frozen=True)
class Transfers:
    """Transfers by a session that checks its addresses."""

    session: aiohttp.ClientSession

    async def answer(self, target: Target, *, further: Mapping[str, str] | None = None) -> aiohttp.ClientResponse:
        """Follow redirects; return the answer, whatever its status. Raises SourceFailed."""
        asked = target.uri
        for _ in range(_REDIRECTS + 1):
            headers = {"Accept": _ZIP, "Accept-Encoding": "identity", **target.headers, **(further or {})}
            if target.authorization is not None and asked.origin() == target.uri.origin():
                headers["Authorization"] = target.authorization
            try:
                response = await self.session.get(asked, headers=headers, allow_redirects=False, timeout=_timeout())
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                is_refused = isinstance(error, aiohttp.ClientError) and refusal_in(error) is not None
                raise SourceFailed(target.uri, trouble(error), is_final=is_refused) from error
            if response.status not in _MOVED:
                return response
            response.release()
            asked = _redirected(target, asked, response.headers.get("Location", ""))
        raise SourceFailed(target.uri, f"more than {_REDIRECTS} redirects", is_final=True)

    async def body(self, target: Target, *, limit_bytes: int) -> tuple[aiohttp.ClientResponse, bytes]:
        """Return a small answer with its body. Raises SourceFailed."""
        async with await self.answer(target) as response:
            try:
                return response, await read_body(response, limit_bytes=limit_bytes)
            except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                raise SourceFailed(target.uri, trouble(error)) from error

    async def content(self, target: Target) -> aiohttp.ClientResponse:
        """Return the answer with the whole content. Raises SourceFailed."""
        return _checked(target.uri, await self.answer(target), 200)

    async def chunks(
        self, target: Target, response: aiohttp.ClientResponse, *, checksum: Checksum | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the content; if the transfer breaks off, go on where it did. Raises SourceFailed; WrongContent at the end.

        Only content with a strong entity tag or a checksum is resumed: other content might have changed meanwhile.
        """
        digest = None if checksum is None else hashlib.new(checksum.algorithm)
        etag = response.headers.get("ETag", "")
        tag = etag if etag.startswith('"') else None
        received, resumes = 0, 0
        try:
            while True:
                try:
                    async for chunk in response.content.iter_chunked(_CHUNK):
                        received += len(chunk)
                        if digest is not None:
                            await asyncio.to_thread(digest.update, chunk)
                        yield chunk
                    break
                except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                    resumes += 1
                    if (tag is None and checksum is None) or resumes > _RESUMES:
                        raise SourceFailed(target.uri, trouble(error)) from error
                response.close()
                response = await self._rest(target, received, tag, resumes)
        finally:
            response.close()
        if checksum is not None and digest is not None and digest.hexdigest() != checksum.hex:
            raise WrongContent(target.uri, f"its {checksum.algorithm} checksum is not the expected one")

    async def _rest(self, target: Target, received: int, tag: str | None, resumes: int) -> aiohttp.ClientResponse:
        """Return the answer with what comes after so many bytes. Raises SourceFailed."""
        further: dict[str, str] = {}
        if received:
            further = {"Range": f"bytes={received}-", **({"If-Range": tag} if tag is not None else {})}
        failure: SourceFailed | None = None
        for attempt in range(resumes, _RESUMES + 1):
            # The server may be starting again.
            await asyncio.sleep(_PAUSES.after(attempt))
            try:
                response = await self.answer(target, further=further)
            except SourceFailed as error:
                failure = error
                continue
            if response.status >= 500:
                response.close()
                failure = SourceFailed(target.uri, f"it answered {response.status}")
                continue
            response = _checked(target.uri, response, 206 if received else 200)
            if received and not response.headers.get("Content-Range", "").startswith(f"bytes {received}-"):
                response.close()
                raise SourceFailed(target.uri, "it broke off, and continued with another range than the one asked for")
            return response
        assert failure is not None
        raise failure


def _checked(uri: URL, response: aiohttp.ClientResponse, status: int) -> aiohttp.ClientResponse:
    if response.status != status or response.headers.get("Content-Encoding", "identity") != "identity":
        response.close()
        packed = "with a content coding that was not asked for" if response.status == status else f"{status} expected"
        raise SourceFailed(uri, f"it answered {response.status}, {packed}", is_final=is_final(response.status))
    return response


def _redirected(target: Target, asked: URL, location: str) -> URL:
    """Return where a redirect leads. Raises SourceFailed for a redirect to another scheme than http and https, to a host that is
    not allowed, or from https to http: that would expose what the caller wanted to protect with TLS.
    """
    uri = target.uri
    try:
        there = asked.join(URL(location))
    except ValueError as error:
        raise SourceFailed(uri, "it redirects to an invalid address", is_final=True) from error
    if not location or there.scheme not in {"http", "https"} or (asked.scheme == "https" and there.scheme == "http"):
        raise SourceFailed(uri, "it redirects to an address that is not followed", is_final=True)
    if not target.admits(there):
        raise SourceFailed(uri, "it redirects to a host that is not allowed (setting artifact_hosts)", is_final=True)
    return there


def _timeout() -> aiohttp.ClientTimeout:
    # The total is limited by the caller: a large package takes long, so here only silence ends the transfer.
    return aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_IDLE_S)
