"""One shared, authenticated connection for each tenant of a VIM, in a bounded thread pool.

openstacksdk blocks, so each call runs in a thread. Its proxies are used as plain HTTP adapters (``conn.compute.get``),
because its resource classes take longer than the requests. The connection caches tokens and the service catalogue.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import requests
from keystoneauth1 import exceptions as keystone
from keystoneauth1 import session as keystone_session
from keystoneauth1.identity import v3
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_sol.access import check_login, endpoint, openstack_access, pem
from openstack import exceptions as sdk
from openstack.connection import Connection

from kubevnfm_infra_openstack.domain.errors import VimAccessDataMissing, VimRefused, VimUnavailable

T = TypeVar("T")

_TITLES: Final[Mapping[str, str]] = {
    "orchestration": "Heat",
    "compute": "Nova",
    "network": "Neutron",
    "block_storage": "Cinder",
    "image": "Glance",
}
_TEXT_SHOWN = 500
_SOCKETS = 32
"""Open sockets to one service; further simultaneous calls open and close their own."""

Document = Mapping[str, Any]
"""An object in an answer of an OpenStack service. Its API reference defines it; only members we need are read."""


@dataclass(frozen=True)
class AccessData:
    """The credentials for Keystone, and how its certificate is verified."""

    auth_url: str
    username: str
    password: str
    project: str
    project_domain: str
    user_domain: str
    region: str | None = None
    check_certificate: bool = True
    check_host_name: bool = True
    certificates: str = ""
    """PEM."""

    def fingerprint(self) -> str:
        """Return a key for caches that holds no secret in clear."""
        return hashlib.sha256(repr(tuple(vars(self).values())).encode()).hexdigest()


def access_data(vim: VimConnection, ring: KeyRing) -> AccessData:
    """Read a VimConnectionInfo (api.md 3.2). Raises VimAccessDataMissing naming the missing attribute."""
    try:
        check_login(vim, "vimConnectionInfo")
    except InvalidInput as error:
        raise VimAccessDataMissing(error.field, error.reason) from error
    access = {name: str(value) for name, value in openstack_access(revealed(vim.access_info, ring)).items()}
    interface = vim.interface_info
    return AccessData(
        auth_url=_identity_v3(str(endpoint(vim))),
        username=access["username"],
        password=access["password"],
        project=access["project"],
        project_domain=access.get("projectDomain", "Default"),
        user_domain=access.get("userDomain", "Default"),
        region=access.get("region"),
        check_certificate=not _is_true(interface.get("skipCertificateVerification")),
        check_host_name=not _is_true(interface.get("skipCertificateHostnameCheck")),
        certificates=pem(interface.get("trustedCertificates") or ""),
    )


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"


def _identity_v3(endpoint: str) -> str:
    bare = endpoint.rstrip("/")
    return bare if bare.endswith("/v3") else f"{bare.removesuffix('/v2.0')}/v3"


class _AnyHostName(requests.adapters.HTTPAdapter):
    """Verifies the certificate, but not its host name (skipCertificateHostnameCheck)."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:  # requests does not type its arguments
        super().init_poolmanager(*args, assert_hostname=False, **kwargs)


class Tenant:
    """HTTP calls to the services of one tenant."""

    def __init__(
        self, access: AccessData, *, calls: ThreadPoolExecutor, uploads: ThreadPoolExecutor, timeout_s: float
    ) -> None:
        self._access, self._calls, self._uploads, self._timeout_s = access, calls, uploads, timeout_s
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._certificates: tempfile._TemporaryFileWrapper[str] | None = None

    async def project_id(self) -> str:
        """Return the tenant's id. Raises VimRefused, VimUnavailable."""
        connection = await self._open()
        return str(await self._run("Keystone", lambda: connection.current_project_id))

    async def call(
        self,
        service: str,
        method: str,
        path: str,
        *,
        query: object = None,
        body: object = None,
        content: object = None,
        headers: Mapping[str, str] | None = None,
        fine: frozenset[int] = frozenset(),
        timeout_s: float | None = None,
    ) -> requests.Response:
        """Return the answer if its status is 2xx or one of ``fine``.

        Raises VimUnavailable (no answer, 5xx, 429) and VimRefused (any other) with the service's own reason.
        """
        connection = await self._open()

        def send() -> requests.Response:
            response: requests.Response = getattr(connection, service).request(
                path,
                method,
                params=query,
                json=body,
                data=content,
                headers=dict(headers or {}),
                timeout=timeout_s or self._timeout_s,
                raise_exc=False,
            )
            return response

        response = await self._run(_TITLES[service], send, self._calls if content is None else self._uploads)
        if response.ok or response.status_code in fine:
            return response
        reason = f"{response.status_code} {reason_of(response)}"
        if response.status_code >= 500 or response.status_code == 429:
            raise VimUnavailable(_TITLES[service], reason)
        raise VimRefused(_TITLES[service], f"{method} {path.split('?')[0]}: {reason}")

    async def _open(self) -> Connection:
        if self._connection is None:
            async with self._opening:
                if self._connection is None:
                    self._connection = await self._run("Keystone", self._connect)
        return self._connection

    def _connect(self) -> Connection:
        access, http = self._access, requests.Session()
        adapter = requests.adapters.HTTPAdapter if access.check_host_name else _AnyHostName
        for scheme in ("http://", "https://"):
            http.mount(scheme, adapter(pool_connections=8, pool_maxsize=_SOCKETS))
        auth = v3.Password(
            auth_url=access.auth_url,
            username=access.username,
            password=access.password,
            project_name=access.project,
            user_domain_name=access.user_domain,
            project_domain_name=access.project_domain,
        )
        session = keystone_session.Session(auth=auth, session=http, verify=self._verify(), timeout=self._timeout_s)
        # Now, so that wrong access data and an unreachable VIM are reported as such and not as a service's failure.
        session.get_token()
        return Connection(session=session, region_name=access.region)

    def _verify(self) -> bool | str:
        if not self._access.check_certificate:
            return False
        if not self._access.certificates:
            return True
        # requests reads trusted certificates only from a file.
        self._certificates = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - closed with the tenant
        self._certificates.write(self._access.certificates)
        self._certificates.flush()
        return str(Path(self._certificates.name))

    async def _run(self, service: str, work: Callable[[], T], pool: ThreadPoolExecutor | None = None) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool or self._calls, work)
        except keystone.Unauthorized as error:
            # The next call logs in again, because an operator may have corrected the password by then.
            self._connection = None
            raise VimRefused("Keystone", f"authentication failed ({error.message})") from error
        except (keystone.EndpointNotFound, keystone.CatalogException, sdk.NotSupported) as error:
            raise VimRefused(service, f"the VIM's catalogue has no such service ({error})") from error
        except keystone.HttpError as error:
            kind = VimUnavailable if error.http_status >= 500 else VimRefused
            raise kind(service, str(error)) from error
        except (keystone.ClientException, sdk.SDKException, requests.RequestException) as error:
            raise VimUnavailable(service, _without_noise(str(error))) from error

    def close(self) -> None:
        """Close the connections and delete the file of certificates."""
        if self._connection is not None:
            self._connection.close()
        if self._certificates is not None:
            self._certificates.close()


def reason_of(response: requests.Response) -> str:
    """Return the reason in an OpenStack service's error answer, in one line."""
    try:
        document = response.json()
    except ValueError:
        return " ".join(response.text.split())[:_TEXT_SHOWN] or response.reason
    return _reason(document)[:_TEXT_SHOWN] or response.reason


def _reason(document: object) -> str:
    """Find the ``message``. Heat, Keystone: error.message; Nova: badRequest.message; Neutron: NeutronError.message."""
    if isinstance(document, Mapping):
        if isinstance(document.get("message"), str):
            return " ".join(document["message"].split())
        return next((text for text in map(_reason, document.values()) if text), "")
    return ""


def _without_noise(text: str) -> str:
    """Return the text without the nested object reprs that requests adds."""
    return text.split("(Caused by")[0].strip()[:_TEXT_SHOWN]
