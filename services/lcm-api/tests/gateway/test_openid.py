"""Logging in to the web page at an identity server, over HTTP, as the page's script does it (docs/page.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from callers.callers import LIST, PACKAGES, V2
from clouds.identity import AUDIENCE, PAGE_CLIENT, Issuer, SigningKey, an_issuer
from kubevnfm_access import discovery
from kubevnfm_access.wiring import opened_access
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_lcm_api.page import grants
from kubevnfm_lcm_api.page.sessions import COLLECTION, StoredSessions
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query, Stored
from pydantic import ValidationError
from worlds.lcm_world import RING, Answer, FragileStore, Storage, World, lcm_world, settings
from worlds.set_clock import SetClock

BEGIN = "/kubevnfm/v1/login/openid"
SESSION = "/kubevnfm/v1/session"


def by_login(issuer: Issuer, **more: Any) -> dict[str, Any]:
    return {
        "auth_modes": "bearer",
        "auth_bearer_issuer": issuer.url,
        "auth_bearer_audience": AUDIENCE,
        "page_login_client_id": PAGE_CLIENT,
        **more,
    }


@asynccontextmanager
async def a_login(folder: Path, **more: Any) -> AsyncIterator[tuple[Issuer, World]]:
    async with an_issuer() as issuer, lcm_world(folder, **by_login(issuer, **more)) as world:
        yield issuer, world


def cookies(answer: Answer) -> str:
    """Return the cookies that an answer gives."""
    found = SimpleCookie("; ".join(answer.headers.getall("Set-Cookie", [])))  # type: ignore[attr-defined]
    return "; ".join(f"{name}={each.value}" for name, each in found.items() if each.value)


async def begun(world: World, **headers: str) -> tuple[Answer, str]:
    answer = (await world.call("POST", BEGIN, headers={"Origin": world.url, **headers})).must(200)
    return answer, cookies(answer)


async def at_the_issuer(world: World, address: str) -> dict[str, str]:
    """Log in there; return what the browser brings back to the page."""
    async with world.session.get(address, allow_redirects=False) as response:
        assert response.status == 302, await response.text()
        back = urlsplit(response.headers["Location"])
    assert back.path == "/ui/login"
    return dict(parse_qsl(back.query))


async def answered(world: World, brought: dict[str, str], cookie: str, **headers: str) -> Answer:
    sent = {"Cookie": cookie, "Origin": world.url, **headers}
    return await world.call("POST", f"{BEGIN}/answer", brought, headers=sent)


async def logged_in(world: World) -> dict[str, str]:
    """Log in; return the headers of the session."""
    answer, cookie = await begun(world)
    done = (await answered(world, await at_the_issuer(world, answer.json["address"]), cookie)).must(201)
    return {"Cookie": cookies(done)}


async def test_one_logs_in_at_the_issuer_and_the_browser_sees_no_token(tmp_path: Path) -> None:
    async with a_login(tmp_path, page_login_client_secret="page-s3cret") as (issuer, world):
        ways = (await world.call("GET", "/kubevnfm/v1/login", headers={})).must(200).json
        assert ways == {"ways": ["bearer"], "openIdHost": urlsplit(issuer.url).netloc}
        answer, cookie = await begun(world)
        sent = dict(parse_qsl(urlsplit(answer.json["address"]).query))
        assert (sent["client_id"], sent["redirect_uri"]) == (PAGE_CLIENT, f"{world.url}/ui/login")
        given = answer.headers["Set-Cookie"]
        assert all(part in given for part in ("HttpOnly", "SameSite=Strict", "Max-Age=600"))
        brought = await at_the_issuer(world, answer.json["address"])
        done = (await answered(world, brought, cookie)).must(201)
        assert done.json == {
            "subject": "id-anna", "name": "anna", "mode": "bearer", "roles": ["admin"], "isSession": True,
        }  # fmt: skip
        (form,) = issuer.forms
        assert form["client"] == f"{PAGE_CLIENT}:page-s3cret"
        assert "client_id" not in form
        headers = {"Cookie": cookies(done)}
        assert "kubevnfm-login" not in headers["Cookie"], "the login's own cookie is taken back"
        (await world.call("POST", PACKAGES, {}, headers={**headers, "Origin": world.url})).must(201)
        assert (await world.call("GET", SESSION, headers=headers)).json == done.json
        seen = f"{answer.raw!r} {done.raw!r} {dict(answer.headers)} {dict(done.headers)}"
        stored = str(await world.store.find(COLLECTION, Query()))
        for secret in ("eyJ", "refresh-1", form["code_verifier"], "page-s3cret"):
            assert secret not in seen
            assert secret not in stored
        assert not issuer.revoked
        # Login and gate share what the issuer publishes.
        assert [issuer.asked.count(path) for path in ("/.well-known/openid-configuration", "/jwks")] == [1, 1]


async def test_an_answer_counts_once_and_in_the_browser_that_has_asked(tmp_path: Path) -> None:
    """Login CSRF, mix-up (RFC 9207), and a code that someone has smuggled in."""
    async with a_login(tmp_path, auth_tries_burst=100) as (issuer, world):
        answer, cookie = await begun(world)
        brought = await at_the_issuer(world, answer.json["address"])
        other, other_cookie = await begun(world)
        foreign = await at_the_issuer(world, other.json["address"])
        for body, carried, headers, status in (
            (brought, "", {}, 403),
            (brought, other_cookie, {}, 403),
            (brought, "kubevnfm-login=v1.x.y", {}, 403),
            (brought, cookie.replace("v1.", "v1.0", 1), {}, 403),
            ({**brought, "state": "x"}, cookie, {}, 403),
            ({**brought, "state": "\u00e9" * 43}, cookie, {}, 403),
            (brought, cookie, {"Origin": "https://evil.example"}, 403),
            ({**brought, "iss": "https://evil.example"}, cookie, {}, 403),
            ({name: brought[name] for name in ("state", "code")}, cookie, {}, 403),
            ({name: brought[name] for name in ("state", "iss")}, cookie, {}, 403),
            ({**brought, "state": ""}, cookie, {}, 400),
            ({**brought, "more": "x"}, cookie, {}, 400),
            ({**brought, "code": "x" * 10_000}, cookie, {}, 400),
            ({}, cookie, {}, 400),
        ):
            (await answered(world, body, carried, **headers)).problem(status)
        assert not issuer.forms, "nothing of it reached the issuer"
        # The code of another login of the same browser: PKCE.
        stolen = (await answered(world, {**brought, "code": foreign["code"]}, cookie)).problem(403)
        assert stolen["detail"] == "the identity server does not accept this login any more: log in again"
        (await answered(world, brought, cookie)).must(201)
        (await answered(world, brought, cookie)).problem(403)
        for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            (await world.call("POST", BEGIN, headers=origin)).problem(403)
            (await world.call("POST", f"{BEGIN}/answer", brought, headers={"Cookie": cookie, **origin})).problem(403)


async def test_an_error_of_the_issuer_is_one_sentence(tmp_path: Path) -> None:
    async with a_login(tmp_path) as (issuer, world):
        for error, said in (
            ("access_denied", "has denied the access"),
            ("server_error", "has failed: try again later"),
            ("invalid_scope", "this gateway (invalid_scope): its operator must check page_login_scopes"),
            ("<script>alert(1)</script>", "(an error without a code)"),
        ):
            issuer.refusal = error
            answer, cookie = await begun(world)
            problem = (await answered(world, await at_the_issuer(world, answer.json["address"]), cookie)).problem(403)
            assert (problem["type"], said in problem["detail"]) == ("login-refused", True), problem


async def test_what_the_issuer_gives_is_checked(tmp_path: Path) -> None:
    """OpenID Connect Core 1.0, 3.1.3.7: an ID token of this issuer, for this client and for this login."""
    async with a_login(tmp_path, auth_tries_burst=100) as (issuer, world):

        async def refused() -> str:
            answer, cookie = await begun(world)
            problem = (await answered(world, await at_the_issuer(world, answer.json["address"]), cookie)).problem(403)
            assert "s3cret" not in str(problem)
            return str(problem["detail"])

        for claims, said in (
            ({"nonce": "other"}, "nonce"),
            ({"nonce": None}, "nonce"),
            ({"nonce": 5}, "nonce"),
            ({"aud": "another-client"}, "audience"),
            ({"aud": [PAGE_CLIENT, "x"], "azp": "x"}, "azp"),
            ({"iss": "https://evil.example"}, "not valid here"),
            ({"exp": 1_000_000_000}, "expired"),
            ({"sub": None}, "sub"),
            ({"key": SigningKey("k1")}, "not valid here"),
        ):
            issuer.claims = claims
            assert said in await refused(), claims
        issuer.claims = {}
        for granted, said in (
            ({"id_token": None}, "scope openid"),
            ({"id_token": "a.b.c"}, "ID token"),
            ({"access_token": None}, "no access token"),
            ({"access_token": ["x"]}, "no access token"),
            ({"token_type": "DPoP"}, "Bearer"),
            ({"refresh_token": "x" * 70_000}, "too large"),
            ({"access_token": issuer.token(aud="elsewhere")}, "audience"),
            ({"access_token": issuer.token(aud=None)}, "no `aud` claim"),
            ({"access_token": "opaque"}, "not accepted here"),
            ({"access_token": issuer.token("nothing of ours")}, "no role of this gateway"),
        ):
            issuer.granted = granted
            assert said in await refused(), granted
        issuer.granted = {}
        await logged_in(world)


async def test_a_configuration_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """The browser is sent to addresses of HTTP alone; secrets go to none in clear if the issuer has TLS."""
    for name, value in (("authorization_endpoint", "javascript:alert(1)"), ("issuer", "https://evil.example")):
        async with a_login(tmp_path) as (issuer, world):
            issuer.configuration = {name: value}
            (await world.call("POST", BEGIN, headers={"Origin": world.url})).problem(503)
            issuer.is_down = True
            (await world.call("POST", BEGIN, headers={"Origin": world.url})).problem(503)
            assert len(issuer.asked) == 1, "an issuer that fails is not asked by each caller"
    for address, issuer_url, is_usable in (
        ("https://i.example/auth?x=y", "https://i.example", True),
        ("http://i.example/auth", "http://i.example", True),
        ("http://i.example/auth", "https://i.example", False),
        ("https://i.example@evil.example/", "https://i.example", False),
        ("https://i.example/auth#x", "https://i.example", False),
        ("https://i.example/a b", "https://i.example", False),
        ("https://[i.example/", "https://i.example", False),
        ("/auth", "https://i.example", False),
        ("https://i.example/" + "x" * 3000, "https://i.example", False),
    ):
        assert discovery.is_usable(address, issuer_url) == is_usable, address


async def test_the_redirect_uri_is_where_callers_reach_the_page(tmp_path: Path) -> None:
    async with a_login(tmp_path, public_url="https://nfv.example:443/", auth_tries_burst=100) as (_, world):
        answer, cookie = await begun(world, Host="nfv.example", Origin="https://nfv.example")
        sent = dict(parse_qsl(urlsplit(answer.json["address"]).query))
        assert sent["redirect_uri"] == "https://nfv.example/ui/login"
        assert cookie.startswith("__Host-kubevnfm-login=")
        # At another address of the gateway the answer would come back to a page that has not asked.
        elsewhere = (await world.call("POST", BEGIN, headers={"Origin": world.url})).problem(403)
        assert "https://nfv.example/ui/" in elsewhere["detail"]
    async with a_login(tmp_path) as (_, world):
        strange = {"Host": "evil.example", "Origin": "http://evil.example"}
        refused = (await world.call("POST", BEGIN, headers=strange)).problem(403)
        assert f"{world.url}/ui/" in refused["detail"], "a name that no operator has set is not led back to"


async def test_a_logout_goes_on_at_the_issuer(tmp_path: Path) -> None:
    async with a_login(tmp_path) as (issuer, world):
        headers = await logged_in(world)
        ended = (await world.call("DELETE", SESSION, headers={**headers, "Origin": world.url})).must(200)
        assert b"eyJ" not in ended.raw
        (await world.call("GET", LIST, headers={**V2, **headers})).problem(401)
        left = (await world.call("GET", ended.json["next"], headers={"Cookie": cookies(ended)})).must(303)
        place = urlsplit(left.headers["Location"])
        query = dict(parse_qsl(place.query))
        assert f"{place.scheme}://{place.netloc}{place.path}" == f"{issuer.url}/logout"
        assert query["post_logout_redirect_uri"] == f"{world.url}/ui/"
        assert query["id_token_hint"].startswith("eyJ")
        # A link of another page, and one to a cookie of theirs.
        for cookie in ("", "kubevnfm-logout=v1.x.y", f"kubevnfm-logout={cookies(ended).partition('=')[2][:-4]}aaaa"):
            away = (await world.call("GET", f"{BEGIN}/logout", headers={"Cookie": cookie})).must(303)
            assert away.headers["Location"] == "/ui/"
        assert not issuer.revoked
    async with a_login(tmp_path) as (issuer, world):
        issuer.has_logout = False
        headers = await logged_in(world)
        (await world.call("DELETE", SESSION, headers={**headers, "Origin": world.url})).must(204)
        assert issuer.revoked == ["refresh-1"]


# --- renewal ----------------------------------------------------------------------------------------------------------


async def test_a_token_is_renewed_once_before_its_end_by_one_gateway(tmp_path: Path) -> None:
    """Rotation: the second use of a refresh token would end the login at the issuer. The second gateway is one in its sessions alone."""
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        given = settings(tmp_path, **by_login(issuer))
        async with opened_access(given, clock, given.login_client) as elsewhere_in:
            second = StoredSessions(world.store, RING, clock, lasts_s=43_200, openid=elsewhere_in.login)
            headers = await logged_in(world)
            key = headers["Cookie"].partition("=")[2]
            clock.advance(239)
            (await world.call("GET", SESSION, headers=headers)).must(200)
            assert len(issuer.forms) == 1
            for lap in (2, 3):
                clock.advance(400 if lap == 3 else 2)  # the token has ended, or ends soon
                asked = [world.call("GET", SESSION, headers=headers) for _ in range(5)]
                elsewhere = asyncio.gather(*(second.credentials(key) for _ in range(5)))
                answers = await asyncio.gather(*asked)
                credentials = await elsewhere
                assert {answer.status for answer in answers} == {200}
                assert None not in credentials
                assert [form["grant_type"] for form in issuer.forms[1:]] == ["refresh_token"] * (lap - 1)
                assert list(issuer.refresh_tokens) == [f"refresh-{lap}"]


async def test_while_the_issuer_is_away_a_session_lasts_as_long_as_its_token(tmp_path: Path) -> None:
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        headers = await logged_in(world)
        issuer.is_down = True
        asked = len(issuer.asked)
        clock.advance(250)
        for _ in range(3):
            (await world.call("GET", SESSION, headers=headers)).must(200)
        assert len(issuer.asked) == asked + 1, "it is not asked with each request"
        clock.advance(55)
        (await world.call("GET", SESSION, headers=headers)).problem(503)
        issuer.is_down = False
        clock.advance(15)
        (await world.call("GET", SESSION, headers=headers)).must(200)


class FailingWrites(FragileStore):
    """A store that does not take the new tokens of a session, so many times."""

    fails = 0

    async def update(self, collection: str, id: str, fields: JsonMapping, **how: Any) -> Stored:
        if "grant" in fields and self.fails:
            self.fails -= 1
            raise StoreUnavailable("unavailable by request of the test")
        return await super().update(collection, id, fields, **how)


async def test_a_renewal_outlives_the_request_that_has_begun_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser is gone, and the database is away, when the new refresh token comes."""
    monkeypatch.setattr(grants, "_LOOK_S", 0.01)
    clock = SetClock(datetime.now(UTC))
    async with an_issuer() as issuer, lcm_world(
        tmp_path, Storage(kind=FailingWrites), **by_login(issuer), clock=clock
    ) as world:  # fmt: skip
        headers = await logged_in(world)
        clock.advance(250)
        issuer.is_free.clear()
        issuer.is_asked.clear()
        asking = asyncio.create_task(world.call("GET", SESSION, headers=headers))
        await issuer.is_asked.wait()
        (await world.call("GET", SESSION, headers=headers)).must(200)  # with the present token
        asking.cancel()
        world.store.fails = 3  # type: ignore[attr-defined]
        issuer.is_free.set()
        for _ in range(2):
            clock.advance(300)
            (await world.call("GET", SESSION, headers=headers)).must(200)
        assert world.store.fails == 0  # type: ignore[attr-defined]
        assert [form.get("refresh_token") for form in issuer.forms][:3] == [None, "refresh-1", "refresh-2"]


async def test_a_gateway_that_was_killed_in_a_renewal_keeps_no_session_from_the_others(tmp_path: Path) -> None:
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        headers = await logged_in(world)
        (session,) = await world.store.find(COLLECTION, Query())
        clock.advance(250)
        claimed = rfc3339(clock.now() + timedelta(seconds=60))
        await world.store.update(COLLECTION, session.id, {"claimedUntil": claimed})
        (await world.call("GET", SESSION, headers=headers)).must(200)
        assert len(issuer.forms) == 1
        clock.advance(61)
        (await world.call("GET", SESSION, headers=headers)).must(200)
        assert len(issuer.forms) == 2


async def test_a_session_ends_when_the_issuer_renews_it_no_more(tmp_path: Path) -> None:
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        for change in ("withdrawn", "another person"):
            headers = await logged_in(world)
            if change == "withdrawn":
                issuer.refresh_tokens.clear()
            else:
                issuer.claims = {"sub": "id-other"}
            clock.advance(250)
            (await world.call("GET", SESSION, headers=headers)).problem(401)
            assert not await world.store.find(COLLECTION, Query()), change


async def test_an_answer_that_is_no_verdict_ends_no_session(tmp_path: Path) -> None:
    """Those of a proxy in maintenance, of an issuer that limits requests, and its own word that it fails."""
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        headers = await logged_in(world)
        clock.advance(250)
        for status, body in (
            (429, '{"error":"invalid_grant"}'),
            (404, "<html>"),
            (403, "[]"),
            (200, "maintenance"),
            (400, '{"error":"temporarily_unavailable"}'),
        ):
            issuer.instead = (status, body)
            (await world.call("GET", SESSION, headers=headers)).must(200)
            answer, cookie = await begun(world)
            brought = await at_the_issuer(world, answer.json["address"])
            (await answered(world, brought, cookie)).problem(503)
            clock.advance(11)
        issuer.instead = None
        (await world.call("GET", SESSION, headers=headers)).must(200)
        assert list(issuer.refresh_tokens) == [f"refresh-{len(issuer.forms)}"]


async def test_a_token_that_has_ended_when_it_comes_is_not_renewed_without_end(tmp_path: Path) -> None:
    """Issuers that write 0 seconds, and those that give no ID token at a renewal where it is the one that is judged."""
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        headers = await logged_in(world)
        issuer.granted = {"expires_in": 0}
        clock.advance(250)
        (await world.call("GET", SESSION, headers=headers)).must(200)
        assert len(issuer.forms) == 2
    judged = {"page_login_judges": "id-token", "auth_bearer_audience": PAGE_CLIENT}
    async with a_login(tmp_path, **judged, clock=clock) as (issuer, world):
        issuer.claims = {"scope": "admin", "exp": int(clock.now().timestamp()) + 10}
        headers = await logged_in(world)
        issuer.granted = {"id_token": None}
        clock.advance(700)
        await world.call("GET", SESSION, headers=headers)
        assert len(issuer.forms) == 2


async def test_one_logs_out_without_a_role_and_while_the_issuer_is_away(tmp_path: Path) -> None:
    clock = SetClock(datetime.now(UTC))
    async with a_login(tmp_path, clock=clock) as (issuer, world):
        for change in ("no role", "away"):
            headers = await logged_in(world)
            clock.advance(400)
            if change == "away":
                issuer.is_down = True
                (await world.call("GET", SESSION, headers=headers)).problem(503)
            else:
                issuer.granted = {"access_token": issuer.token("x", sub="id-anna", azp=PAGE_CLIENT, client_id=None)}
                (await world.call("GET", SESSION, headers=headers)).problem(403)
                issuer.granted = {}
            (await world.call("DELETE", SESSION, headers=headers)).problem(403)
            ended = await world.call("DELETE", SESSION, headers={**headers, "Origin": world.url})
            assert ended.status in {200, 204}
            assert not await world.store.find(COLLECTION, Query()), change


async def test_a_session_without_a_refresh_token_ends_with_its_token(tmp_path: Path) -> None:
    async with a_login(tmp_path) as (issuer, world):
        issuer.granted = {"refresh_token": None, "access_token": issuer.token("admin", exp=4_000_000_000)}
        headers = await logged_in(world)
        (await world.call("GET", SESSION, headers=headers)).must(200)
        issuer.granted["access_token"] = issuer.token("admin", exp=1_000_000_000)
        answer, cookie = await begun(world)
        (await answered(world, await at_the_issuer(world, answer.json["address"]), cookie)).problem(403)


async def test_the_id_token_may_be_what_is_judged(tmp_path: Path) -> None:
    """Issuers whose access tokens are for them alone."""
    more = {"page_login_judges": "id-token", "auth_bearer_audience": PAGE_CLIENT, "auth_bearer_roles_claim": "groups"}
    async with a_login(tmp_path, **more) as (issuer, world):
        issuer.claims, issuer.granted = {"groups": ["reader"]}, {"access_token": "opaque", "expires_in": 1}
        headers = await logged_in(world)
        shown = (await world.call("GET", SESSION, headers=headers)).must(200).json
        assert (shown["subject"], shown["roles"]) == ("id-anna", ["reader"])


async def test_who_guesses_answers_waits(tmp_path: Path) -> None:
    async with a_login(tmp_path, auth_tries_burst=3) as (issuer, world):
        headers = await logged_in(world)
        for _ in range(3):
            (await answered(world, {"state": "x", "code": "y"}, "")).problem(403)
        (await answered(world, {"state": "x", "code": "y"}, "")).problem(429)
        (await world.call("POST", BEGIN, headers={"Origin": world.url})).problem(429)
        (await world.call("GET", SESSION, headers=headers)).must(200)
        assert len(issuer.forms) == 1


async def test_without_a_client_there_is_no_login_at_an_issuer(world: World, tmp_path: Path) -> None:
    for method, path, body in (
        ("POST", BEGIN, None),
        ("POST", f"{BEGIN}/answer", {"state": "x"}),
        ("GET", f"{BEGIN}/logout", None),
    ):
        (await world.call(method, path, body, headers={"Origin": world.url})).problem(404)
    bearer = {"auth_modes": "bearer", "auth_bearer_issuer": "https://i.example", "auth_bearer_audience": "x"}
    for wrong in (
        {"page_login_client_id": "x"},
        {**bearer, "page_login_client_secret": "x"},
        {**bearer, "page_login_client_id": "x", "page_login_scopes": "profile"},
        {**bearer, "page_login_client_id": "x", "page_login_judges": "refresh-token"},
    ):
        with pytest.raises(ValidationError):
            settings(tmp_path, **wrong)
    given = settings(tmp_path, **bearer, page_login_client_id="x", page_login_scopes="openid email, groups")
    assert given.page_login_scopes == ("openid", "email", "groups")
