"""Short-lived tokens of ServiceAccounts in place of the credentials of a kubeconfig (multicloud.md MC-074, MC-082)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_clients.cluster_access import ClusterAccess, OidcUser, TokenOrder, read_access
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable, TokenRefused
from kubevnfm_clients.cluster_login import ClusterLogin, ClusterTokens
from kubevnfm_clients.oidc_tokens import OidcTokens
from kubevnfm_clients.service_account_tokens import ServiceAccountTokens
from kubevnfm_events import VimConnection
from kubevnfm_kit.http import serving
from kubevnfm_secrets import KeyRing, Secret

RING = KeyRing.from_text(KeyRing.new_key())
START = 1_700_000_000.0
ORDER = TokenOrder("system", "kubevnfm", 3600, ("api",))
LONG_LIVED = "swordfish-of-the-kubeconfig"


class Time:
    """Both clocks of the cache."""

    def __init__(self) -> None:
        self.s = 0.0

    def wall(self) -> float:
        return START + self.s

    def monotonic(self) -> float:
        return self.s


def jwt(name: str, end: float) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"sub": name, "exp": end}).encode()).decode().rstrip("=")
    return f"h.{payload}.s"


@dataclass
class ApiServer:
    """An API server that gives tokens, and a provider of OpenID Connect."""

    time: Time
    url: str = ""
    life_s: float = 3600.0
    given: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    """``Authorization`` of each request for a token."""
    specs: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """The same of each other call."""
    withdrawn: set[str] = field(default_factory=set)
    forms: list[dict[str, str]] = field(default_factory=list)
    fails: Callable[[], web.Response] | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event | None = None

    async def token(self, request: web.Request) -> web.Response:
        self.logins.append(request.headers.get("Authorization", ""))
        self.specs.append((request.path, (await request.json())["spec"]))
        self.asked.set()
        if self.held is not None:
            await self.held.wait()
        if self.fails is not None:
            return self.fails()
        self.given.append(jwt(f"t{len(self.given)}", self.time.wall() + self.life_s))
        return web.json_response({"status": {"token": self.given[-1]}}, status=201)

    async def api(self, request: web.Request) -> web.Response:
        self.calls.append(request.headers.get("Authorization", ""))
        return web.json_response({"kind": "APIVersions"}, status=401 if self.calls[-1] in self.withdrawn else 200)

    async def oidc(self, request: web.Request) -> web.Response:
        self.forms.append({name: str(value) for name, value in (await request.post()).items()})
        return web.json_response({"access_token": jwt("client", self.time.wall() + 300), "token_type": "Bearer"})

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess(self.url, bearer_token=LONG_LIVED, service_account=ORDER)

    def vim(self) -> VimConnection:
        order = {"namespace": "system", "service_account": "kubevnfm", "expiration_s": 3600, "audiences": ["api"]}
        access = {"bearer_token": Secret(LONG_LIVED), "service_account": order}
        return VimConnection(interface_info={"endpoint": self.url}, access_info=access)


@asynccontextmanager
async def api_server(time: Time) -> AsyncIterator[tuple[ApiServer, ServiceAccountTokens]]:
    one, app = ApiServer(time), web.Application()
    app.router.add_post("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", one.token)
    app.router.add_get("/api", one.api)
    app.router.add_post("/oidc", one.oidc)
    async with serving(app, host="127.0.0.1", port=0) as port:
        one.url = f"http://127.0.0.1:{port}"
        yield one, ServiceAccountTokens(now=time.wall, monotonic=time.monotonic)


async def token_of(one: ApiServer, tokens: ServiceAccountTokens, *, instead_of: str = "") -> str:
    async def header() -> str:
        return f"Bearer {LONG_LIVED}"

    return await tokens.token(one.access, ORDER, header, instead_of=instead_of)


async def test_a_token_is_renewed_at_four_fifths_of_its_life_and_the_old_one_is_used_meanwhile() -> None:
    """MC-074, MC-082."""
    time = Time()
    async with api_server(time) as (one, tokens):
        first = await token_of(one, tokens)
        assert one.logins == [f"Bearer {LONG_LIVED}"]
        path = "/api/v1/namespaces/system/serviceaccounts/kubevnfm/token"
        assert one.specs == [(path, {"expirationSeconds": 3600, "audiences": ["api"]})]
        time.s = 3600 * 0.75 - 1
        assert await token_of(one, tokens) == first
        time.s = 3600 * 0.8 + 1
        one.asked.clear()
        one.held = asyncio.Event()
        renewal = asyncio.create_task(token_of(one, tokens))
        await one.asked.wait()
        # No caller waits for a renewal while a token is good.
        assert await token_of(one, tokens) == first
        one.held.set()
        second = await renewal
        assert second == one.given[1] == await token_of(one, tokens)
        assert len(one.given) == 2


async def test_a_renewal_that_fails_is_tried_again_with_pauses_while_the_token_lasts() -> None:
    """MC-074."""
    time = Time()
    async with api_server(time) as (one, tokens):
        first = await token_of(one, tokens)
        one.fails = lambda: web.json_response({"message": "busy"}, status=503)
        asked_at = []
        for second in range(int(3600 * 0.8) + 1, 3570):
            time.s, before = float(second), len(one.logins)
            assert await token_of(one, tokens) == first
            asked_at += [second] * (len(one.logins) - before)
        apart = [later - earlier for earlier, later in pairwise(asked_at)]
        assert apart[:6] == [1, 2, 4, 8, 16, 32]
        assert set(apart[6:]) == {60}
        time.s = 3571.0
        with pytest.raises(ApiUnavailable, match="503"):
            await token_of(one, tokens)
        one.fails = None
        assert await token_of(one, tokens) != first


async def test_many_callers_share_a_request_and_a_rejected_token_is_replaced_once() -> None:
    time = Time()
    async with api_server(time) as (one, tokens):
        first = set(await asyncio.gather(*(token_of(one, tokens) for _ in range(20))))
        assert first == set(one.given)
        (rejected,) = first
        after = set(await asyncio.gather(*(token_of(one, tokens, instead_of=rejected) for _ in range(20))))
        assert after == {one.given[1]}
        assert len(one.given) == 2


async def test_a_late_rejection_of_an_earlier_token_costs_no_other_one() -> None:
    async with api_server(Time()) as (one, _):
        one.time.s = 1e9
        login = ClusterLogin(one.access, ClusterTokens())
        first = await login.header()
        login.reject(first)
        second = await login.header()
        # The answer to another call with the first token, which came later.
        login.reject(first)
        assert await login.header() == second != first
        assert len(one.given) == 2


async def test_calls_have_the_token_and_401_renews_it_once() -> None:
    """MC-074: the credentials of the kubeconfig are sent with requests for tokens alone."""
    async with api_server(Time()) as (one, _), aiohttp.ClientSession() as session:
        one.time.s = 1e9
        api = ClusterApi(session, one.vim(), RING, timeout_s=60, tokens=ClusterTokens())
        assert (await api.get("/api")).is_success
        one.withdrawn.add(one.calls[-1])
        assert (await api.get("/api")).is_success
        assert one.calls == [f"Bearer {one.given[0]}"] * 2 + [f"Bearer {one.given[1]}"]
        one.withdrawn.update(f"Bearer {jwt(f't{number}', one.time.wall() + one.life_s)}" for number in range(9))
        with pytest.raises(ApiUnauthorized):
            await api.get("/api")
        assert len(one.given) == 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda: web.json_response({"message": 'serviceaccounts "kubevnfm" not found'}, status=404), TokenRefused),
        (lambda: web.json_response({"message": "forbidden"}, status=403), TokenRefused),
        (lambda: web.Response(status=302, headers={"Location": "/api"}), TokenRefused),
        (lambda: web.json_response({}, status=401), ApiUnauthorized),
        (lambda: web.json_response({}, status=429), ApiUnavailable),
        (lambda: web.json_response({}, status=500), ApiUnavailable),
        (lambda: web.json_response({"status": {}}, status=201), ApiRefused),
        (lambda: web.json_response({"status": {"token": "a\r\nX-Evil: 1"}}, status=201), ApiRefused),
        (lambda: web.json_response([], status=201), ApiRefused),
        (lambda: web.Response(text="[" * 300_000, status=201), ApiRefused),
    ],
)
async def test_an_answer_without_a_token_has_its_error(answer: Callable[[], web.Response], error: type) -> None:
    async with api_server(Time()) as (one, tokens):
        one.fails = answer
        with pytest.raises(error) as caught:
            await token_of(one, tokens)
        assert type(caught.value) is error
        assert LONG_LIVED not in str(caught.value)
        assert one.calls == []


async def test_a_client_of_a_provider_logs_in_with_its_secret() -> None:
    """MC-082: OIDC client credentials; providers give such clients no id_token."""
    async with api_server(Time()) as (one, _), aiohttp.ClientSession() as session:
        one.time.s = 1e9
        access = {
            "oidc_token_url": f"{one.url}/oidc", "client_id": "c", "client_secret": Secret("s"), "oidc_scope": "c/.default"
        }  # fmt: skip
        vim = VimConnection(interface_info={"endpoint": one.url}, access_info=access)
        api = ClusterApi(session, vim, RING, timeout_s=60, tokens=ClusterTokens())
        assert (await api.get("/api")).is_success
        assert (await api.get("/api")).is_success
        wanted = {"grant_type": "client_credentials", "scope": "c/.default", "client_id": "c", "client_secret": "s"}
        assert one.forms == [wanted]
        assert set(one.calls) == {f"Bearer {jwt('client', one.time.wall() + 300)}"}
        user = OidcUser(f"{one.url}/oidc", "u", "c", "p")
        with pytest.raises(ApiRefused, match="no id_token"):
            await OidcTokens().token(user, one.url)


def test_tokens_and_proxy_are_read_with_the_access_data() -> None:
    vim = VimConnection(
        interface_info={"endpoint": "https://a.example"},
        access_info={"bearer_token": "t", "proxy_url": Secret("http://user:swordfish@proxy:3128")},
    )
    access = read_access(vim, RING)
    assert access.proxy_url == "http://user:swordfish@proxy:3128"
    assert "swordfish" not in repr(access)
