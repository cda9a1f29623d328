"""Which proxy leads to a server: that of a context, or of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and the connection through it."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.terminal import printable

NONE: Final = "none"
"""The value of a context that uses no proxy, whatever the environment says."""


class ProxyRefused(OSError):
    """The proxy does not connect to the server."""


@dataclass(frozen=True)
class Proxy:
    """A proxy that speaks HTTP."""

    host: str
    port: int
    login: str | None = field(default=None, repr=False)
    """``user:password``."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers for the proxy itself."""
        if self.login is None:
            return {}
        return {"Proxy-Authorization": f"Basic {base64.b64encode(self.login.encode()).decode()}"}

    def __str__(self) -> str:
        return f"proxy {printable(self.host)}:{self.port}"


def proxy_of(url: str, *, named: str | None, login: str | None, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy to the server of a URL; None: none. ``named``: that of the context. Raises UsageFault."""
    if named is not None:
        return None if named == NONE else _read(named, "proxy", login)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None  # the URL is refused where it is used
    variable = f"{parts.scheme}_proxy"
    name = next((name for name in (variable, variable.upper()) if environment.get(name)), None)
    if name is None or _is_direct(host, port, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    return _read(environment[name], name, None)


def _read(text: str, name: str, login: str | None) -> Proxy:
    """Return a proxy by its URL. Raises UsageFault, which shows no login."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise UsageFault(f"{name}: http://HOST:PORT expected") from None
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageFault(
            f"{name}: http://HOST:PORT expected; proxies of other kinds ({printable(parts.scheme)}) are not used"
        )
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(parts.hostname, port or 80, login)


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    """Return whether NO_PROXY leaves a server out: by name, domain, address, network or ``*``. This machine always is."""
    host = host.rstrip(".").lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_leaves_out(one.strip().lower(), host, address, port) for one in exceptions.split(","))


def _leaves_out(one: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    if one == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(one.strip("[]"), strict=False)
        except ValueError:
            pass
    name, colon, wanted = one.rpartition(":")
    if colon and wanted.isdecimal():
        one = name.strip("[]")
        if int(wanted) != port:
            return False
    if address is not None:
        return _address(one) == address
    one = one.removeprefix("*").lstrip(".")
    return bool(one) and (host == one or host.endswith(f".{one}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def connected(
    host: str, port: int | None, timeout_s: float, *, tls: ssl.SSLContext | None, proxy: Proxy | None
) -> http.client.HTTPConnection:
    """Return a connection to a server that is open. Raises OSError, HTTPException.

    A request through a proxy without TLS names the whole URL, and has the proxy's headers.
    """
    if proxy is None:
        connection: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, port, timeout=timeout_s)
            if tls is None
            else http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
        )
        connection.connect()
        return connection
    try:
        sock = socket.create_connection((proxy.host, proxy.port), timeout_s)
    except OSError as error:
        raise ProxyRefused(f"{proxy}: {error.strerror or error}") from error
    try:
        if tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
            return _kept_to(connection, sock)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
        _tunnel(sock, f"[{host}]" if ":" in host else host, connection.port, proxy)
        return _kept_to(connection, tls.wrap_socket(sock, server_hostname=host))
    except BaseException:
        sock.close()
        raise


def _kept_to(connection: http.client.HTTPConnection, sock: socket.socket) -> http.client.HTTPConnection:
    """Return the connection over a socket; once that is closed, it does not connect past the proxy."""
    connection.sock, connection.auto_open = sock, 0
    return connection


def _tunnel(sock: socket.socket, host: str, port: int, proxy: Proxy) -> None:
    """Have the proxy connect to the server. Raises ProxyRefused, OSError, HTTPException."""
    headers = {"Host": f"{host}:{port}", "User-Agent": "kubevnfm-cli", **proxy.headers}
    lines = [f"CONNECT {host}:{port} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    sock.sendall("\r\n".join(lines).encode())
    answer = http.client.HTTPResponse(sock, method="CONNECT")
    answer.begin()
    if answer.status != 200:
        hint = "; it wants a login: proxy_user and proxy_password_file in the context" if answer.status == 407 else ""
        raise ProxyRefused(
            f"{proxy} does not connect to {host}:{port}: {answer.status} {printable(answer.reason)}{hint}"
        )
