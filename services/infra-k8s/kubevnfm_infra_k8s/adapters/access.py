"""Reads a VIM's access data: the address of its API server, trusted certificates, and credentials (capi.md CR-007)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from kubevnfm_events import VimConnection
from kubevnfm_kit.cluster_trust import cluster_trust
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, revealed


@dataclass(frozen=True)
class Oidc:
    """Credentials for a token of an OpenID provider (password grant)."""

    token_url: str
    username: str
    client_id: str
    password: str = field(repr=False)
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Access:
    """Everything that a connection needs. It contains secrets in clear, so it is only in memory and never shown."""

    endpoint: str
    ca_pem: str = field(default="", repr=False)
    """"": the system's certificate authorities."""
    is_verified: bool = True
    bearer_token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    oidc: Oidc | None = None

    @property
    def fingerprint(self) -> str:
        """A key for pools that is different for different credentials and does not reveal them."""
        parts = [
            self.endpoint, self.ca_pem, str(self.is_verified), self.bearer_token, self.username, self.password,
            self.client_certificate, self.client_key,
        ]  # fmt: skip
        if self.oidc is not None:
            known = self.oidc
            parts += [known.token_url, known.username, known.password, known.client_id, known.client_secret]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_access(vim: VimConnection, ring: KeyRing) -> Access:
    """Read a complete VIM connection. Raises InvalidInput naming the missing attribute.

    If there are several credentials, OIDC takes precedence over user name and password, and those over a token, as in
    Tacker. A client certificate can be added to any of them.
    """
    interface: Mapping[str, Any] = vim.interface_info
    access: Mapping[str, Any] = revealed(vim.access_info, ring)
    endpoint = str(interface.get("endpoint") or access.get("auth_url") or access.get("authUrl") or "").rstrip("/")
    if urlsplit(endpoint).scheme not in ("https", "http") or not urlsplit(endpoint).hostname:
        raise InvalidInput("vimConnectionInfo.interfaceInfo.endpoint", "the https URL of a Kubernetes API expected")
    text = {name: str(value) for name, value in access.items() if value is not None}
    ca = interface.get("ssl_ca_cert") or text.get("ssl_ca_cert")
    trust = cluster_trust(ca, skips_verification=interface.get("skipTlsVerify") is True)
    common: dict[str, Any] = {  # keyword arguments, which mypy checks only one by one
        "endpoint": endpoint,
        "ca_pem": trust.ca_pem,
        "is_verified": trust.is_verified,
        "client_certificate": _pem(text.get("client_certificate")),
        "client_key": _pem(text.get("client_key")),
    }
    username, password = text.get("username", ""), text.get("password", "")
    if text.get("oidc_token_url"):
        if not text.get("client_id"):
            raise InvalidInput("vimConnectionInfo.accessInfo.client_id", "required with oidc_token_url")
        oidc = Oidc(text["oidc_token_url"], username, text["client_id"], password, text.get("client_secret", ""))
        return Access(**common, oidc=oidc)
    if username and password:
        return Access(**common, username=username, password=password)
    if text.get("bearer_token"):
        return Access(**common, bearer_token=text["bearer_token"])
    if common["client_certificate"] and common["client_key"]:
        return Access(**common)
    raise InvalidInput(
        "vimConnectionInfo.accessInfo",
        "one of bearer_token, username and password, client_certificate and client_key, or oidc_token_url expected",
    )


def _pem(value: object) -> str:
    """Return a PEM text; in requests its line ends are often the two characters ``\\n``."""
    return str(value).replace("\\n", "\n") if value else ""
