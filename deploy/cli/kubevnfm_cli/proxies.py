"""The proxy that leads to a server: that of a context, or by the rule of all of kubevnfm, and the connection through it."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Final

from kubevnfm_proxies.rule import Proxies, Proxy, ProxyFault

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.terminal import printable

NONE: Final = "none"
"""The value of a context that uses no proxy, whatever the environment says."""


class ProxyRefused(OSError):
    """The proxy does not connect to the server."""


def proxy_of(url: str, *, named: str | None, login: str | None, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy to the server of a URL; None: none. ``named``: that of the context. Raises UsageFault."""
    try:
        if named is not None:
            return None if named == NONE else Proxy.read(named, "proxy", login)
        return Proxies.read(environment).to(url)
    except ProxyFault as fault:
        raise UsageFault(str(fault)) from None


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
