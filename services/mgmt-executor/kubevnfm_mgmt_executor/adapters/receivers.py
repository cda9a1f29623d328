"""Receivers of call-backs over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import aiohttp
from kubevnfm_clients.bounded import AnswerTooLarge, read_json
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector, ProxyFailure
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.printable import printable
from kubevnfm_kit.proxies import environment_proxies
from kubevnfm_kit.tls import ClientTls, client_context, tls_failure
from yarl import URL

from kubevnfm_mgmt_executor.domain.capi.answers import Answer, Silence

_TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_LARGEST: Final = 64 * 1024
"""Bytes of an answer: a receipt or ProblemDetails."""


class HttpReceivers:
    """`domain.capi.delivery.Receivers`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def connected(cls, tls: ClientTls, own: str | None = None) -> AsyncIterator[Self]:
        """Yield the receivers; ``tls``: the CAs that they are verified with (TLS 1.2 or later), and a certificate to present.

        ``own``: the URL of our own receiver, to which no proxy leads.
        """
        proxies = environment_proxies().without(own)
        async with (
            client_context(tls) as context,
            client_session(connector=HttpConnector(ssl=context), proxies=proxies) as session,
        ):
            yield cls(session)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer | Silence:
        try:
            async with self._session.post(
                # Encoded: the path is signed as it is sent.
                URL(url, encoded=True),
                data=body,
                headers=headers,
                timeout=_TIMEOUT,
                allow_redirects=False,
            ) as response:
                return _answer(response, await read_json(response, limit_bytes=_LARGEST))
        except AnswerTooLarge as error:
            return Silence(f"the receiver sent {error}")
        except TimeoutError:
            return Silence("the receiver did not answer in time")
        except ProxyFailure as error:
            return Silence(f"the receiver is not reached: {error}")
        except (aiohttp.ClientError, OSError) as error:
            return Silence(_reason(error, is_https=url.startswith("https")))


def _reason(error: Exception, *, is_https: bool) -> str:
    """Return why there is no answer. ``error`` may have the one of TLS as its cause."""
    causes = (error, error.__cause__, getattr(error, "os_error", None))
    if any(isinstance(cause, ssl.SSLError | aiohttp.ClientSSLError) for cause in causes):
        return tls_failure(" ".join(str(cause) for cause in causes))
    if is_https and any(isinstance(cause, ConnectionResetError) for cause in causes):
        # Many servers close without an alert, and with TLS 1.3 only after the handshake.
        return (
            "the receiver closed the connection: it may expect a client certificate (receiver_certificate) or another one,"
            " or not speak TLS 1.2"
        )
    return f"the receiver did not answer ({type(error).__name__})"


def _answer(response: aiohttp.ClientResponse, body: Any) -> Answer:
    problem: Mapping[str, object] = body if isinstance(body, Mapping) else {}
    return Answer(
        status=response.status,
        problem_type=str(problem.get("type") or ""),
        # Whole: what repeats the request is masked before it is cut.
        detail=printable(str(problem.get("detail") or "")),
        retry_after_s=_seconds(response.headers.get("Retry-After", "")),
        date=_moment(response.headers.get("Date", "")),
    )


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _moment(text: str) -> float | None:
    moment = read_http_date(text)
    return None if moment is None else moment.timestamp()
