"""The middleware that authenticates and authorizes callers before any other part of a request is read."""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.request_ids import CALLER_NAME

from kubevnfm_access.caller import DRY_RUN, Caller, Role, is_changing, is_for_machines, is_open, is_webhook
from kubevnfm_access.certificates import forwarded_certificate
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import Forbidden, Unauthenticated
from kubevnfm_access.gate import Gate, check_right
from kubevnfm_access.hosts import AuthenticationOff, KnownHosts, UnknownHost, is_loopback_address, name_of
from kubevnfm_access.sessions import CHALLENGE, PAGE_HEADER, Sessions, key_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_FOR: Final = re.compile(r"for=([^;,\s]+)", re.IGNORECASE)

CALLER: Final = web.RequestKey("caller", Caller)


@dataclass(frozen=True, repr=False)
class _Session:
    """The session that a request's cookie names."""

    sessions: Sessions
    key: str

    async def credentials(self) -> Credentials | None:
        """Return what it stands for; None if it has ended."""
        return await self.sessions.credentials(self.key)

    async def end(self) -> None:
        """End it."""
        await self.sessions.end(self.key)


@dataclass(frozen=True, repr=False)
class Admission:
    """The result of a request's authentication, for answers that last long."""

    gate: Gate
    credentials: Credentials
    method: str
    path: str
    session: _Session | None = None
    """The session that carries the request; None: its headers or its certificate do."""

    async def again(self, caller: Caller) -> Caller | None:
        """Return the present state of ``caller``; None if its credentials are not valid any more, or its session has ended."""
        credentials = self.credentials
        # No verdict while the database does not answer, as with identity servers (`Gate.again`).
        with suppress(OutsideUnavailable):
            if self.session is not None:
                stood_for = await self.session.credentials()
                if stood_for is None:
                    return None
                # Its token may be a newer one than that of the request.
                credentials = replace(stood_for, certificate=credentials.certificate)
        return await self.gate.again(caller, credentials, self.method, self.path)


ADMISSION: Final = web.RequestKey("admission", Admission)


@dataclass(frozen=True)
class Proxies:
    """The way to this gateway: the trusted proxies, whose headers are used, and the names of its hosts."""

    networks: Sequence[IPv4Network | IPv6Network] = ()
    certificate_header: str | None = None
    hosts: KnownHosts = field(default_factory=KnownHosts)
    public_url: str | None = None
    """Where callers reach the gateway; it says whether they use TLS at a proxy that is not a trusted one."""
    monitoring: Sequence[IPv4Network | IPv6Network] = ()
    """Networks of monitoring systems, whose requests to webhooks need no credentials."""

    def are_in_front_of(self, request: web.Request) -> bool:
        """Return whether one of them sent the request."""
        return self._is_one(request.remote or "")

    def address(self, request: web.Request) -> str:
        """Return the caller's address: the last one in ``X-Forwarded-For`` that is not a trusted proxy."""
        remote = request.remote or ""
        if not self._is_one(remote):
            return remote
        hops = _hops(request)
        # From the end: a caller can write any earlier entries itself; each proxy appends the address that it sees.
        return next((hop for hop in reversed(hops) if not self._is_one(hop)), remote)

    def root(self, request: web.Request) -> str:
        """Return scheme and host as the caller sees them; for an unknown host the address that the caller connected to."""
        scheme, host = request.scheme, self._host(request)
        address, port = _local_address(request)
        is_known = self.hosts.admits(host, local_address=address)
        if self.are_in_front_of(request):
            scheme = request.headers.get("X-Forwarded-Proto", scheme)
            # A trusted proxy is trusted with this header too, as long as it names one host.
            is_known = is_known or ("X-Forwarded-Host" in request.headers and name_of(host) is not None)
        if not is_known:
            host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        return f"{scheme}://{host}"

    def check_local(self, request: web.Request) -> None:
        """Raise AuthenticationOff unless the request was made on this machine; its ``Host`` proves nothing.

        The peer must have a loopback address, and so must every address that it says it forwards from: a loopback
        address before that of another machine is one of that machine's, or was written by the caller. It need not be a
        trusted proxy: one on this machine that was not configured here would let every caller in as an admin.
        """
        addresses = [request.remote or "", *_hops(request), *_further_hops(request)]
        if not all(is_loopback_address(address) for address in addresses):
            raise AuthenticationOff(
                "without authentication only callers on this machine are answered; set auth_modes (basic with a users file)"
            )

    def check_host(self, request: web.Request) -> None:
        """Raise UnknownHost unless the request is for a known host."""
        if not self.hosts.admits(self._host(request), local_address=_local_address(request)[0]):
            raise UnknownHost(
                "Host: a loopback name, an address of this gateway, or a name in allowed_hosts or public_url expected"
            )

    def check_origin(self, request: web.Request) -> None:
        """Raise Forbidden if a page of another site would change something.

        Browsers send some requests of a page to every site, with the certificate or password that they know for it
        (cross-site request forgery), and name the page's site in ``Origin`` (RFC 6454).
        """
        origin = request.headers.get("Origin")
        if origin is None or not is_changing(request.method):
            return
        site = origin.partition("://")[2].lower()
        if site != self._host(request).lower() and name_of(site) not in self.hosts.names:
            raise Forbidden("Origin: a page of another site may not change anything here")

    def check_own_page(self, request: web.Request) -> None:
        """Raise Forbidden if something would be changed, unless a page of this very host and port says that it is the sender.

        Browsers send a session's cookie with requests of pages of another port of this host, too (RFC 6265 8.5), and some
        with those of its pages by plain HTTP, which anyone on the way can write. A page by TLS is admitted where the
        gateway sees none: at a proxy that it does not know.
        """
        if not is_changing(request.method):
            return
        host, given = self._host(request).lower(), [each.lower() for each in request.headers.getall("Origin", [])]
        schemes = ("https",) if self.is_tls(request) else ("https", "http")
        if not host or given not in [[f"{scheme}://{host}"] for scheme in schemes]:
            raise Forbidden("Origin: in a session only a page of this gateway may change anything")

    def is_tls(self, request: web.Request) -> bool:
        """Return whether the caller uses TLS: here, or at a trusted proxy, or else by the public URL that it has asked."""
        if self.root(request).startswith("https://"):
            return True
        is_said = self.are_in_front_of(request) and "X-Forwarded-Proto" in request.headers
        return not is_said and self.public_url is not None and _is_at(self.public_url, self._host(request))

    def _host(self, request: web.Request) -> str:
        """Return the host that the caller has named; "" for none, or for several."""
        given = request.headers.getall("Host", [])
        if self.are_in_front_of(request):
            given = request.headers.getall("X-Forwarded-Host", given)
        return given[0] if len(given) == 1 else ""

    def certificate(self, request: web.Request) -> bytes | None:
        """Return the caller's certificate as DER: the one of TLS, or the one that a trusted proxy forwards."""
        # Behind a proxy the certificate of the connection is the proxy's, not the caller's.
        if self.certificate_header is not None and self.are_in_front_of(request):
            header = request.headers.get(self.certificate_header)
            return forwarded_certificate(header) if header else None
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        return connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLObject) else None

    def _is_one(self, address: str) -> bool:
        return is_in(address, self.networks)


def is_in(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Return whether a text is an address of one of the networks."""
    if not networks:
        return False
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    # A listener on all IPv6 addresses sees IPv4 callers at mapped addresses.
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return any(parsed in network or (mapped is not None and mapped in network) for network in networks)


def _is_at(url: str, host: str) -> bool:
    """Return whether ``host[:port]`` is asked by TLS at the URL."""
    parts = urlsplit(url.lower())
    return parts.scheme == "https" and bool(host) and parts.netloc.removesuffix(":443") == host.lower()


def _hops(request: web.Request) -> list[str]:
    """Return the addresses in ``X-Forwarded-For``, the caller's first."""
    return [hop.strip() for value in request.headers.getall("X-Forwarded-For", []) for hop in value.split(",")]


def _further_hops(request: web.Request) -> list[str]:
    """Return the addresses in ``X-Real-IP`` and ``Forwarded`` (RFC 7239), which are used to refuse callers only."""
    named = (node.strip('"') for value in request.headers.getall("Forwarded", []) for node in _FOR.findall(value))
    # A node may have a port (RFC 7239 6): ``"[2001:db8::7]:4711"``.
    return [*request.headers.getall("X-Real-IP", []), *(name_of(node) or node for node in named)]


def _local_address(request: web.Request) -> tuple[str, int]:
    """Return address and port at which the request came in."""
    found = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return (str(found[0]), int(found[1])) if found else ("", 0)


PROXIES: Final = web.AppKey("proxies", Proxies)


def admitted(gate: Gate, proxies: Proxies, sessions: Sessions | None = None) -> Any:
    """Return the middleware. It reports an unknown path or method before missing credentials (api.md 1.2)."""

    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_for_machines(request.method, request.path):
            if gate.is_open:
                proxies.check_local(request)
                proxies.check_host(request)
            proxies.check_origin(request)
        if request.match_info.http_exception is None and not is_open(request.method, request.path):
            credentials = Credentials(
                authorization=request.headers.getall("Authorization", []),
                auth_token=request.headers.get("X-Auth-Token"),
                certificate=proxies.certificate(request),
            )
            if (reporter := _reporter(request, gate, proxies, credentials)) is not None:
                request[CALLER] = reporter
                return await handler(request)
            session = None if sessions is None or gate.is_open else _session(request, sessions, proxies)
            if session is not None and (stood_for := await session.credentials()) is not None:
                proxies.check_own_page(request)
                credentials = replace(stood_for, certificate=credentials.certificate)
            else:
                session = None
            caller = request[CALLER] = await _caller(request, gate, proxies, credentials, session)
            request[CALLER_NAME] = caller.subject
            check_right(caller, request.method, request.path, is_dry_run=DRY_RUN in request.query)
            request[ADMISSION] = Admission(gate, credentials, request.method, request.path, session)
        return await handler(request)

    return admit


def _reporter(request: web.Request, gate: Gate, proxies: Proxies, credentials: Credentials) -> Caller | None:
    """Return the monitoring system that calls a webhook without credentials from a network that is admitted; None: it is another request.

    Raises TooManyRequests. A page in a browser there is no monitoring system: browsers send ``Origin`` with each POST.
    """
    is_plain = not (credentials.authorization or credentials.auth_token or credentials.certificate)
    if gate.is_open or not is_plain or "Origin" in request.headers or not is_webhook(request.method, request.path):
        return None
    address = proxies.address(request)
    if not is_in(address, proxies.monitoring):
        return None
    gate.check_address(address)
    return Caller(address, "network", frozenset({Role.OPERATOR}))


def _session(request: web.Request, sessions: Sessions, proxies: Proxies) -> _Session | None:
    """Return the session that carries a request; None if none does."""
    key = session_key(request, proxies)
    return None if key is None else _Session(sessions, key)


def session_key(request: web.Request, proxies: Proxies) -> str | None:
    """Return the key of the session that the cookie names; None without a cookie, or where headers have credentials."""
    if "Authorization" in request.headers or "X-Auth-Token" in request.headers:
        return None
    return key_of(request, is_tls=proxies.is_tls(request))


async def _caller(
    request: web.Request, gate: Gate, proxies: Proxies, credentials: Credentials, session: _Session | None
) -> Caller:
    """Return the caller. Raises what `Gate.admit` does; a session whose credentials are refused has ended."""
    try:
        return await gate.admit(credentials, address=proxies.address(request), is_session=session is not None)
    except Unauthenticated as refusal:
        if session is not None:
            await session.end()
        if PAGE_HEADER in request.headers:
            raise Unauthenticated(str(refusal), [CHALLENGE]) from refusal
        raise
