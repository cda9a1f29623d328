"""One shared, authenticated connection for each tenant of a VIM, in a bounded thread pool.

openstacksdk blocks, so each call runs in a thread. Its proxies are used as plain HTTP adapters (``conn.compute.get``),
because its resource classes take longer than the requests. The connection caches tokens and the service catalogue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import requests
import structlog
from keystoneauth1 import exceptions as keystone
from kubevnfm_events import VimConnection
from kubevnfm_keystone import (
    TITLES,
    UNREADABLE,
    ApplicationCredentials,
    CatalogueLacks,
    KeystoneLogin,
    KeystoneSession,
    NotKeystone,
    OpenstackMetrics,
    failure_of,
    read_login,
    refusal_of,
)
from kubevnfm_kit import live_spans
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.outages import Outage
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_openstack.domain.errors import ServiceMissing, VimAccessDataMissing, VimRefused, VimUnavailable

if TYPE_CHECKING:
    from openstack.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger()

_TEXT_SHOWN = 500
_RENEWED_EVERY_S = 30.0

Document = Mapping[str, Any]
"""An object in an answer of an OpenStack service. Its API reference defines it; only members we need are read."""


def reads(service: str) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a decorator of methods that read answers: members that are missing or have other types are VimUnavailable.

    A proxy in front of the service may answer in its place, so a repeat can help.
    """

    def decorate(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(method)
        async def read(*args: P.args, **named: P.kwargs) -> T:
            try:
                return await method(*args, **named)
            except UNREADABLE as error:
                log.warning("answer_not_understood", service=service, exc_info=error)
                reason = f"its answer is not as its API defines it ({type(error).__name__} {error})"
                raise VimUnavailable(service, reason[:_TEXT_SHOWN]) from error

        return read

    return decorate


def access_data(vim: VimConnection, ring: KeyRing) -> KeystoneLogin:
    """Read a VimConnectionInfo (api.md 3.2). Raises VimAccessDataMissing naming the missing attribute."""
    try:
        return read_login(vim, ring)
    except InvalidInput as error:
        raise VimAccessDataMissing(error.field, error.reason) from error


def _sdk() -> ModuleType:
    """Import openstacksdk, first in a thread: it takes a sixth of the start of all services, and the loop would stand."""
    import openstack.connection

    return openstack


class Tenant:
    """HTTP calls to the services of one tenant."""

    def __init__(
        self,
        access: KeystoneLogin,
        *,
        calls: ThreadPoolExecutor,
        uploads: ThreadPoolExecutor,
        timeout_s: float,
        rejected: Callable[[], None] | None = None,
        counts: OpenstackMetrics | None = None,
    ) -> None:
        """``rejected`` is called when Keystone rejects the access data."""
        self._rejected, self._counts = rejected, counts
        self.access, self._calls, self._uploads, self._timeout_s = access, calls, uploads, timeout_s
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._opened: KeystoneSession | None = None
        self._renew_at = 0.0
        self._outage = Outage("vim", endpoint=access.auth_url)

    async def credentials(self, work: Callable[[ApplicationCredentials], T]) -> T:
        """Return what ``work`` does with the application credentials of the user. Raises VimRefused, VimUnavailable."""
        await self._open()
        opened = self._opened
        assert opened is not None
        return await self._run("Keystone", lambda: work(ApplicationCredentials(opened)))

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
        title = TITLES[service.replace("_", "-")]  # the SDK has block_storage for the catalogue's block-storage

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

        pool = self._calls if content is None else self._uploads
        response = await self._run(title, send, pool)
        if response.status_code == 401:
            # keystoneauth logs in again when a token has expired, but of several threads only the first one repeats its
            # call: the others find that the token is gone already. A stream cannot be sent twice.
            if content is not None:
                raise VimUnavailable(title, f"the token has expired: {reason_of(response)}")
            response = await self._run(title, send, pool)
        if response.ok or response.status_code in fine:
            return response
        if response.status_code == 500:
            await self._renew()
        reason = f"{response.status_code} {reason_of(response)}"
        if response.status_code >= 500 or response.status_code == 429:
            raise VimUnavailable(title, reason)
        if response.status_code == 401 and self._opened is not None:
            limited = refusal_of(await self._run("Keystone", self._opened.access_rules), service.replace("_", "-"))
            reason = f"{reason}: {limited}" if limited else reason
        raise VimRefused(title, f"{method} {path.split('?')[0]}: {reason}")

    async def _renew(self) -> None:
        """Log in again, at most once in a while. Raises VimRefused, VimUnavailable.

        A service that remembers that a token was valid answers 500 when others reject it, as after a change of the password.
        """
        now = time.monotonic()
        if now < self._renew_at:
            return
        self._renew_at = now + _RENEWED_EVERY_S
        await self.log_in_again()

    async def log_in_again(self) -> None:
        """Raise VimRefused if Keystone rejects the login by now, and VimUnavailable."""
        if self._opened is not None:
            await self._run("Keystone", self._opened.renew)

    async def _open(self) -> Connection:
        if self._connection is None:
            async with self._opening:
                if self._connection is None:
                    self._connection = await self._run("Keystone", self._connect)
        return self._connection

    def _connect(self) -> Connection:
        sdk = _sdk()
        opened = KeystoneSession(self.access, timeout_s=self._timeout_s, counts=self._counts)
        try:
            # Now, so that wrong access data and an unreachable VIM are reported as such and not as a service's failure.
            opened.log_in()
            region = opened.catalogue().region()
        except BaseException:
            opened.close()
            raise
        self._opened = opened
        connection: Connection = sdk.connection.Connection(
            session=opened.session, region_name=region, interface=self.access.interface
        )
        return connection

    async def _run(self, service: str, work: Callable[[], T], pool: ThreadPoolExecutor | None = None) -> T:
        with self._outage.watched(VimUnavailable):
            return await self._translated(service, work, pool or self._calls)

    async def _translated(self, service: str, work: Callable[[], T], pool: ThreadPoolExecutor) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, live_spans.carried(work))
        except keystone.Unauthorized as error:
            # The next call logs in again, because an operator may have corrected the password by then.
            self._forget()
            if self._rejected is not None:
                self._rejected()
            raise VimRefused(self.access.auth_url, failure_of(error).reason) from error
        except _sdk().exceptions.NotSupported as error:
            raise ServiceMissing(service, f"the VIM's catalogue has no such service ({error})") from error
        except (keystone.ClientException, NotKeystone, CatalogueLacks, *UNREADABLE) as error:
            failure = failure_of(error)
            kind = VimUnavailable if failure.kind == "unavailable" else VimRefused
            raise kind(self._place(service, error), failure.reason) from error
        except (_sdk().exceptions.SDKException, requests.RequestException) as error:
            raise VimUnavailable(service, _without_noise(str(error))) from error

    def _place(self, service: str, error: Exception) -> str:
        """Return what has failed: in a call to any service, Keystone may be asked for a new token first."""
        is_login = isinstance(error, keystone.ConnectFailure | keystone.HttpError) and any(
            self.access.auth_url in str(text) for text in (error, getattr(error, "url", ""))
        )
        return f"Keystone ({self.access.auth_url})" if service == "Keystone" or is_login else service

    def _forget(self) -> None:
        # Not closed: other calls may be using it; it is closed once none refers to it.
        self._connection = self._opened = None

    def close(self) -> None:
        """Close the connections and delete the file of certificates."""
        if self._connection is not None:
            self._connection.close()
        if self._opened is not None:
            self._opened.close()


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
