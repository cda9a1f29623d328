"""The sessions of our HTTP clients: the one way out of a process, through a proxy where the environment names one (docs/proxies.md)."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp import hdrs
from kubevnfm_proxies.rule import Proxies
from yarl import URL

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.http_client import HttpConnector, ProxyFailure
from kubevnfm_kit.proxies import LOGIN_WANTED, environment_proxies

Judge = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port to which a proxy may connect; none: the proxy resolves the name itself. Raises OSError."""
_MOST_ADDRESSES: Final = 3
"""As many addresses of one name a proxy is asked to connect to."""


def client_session(
    *,
    connector: HttpConnector | None = None,
    proxies: Proxies | None = None,
    judge: Judge | None = None,
    middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
    **options: Any,
) -> aiohttp.ClientSession:
    """Return a session, for the options of aiohttp's. A request may name a proxy itself, by ``proxy=``.

    ``proxies``: None: those of the environment; ``judge``: judges what a proxy connects to, as the connector judges its own connections.
    Requests fail with ProxyFailure if the proxy is what fails.
    """
    out = _WayOut(environment_proxies() if proxies is None else proxies, judge)
    return aiohttp.ClientSession(
        connector=connector or HttpConnector(),
        # The way out is chosen here. It would look for a proxy, and for a login in ~/.netrc, in a thread before each request.
        trust_env=False,
        middlewares=[*middlewares, out],
        **options,
    )


class _WayOut:
    """Sends each request, also one that follows a redirect, through the proxy to its URL."""

    def __init__(self, proxies: Proxies, judge: Judge | None) -> None:
        self._proxies, self._judge = proxies, judge

    async def __call__(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if request.proxy is None:
            found = self._proxies.to(str(request.url)) if self._proxies else None
            if found is None:
                return await send(request)
            login = found.headers.get(hdrs.PROXY_AUTHORIZATION)
            # aiohttp makes it Proxy-Authorization.
            request.update_proxy(URL(found.url), None, None if login is None else {hdrs.AUTHORIZATION: login})
        if self._judge is None:
            return await _sent(request, send)
        return await self._judged(self._judge, request, send)

    async def _judged(
        self, judge: Judge, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Have the proxy connect to judged addresses alone: it resolves no name, which could lead elsewhere then (DNS rebinding)."""
        host, url = request.host, request.url
        try:
            addresses = await judge(host, url.port or 0)
        except socket.gaierror as error:
            raise aiohttp.ClientConnectorDNSError(request.connection_key, error) from error
        except OSError as error:
            raise aiohttp.ClientConnectorError(request.connection_key, error) from error
        except VnfmError as error:
            raise aiohttp.ClientConnectionError(str(error)) from error
        if not addresses:
            return await _sent(request, send)
        # TLS is verified against the name.
        request.server_hostname = request.server_hostname or host
        *earlier, last = addresses[:_MOST_ADDRESSES]
        for address in earlier:
            request.url = url.with_host(address)
            try:
                return await _sent(request, send)
            except ProxyFailure:
                # Nothing was sent to the server. A proxy may have no IPv6.
                continue
        request.url = url.with_host(last)
        return await _sent(request, send)


async def _sent(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    assert request.proxy is not None
    if request.is_ssl():
        return await send(request)
    # Each request has it, not only the first of a connection.
    if request.proxy_headers is not None and (login := request.proxy_headers.get(hdrs.AUTHORIZATION)) is not None:
        request.headers[hdrs.PROXY_AUTHORIZATION] = login
    response = await send(request)
    if response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        response.close()
        raise ProxyFailure(request.proxy, LOGIN_WANTED)
    return response


def proxy_failure(error: BaseException) -> str | None:
    """Return what a proxy has failed in, which names it; None: the call failed for another reason."""
    return str(error) if isinstance(error, ProxyFailure) else None
