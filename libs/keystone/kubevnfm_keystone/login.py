"""The access data of an OpenStack, read from a VimConnectionInfo (api.md 3.2)."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1.access import AccessInfo
from keystoneauth1.identity import v3
from keystoneauth1.identity.v3.base import BaseAuth
from keystoneauth1.session import Session
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_sol.access import Connection, check_login, endpoint, openstack_access, pem, region_of

DEFAULT_DOMAIN = "Default"
"""The name of the domain that every Keystone has."""


class _OneAtATime(BaseAuth):
    """keystoneauth lets go of its lock before it returns the token, which another thread with a 401 may take away then."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = threading.Lock()

    def get_access(self, session: Session, **kwargs: Any) -> AccessInfo:
        with self._turn:
            return super().get_access(session, **kwargs)

    def invalidate(self) -> bool:
        with self._turn:
            return super().invalidate()


class PasswordLogin(_OneAtATime, v3.Password):
    """``v3.Password`` for several threads."""


class CredentialLogin(_OneAtATime, v3.ApplicationCredential):
    """``v3.ApplicationCredential`` for several threads."""


@dataclass(frozen=True)
class KeystoneLogin:
    """The credentials for Keystone, the endpoints to use, and how certificates are verified.

    Either a user with a password and a project, or an application credential. It contains secrets in clear, so it is
    only in memory and never shown.
    """

    auth_url: str
    username: str | None = None
    user_id: str | None = None
    user_domain: str | None = None
    user_domain_id: str | None = None
    password: str | None = field(default=None, repr=False)
    project: str | None = None
    project_id: str | None = None
    project_domain: str | None = None
    project_domain_id: str | None = None
    credential_id: str | None = None
    credential_name: str | None = None
    credential_secret: str | None = field(default=None, repr=False)
    region: str | None = None
    interface: str = "public"
    """``public``, ``internal`` or ``admin``: which endpoints of the catalogue are called."""
    check_certificate: bool = True
    check_host_name: bool = True
    certificates: str = ""
    """PEM of the CAs to trust in place of the machine's own."""

    def fingerprint(self) -> str:
        """Return a key for caches that holds no secret in clear."""
        return hashlib.sha256(repr(tuple(vars(self).values())).encode()).hexdigest()

    def plugin(self) -> PasswordLogin | CredentialLogin:
        """Return keystoneauth's form of the credentials."""
        user_domain = _default(self.user_domain, self.user_id, self.user_domain_id)
        if self.credential_secret is not None:
            # An application credential belongs to a project, and Keystone refuses a scope beside it.
            is_by_name = self.credential_id is None
            return CredentialLogin(
                self.auth_url,
                self.credential_secret,
                application_credential_id=self.credential_id,
                application_credential_name=self.credential_name if is_by_name else None,
                username=self.username if is_by_name else None,
                user_id=self.user_id if is_by_name else None,
                user_domain_name=user_domain if is_by_name else None,
                user_domain_id=self.user_domain_id if is_by_name else None,
            )
        return PasswordLogin(
            self.auth_url,
            self.password or "",
            username=self.username,
            user_id=self.user_id,
            user_domain_name=user_domain,
            user_domain_id=self.user_domain_id,
            project_name=None if self.project_id else self.project,
            project_id=self.project_id,
            project_domain_name=_default(self.project_domain, self.project_id, self.project_domain_id),
            project_domain_id=None if self.project_id else self.project_domain_id,
        )


def read_login(connection: Connection, ring: KeyRing) -> KeystoneLogin:
    """Read a VimConnectionInfo. Raises InvalidInput that names the first attribute which is missing."""
    check_login(connection, "vimConnectionInfo")
    access = {name: str(value) for name, value in openstack_access(revealed(connection.access_info, ring)).items()}
    interface = connection.interface_info
    return KeystoneLogin(
        auth_url=_identity_v3(str(endpoint(connection))),
        username=access.get("username"),
        user_id=access.get("userId"),
        user_domain=access.get("userDomain"),
        user_domain_id=access.get("userDomainId"),
        password=access.get("password"),
        project=access.get("project"),
        project_id=access.get("projectId"),
        project_domain=access.get("projectDomain"),
        project_domain_id=access.get("projectDomainId"),
        credential_id=access.get("applicationCredentialId"),
        credential_name=access.get("applicationCredentialName"),
        credential_secret=access.get("applicationCredentialSecret"),
        region=region_of(connection),
        interface=str(connection.extra.get("interface") or "public"),
        check_certificate=not _is_true(interface.get("skipCertificateVerification")),
        check_host_name=not _is_true(interface.get("skipCertificateHostnameCheck")),
        certificates=pem(interface.get("trustedCertificates") or ""),
    )


def _default(domain: str | None, named_by_id: str | None, domain_id: str | None) -> str | None:
    """Return the name of the domain in which a user or project is looked up by name; None if an id says it."""
    return None if named_by_id or domain_id else domain or DEFAULT_DOMAIN


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"


def _identity_v3(url: str) -> str:
    bare = url.rstrip("/")
    return bare if bare.endswith("/v3") else f"{bare.removesuffix('/v2.0')}/v3"
