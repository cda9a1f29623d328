"""The gateway over HTTP: one kept connection, streams, and errors as faults.

The standard library's client: it is loaded in a third of the time of the others (docs/adr/0015).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol
from urllib.parse import quote, urlencode, urlsplit

from kubevnfm_cli.faults import Fault, Refused, Stopped, Unreachable, UsageFault
from kubevnfm_cli.json_types import JsonObject, read_json
from kubevnfm_cli.proxies import connected
from kubevnfm_cli.terminal import printable

if TYPE_CHECKING:
    from kubevnfm_proxies.rule import Proxy

_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 120.0
_SILENCE_S: Final = 50.0
"""A stream has a heartbeat each 15 s."""
_MOST_BYTES: Final = 256 << 20
_MOST_LINE: Final = 16 << 20
_NO_SUCH_PATH: Final = "there is no resource at this path"
"""The gateway's words for a path that it does not know."""
_LOST: Final = (OSError, http.client.HTTPException)
_VERSIONS: Final = {
    "/vnflcm/v1": "1.3.0",
    "/vnflcm/v2": "2.0.0",
    "/vnfpkgm/v1": "1.0.0",
    "/vnfpkgm/v2": "2.4.0",
    "/vnffm/v1": "1.5.0",
    "/vnfpm/v2": "2.2.0",
}

Query = Mapping[str, str | Sequence[str] | None]


class Credentials(Protocol):
    """The authentication of requests."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        ...

    def renew(self) -> bool:
        """Replace what has expired; return whether there is something new."""
        ...


@dataclass(frozen=True)
class Reply:
    """An answer of the gateway."""

    status: int
    headers: http.client.HTTPMessage
    content: bytes
    url: str

    def json(self) -> Any:
        """Return the body. Raises Fault."""
        return read_json(self.content, self.url)

    def object(self) -> JsonObject:
        """Return the body, which is an object. Raises Fault."""
        body = self.json()
        if not isinstance(body, dict):
            raise Fault(f"{self.url}: a JSON object expected")
        return body

    @property
    def next(self) -> str | None:
        """The address of a list's next page."""
        for link in self.headers.get_all("Link") or ():
            address, _, relation = link.partition(">")
            if 'rel="next"' in relation or "rel=next" in relation:
                return address.strip().removeprefix("<")
        return None


@dataclass
class Gateway:
    """A gateway at a URL."""

    url: str
    credentials: Credentials
    context: ssl.SSLContext | None = None
    proxy: Proxy | None = None
    _kept: http.client.HTTPConnection | None = field(default=None, repr=False)
    _until: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            self._port = parts.port
        except ValueError as error:
            raise UsageFault(f"{self.url}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise UsageFault(f"{self.url}: http://HOST:PORT or https://HOST:PORT expected")
        if parts.username is not None:
            raise UsageFault("the URL has a login: use a context, or KUBEVNFM_CLIENT_USER and KUBEVNFM_CLIENT_PASSWORD")
        self._host, self._is_tls, self._base = parts.hostname, parts.scheme == "https", parts.path.rstrip("/")
        self.url = self.url.rstrip("/")
        self._authority = f"http://{parts.netloc}"

    def another(self) -> Gateway:
        """Return another client of this gateway: one thread uses one connection."""
        return Gateway(self.url, self.credentials, self.context, self.proxy)

    def give_up_after(self, seconds: float | None) -> None:
        """Let each later call, stream and pause raise Stopped when so much time has passed."""
        self._until = None if seconds is None else time.monotonic() + seconds

    def pause(self, seconds: float) -> None:
        """Sleep, as a command does one thing at a time and Ctrl-C ends the sleep. Raises Stopped."""
        time.sleep(self._within(seconds))

    def _within(self, seconds: float) -> float:
        """Return the time that is left, at most ``seconds``. Raises Stopped if there is none."""
        if self._until is None:
            return seconds
        left = self._until - time.monotonic()
        if left <= 0:
            raise Stopped("the time ran out")
        return min(seconds, left)

    def _at_most(self, seconds: float) -> float:
        """Return how long an answer is awaited: a second, even if no time is left, as a state can be shown then too."""
        return seconds if self._until is None else min(seconds, max(self._until - time.monotonic(), 1.0))

    def get(self, path: str, query: Query | None = None) -> Reply:
        """Return the answer to a GET. Raises Refused, Unreachable."""
        return self.call("GET", path, query=query)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request with a JSON body; return the answer. Raises Refused, Unreachable."""
        content = None if body is None else json.dumps(body).encode()
        sent = {**({"Content-Type": "application/json"} if content is not None else {}), **(headers or {})}
        return self._answered(method, _target(path, query), content, sent)

    def send(self, method: str, path: str, content: BinaryIO, size: int, headers: Mapping[str, str]) -> Reply:
        """Send a file's bytes, which are never whole in memory; return the answer. Raises Refused, Unreachable."""
        return self._once(method, path, content, {"Content-Length": str(size), **headers})

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """Yield the lines of an answer as they come, on a connection of its own. Raises Refused, Unreachable, Stopped."""
        target, renewed = _target(path, query), False
        while True:
            connection = self._connected()
            # Kept here: the connection forgets it if the end of the answer is the end of the connection.
            sock = connection.sock
            try:
                response = self._response(connection, "GET", target, None, headers or {})
                if response.status == 401 and not renewed and self.credentials.renew():
                    renewed = True
                    continue
                if response.status >= 300:
                    raise _refusal(response.status, response.read(_MOST_LINE), target)
                yield self._lines(response, sock)
                return
            finally:
                connection.close()

    def _lines(self, response: http.client.HTTPResponse, sock: socket.socket | None) -> Iterator[bytes]:
        while True:
            silence_s = self._within(_SILENCE_S)
            if sock is not None:
                sock.settimeout(silence_s)
            try:
                line = response.readline(_MOST_LINE)
            except _LOST as error:
                raise self._unreachable(error) from error
            if not line:
                return
            yield line

    def _answered(self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]) -> Reply:
        is_kept = self._kept is not None
        try:
            return self._once(method, target, content, headers)
        except Unreachable:
            # The gateway closes a connection that was quiet; what changes something is not sent twice.
            if not is_kept or method != "GET":
                raise
        except Refused as refusal:
            if refusal.status != 401 or not self.credentials.renew():
                raise
        return self._once(method, target, content, headers)

    def _once(self, method: str, target: str, content: bytes | BinaryIO | None, headers: Mapping[str, str]) -> Reply:
        if method != "GET":
            # The gateway may have closed the kept one, and what changes something, or reads a file, is not sent twice.
            self._drop()
        # It is kept again once its answer was read whole; otherwise the next one would begin with the rest.
        connection, self._kept = self._kept or self._connected(), None
        try:
            response = self._response(connection, method, target, content, headers)
            read = response.read(_MOST_BYTES + 1)
            if len(read) > _MOST_BYTES:
                raise Fault(f"{target}: the answer is larger than {_MOST_BYTES >> 20} MiB")
            if response.length:
                raise http.client.IncompleteRead(read, response.length)
            self._kept = connection
        except _LOST as error:
            raise self._unreachable(error, method) from error
        finally:
            if self._kept is None:
                connection.close()
        if response.status >= 300:
            raise _refusal(response.status, read, target)
        return Reply(response.status, response.headers, read, f"{self.url}{target}")

    def _response(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        content: bytes | BinaryIO | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        version = next((version for prefix, version in _VERSIONS.items() if target.startswith(prefix)), None)
        sent = {
            **self.credentials.headers(),
            "Accept": "application/json",
            "User-Agent": "kubevnfm-cli",
            **({"Version": version} if version else {}),
            **headers,
        }
        if connection.sock is not None:
            connection.sock.settimeout(self._at_most(_ANSWER_S))
        try:
            named = f"{self._base}{target}"
            if self.proxy is not None and not self._is_tls:
                named, sent = f"{self._authority}{named}", {**sent, **self.proxy.headers}
            connection.request(method, named, body=content, headers=sent)
            response = connection.getresponse()
        except _LOST as error:
            raise self._unreachable(error, method) from error
        if self.proxy is not None and response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise Unreachable(
                f"{self.url}: {self.proxy} wants a login: proxy_user and proxy_password_file in the context"
            )
        return response

    def _connected(self) -> http.client.HTTPConnection:
        tls = (self.context or ssl.create_default_context()) if self._is_tls else None
        try:
            return connected(self._host, self._port, self._at_most(_CONNECT_S), tls=tls, proxy=self.proxy)
        except _LOST as error:
            raise self._unreachable(error) from error

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _unreachable(self, error: BaseException, method: str = "GET") -> Unreachable | Stopped:
        """Return the fault of a lost connection; ``method`` is that of a request that may have arrived."""
        if isinstance(error, TimeoutError) and self._until is not None and time.monotonic() >= self._until:
            return Stopped("the time ran out")
        doubt = (
            "" if method == "GET" else f"; whether the gateway has carried out the {method} is not known: look first"
        )
        return Unreachable(f"{self.url}: {_reason(error)}{doubt}")


def path_of(*parts: str) -> str:
    """Return a path whose parts have no character with a meaning in URLs."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _target(path: str, query: Query | None) -> str:
    """Return path and query; of an absolute address, as links have it, what is after the host."""
    if not path.startswith("/"):
        parts = urlsplit(path)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    given = {name: value for name, value in (query or {}).items() if value is not None}
    if not given:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(given, doseq=True)}"


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}; ca in the context, or KUBEVNFM_CLIENT_CA, names its CA"
    if isinstance(error, socket.gaierror | OSError) and error.strerror:
        return error.strerror
    return printable(str(error) or type(error).__name__)


def _refusal(status: int, content: bytes, target: str) -> Refused:
    """Return the refusal with the problem's text."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    text = None
    if isinstance(body, dict):
        inner = body.get("TackerError")
        text = body.get("detail") or (inner.get("message") if isinstance(inner, dict) else None) or body.get("title")
    elif content and not content.lstrip().startswith(b"<"):
        text = content[:2000].decode(errors="replace")
    where = target.partition("?")[0]
    is_older = status == HTTPStatus.NOT_FOUND and text == _NO_SUCH_PATH
    if is_older:
        text = f"this gateway has no {where}: it is older than the command line; kubevnfm version shows both"
    refused = Refused(status, f"{status}: {printable(text, 2000) if text else f'{where} was refused'}", body)
    refused.is_older = is_older
    return refused
