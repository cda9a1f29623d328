"""Reads a VIM's access data: the address of its API server, trusted certificates, and credentials (capi.md CR-007)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import ssl
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from kubevnfm_events import VimConnection
from kubevnfm_kit.cluster_trust import ClusterTrust, cluster_trust
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, revealed

_ACCESS = "vimConnectionInfo.accessInfo"
SERVICE_ACCOUNT: Final = "service_account"
PROXY_URL: Final = "proxy_url"
"""Attributes of the access data of cloud regions (multicloud.md MC-074); no request for a VIM or VNF has them."""


@dataclass(frozen=True)
class _Credentials:
    """Access data in clear."""

    @property
    def fingerprint(self) -> str:
        """A key for caches and pools that is different for different credentials and does not reveal them."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


@dataclass(frozen=True)
class OidcUser(_Credentials):
    """A user of an OpenID provider who logs in with a password, at the client that the cluster knows; or that client itself."""

    token_url: str
    username: str
    """Empty: the client logs in with its secret."""
    client_id: str
    password: str = field(repr=False)
    client_secret: str = field(default="", repr=False)
    scope: str = "openid"
    trust: ClusterTrust = field(default_factory=ClusterTrust)
    """The provider's certificate is verified as the cluster's is; the system's CAs are trusted in addition."""


@dataclass(frozen=True)
class TokenOrder:
    """The ServiceAccount whose tokens are used, by TokenRequest (``authentication.k8s.io/v1``)."""

    namespace: str
    name: str
    expiration_s: int
    audiences: tuple[str, ...] = ()
    """Empty: that of the API server."""

    def __str__(self) -> str:
        return f"ServiceAccount {self.namespace}/{self.name}"


@dataclass(frozen=True)
class ClusterAccess(_Credentials):
    """Everything that a connection needs. It contains secrets in clear, so it is only in memory and never shown."""

    endpoint: str
    trust: ClusterTrust = field(default_factory=ClusterTrust)
    bearer_token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    oidc: OidcUser | None = None
    service_account: TokenOrder | None = None
    """The other credentials are for requests of its tokens only, and every other call has such a token."""
    proxy_url: str = field(default="", repr=False)
    """The proxy between kubevnfm and the API server, with its user and password."""
    of_vnf: bool = False
    """Whether a VNF has chosen the endpoint."""

    @property
    def for_tokens(self) -> ClusterAccess:
        """The access data for requests of the ServiceAccount's tokens."""
        return replace(self, service_account=None)


def read_access(vim: VimConnection, ring: KeyRing) -> ClusterAccess:
    """Read a complete VIM connection. Raises InvalidInput naming the missing attribute.

    If there are several credentials, OIDC takes precedence over user name and password, and those over a token, as in
    Tacker. A client certificate can be added to any of them.
    """
    interface: Mapping[str, Any] = revealed(vim.interface_info, ring)
    access: Mapping[str, Any] = revealed(vim.access_info, ring)
    endpoint = str(interface.get("endpoint") or access.get("auth_url") or access.get("authUrl") or "").rstrip("/")
    if not _is_url(endpoint):
        raise InvalidInput("vimConnectionInfo.interfaceInfo.endpoint", "the https URL of a Kubernetes API expected")
    text = {name: str(value) for name, value in access.items() if value is not None}
    ca = interface.get("ssl_ca_cert") or text.get("ssl_ca_cert")
    trust = cluster_trust(ca, skips_verification=interface.get("skipTlsVerify") is True)
    common: dict[str, Any] = {  # keyword arguments, which mypy checks only one by one
        "endpoint": endpoint,
        "trust": trust,
        "client_certificate": _pem(text.get("client_certificate")),
        "client_key": _pem(text.get("client_key")),
        "service_account": _token_order(access.get(SERVICE_ACCOUNT)),
        "proxy_url": text.get(PROXY_URL, ""),
        "of_vnf": vim.of_vnf,
    }
    username, password = text.get("username", ""), text.get("password", "")
    if text.get("oidc_token_url"):
        return ClusterAccess(**common, oidc=_oidc_user(text, trust))
    if username and password:
        return ClusterAccess(**common, username=username, password=password)
    if text.get("bearer_token"):
        _check_token(text["bearer_token"])
        return ClusterAccess(**common, bearer_token=text["bearer_token"])
    if common["client_certificate"] and common["client_key"]:
        return ClusterAccess(**common)
    raise InvalidInput(
        _ACCESS,
        "one of bearer_token, username and password, client_certificate and client_key, or oidc_token_url expected",
    )


def _oidc_user(text: Mapping[str, str], trust: ClusterTrust) -> OidcUser:
    if not _is_url(text["oidc_token_url"]):
        raise InvalidInput(f"{_ACCESS}.oidc_token_url", "the https URL of an OpenID provider's token endpoint expected")
    # With a user name or a password it is a user, otherwise the client.
    is_user = bool(text.get("username") or text.get("password"))
    for name in ("client_id", *(("username", "password") if is_user else ("client_secret",))):
        if not text.get(name):
            raise InvalidInput(f"{_ACCESS}.{name}", "required with oidc_token_url")
    return OidcUser(
        text["oidc_token_url"],
        text.get("username", ""),
        text["client_id"],
        text.get("password", ""),
        text.get("client_secret", ""),
        text.get("oidc_scope") or "openid",
        trust,
    )


def _token_order(given: object) -> TokenOrder | None:
    if not isinstance(given, Mapping):
        return None
    audiences = tuple(str(each) for each in given.get("audiences") or ())
    return TokenOrder(str(given["namespace"]), str(given["service_account"]), int(given["expiration_s"]), audiences)


async def cluster_tls(access: ClusterAccess) -> ssl.SSLContext | bool:
    """Return the TLS of calls of the API server, for `aiohttp`. Raises InvalidInput for what is not PEM."""
    if not access.endpoint.startswith("https"):
        return True
    try:
        # In a thread, because without a CA it reads the system's certificates from disk.
        return await asyncio.to_thread(_cluster_context, access)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InvalidInput(
            "vimConnectionInfo", "ssl_ca_cert, client_certificate, client_key: matching PEM texts expected"
        ) from error


async def provider_tls(user: OidcUser) -> ssl.SSLContext | bool:
    """Return the TLS of calls of the OpenID provider. Raises InvalidInput.

    It presents no client certificate: that of the cluster's user is not for the provider.
    """
    if not user.token_url.startswith("https"):
        return True
    try:
        return await asyncio.to_thread(_context, user.trust, only_ca=False)
    except (OSError, ValueError) as error:
        raise InvalidInput("vimConnectionInfo", "ssl_ca_cert: certificates in PEM form expected") from error


@dataclass(frozen=True)
class _Form:
    """All that a context is made of: users with the same have one context, as one with the machine's CAs takes 0.8 MiB and 20 ms."""

    trust: ClusterTrust
    only_ca: bool
    pair: str
    """A digest of the client certificate and its key; "": none is presented."""
    machine: tuple[int, ...]
    """When the machine's CAs changed last: connections that are made later trust the present ones."""


_contexts: Final[WeakValueDictionary[_Form, ssl.SSLContext]] = WeakValueDictionary()
_making: Final = threading.Lock()


def _cluster_context(access: ClusterAccess) -> ssl.SSLContext:
    # API servers take the user of a certificate before that of a token.
    shows_pair = bool(access.client_certificate and access.client_key and access.service_account is None)
    return _context(
        access.trust, only_ca=True, pair=(access.client_certificate, access.client_key) if shows_pair else None
    )


def _context(trust: ClusterTrust, *, only_ca: bool, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
    """``only_ca``: the system's CAs are not trusted if ``ssl_ca_cert`` has some; ``pair``: a client certificate and its key."""
    digest = "" if pair is None else hashlib.sha256("\n".join(pair).encode()).hexdigest()
    uses_machine = trust.is_verified and not (only_ca and trust.ca_pem)
    form = _Form(trust, only_ca, digest, _machine_changed_at() if uses_machine else ())
    with _making:
        context = _contexts.get(form)
        if context is None:
            context = _new_context(trust, only_ca=only_ca)
            if pair is not None:
                _load_pair(context, *pair)
            _contexts[form] = context
        return context


def _machine_changed_at() -> tuple[int, ...]:
    paths = ssl.get_default_verify_paths()
    return tuple(Path(each).stat().st_mtime_ns for each in (paths.cafile, paths.capath) if each is not None)


def _new_context(trust: ClusterTrust, *, only_ca: bool) -> ssl.SSLContext:
    if not trust.is_verified:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    context = ssl.create_default_context(cadata=(trust.ca_pem or None) if only_ca else None)
    if trust.ca_pem and not only_ca:
        context.load_verify_locations(cadata=trust.ca_pem)
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a client certificate and its key into the context."""
    # OpenSSL reads them only from a file. mkstemp() makes one that other users cannot read.
    descriptor, path = tempfile.mkstemp(prefix="kubevnfm-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108


def _check_token(token: str) -> None:
    """Raise InvalidInput for a token that is no part of a header; often a file with it ends with a line break."""
    if not all("!" <= each <= "~" for each in token):
        raise InvalidInput(
            f"{_ACCESS}.bearer_token", "visible ASCII characters without blanks and line breaks expected"
        )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # `port` raises ValueError if it is not a number from 0 to 65535.
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return False


def _pem(value: object) -> str:
    """Return a PEM text; in requests its line ends are often the two characters ``\\n``."""
    return str(value).replace("\\n", "\n") if value else ""
