"""The web page over HTTP: its files, what a browser may do with them, and its sessions (docs/page.md)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from callers.callers import LIST, PACKAGES, V2
from callers.users import PASSWORD, basic, users_file
from kubevnfm_lcm_api.http import permission
from kubevnfm_lcm_api.notifications.http import events
from kubevnfm_lcm_api.page.files import page_files
from kubevnfm_lcm_api.page.sessions import COLLECTION, MOST_OF_ONE, StoredSessions
from kubevnfm_secrets import KeyRing
from kubevnfm_store.query import Query
from worlds.lcm_world import RING, Answer, World, lcm_world
from worlds.set_clock import SetClock

SESSION = "/kubevnfm/v1/session"
PAGE = {"Kubevnfm-Page": "1"}
NAMES = ("kubevnfm-session", "__Host-kubevnfm-session")


async def fetched(world: World, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return a file of the page as it is sent: it is in no document."""
    # Neither decompressed nor asked for by default: the tests name what they accept.
    async with (
        aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["Accept-Encoding", "Accept"]) as session,
        session.get(f"{world.url}{path}", headers=headers, allow_redirects=False) as response,
    ):
        return response.status, response.headers, await response.read()


# --- files ------------------------------------------------------------------------------------------------------------


async def test_a_browser_is_led_to_the_page_and_a_client_to_the_versions(world: World) -> None:
    status, headers, _ = await fetched(world, "/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, headers["Location"]) == (303, "/ui/")
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        assert (await world.call("GET", "/", headers=accept)).must(200).json["versions"]
    assert (await fetched(world, "/ui"))[0] == 308


async def test_the_index_is_at_each_place_and_its_files_never_change(world: World) -> None:
    status, headers, index = await fetched(world, "/ui/")
    assert (status, headers["Cache-Control"], headers["Content-Type"]) == (200, "no-cache", "text/html; charset=utf-8")
    for place in ("operations/any-id?state=open&q=%3Cb%3E", "vims/site-1.example", "nowhere"):
        assert (await fetched(world, f"/ui/{place}"))[2] == index, place
    names = [part.split('"')[0] for part in index.decode().split('"/ui/')[1:]]
    assert {name.rpartition(".")[2] for name in names} == {"js", "css", "svg"}
    for name in names:
        status, headers, content = await fetched(world, f"/ui/{name}")
        assert (status, headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
        assert content
        for encoding in ("br", "gzip"):
            _, packed_headers, packed = await fetched(
                world, f"/ui/{name}", **{"Accept-Encoding": f"deflate, {encoding};q=0.5"}
            )
            assert packed_headers["Content-Encoding"] == encoding
            assert packed_headers["ETag"] != headers["ETag"]
            assert len(packed) < len(content)
        assert (
            "Content-Encoding"
            not in (await fetched(world, f"/ui/{name}", **{"Accept-Encoding": "br;q=0, gzip;q=0.0"}))[1]
        )
        status, _, content = await fetched(world, f"/ui/{name}", **{"If-None-Match": f'"other", W/{headers["ETag"]}'})
        assert (status, content) == (304, b"")


async def test_what_is_no_file_of_the_page_is_404(world: World) -> None:
    """An old tab must not take HTML for a script, and no path leaves the folder."""
    for path in (
        *("assets/index-of-an-earlier-version.js", "assets/", "record.sha256", "index.html.br", "x.map"),
        *("../settings.py", "..%2fsettings.py", "%2e%2e/files.py"),
    ):
        status, headers, _ = await fetched(world, f"/ui/{path}")
        assert (status, headers["Content-Type"].partition(";")[0]) == (404, "application/problem+json"), path


def test_the_page_is_small() -> None:
    """A slow line is where people need it most: what the first view needs is at most 60 KB, and all that there is 200 KB."""
    by_name = {name: len(file.by_encoding["gzip"][0]) for name, file in page_files().items()}
    needed, left = set[str](), ["index.html", *(name for name in by_name if "/Operations-" in name)]
    while left:
        needed.add(name := left.pop())
        text = page_files()[name].by_encoding["identity"][0].decode()
        # The index names its files by their whole paths; a script those that it cannot begin without.
        named = {f"assets/{each}" for each in re.findall(r'(?:from"\./|import"\./|/ui/assets/)([^"]+)"', text)}
        left += [each for each in named & by_name.keys() if each not in needed]
    assert any("/index-" in name for name in needed)
    assert not any("/Plan-" in name or "/Walk-" in name for name in needed)
    assert sum(by_name[name] for name in needed) <= 60_000, by_name
    assert sum(by_name.values()) <= 200_000, by_name


async def test_the_page_may_run_its_own_scripts_alone(world: World) -> None:
    _, headers, index = await fetched(world, "/ui/packages")
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors", "object-src")} == {"'none'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "svelte-trusted-html", "Svelte's own templates alone become HTML"
    assert not {"script-src", "style-src", "connect-src"} & set(policy), "nothing is wider than 'self'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert b"<style" not in index
    assert index.count(b"<script") == index.count(b'<script type="module" crossorigin src=') == 1


# --- sessions ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a_world(folder: Path, **changes: Any) -> AsyncIterator[World]:
    """Yield a gateway with users, whose requests keep no cookie that a test does not send."""
    users = users_file(folder, anna=["admin"], rita=["reader"])
    async with lcm_world(folder, auth_modes="basic", auth_users_file=users, **changes) as world:
        yield world


async def log_in(world: World, name: str = "anna", **headers: str) -> Answer:
    sent = {**PAGE, **basic(name), "Origin": world.url, **headers}
    return await world.call("POST", SESSION, headers=sent)


def cookie(answer: Answer) -> dict[str, str]:
    """Return the header with the cookie that an answer gives."""
    found = SimpleCookie(answer.headers["Set-Cookie"])
    (name,) = found
    assert name in NAMES
    return {"Cookie": f"{name}={found[name].value}"}


async def test_a_session_stands_for_the_credentials_of_its_login(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        assert (await world.call("GET", "/kubevnfm/v1/login", headers={})).must(200).json == {"ways": ["basic"]}
        (await world.call("GET", SESSION, headers=PAGE)).problem(401)
        begun = (await log_in(world)).must(201)
        assert begun.json == {"subject": "anna", "mode": "basic", "roles": ["admin"], "isSession": True}
        given = begun.headers["Set-Cookie"]
        assert all(part in given for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"))
        carried = cookie(begun)
        assert (await world.call("GET", SESSION, headers=carried)).must(200).json == begun.json
        (await world.call("GET", LIST, headers={**V2, **carried})).must(200)
        (await world.call("POST", PACKAGES, {}, headers={**carried, "Origin": world.url})).must(201)
        # The document holds neither the password nor the key.
        (stored,) = await world.store.find(COLLECTION, Query())
        assert PASSWORD not in str(stored)
        assert carried["Cookie"].partition("=")[2] not in str(stored)
        ended = (await world.call("DELETE", SESSION, headers={**carried, "Origin": world.url})).must(204)
        (taken,) = SimpleCookie(ended.headers["Set-Cookie"]).values()
        assert (taken.key, taken.value, taken["max-age"], taken["path"]) == (NAMES[0], "", "0", "/")
        (await world.call("GET", LIST, headers={**V2, **carried})).problem(401)
        assert not await world.store.find(COLLECTION, Query())


async def test_in_a_session_only_the_gateways_own_page_changes_anything(tmp_path: Path) -> None:
    """CSRF: also a page of another port of this host, whose requests have the cookie; and requests without Origin."""
    async with a_world(tmp_path, allowed_hosts="localhost") as world:
        carried = cookie((await log_in(world)).must(201))
        url = world.url
        foreign = (
            "https://evil.example",
            "null",
            "http://127.0.0.1:1",
            "http://localhost",
            f"{url}.evil.example",
            f"{url}/x",
        )
        for origin in ({}, *({"Origin": each} for each in foreign)):
            headers = {**carried, **origin}
            for method, path in (("POST", PACKAGES), ("DELETE", SESSION), ("POST", SESSION)):
                (await world.call(method, path, {} if path == PACKAGES else None, headers=headers)).problem(403)
            # Or a page would log its visitor in as another.
            (await world.call("POST", SESSION, headers={**PAGE, **basic("rita"), **origin})).problem(403)
        (await world.call("GET", SESSION, headers=carried)).must(200)
        assert (await world.call("GET", PACKAGES, headers=carried)).must(200).json == []


async def test_a_login_makes_a_new_key_and_ends_the_earlier_session(tmp_path: Path) -> None:
    """Session fixation: a key that someone has planted is not taken over."""
    async with a_world(tmp_path) as world:
        planted = {"Cookie": f"{NAMES[0]}={'a' * 43}"}
        first = cookie((await log_in(world, **planted)).must(201))
        assert first != planted
        (await world.call("GET", SESSION, headers=planted)).problem(401)
        second = cookie((await log_in(world, "rita", **first)).must(201))
        (await world.call("GET", SESSION, headers=first)).problem(401)
        assert (await world.call("GET", SESSION, headers=second)).json["subject"] == "rita"


async def test_a_session_ends_when_its_user_is_withdrawn_and_does_not_come_back(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        carried = cookie((await log_in(world)).must(201))
        users_file(tmp_path, rita=["reader"], other=["admin"])
        refused = await world.call("GET", LIST, headers={**V2, **PAGE, **carried})
        refused.problem(401)
        assert refused.headers["WWW-Authenticate"] == 'Session realm="kubevnfm"', "Basic makes a browser ask by itself"
        users_file(tmp_path, anna=["admin"], rita=["reader"])
        (await world.call("GET", LIST, headers={**V2, **carried})).problem(401)


async def test_a_stream_ends_with_the_session_that_has_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database does not answer, it is not known whether the session has ended."""
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.01)
    monkeypatch.setattr(permission, "_AGAIN_S", 0.01)
    async with a_world(tmp_path) as world:
        carried = cookie((await log_in(world)).must(201))
        async with (
            asyncio.timeout(300),
            world.session.get(f"{world.url}/kubevnfm/v1/events", headers=carried) as stream,
        ):
            world.store.is_down = True
            for _ in range(10):
                assert await stream.content.readline()
            world.store.is_down = False
            (await world.call("DELETE", SESSION, headers={**carried, "Origin": world.url})).must(204)
            assert {line async for line in stream.content} <= {b": alive\n", b"\n"}


async def test_a_session_ends_with_its_time(tmp_path: Path) -> None:
    clock = SetClock(datetime(2026, 11, 27, tzinfo=UTC))
    async with a_world(tmp_path, clock=clock, page_session_s=600) as world:
        carried = cookie((await log_in(world)).must(201))
        clock.advance(599)
        (await world.call("GET", SESSION, headers=carried)).must(200)
        # Or with the key of its encryption, which an operator has taken away.
        without = StoredSessions(world.store, KeyRing([bytes(32)]), clock, lasts_s=600)
        assert await without.credentials(carried["Cookie"].partition("=")[2]) is None
        clock.advance(1)
        (await world.call("GET", SESSION, headers=carried)).problem(401)


async def test_a_reader_may_log_in_and_out_and_change_nothing_else(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        carried = {**cookie((await log_in(world, "rita")).must(201)), "Origin": world.url}
        (await world.call("GET", LIST, headers={**V2, **carried})).must(200)
        (await world.call("POST", PACKAGES, {}, headers=carried)).problem(403)
        (await world.call("DELETE", SESSION, headers=carried)).must(204)


async def test_only_headers_begin_a_session_and_they_come_before_its_cookie(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        carried = cookie((await log_in(world)).must(201))
        (await world.call("POST", SESSION, headers={**carried, "Origin": world.url})).problem(400)
        (await world.call("GET", SESSION, headers={**carried, **basic("anna", "wrong")})).problem(401)
        assert (await world.call("GET", SESSION, headers={**carried, **basic("rita")})).json["subject"] == "rita"
        (await log_in(world, Authorization="Basic eDp5")).problem(401)
        for strange in ("x", "a" * 43, "b" * 4000, "%00", '"' * 43):
            (await world.call("GET", SESSION, headers={"Cookie": f"{NAMES[0]}={strange}"})).problem(401)


async def test_behind_tls_the_cookie_is_of_this_host_and_tls_alone(tmp_path: Path) -> None:
    async with a_world(tmp_path, trusted_proxies="127.0.0.0/8", allowed_hosts="nfv.example") as world:
        seen = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "nfv.example", "Origin": "https://nfv.example"}
        begun = (await log_in(world, **seen)).must(201)
        assert begun.headers["Set-Cookie"].startswith("__Host-kubevnfm-session=")
        assert "Secure" in begun.headers["Set-Cookie"]
        carried = cookie(begun)
        (await world.call("POST", PACKAGES, {}, headers={**carried, **seen})).must(201)
        # Anyone on the way can write a page of this host by plain HTTP, and not every browser keeps the cookie from it.
        by_http = {**seen, "Origin": "http://nfv.example"}
        (await world.call("POST", PACKAGES, {}, headers={**carried, **by_http})).problem(403)
        (await log_in(world, **by_http)).problem(403)
        in_clear = {"Cookie": carried["Cookie"].removeprefix("__Host-")}
        (await world.call("GET", SESSION, headers={**seen, **in_clear})).problem(401)


async def test_the_public_url_says_that_a_proxy_which_only_keeps_the_host_has_tls(tmp_path: Path) -> None:
    async with a_world(tmp_path, public_url="https://nfv.example:443/") as world:
        begun = (await log_in(world, Host="nfv.example", Origin="https://nfv.example")).must(201)
        assert begun.headers["Set-Cookie"].startswith("__Host-kubevnfm-session=")
        assert "Secure" in begun.headers["Set-Cookie"]
        (await world.call("GET", SESSION, headers={"Host": "nfv.example", **cookie(begun)})).must(200)
        # At its own address it is asked in clear.
        assert "Secure" not in (await log_in(world)).must(201).headers["Set-Cookie"]


async def test_a_user_has_so_many_sessions_and_old_ones_are_removed(tmp_path: Path) -> None:
    clock = SetClock(datetime(2026, 11, 27, tzinfo=UTC))
    async with a_world(tmp_path, clock=clock, page_session_s=600) as world:
        first = cookie((await log_in(world)).must(201))
        for _ in range(MOST_OF_ONE):
            clock.advance(1)
            (await log_in(world)).must(201)
        (await world.call("GET", SESSION, headers=first)).problem(401)
        sessions = StoredSessions(world.store, RING, clock, lasts_s=600)
        await sessions.remove_old()
        assert len(await world.store.find(COLLECTION, Query())) == MOST_OF_ONE
        clock.advance(3600)
        await sessions.remove_old()
        assert not await world.store.find(COLLECTION, Query())


async def test_where_authentication_is_off_there_is_nothing_to_log_in_to(world: World) -> None:
    shown = (await world.call("GET", SESSION, headers={})).must(200).json
    assert shown == {"subject": "anybody", "mode": "none", "roles": ["admin"], "isSession": False}
    assert (await world.call("GET", "/kubevnfm/v1/login", headers={})).json == {"ways": []}
    (await world.call("POST", SESSION, headers={**basic("anna"), "Origin": world.url})).problem(400)
