"""Calls OpenStack: logs in to Keystone, reads its catalogue, and calls each service that VNFs need.

keystoneauth blocks, so each call runs in a thread.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

import requests
from keystoneauth1 import exceptions
from kubevnfm_clients.vim_views import VimCapacity, VimQuota
from kubevnfm_keystone import (
    OPTIONAL,
    REQUIRED,
    TITLES,
    UNREADABLE,
    AccessRule,
    Catalogue,
    CatalogueLacks,
    KeystoneSession,
    NotKeystone,
    OpenstackMetrics,
    OtherIdentity,
    RulesForbid,
    check_identity,
    check_rules,
    failure_of,
    read_login,
    refusal_of,
)
from kubevnfm_kit import live_spans
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.metrics import Metrics
from kubevnfm_secrets import KeyRing

from kubevnfm_vim_registry.domain.capacity import QUOTAS, SeenCapacity, quotas_of
from kubevnfm_vim_registry.domain.errors import VimBehindProxy, VimRefused, VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.ports import Verified
from kubevnfm_vim_registry.domain.record import VimRecord

T = TypeVar("T")

_MOST_SESSIONS: Final = 256
_LIGHT_CALLS: Final = {
    "orchestration": "/stacks?limit=1",
    "compute": "/limits",
    "network": "/networks?limit=1&fields=id",
    "image": "/images?limit=1",
    "block-storage": "/limits",
}
"""A cheap call to each service that needs a role in the project."""
_VERSIONS: Final = {"network": "/v2.0", "image": "/v2"}
"""The version of the API where a service's endpoint in the catalogue may lack it."""
_VERSION: Final = re.compile(r"/v\d[\d.]*(/|$)")


class OpenstackProbe:
    """`domain.ports.VimProbe` for OpenStack."""

    def __init__(
        self,
        ring: KeyRing,
        threads: ThreadPoolExecutor,
        *,
        timeout_s: float,
        metrics: Metrics | None = None,
    ) -> None:
        """``timeout_s``: time limit for one request."""
        self._counts = OpenstackMetrics(metrics or Metrics())
        self._ring, self._threads, self._timeout_s = ring, threads, timeout_s
        self._sessions: OrderedDict[tuple[str, str], KeystoneSession] = OrderedDict()

    async def verify(self, vim: VimRecord) -> Verified:
        """The first region is the one that is used unless a request names another."""
        session = self._session(vim)
        try:
            catalogue = await self._in_thread(lambda: _first_catalogue(vim, session))
            region = await self._call_services(vim, session, catalogue)
        finally:
            session.close()
        return Verified((region, *sorted(set(catalogue.regions) - {region})))

    async def check(self, vim: VimRecord) -> None:
        known = self._known_session(vim)

        def present_catalogue() -> Catalogue:
            with translated_errors(vim):
                known.session.get(f"{known.login.auth_url}/auth/catalog", headers={"Accept": "application/json"})
                return known.catalogue()

        await self._call_services(vim, known, await self._in_thread(present_catalogue))

    async def capacity(self, vim: VimRecord, *, as_of: str) -> SeenCapacity:
        """Return the quotas of the project and their use: by the answers to two of the light calls."""
        known = self._known_session(vim)

        def read() -> list[VimQuota]:
            with translated_errors(vim):
                catalogue = known.catalogue()
                region = catalogue.region()
            found = list[VimQuota]()
            for service in QUOTAS:
                if service in _services(catalogue, region):
                    with translated_errors(vim, service):
                        answer = _light_call(known, service, region)
                    found += quotas_of(service, _body(vim, service, answer))
            return found

        return SeenCapacity(VimCapacity(as_of=as_of, quotas=tuple(await self._in_thread(read))))

    def _known_session(self, vim: VimRecord) -> KeystoneSession:
        # A session keeps its token and logs in again when Keystone rejects it. Changed access data get a new session,
        # because the time of the change is part of the key.
        key = (vim.id, vim.updated_at)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._session(vim)
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)[1].close()
        self._sessions.move_to_end(key)
        return session

    async def _call_services(self, vim: VimRecord, session: KeystoneSession, catalogue: Catalogue) -> str:
        """Call each service once in the region to use; return the region.

        Raises VimRefused if the region lacks a required service; else the failure of the first service that fails.
        """
        with translated_errors(vim):
            region = catalogue.region()
            catalogue.check_services(region)
            rules = await self._in_thread(session.access_rules)
        services = _services(catalogue, region)

        def call(service: str) -> None:
            with translated_errors(vim, service, rules):
                _light_call(session, service, region)

        outcomes = await asyncio.gather(
            *(self._in_thread(partial(call, service)) for service in services), return_exceptions=True
        )
        if failure := next((one for one in outcomes if one is not None), None):
            raise failure
        return region

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, live_spans.carried(work))

    def _session(self, vim: VimRecord) -> KeystoneSession:
        return new_session(vim, self._ring, timeout_s=self._timeout_s, counts=self._counts)


def new_session(
    vim: VimRecord, ring: KeyRing, *, timeout_s: float, counts: OpenstackMetrics | None = None
) -> KeystoneSession:
    """Return a session that is not logged in yet. Raises VimRefused."""
    try:
        return KeystoneSession(read_login(vim.connection, ring), timeout_s=timeout_s, counts=counts)
    except InvalidInput as error:
        raise VimRefused(vim.auth_url, f"its stored access data are incomplete: {error}") from error


def _first_catalogue(vim: VimRecord, session: KeystoneSession) -> Catalogue:
    """Log in; return the catalogue. Raises VimRefused for a login that is not what the VIM says, or that cannot do what VNFs need."""
    with translated_errors(vim):
        check_identity(session.login, session.log_in())
        catalogue = session.catalogue()
        check_rules(session.access_rules(), _services(catalogue, catalogue.region()))
        return catalogue


def _light_call(session: KeystoneSession, service: str, region: str) -> requests.Response:
    """Return the answer of a service to its light call. Raises the errors of keystoneauth."""
    # Not by discovery: keystoneauth takes a failed one for an unversioned service, which then answers 404.
    url = session.session.get_endpoint(
        service_type=service, region_name=region, interface=session.login.interface, skip_discovery=True
    )
    base = (url or "").rstrip("/")
    version = "" if _VERSION.search(base) else _VERSIONS.get(service, "")
    answer: requests.Response = session.session.get(
        f"{base}{version}{_LIGHT_CALLS[service]}",
        headers={"Accept": "application/json"},
        # The address is whole: this only names the API of the call.
        endpoint_filter={"service_type": service},
    )
    return answer


def _body(vim: VimRecord, service: str, answer: requests.Response) -> object:
    try:
        return read_foreign(answer.content)
    except ValueError as error:
        raise VimRefused(vim.auth_url, f"{TITLES[service]}: its answer is not JSON: {error}") from error


def _services(catalogue: Catalogue, region: str) -> Sequence[str]:
    """Return the services that VNFs need in a region."""
    return (*REQUIRED, *(service for service in OPTIONAL if catalogue.has(service, region)))


@contextmanager
def translated_errors(vim: VimRecord, service: str = "", rules: Sequence[AccessRule] = ()) -> Iterator[None]:
    """Raise this service's errors for those of keystoneauth; ``service``: the one that is called, if not Keystone.

    ``rules``: those by which the login is limited.
    """
    try:
        yield
    except (exceptions.ClientException, NotKeystone, CatalogueLacks, RulesForbid, OtherIdentity, *UNREADABLE) as error:
        failure = failure_of(error)
        called = f"{TITLES[service]}: " if service else ""
        if failure.kind == "unauthorized":
            limited = refusal_of(rules, service) if isinstance(error, exceptions.Unauthorized) else ""
            raise VimUnauthorized(vim.auth_url, f"{called}{limited or failure.reason}") from error
        if failure.kind == "unavailable":
            kind = VimBehindProxy if failure.is_of_proxy else VimUnreachable
            raise kind(vim.auth_url, f"{called}{failure.reason}") from error
        raise VimRefused(vim.auth_url, f"{called}{failure.reason}") from error
