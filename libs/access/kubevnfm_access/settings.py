"""The settings of authentication; a part of the settings of each process that serves the public API."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from kubevnfm_access.caller import Role
from kubevnfm_access.hosts import is_loopback, name_of

Mode = Literal["none", "basic", "bearer", "keystone", "certificate"]

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "basic": ("auth_users_file",),
    "certificate": ("auth_users_file",),
    "bearer": ("auth_bearer_audience",),
    "keystone": ("auth_keystone_url", "auth_keystone_username", "auth_keystone_password", "auth_keystone_projects"),
}
"""The settings that each mode needs."""

_TURN_ON: Final = (
    "set auth_modes to basic, and auth_users_file to a file of users (`kubevnfm hash-password` hashes their passwords;"
    " other modes: docs/security.md)"
)


class AccessSettings(BaseModel):
    """Several modes can be on together; lists are separated by commas."""

    auth_modes: Annotated[tuple[Mode, ...], NoDecode] = ("none",)
    """The modes of authentication: ``none``, or some of ``basic``, ``bearer``, ``keystone``, ``certificate``."""
    auth_open_to_network: bool = False
    """Refused with mode ``none``, which earlier versions opened to the network by it; without effect with any other mode."""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Names by which callers reach the gateway, in addition to loopback names, its own addresses and ``public_url``. Mode
    ``none`` answers to these only, as a page in a browser could let any other name resolve to this machine; links
    repeat these only."""
    auth_users_file: Path | None = None
    """Users of ``basic`` and ``certificate``: TOML, a table ``[users.<name>]`` each. Reloaded when replaced."""
    auth_roles: Annotated[Mapping[str, Role], NoDecode] = {
        "admin": Role.ADMIN, "operator": Role.OPERATOR, "member": Role.OPERATOR, "reader": Role.READER,
    }  # fmt: skip
    """Roles by the roles and scopes of identity servers: ``<theirs>=<reader, operator or admin>``, separated by commas."""
    auth_cache_s: float = Field(default=60.0, ge=0)
    """How long an identity server's answer is cached: a revoked token may be accepted for so long."""
    auth_ca: Path | None = None
    """PEM file of the CAs of the identity servers; None: the machine's own."""
    auth_bearer_issuer: str | None = None
    """``bearer``: the issuer of the tokens, as in their ``iss``; they are JWTs, verified with its published keys."""
    auth_bearer_jwks_url: str | None = None
    """The address of these keys; None: the one in the issuer's ``/.well-known/openid-configuration``."""
    auth_bearer_audience: str | None = None
    """``bearer``: kubevnfm's name in the tokens' ``aud``. Tokens for other audiences are refused."""
    auth_bearer_roles_claim: str = "scope"
    """The claim with the roles: words of a text, or a list; dots lead into objects (``realm_access.roles``)."""
    auth_bearer_introspection_url: str | None = None
    """Instead of an issuer: the address of token introspection (RFC 7662), with the two settings below."""
    auth_bearer_client_id: str | None = None
    auth_bearer_client_secret: SecretStr | None = None
    auth_keystone_url: str | None = None
    """``keystone``: its address, with ``/v3``."""
    auth_keystone_username: str | None = None
    """The user that validates tokens at Keystone; it needs the right to validate any (the role ``service``, or ``admin``)."""
    auth_keystone_password: SecretStr | None = None
    auth_keystone_user_domain: str = "Default"
    auth_keystone_project: str = "service"
    """Its own project."""
    auth_keystone_project_domain: str = "Default"
    auth_keystone_projects: Annotated[tuple[str, ...], NoDecode] = ()
    """Ids or names of the projects whose members are accepted; ``*``: every project of that cloud."""
    auth_certificate_header: str | None = None
    """``certificate`` behind a proxy that ends TLS: the header in which it forwards the caller's certificate."""
    trusted_proxies: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = ()
    """Networks of the proxies whose ``X-Forwarded-*`` and certificate headers are trusted."""
    rate_limit_per_s: float = Field(default=0.0, ge=0)
    """Requests per second allowed to each caller; 0: no limit."""
    rate_limit_burst: int = Field(default=50, ge=1)
    """Requests in a burst before the rate applies."""

    auth_tries_per_min: float = Field(default=10.0, ge=0)
    """Wrong credentials per minute allowed to each address (to each /64 of IPv6); 0: no limit."""
    auth_tries_burst: int = Field(default=30, ge=1)
    """Wrong credentials in a burst before that rate applies."""

    @field_validator("auth_modes", "auth_keystone_projects", "trusted_proxies", "allowed_hosts", mode="before")
    @classmethod
    def _divided(cls, given: Any) -> Any:
        return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given

    @field_validator("auth_roles", mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        return {theirs.strip(): ours.strip() for theirs, _, ours in pairs}

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [name for name in given if name_of(name) is None or ":" in name]
        if wrong:
            raise ValueError(f"names of hosts without ports expected, got {wrong[0]!r}")
        return tuple(name.lower() for name in given)

    @field_validator("auth_keystone_url", "auth_bearer_jwks_url", "auth_bearer_introspection_url")
    @classmethod
    def _address(cls, given: str | None) -> str | None:
        if given is not None and not given.startswith(("http://", "https://")):
            raise ValueError("an http or https address expected")
        return given.rstrip("/") if given else given

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not self.auth_modes or ("none" in self.auth_modes and len(self.auth_modes) > 1):
            raise ValueError("auth_modes: none, or one or more of the others expected")
        missing = [name for mode in self.auth_modes for name in _NEEDED[mode] if not getattr(self, name)]
        if missing:
            raise ValueError(f"auth_modes: {', '.join(dict.fromkeys(missing))} needed")
        behind_proxy = self.auth_certificate_header and self.trusted_proxies
        if "certificate" in self.auth_modes and not behind_proxy and not getattr(self, "tls_client_ca", None):
            raise ValueError("auth_modes: tls_client_ca needed, or auth_certificate_header and trusted_proxies")
        if "bearer" in self.auth_modes:
            asks = bool(self.auth_bearer_introspection_url)
            if asks == bool(self.auth_bearer_issuer):
                raise ValueError("auth_bearer_issuer or auth_bearer_introspection_url: one of both expected")
            if asks and not (self.auth_bearer_client_id and self.auth_bearer_client_secret):
                raise ValueError("auth_bearer_client_id and auth_bearer_client_secret needed")
        if "none" in self.auth_modes:
            self._check_loopback_only()
        return self

    def _check_loopback_only(self) -> None:
        if self.auth_open_to_network:
            raise ValueError(
                "auth_open_to_network: not supported any more, because every machine that reaches the gateway was admin;"
                f" remove it and {_TURN_ON}"
            )
        if not is_loopback(str(getattr(self, "host", "127.0.0.1"))):
            raise ValueError(f"host: without authentication only loopback is served; {_TURN_ON}")
