"""Connections of HTTP clients that take an answer without content as one, also if its server sends content.

RFC 9110 15.3.5: a 204 has none, and ends with its head. Some servers send a body nevertheless; aiohttp reads it as the beginning of
the next answer, and fails the present one.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

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


class HttpConnector(aiohttp.TCPConnector):
    """The connector of each of our HTTP clients; its options are those of TCPConnector."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no option for it. CONNECT and TLS in a proxy use it as well.
        self._factory = partial(_answers, loop=self._loop)
