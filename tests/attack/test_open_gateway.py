"""A gateway without authentication answers its own machine only, whatever a request says about itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from kubevnfm_access.gate import Gate
from kubevnfm_access.hosts import AuthenticationOff, KnownHosts
from kubevnfm_access.middleware import Proxies, admitted
from kubevnfm_access.settings import AccessSettings
from kubevnfm_access.wiring import proxies
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients import callback
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_lcm_api.settings import Settings
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from pydantic import ValidationError
from worlds.lcm_world import KEY, TOKEN, lcm_world
from worlds.receiver_twins import AwaitingLcm, receiver_settings

INSTANCES = "/vnflcm/v2/vnf_instances"
VIMS = "/v1.0/vims"
LOCAL = "127.0.0.0/8,::1/128"


def request_from(peer: str, method: str = "GET", path: str = INSTANCES, **headers: str) -> web.Request:
    """Return a request over a connection from ``peer``; the ``Host`` says loopback, as an attacker writes it."""
    given = {"Host": "127.0.0.1:9890", **{name.replace("_", "-"): value for name, value in headers.items()}}
    ends = {"peername": (peer, 40_000), "sockname": ("10.0.0.5", 9890)}
    transport = SimpleNamespace(get_extra_info=lambda name, default=None: ends.get(name, default))
    return make_mocked_request(method, path, headers=given, transport=transport, app=web.Application())


async def answer_to(request: web.Request, way: Proxies | None = None, gate: Gate | None = None) -> int:
    """Pass the request through the middleware of gateway and receiver; return the status that it leads to."""

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=200)

    try:
        answer: web.StreamResponse = await admitted(gate or Gate(), way or Proxies())(request, handler)
    except AuthenticationOff as refused:
        return refused.status
    return answer.status


@pytest.mark.parametrize(
    "peer", ["10.0.0.7", "192.168.0.1", "169.254.1.1", "fe80::1%eth0", "::ffff:10.0.0.7", "", "::"]
)
@pytest.mark.parametrize("path", [INSTANCES, VIMS, "/", "/nothing", callback.PATH])
async def test_another_machine_is_refused_whatever_host_it_names(peer: str, path: str) -> None:
    """API-140: the address of the peer decides; `Host` is the caller's own text."""
    assert await answer_to(request_from(peer, path=path)) == 403
    for host in ("localhost", "[::1]:9890", "10.0.0.5:9890", "nfv.example"):
        known = Proxies(hosts=KnownHosts(frozenset({"nfv.example"})))
        assert await answer_to(request_from(peer, path=path, Host=host), known) == 403
        assert await answer_to(request_from(peer, "POST", path, Host=host) if path != callback.PATH else
                               request_from(peer, "DELETE", f"{path}/1", Host=host), known) == 403  # fmt: skip


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_is_answered(peer: str) -> None:
    assert await answer_to(request_from(peer)) == 200


async def test_a_header_of_an_untrusted_peer_changes_nothing() -> None:
    for name in ("X_Forwarded_For", "Forwarded", "X_Real_IP"):
        assert await answer_to(request_from("10.0.0.7", **{name: "127.0.0.1"})) == 403


@pytest.mark.parametrize(
    "forwarded",
    [
        "10.0.0.7",
        "127.0.0.1, 10.0.0.7",
        "10.0.0.7, 127.0.0.1",
        "unknown",
        "localhost",
        "",
        "127.0.0.1, 10.1.0.1",  # a trusted proxy on another machine, which says that its caller was local there
    ],
)
async def test_behind_a_trusted_proxy_the_real_client_counts(forwarded: str) -> None:
    way = proxies(AccessSettings.model_validate({"trusted_proxies": f"{LOCAL},10.1.0.0/16"}))
    assert await answer_to(request_from("127.0.0.1", X_Forwarded_For=forwarded), way) == 403
    assert await answer_to(request_from("10.1.0.1", X_Forwarded_For="127.0.0.1"), way) == 403
    assert await answer_to(request_from("127.0.0.1", X_Forwarded_For="127.0.0.1"), way) == 200


@pytest.mark.parametrize(
    "said",
    [
        {"X_Forwarded_For": "10.0.0.7"},
        {"X_Forwarded_For": "127.0.0.1, 10.0.0.7"},
        {"X_Real_IP": "10.0.0.7"},
        {"Forwarded": 'for="[2001:db8::7]:4711";proto=http, for=127.0.0.1'},
        {"Forwarded": "For=unknown"},
    ],
)
async def test_a_proxy_on_this_machine_that_is_not_configured_lets_no_stranger_in(said: dict[str, str]) -> None:
    """Its requests come from loopback, and a caller writes any ``Host``."""
    assert await answer_to(request_from("127.0.0.1", **said)) == 403
    assert await answer_to(request_from("127.0.0.1", **{name: "for=127.0.0.1" if name == "Forwarded" else "::1" for name in said})) == 200  # fmt: skip


@pytest.mark.parametrize("node", ["127.0.0.1", "127.0.0.1:4711", '"127.0.0.1:4711"', '"[::1]"', '"[::1]:4711"'])
async def test_a_local_caller_of_a_proxy_is_answered_in_each_form_of_its_address(node: str) -> None:
    assert await answer_to(request_from("127.0.0.1", Forwarded=f"by=::1;For={node};proto=http")) == 200
    assert await answer_to(request_from("127.0.0.1", Forwarded=f"for={node}, for=10.0.0.7")) == 403


async def test_probes_services_and_signed_call_backs_are_answered_from_everywhere() -> None:
    for method, path in (
        ("GET", "/health/ready"),
        ("GET", "/metrics"),
        ("GET", "/internal/v1/instances/1"),  # has a token of its own
        ("POST", callback.PATH),
    ):
        assert await answer_to(request_from("10.0.0.7", method, path)) == 200


async def test_the_gateway_itself_refuses_a_client_of_its_proxy(tmp_path: Path) -> None:
    far = {"X-Forwarded-For": "198.51.100.7", "Host": "127.0.0.1"}
    async with lcm_world(tmp_path, trusted_proxies=LOCAL) as world:
        for method, path in (("GET", "/"), ("GET", INSTANCES), ("POST", INSTANCES), ("GET", "/nothing")):
            answer = await world.call(method, path, headers={**far, "Version": "2.0.0"})
            assert answer.problem(403)["type"] == "authentication-off"
        (await world.call("GET", VIMS, headers=far)).must(403)
        (await world.call("GET", "/health/live", headers=far)).must(200)
        (await world.call("GET", INSTANCES, headers={"Version": "2.0.0"})).must(200)


async def test_the_receiver_refuses_operators_on_other_machines(tmp_path: Path) -> None:
    ring = KeyRing.from_text(KeyRing.new_key())
    async with (
        InProcessBus(ring) as bus,
        SqliteStore.open(tmp_path / "store.db") as store,
        aiohttp.ClientSession() as session,
        credentials_receiver(
            receiver_settings(trusted_proxies=LOCAL), Backends(bus, store, ring), awaiting=AwaitingLcm()
        ) as service,
    ):
        url = f"http://127.0.0.1:{service.port}{callback.PATH}"
        for method, path in (("GET", ""), ("DELETE", "/1")):
            async with session.request(method, url + path, headers={"X-Forwarded-For": "198.51.100.7"}) as answer:
                assert (answer.status, (await answer.json())["type"]) == (403, "authentication-off")
        async with session.get(url) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_the_setting_that_opened_it_names_what_replaces_it(host: str) -> None:
    given: dict[str, Any] = {"host": host, "auth_open_to_network": "true"}
    for make in (
        lambda **more: Settings(internal_token=TOKEN, keys=KEY, **more),
        receiver_settings,
    ):
        with pytest.raises(ValidationError) as refused:
            make(**given)
        text = str(refused.value)
        assert all(word in text for word in ("auth_open_to_network", "auth_modes", "auth_users_file", "hash-password"))
        # Installations with users set it too, with no effect.
        assert make(**given, auth_modes="basic", auth_users_file="users.toml").host == host
