"""Calls OpenStack: logs in to Keystone and reads the regions of its catalogue. The client blocks, so it runs in threads."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from keystoneauth1 import exceptions
from keystoneauth1.exceptions import connection
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_vim_registry.domain.errors import VimRefused, VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.ports import Verified
from kubevnfm_vim_registry.domain.record import JsonObject, VimRecord

T = TypeVar("T")

_MOST_SESSIONS: Final = 256


class OpenstackProbe:
    """`domain.ports.VimProbe` for OpenStack."""

    def __init__(self, ring: KeyRing, threads: ThreadPoolExecutor, *, timeout_s: float) -> None:
        """``timeout_s``: time limit for one request to Keystone."""
        self._ring, self._threads, self._timeout_s = ring, threads, timeout_s
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    async def verify(self, vim: VimRecord) -> Verified:
        """See the port."""

        def log_in() -> Verified:
            login, session = self._login(vim), self._session(vim)
            with _translated_errors(vim):
                access: Any = login.get_access(session)  # keystoneauth is not typed
            return Verified(_regions(access.service_catalog.catalog))

        return await self._in_thread(log_in)

    async def check(self, vim: VimRecord) -> None:
        """See the port."""
        # A session keeps its token and logs in again when Keystone rejects it. Changed access data get a new session,
        # because the time of the change is part of the key.
        key = (vim.id, vim.updated_at)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._session(vim)
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(key)

        def call() -> None:
            with _translated_errors(vim):
                session.get(f"{vim.auth_url}/auth/catalog", headers={"Accept": "application/json"})

        await self._in_thread(call)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _session(self, vim: VimRecord) -> Session:
        verify = str(vim.auth_cred.get("cert_verify", "True")).lower() != "false"
        return Session(auth=self._login(vim), verify=verify, timeout=self._timeout_s)

    def _login(self, vim: VimRecord) -> v3.Password:
        credentials: JsonObject = revealed(vim.auth_cred, self._ring)
        return v3.Password(
            auth_url=vim.auth_url,
            username=credentials["username"],
            password=credentials["password"],
            user_domain_name=credentials["user_domain_name"],
            project_name=vim.vim_project.get("name"),
            project_domain_name=vim.vim_project.get("project_domain_name"),
        )


@contextmanager
def _translated_errors(vim: VimRecord) -> Iterator[None]:
    """Raise this service's errors for those of keystoneauth."""
    # The texts of keystoneauth can quote a whole request with its password, so none of them is used.
    try:
        yield
    except (exceptions.Unauthorized, exceptions.Forbidden) as error:
        raise VimUnauthorized(vim.auth_url, "Keystone rejects the user name, password or project") from error
    except connection.SSLError as error:
        raise VimRefused(vim.auth_url, "the TLS certificate is not trusted (cert_verify)") from error
    except (connection.ConnectFailure, connection.ConnectTimeout, exceptions.HttpServerError) as error:
        raise VimUnreachable(vim.auth_url, type(error).__name__) from error
    except exceptions.ClientException as error:
        raise VimRefused(vim.auth_url, f"the server is not Keystone v3 ({type(error).__name__})") from error


def _regions(catalog: Iterable[JsonObject]) -> tuple[str, ...]:
    found = {endpoint.get("region_id") or endpoint.get("region") for one in catalog for endpoint in one["endpoints"]}
    return tuple(sorted(region for region in found if region))
