"""The one login to clusters: which access data give which header, and how tokens of OpenID providers are fetched."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_clients.cluster_access import ClusterAccess, OidcUser, cluster_tls, read_access
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable
from kubevnfm_clients.cluster_login import ClusterLogin, ClusterTokens
from kubevnfm_clients.oidc_tokens import OidcTokens
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.http import serving
from kubevnfm_kit.tls import ServerTls
from kubevnfm_secrets import KeyRing, Secret
from servers.certificates import Authority

RING = KeyRing.from_text(KeyRing.new_key())
ENDPOINT = "https://cluster.example:6443"
PASSWORD = "swordfish-of-the-user"
CLIENT_SECRET = "swordfish-of-the-client"
START = 1_700_000_000.0


class Time:
    """Both clocks of the cache."""

    def __init__(self) -> None:
        self.s = 0.0

    def wall(self) -> float:
        return START + self.s

    def monotonic(self) -> float:
        return self.s


def id_token(name: str, **claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"sub": name, **claims}).encode()).decode().rstrip("=")
    return f"h.{payload}.s"


@dataclass
class Provider:
    """An OpenID provider; ``answer`` makes each answer."""

    url: str = ""
    forms: list[dict[str, str]] = field(default_factory=list)
    certificates: list[object] = field(default_factory=list)
    """The certificate of each caller, None without one."""
    answer: Callable[[], web.StreamResponse] = lambda: web.json_response({})
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event | None = None
    """If set, answers wait for it."""

    @property
    def user(self) -> OidcUser:
        return OidcUser(self.url, "u", "c", PASSWORD, CLIENT_SECRET)

    def gives(self, **claims: Any) -> None:
        """Give a token of another name each time."""
        self.answer = lambda: web.json_response({"id_token": id_token(f"t{len(self.forms)}", **claims)})

    def fails(self, status: int, body: Any = None, **headers: str) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer = lambda: web.json_response(body, status=status, headers=given)


@asynccontextmanager
async def provider(tls: ServerTls | None = None) -> AsyncIterator[Provider]:
    found = Provider()

    async def token(request: web.Request) -> web.StreamResponse:
        found.forms.append({name: str(value) for name, value in (await request.post()).items()})
        found.certificates.append(request.transport.get_extra_info("peercert") if request.transport else None)
        found.asked.set()
        if found.held is not None:
            await found.held.wait()
        return found.answer()

    app = web.Application()
    app.router.add_post("/token", token)
    async with serving(app, host="127.0.0.1", port=0, tls=tls) as port:
        found.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/token"
        yield found


def tokens_at(time: Time) -> OidcTokens:
    return OidcTokens(now=time.wall, monotonic=time.monotonic)


async def test_a_token_is_fetched_once_and_again_before_it_expires() -> None:
    time = Time()
    tokens = tokens_at(time)
    async with provider() as one:
        one.gives(exp=START + 3600)
        first = await tokens.token(one.user, ENDPOINT)
        for second in (0.0, 1.0, 3569.0):
            time.s = second
            assert await tokens.token(one.user, ENDPOINT) == first
        assert one.forms == [
            {
                "grant_type": "password",
                "scope": "openid",
                "client_id": "c",
                "client_secret": CLIENT_SECRET,
                "username": "u",
                "password": PASSWORD,
            }
        ]
        time.s = 3571.0
        assert await tokens.token(one.user, ENDPOINT) != first
        # Another password is another user: its token is its own.
        other = OidcUser(one.url, "u", "c", "another", CLIENT_SECRET)
        await tokens.token(other, ENDPOINT)
        assert len(one.forms) == 3


@pytest.mark.parametrize("claims", [{}, {"exp": 1e999}, {"exp": "soon"}, {"exp": True}, {"exp": START - 10}])
async def test_a_token_without_a_usable_end_is_used_once(claims: dict[str, Any]) -> None:
    tokens = tokens_at(Time())
    async with provider() as one:
        one.gives(**claims)
        assert await tokens.token(one.user, ENDPOINT) != await tokens.token(one.user, ENDPOINT)


async def test_concurrent_callers_share_one_request_and_its_failure() -> None:
    tokens = tokens_at(Time())
    async with provider() as one:
        cases: list[tuple[Callable[[], None], type]] = [(one.gives, str), (lambda: one.fails(401), ApiUnauthorized)]
        for make, kind in cases:
            make()
            one.forms.clear()
            one.asked.clear()
            one.held = asyncio.Event()
            calls = [asyncio.create_task(tokens.token(one.user, ENDPOINT)) for _ in range(20)]
            await one.asked.wait()
            one.held.set()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(result) for result in results} == {kind}
            assert len(one.forms) == 1


async def test_a_caller_that_gives_up_takes_no_token_from_the_others() -> None:
    tokens = tokens_at(Time())
    async with provider() as one:
        one.gives(exp=START + 3600)
        one.held = asyncio.Event()
        calls = [asyncio.create_task(tokens.token(one.user, ENDPOINT)) for _ in range(3)]
        await one.asked.wait()
        calls[0].cancel()
        one.held.set()
        assert len({await call for call in calls[1:]}) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, ApiUnavailable) for status in (404, 408, 429, 500, 502, 503, 504)),
        *((status, ApiUnauthorized) for status in (400, 401, 403, 405, 410)),
        *((status, ApiRefused) for status in (201, 302, 307)),
    ],
)
async def test_one_rule_says_which_failures_pass(status: int, error: type[Exception]) -> None:
    """429 and 404 were temporary in one client, and permanent in the other."""
    async with provider() as elsewhere, provider() as one:
        one.fails(status, {"error": "invalid_grant"}, Location=elsewhere.url)
        with pytest.raises(error) as caught:
            await tokens_at(Time()).token(one.user, ENDPOINT)
        assert str(status) in str(caught.value)
        assert (len(one.forms), elsewhere.forms) == (1, [])
        assert not {PASSWORD, CLIENT_SECRET} & set(str(caught.value).split())


@pytest.mark.parametrize(
    ("after", "pause_s"),
    [("7", 7), ("0", 0), ("999999999999", 300), (None, 5), ("soon", 5), ("-1", 5), ("date", 60)],
)
async def test_a_busy_provider_is_not_asked_until_it_wants_to(after: str | None, pause_s: float) -> None:
    from datetime import UTC, datetime

    time = Time()
    tokens = tokens_at(time)
    async with provider() as one:
        given = format_datetime(datetime.fromtimestamp(START + 60, UTC), usegmt=True) if after == "date" else after
        one.fails(429, **({} if given is None else {"Retry_After": given}))
        with pytest.raises(ApiUnavailable, match="429"):
            await tokens.token(one.user, ENDPOINT)
        one.gives()
        if pause_s:
            time.s = pause_s - 0.5
            with pytest.raises(ApiUnavailable, match="429"):
                await tokens.token(one.user, ENDPOINT)
            assert len(one.forms) == 1
        time.s = pause_s + 0.5
        await tokens.token(one.user, ENDPOINT)
        assert len(one.forms) == 2


async def test_after_any_other_failure_the_next_caller_asks_again() -> None:
    tokens = tokens_at(Time())
    async with provider() as one:
        for status in (404, 500, 401):
            one.fails(status)
            with pytest.raises((ApiUnavailable, ApiUnauthorized)):
                await tokens.token(one.user, ENDPOINT)
        one.gives()
        assert await tokens.token(one.user, ENDPOINT)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: web.json_response({"access_token": "a"}), "no id_token"),
        (lambda: web.json_response(["id_token"]), "no id_token"),
        (lambda: web.json_response({"id_token": "a\r\nX-Evil: 1"}), "no id_token"),
        (lambda: web.json_response({"id_token": ""}), "no id_token"),
        (lambda: web.Response(text="<html>"), "no id_token"),
        (lambda: web.Response(text="[" * 100_000), "no id_token"),
        (lambda: web.Response(text='{"id_token": "' + "a" * 300_000 + '"}'), "more than 262144 bytes"),
    ],
)
async def test_an_answer_that_is_none_of_a_provider_is_refused(answer: Callable[[], web.Response], says: str) -> None:
    async with provider() as one:
        one.answer = answer
        with pytest.raises(ApiRefused, match=says):
            await tokens_at(Time()).token(one.user, ENDPOINT)


async def test_a_reason_is_one_of_the_standard_and_never_the_providers_text() -> None:
    async with provider() as one:
        for body, says in (
            ({"error": "invalid_grant"}, "invalid_grant"),
            ({"error": PASSWORD}, "HTTP 400)"),
            ("x", "400)"),
        ):
            one.fails(400, body)
            with pytest.raises(ApiUnauthorized) as caught:
                await OidcTokens().token(one.user, ENDPOINT)
            assert says in str(caught.value)
            assert PASSWORD not in str(caught.value)


async def test_a_provider_that_is_away_is_temporary_and_its_error_shows_no_address() -> None:
    user = OidcUser("http://127.0.0.1:1/token?key=hidden", "u", "c", PASSWORD)
    with pytest.raises(ApiUnavailable, match="ClientConnector") as caught:
        await OidcTokens().token(user, ENDPOINT)
    assert "hidden" not in str(caught.value)


async def test_the_provider_is_verified_as_the_cluster_is_and_sees_no_client_certificate(tmp_path: Path) -> None:
    ca, stranger = Authority(tmp_path), Authority(tmp_path, name="stranger")
    server, user = ca.issue("127.0.0.1"), ca.issue("user")
    tls = ServerTls(server.certificate, server.key, ca.file, is_client_required=False)
    async with provider(tls) as one:
        one.gives()
        given = {
            "oidc_token_url": one.url, "username": "u", "password": PASSWORD, "client_id": "c",
            "client_certificate": user.certificate.read_text(), "client_key": user.key.read_text(),
        }  # fmt: skip

        def login(trusted: str) -> ClusterLogin:
            interface = {"endpoint": ENDPOINT, "ssl_ca_cert": trusted}
            return ClusterLogin(
                read_access(VimConnection(interface_info=interface, access_info=given), RING), ClusterTokens()
            )

        for trusted in (stranger.file.read_text(), "system"):
            with pytest.raises(ApiRefused, match="certificate is not trusted"):
                await login(trusted).header()
        with pytest.raises(ApiRefused, match="PEM"):
            await login("no certificate").header()
        assert one.forms == []
        for trusted in (ca.file.read_text(), "None"):
            assert await login(trusted).header()
        assert [bool(each) for each in one.certificates] == [False, False]


@asynccontextmanager
async def cluster(accepted: Callable[[str], bool]) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve an API that accepts some values of ``Authorization``; yield its URL and the values that came."""
    seen: list[str] = []

    async def api(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.json_response({"kind": "APIVersions"}, status=200 if accepted(seen[-1]) else 401)

    app = web.Application()
    app.router.add_get("/api", api)
    async with serving(app, host="127.0.0.1", port=0) as port:
        yield f"http://127.0.0.1:{port}", seen


async def test_a_token_that_was_withdrawn_is_replaced_once() -> None:
    tokens = ClusterTokens()
    withdrawn: set[str] = set()
    async with (
        provider() as one,
        cluster(lambda value: value not in withdrawn) as (url, seen),
        aiohttp.ClientSession() as session,
    ):
        one.gives(exp=99_999_999_999)
        access = {"oidc_token_url": one.url, "username": "u", "password": Secret(PASSWORD), "client_id": "c"}
        vim = VimConnection(interface_info={"endpoint": url}, access_info=access)

        def api() -> ClusterApi:
            return ClusterApi(session, vim, RING, timeout_s=60, tokens=tokens)

        assert (await api().get("/api")).is_success
        assert (await api().get("/api")).is_success
        assert len(one.forms) == 1
        withdrawn.add(seen[0])
        assert (await api().get("/api")).is_success
        assert (len(one.forms), len(set(seen))) == (2, 2)
        one.gives(exp=99_999_999_999, same=True)
        withdrawn.update(seen)
        withdrawn.add(f"Bearer {id_token('t3', exp=99_999_999_999, same=True)}")
        with pytest.raises(ApiUnauthorized):
            await api().get("/api")
        assert len(one.forms) == 3


@pytest.mark.parametrize(
    ("access", "header"),
    [
        ({"bearer_token": Secret("t")}, "Bearer t"),
        ({"username": "u", "password": Secret("p")}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"bearer_token": "t", "username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"client_certificate": "c", "client_key": Secret("k")}, ""),
        ({"client_certificate": "c", "client_key": "k", "bearer_token": "t"}, "Bearer t"),
    ],
)
async def test_each_kind_of_access_data_has_its_header(access: dict[str, Any], header: str) -> None:
    found = read_access(VimConnection(interface_info={"endpoint": ENDPOINT}, access_info=access), RING)
    assert await ClusterLogin(found, ClusterTokens()).header() == header


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"client_id": ""}, "client_id"),
        ({"username": ""}, "username"),
        ({"password": ""}, "password"),
        ({"oidc_token_url": "ftp://x"}, "oidc_token_url"),
        ({"oidc_token_url": "https://u:p@idp.example"}, "oidc_token_url"),
        ({"oidc_token_url": "https://[x"}, "oidc_token_url"),
    ],
)
def test_what_a_provider_needs_is_named(changed: dict[str, str], field: str) -> None:
    given = {"oidc_token_url": "https://idp.example/t", "username": "u", "password": "p", "client_id": "c", **changed}
    with pytest.raises(InvalidInput) as caught:
        read_access(VimConnection(interface_info={"endpoint": ENDPOINT}, access_info=given), RING)
    assert caught.value.field == f"vimConnectionInfo.accessInfo.{field}"


def test_access_data_show_no_secret() -> None:
    user = OidcUser("https://idp.example/t", "u", "c", PASSWORD, CLIENT_SECRET)
    access = ClusterAccess(ENDPOINT, bearer_token="hidden", client_key="hidden", password="hidden", oidc=user)
    for text in (repr(access), repr(user), access.fingerprint, user.fingerprint):
        assert not any(secret in text for secret in ("hidden", PASSWORD, CLIENT_SECRET))
    assert access.fingerprint != ClusterAccess(ENDPOINT, bearer_token="another", oidc=user).fingerprint


async def test_clusters_that_are_trusted_alike_share_one_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-142: a context with the machine's CAs takes 0.8 MiB and 20 ms, for each of 500 regions."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    pairs = [authority.issue(name) for name in ("one", "two")]
    shown = [{"client_certificate": each.certificate.read_text(), "client_key": each.key.read_text()} for each in pairs]

    def access(number: int, ca: Path | None = None, **given: str) -> ClusterAccess:
        interface = {"endpoint": f"https://cluster-{number}.example:6443"}
        if ca is not None:
            interface["ssl_ca_cert"] = ca.read_text()
        vim = VimConnection(interface_info=interface, access_info=given or {"bearer_token": f"t{number}"})
        return read_access(vim, RING)

    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    for ca in (None, authority.file):
        assert await cluster_tls(access(1, ca)) is await cluster_tls(access(2, ca))
    alike = access(1, authority.file, **shown[0])
    held = await cluster_tls(alike)
    assert await cluster_tls(access(2, authority.file, **shown[0])) is held
    others = [
        access(1, authority.file),
        access(1, other.file),
        access(1),
        access(1, authority.file, **shown[1]),
        access(1, other.file, **shown[0]),
    ]
    contexts = [held, *[await cluster_tls(each) for each in others]]
    assert len({id(each) for each in contexts}) == 6
    # The machine gets another CA: what is connected later trusts it.
    authority.file.write_text(authority.file.read_text() + other.file.read_text())
    os.utime(authority.file, (START, START))
    renewed = await cluster_tls(access(3))
    assert not isinstance(renewed, bool)
    assert len(renewed.get_ca_certs()) == 2
