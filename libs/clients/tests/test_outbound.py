"""Which addresses calls may go to: the rules alone, and connections that are really made."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from kubevnfm_clients.outbound import AddressNotAllowed, AddressRules, outbound_session, trouble
from kubevnfm_proxies.rule import Proxies
from servers.connect_proxy import connect_proxy
from servers.ports import free_port

LOOPBACK = AddressRules.from_text("127.0.0.0/8")


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "203.0.114.1", "2001:4860:4860::8888", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_admitted(address: str) -> None:
    assert AddressRules().admits(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
        "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::", "2001:db8::1", "name.example", "",
        "fec0::1", "feff::1", "100::1", "4000::1", "5f00::1", "64:ff9b:2::1", "fec0::ffff:8.8.8.8",
        # A translator with a prefix of 48 bits takes 10.0.0.1 from these, and ignores the last bytes.
        "64:ff9b:1:a00:0:100:808:808", "64:ff9b:1::8.8.8.8",
    ],
)  # fmt: skip
def test_internal_addresses_in_every_spelling_are_not(address: str) -> None:
    assert not AddressRules().admits(address)


def test_what_an_operator_allows_is_admitted_in_every_spelling_and_nothing_else() -> None:
    rules = AddressRules.from_text("10.20.0.0/16, fd12::/16")
    assert all(rules.admits(each) for each in ("10.20.3.4", "::ffff:10.20.3.4", "fd12::5", "9.9.9.9"))
    assert not any(rules.admits(each) for each in ("10.21.0.1", "fd13::5", "127.0.0.1", "169.254.169.254"))


@pytest.mark.parametrize("text", ["10.0.0.0/33", "localhost", "10.0.0.1/8"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text.split("/", maxsplit=1)[0]):
        AddressRules.from_text(text)


@pytest.fixture
async def server() -> AsyncIterator[BaseTestServer]:
    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound(request.query["to"])

    app = web.Application()
    app.add_routes([web.get("/hello", hello), web.get("/away", away)])
    async with TestServer(app, host="127.0.0.1") as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_connection_into_an_internal_network_is_not_made_by_address_or_by_name(
    server: BaseTestServer, host: str
) -> None:
    async with outbound_session(AddressRules()) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.get(f"http://{host}:{server.port}/hello")
    assert isinstance(caught.value.os_error, AddressNotAllowed)
    assert trouble(caught.value) == "its address is in a network that calls may not go to (setting allowed_networks)"


async def test_what_is_allowed_is_reached_and_its_redirects_are_judged_like_any_address(server: BaseTestServer) -> None:
    async with outbound_session(LOOPBACK) as session:
        async with session.get(f"http://127.0.0.1:{server.port}/hello") as response:
            assert await response.text() == "hello"
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.get(f"http://127.0.0.1:{server.port}/away", params={"to": "http://169.254.169.254/latest"})
    assert isinstance(caught.value.os_error, AddressNotAllowed)


async def test_trouble_names_what_happened_and_not_the_address() -> None:
    async with outbound_session(LOOPBACK) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.get("http://127.0.0.1:1/?token=s3cret")
    assert "did not answer" in trouble(caught.value)
    assert "s3cret" not in trouble(caught.value)
    assert trouble(TimeoutError()) == "it did not answer in time"


def _through(url: str) -> Proxies:
    return Proxies.read({"HTTP_PROXY": url, "HTTPS_PROXY": url})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The addresses of names; every other one is unknown."""
    known: dict[str, list[str]] = {}

    async def look_up(host: str, _port: int) -> Sequence[str]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return known[host]

    monkeypatch.setattr("kubevnfm_clients.outbound.resolved", look_up)
    return known


async def test_a_proxy_is_asked_for_the_address_that_was_judged(
    server: BaseTestServer, names: dict[str, list[str]]
) -> None:
    """DNS rebinding: the name could lead elsewhere when the proxy resolves it."""
    names |= {"subscriber.example": ["10.1.2.3", "203.0.114.7"], "rebound.example": ["169.254.169.254"]}
    async with connect_proxy() as proxy, outbound_session(AddressRules(), proxies=_through(proxy.url)) as session:
        url = f"http://subscriber.example:{server.port}"
        async with session.get(f"{url}/hello") as response:
            assert await response.text() == "hello"
        assert proxy.requests == [(f"203.0.114.7:{server.port}", "")]
        assert f"\r\nHost: subscriber.example:{server.port}\r\n" in proxy.heads[0]
        for target in (
            "http://rebound.example/", "https://rebound.example/", "http://10.1.2.3/", "https://[fd00::7]/",
            "http://169.254.169.254/latest", "http://[::ffff:10.1.2.3]/", "https://2130706433/", "http://0x0a.1.2.3/",
            "http://127.0.0.1/", "http://localhost:1/",
        ):  # fmt: skip
            with pytest.raises(aiohttp.ClientConnectorError) as refused:
                await session.get(target)
            assert isinstance(refused.value.os_error, AddressNotAllowed), target
            with pytest.raises(aiohttp.ClientConnectorError) as refused:
                await session.get(f"{url}/away", params={"to": target})
            assert isinstance(refused.value.os_error, AddressNotAllowed), target
        assert proxy.hosts == {"203.0.114.7"}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_name_that_is_not_resolved_here_is_refused_unless_the_proxy_judges(
    scheme: str, server: BaseTestServer, names: dict[str, list[str]]
) -> None:
    assert not names
    url = f"{scheme}://subscriber.example:{server.port}/hello"
    async with connect_proxy() as proxy:
        async with outbound_session(AddressRules(), proxies=_through(proxy.url)) as session:
            with pytest.raises(aiohttp.ClientConnectionError) as refused:
                await session.get(url)
        assert trouble(refused.value) == (
            "its name cannot be resolved, so its address cannot be judged (setting proxy_resolves)"
        )
        assert proxy.requests == []
        rules = AddressRules.from_text("", proxy_resolves=True)
        async with outbound_session(rules, proxies=_through(proxy.url)) as session:
            if scheme == "http":
                async with session.get(url) as response:
                    assert await response.text() == "hello"
            else:
                with pytest.raises(aiohttp.ClientSSLError):  # the server has no TLS
                    await session.get(url)
            assert proxy.hosts == {"subscriber.example"}
            for target in (f"{scheme}://10.1.2.3/", f"{scheme}://0x0a010203/", f"{scheme}://167838211/"):
                with pytest.raises(aiohttp.ClientConnectorError) as judged:
                    await session.get(target)
                assert isinstance(judged.value.os_error, AddressNotAllowed), target
        assert proxy.hosts == {"subscriber.example"}


async def test_a_proxy_that_is_off_is_the_trouble(names: dict[str, list[str]]) -> None:
    names["subscriber.example"] = ["203.0.114.7"]
    port = free_port()
    async with outbound_session(AddressRules(), proxies=_through(f"http://u:s3cret@127.0.0.1:{port}")) as session:
        with pytest.raises(aiohttp.ClientError) as failed:
            await session.get("https://subscriber.example/?token=s3cret")
    assert trouble(failed.value) == f"proxy 127.0.0.1:{port}: connection refused"
