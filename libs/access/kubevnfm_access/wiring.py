"""The classes behind the configured modes; a part of the wiring."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

import aiohttp
import structlog
from kubevnfm_clients.session import traced_session
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.tls import ClientTls

from kubevnfm_access.basic import BasicUsers
from kubevnfm_access.certificates import CertificateUsers
from kubevnfm_access.credentials import Authenticator
from kubevnfm_access.discovery import Discovery
from kubevnfm_access.gate import Gate
from kubevnfm_access.hosts import KnownHosts, hosts_of, is_loopback
from kubevnfm_access.limiter import RateLimit
from kubevnfm_access.middleware import Proxies
from kubevnfm_access.openid import LoginClient, OpenId
from kubevnfm_access.settings import AccessSettings, Mode
from kubevnfm_access.tokens_introspected import IntrospectedTokens
from kubevnfm_access.tokens_jwt import IssuerKeys, JwtTokens
from kubevnfm_access.tokens_keystone import KeystoneTokens, KeystoneUser
from kubevnfm_access.tries import Tries
from kubevnfm_access.users import UsersFile

log = structlog.get_logger()


@dataclass(frozen=True)
class Access:
    """The ways into a service."""

    gate: Gate
    login: OpenId | None
    """The client with which people log in at the issuer of tokens."""


@dataclass(frozen=True)
class _Issuer:
    """An issuer of tokens. Gate and login share it: its configuration and its keys are fetched once for both."""

    discovery: Discovery
    keys: IssuerKeys


@asynccontextmanager
async def opened_access(
    settings: AccessSettings, clock: Clock, login: LoginClient | None = None
) -> AsyncIterator[Access]:
    """Yield the ways in. Raises InvalidInput if the users file is invalid."""
    async with traced_session(ClientTls(settings.auth_ca)) as session:
        issuer = _issuer(settings, session)
        openid = OpenId(session, issuer.discovery, issuer.keys, login, clock) if login and issuer else None
        yield Access(_gate(settings, session, issuer, clock, login), openid)


def warn_of_clear_text(settings: AccessSettings, host: str, *, is_tls: bool) -> None:
    """Log once that credentials may cross a network in clear text. ``host``: the address that the listener binds."""
    is_safe = is_tls or settings.trusted_proxies or is_loopback(host)
    if settings.auth_modes != ("none",) and not is_safe:
        log.warning("credentials_in_clear", host=host, modes=list(settings.auth_modes))


def proxies(
    settings: AccessSettings,
    host: str | None = None,
    *,
    public_url: str | None = None,
    monitoring: Sequence[IPv4Network | IPv6Network] = (),
) -> Proxies:
    """Return the trusted proxies. ``host``: of the listener; ``public_url``: where callers reach it; ``monitoring``: as of `Proxies`."""
    hosts = KnownHosts(hosts_of(*settings.allowed_hosts, public_url, host))
    return Proxies(settings.trusted_proxies, settings.auth_certificate_header, hosts, public_url, monitoring)


def _issuer(settings: AccessSettings, session: aiohttp.ClientSession) -> _Issuer | None:
    if settings.auth_bearer_issuer is None:
        return None
    discovery = Discovery(session, issuer=settings.auth_bearer_issuer)
    return _Issuer(discovery, IssuerKeys(session, discovery, jwks_url=settings.auth_bearer_jwks_url))


def _gate(
    settings: AccessSettings,
    session: aiohttp.ClientSession,
    issuer: _Issuer | None,
    clock: Clock,
    login: LoginClient | None,
) -> Gate:
    limit = (
        RateLimit(per_s=settings.rate_limit_per_s, burst=settings.rate_limit_burst)
        if settings.rate_limit_per_s
        else None
    )
    tries = (
        Tries(per_min=settings.auth_tries_per_min, burst=settings.auth_tries_burst)
        if settings.auth_tries_per_min
        else None
    )
    modes = [mode for mode in settings.auth_modes if mode != "none"]
    return Gate([_authenticator(mode, settings, session, issuer, clock, login) for mode in modes], limit, tries)


def _authenticator(
    mode: Mode,
    s: AccessSettings,
    session: aiohttp.ClientSession,
    issuer: _Issuer | None,
    clock: Clock,
    login: LoginClient | None,
) -> Authenticator:
    """Return the authenticator of a mode, whose settings have been checked to be complete."""
    if mode == "keystone":
        assert s.auth_keystone_url is not None
        assert s.auth_keystone_username is not None
        assert s.auth_keystone_password is not None
        user = KeystoneUser(
            session,
            s.auth_keystone_url,
            name=s.auth_keystone_username,
            password=s.auth_keystone_password.get_secret_value(),
            user_domain=s.auth_keystone_user_domain,
            project=s.auth_keystone_project,
            project_domain=s.auth_keystone_project_domain,
        )
        return KeystoneTokens(
            session,
            user,
            s.auth_keystone_url,
            projects=s.auth_keystone_projects,
            role_by_name=s.auth_roles,
            keep_s=s.auth_cache_s,
        )
    if mode == "bearer":
        return _bearer(s, session, issuer, login)
    assert s.auth_users_file is not None
    users = UsersFile(s.auth_users_file)
    return CertificateUsers(users, clock) if mode == "certificate" else BasicUsers(users)


def _bearer(
    s: AccessSettings, session: aiohttp.ClientSession, issuer: _Issuer | None, login: LoginClient | None
) -> Authenticator:
    assert s.auth_bearer_audience is not None
    if issuer is not None:
        return JwtTokens(
            issuer.keys,
            issuer=issuer.discovery.issuer,
            audience=s.auth_bearer_audience,
            roles_claim=s.auth_bearer_roles_claim,
            role_by_name=s.auth_roles,
            login_client=login.id if login else None,
        )
    assert s.auth_bearer_introspection_url is not None
    assert s.auth_bearer_client_id is not None
    assert s.auth_bearer_client_secret is not None
    return IntrospectedTokens(
        session,
        url=s.auth_bearer_introspection_url,
        client_id=s.auth_bearer_client_id,
        client_secret=s.auth_bearer_client_secret.get_secret_value(),
        audience=s.auth_bearer_audience,
        roles_claim=s.auth_bearer_roles_claim,
        role_by_name=s.auth_roles,
        keep_s=s.auth_cache_s,
    )
