"""The names by which the gateway is reached: DNS rebinding, pages of other sites, and the hosts in links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from callers.callers import LIST, PACKAGES, V2
from callers.users import basic, users_file
from kubevnfm_access.hosts import KnownHosts, hosts_of
from worlds.lcm_world import TOKEN, Answer, World, lcm_world

UNKNOWN = (
    "rebound.example",
    "rebound.example:9890",
    "127.0.0.1.rebound.example",
    "localhost.rebound.example",
    "localhost@rebound.example",
    "rebound.example, localhost",
    "192.0.2.7:9890",
    "[2001:db8::7]",
    "",
)


async def create(world: World, host: str, **headers: str) -> Answer:
    """Create a package, as its answer has a ``Location`` and links."""
    return await world.call("POST", PACKAGES, {}, headers={"Host": host, **headers})


def links(answer: Answer) -> Iterator[str]:
    yield answer.headers["Location"]
    yield from (link["href"] for link in answer.json["_links"].values())


@pytest.mark.parametrize("host", UNKNOWN)
async def test_mode_none_does_not_answer_to_an_unknown_host(world: World, host: str) -> None:
    """API-140: a page of rebound.example whose name resolves to 127.0.0.1 would have every permission."""
    for method, path in (("GET", LIST), ("GET", "/"), ("POST", PACKAGES), ("GET", "/nothing"), ("OPTIONS", LIST)):
        answer = await world.call(method, path, headers={**V2, "Host": host})
        assert answer.problem(421)["type"] == "unknown-host"
        assert "rebound" not in str(answer.headers) + answer.raw.decode()
    assert (await world.packages("GET")).json == []


async def test_probes_and_the_other_services_come_under_any_name(world: World) -> None:
    (await world.call("GET", "/health/live", headers={"Host": "lcm-api.pod"})).must(200)
    headers = {"Host": "lcm-api:9890", "Authorization": f"Bearer {TOKEN}"}
    (await world.call("GET", "/internal/v1/instances/none", headers=headers)).must(404)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:9890"])
async def test_loopback_names_are_answered_and_repeated_in_links(world: World, host: str) -> None:
    made = (await create(world, host)).must(201)
    assert {urlsplit(link).netloc for link in links(made)} == {host}


@pytest.mark.parametrize(
    "how", [{"allowed_hosts": "nfv.example, other.example"}, {"public_url": "https://nfv.example/x"}]
)
async def test_mode_none_answers_to_configured_names(tmp_path: Path, how: dict[str, Any]) -> None:
    async with lcm_world(tmp_path, **how) as world:
        made = (await create(world, "NFV.example:9890")).must(201)
        expected = how.get("public_url", "http://NFV.example:9890")
        assert all(link.startswith(f"{expected}/") for link in links(made))
        (await create(world, "localhost")).must(201)
        (await create(world, "nfv.example.rebound.example")).problem(421)


async def test_the_name_that_a_trusted_proxy_forwards_is_checked_in_mode_none(tmp_path: Path) -> None:
    behind = {"trusted_proxies": "127.0.0.0/8", "allowed_hosts": "nfv.example"}
    async with lcm_world(tmp_path, **behind) as world:
        (await create(world, "upstream", **{"X-Forwarded-Host": "nfv.example"})).must(201)
        (await create(world, "localhost", **{"X-Forwarded-Host": "rebound.example"})).problem(421)


async def test_with_authentication_links_do_not_repeat_an_unknown_host(tmp_path: Path) -> None:
    behind: dict[str, Any] = {"auth_modes": "basic", "auth_users_file": users_file(tmp_path, nfvo=["admin"])}
    async with lcm_world(tmp_path, **behind, allowed_hosts="nfv.example") as world:
        for host, root in (
            ("nfv.example", "http://nfv.example"),
            ("poisoned.example", world.url),
            ("a b", world.url),
        ):
            made = (await create(world, host, **basic("nfvo"))).must(201)
            assert all(link.startswith(f"{root}/") for link in links(made)), host


async def test_a_trusted_proxy_names_the_host_of_links_with_authentication(tmp_path: Path) -> None:
    behind: dict[str, Any] = {"auth_modes": "basic", "auth_users_file": users_file(tmp_path, nfvo=["admin"])}
    async with lcm_world(tmp_path, **behind, trusted_proxies="127.0.0.0/8") as world:
        for forwarded, root in (("nfv.example", "http://nfv.example"), ("<script>", world.url)):
            made = (await create(world, "localhost", **{"X-Forwarded-Host": forwarded}, **basic("nfvo"))).must(201)
            assert all(link.startswith(f"{root}/") for link in links(made)), forwarded


@pytest.mark.parametrize("origin", ["https://other.example", "null", "http://localhost.other.example"])
async def test_a_page_of_another_site_changes_nothing(world: World, origin: str) -> None:
    """A browser sends a POST without a body, and without a question before, to every site."""
    host = world.url.removeprefix("http://")
    (await create(world, host, Origin=origin)).problem(403)
    (await world.call("GET", PACKAGES, headers={"Origin": origin})).must(200)
    (await create(world, host, Origin=world.url)).must(201)


def test_an_address_of_this_machine_is_known_where_requests_come_in_at_it() -> None:
    hosts = KnownHosts(
        hosts_of("NFV.example", "https://user@vnfm.example:8443/x", "fd00::5", "0.0.0.0", "::", "", None)
    )
    assert hosts.names == {"nfv.example", "vnfm.example", "fd00::5"}
    for host, local_address, is_known in (
        ("10.0.0.5:9890", "10.0.0.5", True),
        ("10.0.0.5:9890", "::ffff:10.0.0.5", True),
        ("10.0.0.6", "10.0.0.5", False),
        ("[fe80::1]", "fe80::1%eth0", True),
        ("0.0.0.0", "127.0.0.1", False),
        ("[fd00:0::5]", None, False),
        ("[fd00::5]:9890", None, True),
        ("nfv.example:99999999", None, False),
    ):
        assert hosts.admits(host, local_address=local_address) is is_known, host
