"""One session with the services of an OpenStack, logged in to Keystone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import requests
from keystoneauth1.access import AccessInfo, AccessInfoV3
from keystoneauth1.exceptions.connection import SSLError
from kubevnfm_kit.metrics import Metrics

from kubevnfm_keystone.access_rules import AccessRule, rules_of
from kubevnfm_keystone.catalogue import Catalogue
from kubevnfm_keystone.counted_session import CountedSession, OpenstackMetrics
from kubevnfm_keystone.failures import NotKeystone
from kubevnfm_keystone.guard import GuardedAdapter
from kubevnfm_keystone.login import KeystoneLogin

_SOCKETS: Final = 32
"""Open sockets to one service; further simultaneous calls open and close their own."""


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class KeystoneSession:
    """A session of keystoneauth, which blocks; it logs in again when its token has expired."""

    def __init__(self, login: KeystoneLogin, *, timeout_s: float, counts: OpenstackMetrics | None = None) -> None:
        """``timeout_s``: time limit for one request; ``counts``: of the calls of this process."""
        self.login, self._auth, self._timeout_s = login, login.plugin(), timeout_s
        self._certificates: tempfile._TemporaryFileWrapper[str] | None = None
        http = requests.Session()
        # The adapter chooses the proxy of each request.
        http.trust_env = False
        # keystoneauth writes the token. Without this, requests looks for a password in ~/.netrc before each request.
        http.auth = _unchanged
        adapter = GuardedAdapter(check_host_name=login.check_host_name, pool_connections=8, pool_maxsize=_SOCKETS)
        for scheme in ("http://", "https://"):
            http.mount(scheme, adapter)
        counts = counts or OpenstackMetrics(Metrics())
        self.session = CountedSession(counts, auth=self._auth, session=http, verify=self._verify(), timeout=timeout_s)

    def log_in(self) -> AccessInfo:
        """Log in. Raises NotKeystone and the errors of keystoneauth."""
        self._check_is_keystone()
        return self._auth.get_access(self.session)

    def renew(self) -> None:
        """Log in again, though the token has not ended yet. Raises as `log_in`."""
        self._auth.invalidate()
        self.log_in()

    def user_id(self) -> str:
        """Log in if necessary, and return the id of the user. Raises as `log_in`."""
        return str(self._auth.get_access(self.session).user_id)

    def credential_id(self) -> str | None:
        """Log in if necessary, and return the id of the application credential of the login, if it is one. Raises as `log_in`."""
        access = self._auth.get_access(self.session)
        found = access.application_credential_id if isinstance(access, AccessInfoV3) else None
        return None if found is None else str(found)

    def access_rules(self) -> Sequence[AccessRule]:
        """Log in if necessary, and return the rules by which the login is limited; empty: it is not. Raises as `log_in`."""
        return rules_of(self._auth.get_access(self.session))

    def catalogue(self) -> Catalogue:
        """Log in if necessary, and return the catalogue. Raises as `log_in`."""
        return Catalogue(self._auth.get_access(self.session), self.login)

    def _check_is_keystone(self) -> None:
        """Raise NotKeystone unless the address answers with the document of the v3 API."""
        # Without this, another service that rejects the request for a token looks like a Keystone that rejects the user.
        try:
            answer = self.session.get(
                self.login.auth_url, authenticated=False, raise_exc=False, headers={"Accept": "application/json"}
            )
        except SSLError as error:
            if self._speaks_http():
                raise NotKeystone("the port speaks http, and the address says https") from error
            raise
        if answer.status_code >= 500 or answer.status_code == 429:
            return  # a Keystone, or its proxy, that cannot answer now: the log-in reports it
        try:
            document = answer.json()
        except ValueError:
            document = None
        version = document.get("version") if isinstance(document, dict) else None
        if not isinstance(version, dict) or not str(version.get("id", "")).startswith("v3"):
            raise NotKeystone(
                f"no Keystone v3 answers at this address: {self.login.auth_url} answered {answer.status_code} without "
                "the document of its version"
            )

    def _speaks_http(self) -> bool:
        """Return whether the port of an https address answers http. Some servers end the handshake without a word."""
        address = f"http://{urlsplit(self.login.auth_url).netloc}/"
        try:
            answer = self.session.session.get(address, timeout=self._timeout_s, allow_redirects=False)
        except (requests.RequestException, OSError):
            return False
        # TLS servers answer 400 to plain HTTP.
        return answer.status_code != 400

    def _verify(self) -> bool | str:
        if not self.login.check_certificate:
            return False
        if not self.login.certificates:
            return True
        # requests reads trusted certificates only from a file.
        self._certificates = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - closed with the session
        self._certificates.write(self.login.certificates)
        self._certificates.flush()
        return self._certificates.name

    def close(self) -> None:
        """Close the sockets and delete the file of certificates."""
        self.session.session.close()
        if self._certificates is not None:
            self._certificates.close()
