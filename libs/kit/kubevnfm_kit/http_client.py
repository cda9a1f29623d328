"""The connections of each of our HTTP clients, also those through a proxy.

They take an answer without content as one, also if its server sends content. RFC 9110 15.3.5: a 204 has none, and ends with its head. Some
servers send a body nevertheless; aiohttp reads it as the beginning of the next answer, and fails the present one.
"""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace
from yarl import URL

from kubevnfm_kit.printable import printable
from kubevnfm_kit.proxies import LOGIN_WANTED

_LONGEST_REASON: Final = 200
_CONNECTED_WITHIN_S = 8.0
"""Limit for a proxy that connects to a server: less than those of whole requests, which would not name the proxy."""
_END: Final = b"\r\n\r\n"
_LONGEST_HEAD: Final = 64 * 1024
_WITHOUT_CONTENT: Final = re.compile(rb"HTTP/1\.[01] 204[ \r]")
_BEGIN_LENGTH: Final = len(b"HTTP/1.1 204 ")
_WITH_BODY: Final = re.compile(rb"\r\n(content-length:[ \t]*0*[1-9]|transfer-encoding:)", re.IGNORECASE)


class _Answers(ResponseHandler):
    """One connection: drops what follows the head of a 204, and is not used again after it."""

    _head: bytes | None = None
    """The beginning of the awaited answer; None after it was seen."""

    def set_response_params(self, **params: Any) -> None:
        """Called before each request."""
        self._head = b""
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            super().data_received(data)
            return
        self._head += data
        begin = self._head[:_BEGIN_LENGTH]
        if len(begin) == _BEGIN_LENGTH and _WITHOUT_CONTENT.match(begin):
            end = self._head.find(_END)
            if end < 0 and len(self._head) <= _LONGEST_HEAD:
                return
            head, rest = self._head[: end + len(_END)], self._head[end + len(_END) :]
            if end >= 0 and (rest or _WITH_BODY.search(head)):
                # The rest is dropped with the connection.
                self.force_close()
                data = head
            else:
                data = self._head
        elif len(begin) < _BEGIN_LENGTH and self._could_be(begin):
            return
        else:
            data = self._head
        self._head = None
        super().data_received(data)

    def eof_received(self) -> None:
        self._flush()
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._flush()
        super().connection_lost(exc)

    def _flush(self) -> None:
        """Hand over what has come of an answer that ends too early."""
        left, self._head = self._head, None
        if left:
            super().data_received(left)

    @staticmethod
    def _could_be(begin: bytes) -> bool:
        return any(expected.startswith(begin) for expected in (b"HTTP/1.1 204 ", b"HTTP/1.0 204 "))


def _answers(*, loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _Answers(loop=loop)


class ProxyFailure(aiohttp.ClientConnectionError):
    """The proxy does not answer, or does not connect to the server: nothing is known of the server. The text names the proxy."""

    def __init__(self, proxy: URL, reason: str) -> None:
        super().__init__(f"proxy {proxy.host_subcomponent}:{proxy.port}: {reason}")


class HttpConnector(aiohttp.TCPConnector):
    """The connector of each of our HTTP clients; its options are those of TCPConnector.

    ``resolver`` and ``socket_factory`` are for connections to servers; a proxy is the operator's, and is connected to without them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no option for it. CONNECT and TLS in a proxy use it as well.
        self._factory = partial(_answers, loop=self._loop)
        self._to_proxies: _ToProxies | None = None

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        if req.proxy is None:
            return await super()._create_connection(req, traces, timeout)
        if self._to_proxies is None:
            self._to_proxies = _ToProxies(ssl=self._ssl)
        return await self._to_proxies.connected(req, req.proxy, traces, timeout)


class _ToProxies(HttpConnector):
    """Makes connections through proxies for another connector, which keeps them."""

    async def connected(
        self, req: ClientRequest, proxy: URL, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        """Return the connection. Raises ProxyFailure; the errors of TLS with the server as aiohttp does."""
        try:
            # aiohttp waits for the answer to CONNECT as long as for the whole request, which has no limit for a watch.
            async with asyncio.timeout(_CONNECTED_WITHIN_S):
                return await aiohttp.TCPConnector._create_connection(self, req, traces, timeout)
        except aiohttp.ClientHttpProxyError as error:
            raise ProxyFailure(proxy, _refusal(req.url, error)) from error
        except aiohttp.ClientProxyConnectionError as error:
            raise ProxyFailure(proxy, _unconnected(error.os_error)) from error
        except aiohttp.ClientConnectorDNSError as error:
            raise ProxyFailure(proxy, "its name cannot be resolved") from error
        except aiohttp.ClientConnectorError:
            raise  # of TLS with the server
        except TimeoutError as error:
            raise ProxyFailure(proxy, "no connection in time") from error
        except (aiohttp.ClientError, aiohttp.http.HttpProcessingError) as error:
            raise ProxyFailure(proxy, f"it does not answer as a proxy does ({type(error).__name__})") from error

    def _update_proxy_auth_header_and_build_proxy_req(self, req: ClientRequest) -> ClientRequest:
        made = super()._update_proxy_auth_header_and_build_proxy_req(req)
        # RFC 9110 7.2. aiohttp names the host of the request, which a proxy could resolve again where the address was judged.
        made.headers[hdrs.HOST] = f"{req.url.host_subcomponent}:{req.url.port}"
        return made


def _unconnected(error: OSError) -> str:
    # The text of asyncio has the address again.
    return "the connection failed" if error.errno is None else os.strerror(error.errno).lower()


def _refusal(url: URL, error: aiohttp.ClientHttpProxyError) -> str:
    if error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return LOGIN_WANTED
    reason = printable(error.message[:_LONGEST_REASON])
    return f"it does not connect to {url.host_subcomponent}:{url.port}: {error.status} {reason}".rstrip()
