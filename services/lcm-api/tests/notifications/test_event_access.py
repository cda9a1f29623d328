"""How long a watcher may watch: a stream ends with the credentials that opened it, or when they are withdrawn."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from callers.users import hashed
from clouds.identity import AUDIENCE, CLIENT, KeystoneAccount, a_keystone, an_issuer
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import PackageFetched
from kubevnfm_lcm_api.http import permission
from kubevnfm_lcm_api.notifications.http import events
from servers.certificates import Authority
from worlds.engine_world import SetClock
from worlds.lcm_world import World, lcm_world

EVENTS: Final = "/kubevnfm/v1/events"
LIFE_S: Final = 600
LONGER_S: Final = 3700
"""Above the life of everything here, leeways included."""
MODES: Final = ("keystone", "jwt", "introspection", "certificate")


@dataclass(frozen=True)
class Known:
    """A caller that lcm-api admits."""

    headers: Mapping[str, str]
    settings: Mapping[str, Any]
    withdraw: Callable[[], None]
    """Makes the authority reject the caller from now on."""
    shut: Callable[[], None] = lambda: None
    """Makes the authority unavailable from now on."""


def a_user(folder: Path, **attributes: Any) -> Path:
    """Return a users file with one reader."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"roles": ["reader"], **attributes}.items()]
    path = folder / "users.toml"
    path.write_text("\n".join(["[users.rita]", *lines]))
    return path


@asynccontextmanager
async def known_by(mode: str, folder: Path) -> AsyncIterator[Known]:
    """Yield a caller with credentials of this kind, which live for ten minutes, certificates for an hour."""
    async with AsyncExitStack() as stack:
        if mode == "basic":
            shown = {"Authorization": f"Basic {b64encode(b'rita:pw').decode()}"}
            file = a_user(folder, password=hashed("pw"))
            settings = {"auth_modes": "basic", "auth_users_file": file}
            yield Known(shown, settings, lambda: _withdraw_user(folder))
        elif mode == "certificate":
            pem = Authority(folder).issue("rita.example").certificate.read_bytes()
            der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
            settings = {
                "auth_modes": "certificate",
                "auth_users_file": a_user(folder, certificate="rita.example"),
                "trusted_proxies": "127.0.0.0/8",
                "auth_certificate_header": "Client-Cert",
            }
            yield Known({"Client-Cert": f":{b64encode(der).decode()}:"}, settings, lambda: _withdraw_user(folder))
        elif mode == "keystone":
            keystone = await stack.enter_async_context(a_keystone(rita=KeystoneAccount("pw", ("reader",))))
            token = keystone.token("rita", lives_s=LIFE_S)
            settings = {
                "auth_modes": "keystone",
                "auth_keystone_url": keystone.url,
                "auth_keystone_username": "gateway",
                "auth_keystone_password": "gateway-s3cret",
                "auth_keystone_projects": "nfv",
                "auth_cache_s": 0,
            }
            shown = {"X-Auth-Token": token}
            yield Known(shown, settings, lambda: keystone.revoke(token), lambda: setattr(keystone, "is_down", True))
        else:
            issuer = await stack.enter_async_context(an_issuer())
            settings = {"auth_modes": "bearer", "auth_bearer_audience": AUDIENCE, "auth_cache_s": 0}
            if mode == "jwt":
                token = issuer.token("reader", exp=int(time.time()) + LIFE_S)
                settings["auth_bearer_issuer"] = issuer.url
            else:
                token = "opaque"
                issuer.opaque[token] = {"active": True, "sub": "rita", "scope": "reader", "exp": time.time() + LIFE_S}
                settings["auth_bearer_introspection_url"] = f"{issuer.url}/introspect"
                settings["auth_bearer_client_id"], settings["auth_bearer_client_secret"] = CLIENT
            yield Known({"Authorization": f"Bearer {token}"}, settings, issuer.opaque.clear)


def _withdraw_user(folder: Path) -> None:
    (folder / "users.toml").write_text('[users.other]\nroles = ["reader"]\ncertificate = "other.example"\n')


@asynccontextmanager
async def stream(world: World, known: Known, query: str = "") -> AsyncIterator[AsyncIterator[bytes]]:
    """Yield the lines of an open stream; they end where the gateway ends it cleanly."""
    async with (
        asyncio.timeout(300),
        world.session.get(f"{world.url}{EVENTS}{query}", headers=known.headers) as response,
    ):
        assert response.status == 200
        lines = response.content.__aiter__()
        assert await anext(lines) == b": connected\n"
        yield lines


async def beats(lines: AsyncIterator[bytes]) -> None:
    async for line in lines:
        if line == b": alive\n":
            return
    raise AssertionError("the stream ended")


async def publish_event(world: World, number: str) -> None:
    await world.bus.publish(Envelope(PackageFetched(vnf_pkg_id=number), source="/kubevnfm/test"))


async def until_received(lines: AsyncIterator[bytes], number: str) -> None:
    async for line in lines:
        if line.startswith(b"data: ") and json.loads(line[6:])["data"]["vnf_pkg_id"] == number:
            return
    raise AssertionError(f"the stream ended before {number}")


@pytest.mark.parametrize("mode", MODES)
async def test_no_event_is_sent_after_the_credentials_have_expired(tmp_path: Path, mode: str) -> None:
    """API-140: what the identity server said of their end holds for streams that are open; the end is clean."""
    clock = SetClock()
    async with (
        known_by(mode, tmp_path) as known,
        lcm_world(tmp_path, clock=clock, **known.settings) as world,
        stream(world, known) as lines,
    ):
        await publish_event(world, "before")
        await until_received(lines, "before")
        clock.ahead_s = LONGER_S
        await publish_event(world, "after")
        assert not [line async for line in lines if b"after" in line]


@pytest.mark.parametrize("mode", ["keystone", "introspection", "certificate", "basic"])
async def test_a_quiet_stream_ends_when_its_credentials_are_withdrawn(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-140: checked with each heartbeat; a new connection is rejected."""
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.01)
    monkeypatch.setattr(permission, "_AGAIN_S", 0.01)
    async with known_by(mode, tmp_path) as known, lcm_world(tmp_path, **known.settings) as world:
        async with stream(world, known) as lines:
            await beats(lines)
            known.withdraw()
            async for line in lines:
                assert line in {b": alive\n", b"\n"}
        (await world.call("GET", EVENTS, headers=known.headers)).problem(401)


async def test_an_identity_server_that_is_away_ends_no_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Valid credentials last until they expire, or until the authority says that they are revoked."""
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.01)
    monkeypatch.setattr(permission, "_AGAIN_S", 0.01)
    clock = SetClock()
    async with (
        known_by("keystone", tmp_path) as known,
        lcm_world(tmp_path, clock=clock, **known.settings) as world,
        stream(world, known) as lines,
    ):
        known.shut()
        for _ in range(3):
            await beats(lines)
        clock.ahead_s = LONGER_S
        assert {line async for line in lines} <= {b": alive\n", b"\n", b"retry: 2000\n"}


async def test_a_stream_that_has_other_events_kept_from_it_has_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without heartbeats a proxy closes the stream, and the credentials are not checked."""
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.01)
    monkeypatch.setattr(permission, "_AGAIN_S", 0.01)
    async with (
        known_by("keystone", tmp_path) as known,
        lcm_world(tmp_path, **known.settings) as world,
        stream(world, known, "?type=lcm.instance.created") as lines,
    ):

        async def others() -> None:
            while True:
                await publish_event(world, "another")

        publishing = asyncio.create_task(others())
        await beats(lines)
        publishing.cancel()
        await asyncio.wait([publishing])
