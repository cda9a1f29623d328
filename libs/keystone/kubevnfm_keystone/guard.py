"""HTTP towards an OpenStack: answers limited in size and time, and redirects to other servers refused.

requests reads bodies of any length, and its timeouts bound only the silence between two bytes. keystoneauth follows
redirects to any server, with the token or the password of the request.
"""

from __future__ import annotations

import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from json import JSONDecodeError
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.proxies import LOGIN_WANTED, environment_proxies
from kubevnfm_proxies.rule import Proxies
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import DecodeError, HTTPError, ProxyError, ReadTimeoutError

LARGEST_ANSWER: Final = 16 * 2**20
"""Bytes of an answer after decompression. A page of 500 servers, the largest that is requested, has about 2 MiB."""
_CHUNK: Final = 64 * 1024
_LONGEST_S: Final = 3600.0
"""For the body of an answer to a request without a timeout."""
_IDLE_S: Final = 10.0
"""After which the thread that watches deadlines ends, until there is one again."""


class AnswerRefused(requests.RequestException):
    """The answer is one that no OpenStack service gives; the text says what it is."""


class ProxyFailed(requests.RequestException):
    """The proxy does not answer, or does not connect to the service; the text names it."""


CAUSES: Final = {
    "Connection refused": "connection refused",
    "Failed to resolve": "its host name cannot be resolved",
    "Name or service not known": "its host name cannot be resolved",
    "No route to host": "no route to host",
    "Network is unreachable": "network unreachable",
    "RemoteDisconnected": "it closed the connection without an answer",
    "Connection reset": "it reset the connection",
}
"""Cause by a part of the text of a connection error."""
_SILENT: Final = "no connection in time"
_TUNNEL: Final = re.compile(r"Tunnel connection failed: (?P<status>[0-9]{3})")
"""The text of `http.client` for another answer to CONNECT."""


@dataclass(eq=False)
class _Deadline:
    """The end of one wait for an answer."""

    at: float
    cut: Callable[[], None]
    has_passed: bool = False

    def end(self) -> None:
        self.has_passed = True
        # The connection may have ended by itself.
        with suppress(OSError, RuntimeError, ValueError):
            self.cut()


class _Deadlines:
    """Calls a function when a time has passed, in one thread for all, which ends when nothing is waited for."""

    def __init__(self) -> None:
        self._waiting: set[_Deadline] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        """The time of the thread's next look."""

    @contextmanager
    def within(self, limit_s: float, cut: Callable[[], None]) -> Iterator[_Deadline]:
        """Call ``cut`` if the block takes longer than ``limit_s``; the yielded deadline has passed then."""
        deadline = _Deadline(time.monotonic() + limit_s, cut)
        with self._changed:
            self._waiting.add(deadline)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="openstack-deadlines", daemon=True)
                self._thread.start()
            elif deadline.at < self._wakes_at:
                # A later one can wait for that look: to wake the thread for each call costs more than the rest of this.
                self._changed.notify()
        try:
            yield deadline
        finally:
            with self._changed:
                self._waiting.discard(deadline)

    def _watch(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                over = [each for each in self._waiting if each.at <= now]
                self._waiting.difference_update(over)
                if not over:
                    is_idle = not self._waiting
                    self._wakes_at = min((each.at for each in self._waiting), default=now + _IDLE_S)
                    if not self._changed.wait(self._wakes_at - now) and is_idle and not self._waiting:
                        self._thread = None
                        return
            for deadline in over:
                deadline.end()


_DEADLINES: Final = _Deadlines()


class _LimitedHead:
    """A connection on which status and headers of an answer must arrive within the timeout, not only byte after byte."""

    sock: Any
    timeout: Any

    def getresponse(self) -> Any:
        connected, limit_s = self.sock, self.timeout
        if not isinstance(limit_s, int | float):
            return super().getresponse()  # type: ignore[misc]  # of the class that this one is mixed into

        with _DEADLINES.within(limit_s, lambda: connected.shutdown(socket.SHUT_RDWR)) as deadline:
            try:
                return super().getresponse()  # type: ignore[misc]
            except (OSError, HTTPException) as error:
                if deadline.has_passed:
                    raise TimeoutError("the headers of the answer did not arrive in time") from error
                raise


class _Connection(_LimitedHead, HTTPConnection):
    """Over TCP."""


class _TlsConnection(_LimitedHead, HTTPSConnection):
    """Over TLS."""

    def _tunnel(self) -> None:
        try:
            super()._tunnel()
        except TimeoutError as error:
            # urllib3 takes it for a silence of the server.
            raise ProxyError(_SILENT, error) from error


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


_POOLS: Final = {"http": _Pool, "https": _TlsPool}


class GuardedAdapter(HTTPAdapter):
    """Reads each answer to its end, within the limits, before it returns it."""

    def __init__(
        self, *, check_host_name: bool, proxies: Proxies | None = None, **how: Any
    ) -> None:  # requests does not type its arguments
        """``check_host_name``: false for skipCertificateHostnameCheck; the certificate is verified all the same. ``proxies``: None: those of
        the environment.
        """
        self._proxies = environment_proxies() if proxies is None else proxies
        self._names: dict[str, Any] = {} if check_host_name else {"assert_hostname": False}
        super().__init__(**how)

    def proxy_manager_for(self, proxy: str, **how: Any) -> Any:
        if proxy not in self.proxy_manager:
            made = super().proxy_manager_for(proxy, **how, **self._names)
            made.pool_classes_by_scheme = _POOLS
        return self.proxy_manager[proxy]

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **how: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **how, **self._names)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        response = self._through_proxy(request, *args, **kwargs)
        response.__class__ = _Answer
        assert isinstance(response, _Answer)
        try:
            _check_target(request, response)
            timeout = kwargs.get("timeout")
            content = _content(response, timeout if isinstance(timeout, int | float) else None)
        except BaseException:
            response.raw.close()
            raise
        if "json" in response.headers.get("Content-Type", ""):
            response.values = _json_values(content)
        # From here on the session reads what was read.
        response.raw = _Body(response.raw, content)
        return response

    def _through_proxy(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request, each to the proxy of its own URL: the services of a cloud have several. Raises ProxyFailed."""
        url = str(request.url)
        proxy = self._proxies.to(url)
        if proxy is None:
            return super().send(request, *args, **{**kwargs, "proxies": {}})
        try:
            response = super().send(
                request, *args, **{**kwargs, "proxies": {urlsplit(url).scheme: proxy.url_with_login}}
            )
        except (requests.exceptions.ProxyError, requests.ConnectTimeout) as error:
            raise ProxyFailed(f"{proxy}: {_cause(error)}") from error
        if response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            response.close()
            raise ProxyFailed(f"{proxy}: {LOGIN_WANTED}")
        return response


def _cause(error: Exception) -> str:
    """Return why a proxy was not used. The text of the error has the URL, and what the proxy has answered."""
    text = str(error)
    if isinstance(error, requests.ConnectTimeout) or _SILENT in text:
        return _SILENT
    if (answered := _TUNNEL.search(text)) is not None:
        status = answered["status"]
        return LOGIN_WANTED if status == "407" else f"it does not connect to the server: {status}"
    return next((cause for part, cause in CAUSES.items() if part in text), "the connection failed")


class _Answer(requests.Response):
    """An answer whose JSON is read within limits, whatever its Content-Type says."""

    values: tuple[Any, ...] = ()
    """The value if it was read when the answer came, until it is returned: its receiver may change it."""

    def json(self, **_: Any) -> Any:
        """Return the value. Raises requests.JSONDecodeError, a ValueError."""
        if self.values:
            (value,), self.values = self.values, ()
            return value
        try:
            return read_foreign(self.content)
        except ValueError as error:
            raise requests.JSONDecodeError(str(error), "", 0) from error


class _Body(io.BytesIO):
    """A body that was read, in place of urllib3's response."""

    def __init__(self, response: Any, content: bytes) -> None:
        super().__init__(content)
        # requests finds the cookies of an answer here.
        self._original_response = getattr(response, "_original_response", None)


def _check_target(request: requests.PreparedRequest, response: requests.Response) -> None:
    """Refuse a redirect to another server. Heat redirects from the name of a stack to its id, on the same server."""
    if not response.is_redirect:
        return
    asked, target = str(request.url), urljoin(str(request.url), response.headers["Location"])
    if urlsplit(asked)[:2] != urlsplit(target)[:2]:
        raise AnswerRefused("it redirects to another server, and such redirects are not followed")


def _content(response: requests.Response, limit_s: float | None) -> bytes:
    content, raw, late_text = bytearray(), response.raw, "the body of the answer did not arrive in time"
    with _DEADLINES.within(limit_s or _LONGEST_S, raw.shutdown) as deadline:
        try:
            for chunk in raw.stream(_CHUNK, decode_content=True):
                content += chunk
                if len(content) > LARGEST_ANSWER:
                    raise AnswerRefused(f"it answered with more than {LARGEST_ANSWER} bytes")
        except ReadTimeoutError as error:
            raise requests.ReadTimeout(late_text) from error
        except DecodeError as error:
            raise AnswerRefused("the compressed body of its answer cannot be read") from error
        except (HTTPError, OSError) as error:
            if deadline.has_passed:
                raise requests.ReadTimeout(late_text) from error
            raise requests.ConnectionError("RemoteDisconnected within an answer") from error
    # A body without a length ends where the connection was cut.
    if deadline.has_passed:
        raise requests.ReadTimeout(late_text)
    return bytes(content)


def _json_values(content: bytes) -> tuple[Any, ...]:
    """Return the value; none for text that is no JSON at all: proxies label error pages so. Refuse what later code could not walk."""
    try:
        return (read_foreign(content),)
    except UnicodeError as error:
        raise AnswerRefused("its JSON is not UTF-8") from error
    except JSONDecodeError:
        return ()
    except ValueError as error:
        raise AnswerRefused(f"its JSON cannot be used: {error}") from error
