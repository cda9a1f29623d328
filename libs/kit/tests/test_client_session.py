"""Sessions whose requests pass a proxy, over real connections."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from aiohttp import ClientConnectorError, ClientSSLError, ClientTimeout, web
from aiohttp.test_utils import BaseTestServer, TestServer
from kubevnfm_kit import http_client
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector, ProxyFailure
from kubevnfm_kit.proxies import environment_proxies
from kubevnfm_proxies.rule import Proxies
from servers.certificates import Authority
from servers.connect_proxy import connect_proxy, environment, silent_server
from servers.ports import free_port

LOGIN = "ada:s3cret"


def _app() -> web.Application:
    async def hello(request: web.Request) -> web.Response:
        return web.json_response({"host": request.host, "login": request.headers.get("Proxy-Authorization", "")})

    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound(request.query["to"])

    app = web.Application()
    app.add_routes([web.get("/hello", hello), web.post("/hello", hello), web.get("/away", away)])
    return app


@pytest.fixture
async def server() -> AsyncIterator[BaseTestServer]:
    async with TestServer(_app(), host="127.0.0.1") as running:
        yield running


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """Yield the port of a server whose certificate is for server.example, and the trust in it."""
    authority = Authority(tmp_path)
    pair = authority.issue("server.example", dns="server.example")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    running = TestServer(_app(), host="127.0.0.1")
    await running.start_server(ssl=tls)
    try:
        assert running.port is not None
        yield running.port, ssl.create_default_context(cafile=str(authority.file))
    finally:
        await running.close()


def through(url: str, exceptions: str = "") -> Proxies:
    return Proxies.read({"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": exceptions})


async def test_plain_http_is_sent_in_absolute_form_and_the_login_with_each_request(server: BaseTestServer) -> None:
    url = f"http://server.example:{server.port}/hello"
    async with connect_proxy(LOGIN) as proxy, client_session(proxies=through(proxy.url)) as session:
        for _ in range(3):
            async with session.post(url, json={"a": 1}) as answer:
                assert await answer.json() == {"host": f"server.example:{server.port}", "login": ""}
        assert [head.split(" ")[1] for head in proxy.heads] == [url] * 3


async def test_https_goes_through_a_tunnel_that_the_proxy_does_not_read(secure: tuple[int, ssl.SSLContext]) -> None:
    port, trust = secure
    async with (
        connect_proxy(LOGIN) as proxy,
        client_session(connector=HttpConnector(ssl=trust), proxies=through(proxy.url)) as session,
    ):
        for _ in range(2):
            async with session.get(f"https://server.example:{port}/hello") as answer:
                assert await answer.json() == {"host": f"server.example:{port}", "login": ""}
        with pytest.raises(ClientSSLError):
            await session.get(f"https://other.example:{port}/hello")
    # The second request is sent through the same tunnel.
    assert proxy.heads[0].startswith(f"CONNECT server.example:{port} HTTP/1.1\r\n")
    assert [target for target, _ in proxy.requests] == [f"server.example:{port}", f"other.example:{port}"]


async def test_exceptions_are_direct_also_where_a_redirect_leads(server: BaseTestServer) -> None:
    async with connect_proxy() as proxy, client_session(proxies=through(proxy.url, "10.0.0.0/8")) as session:
        here = f"127.0.0.1:{server.port}"
        async with session.get(f"http://{here}/hello") as answer:
            assert answer.status == 200
        assert proxy.requests == []
        url = f"http://first.example:{server.port}/away"
        async with session.get(url, params={"to": f"http://second.example:{server.port}/hello"}) as answer:
            assert answer.status == 200
        async with session.get(url, params={"to": f"http://{here}/hello"}) as answer:
            assert await answer.json() == {"host": here, "login": ""}
        assert [target.partition(":")[0] for target, _ in proxy.requests] == [
            "first.example",
            "second.example",
            "first.example",
        ]


async def test_a_judged_address_is_what_the_proxy_connects_to_and_the_name_is_what_tls_verifies(
    secure: tuple[int, ssl.SSLContext], server: BaseTestServer
) -> None:
    port, trust = secure
    asked = []

    async def judge(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        if host == "evil.example":
            raise PermissionError("not there")
        # The test's proxy reaches each of them at 127.0.0.1.
        return () if host == "unjudged.example" else ("fd00::7", "10.1.2.3")

    async with (
        connect_proxy() as proxy,
        client_session(connector=HttpConnector(ssl=trust), proxies=through(proxy.url), judge=judge) as session,
    ):
        async with session.get(f"https://server.example:{port}/hello") as answer:
            assert await answer.json() == {"host": f"server.example:{port}", "login": ""}
        assert proxy.heads[0].startswith(f"CONNECT [fd00::7]:{port} HTTP/1.1\r\n")
        assert f"\r\nHost: [fd00::7]:{port}\r\n" in proxy.heads[0]
        with pytest.raises(ClientSSLError):
            await session.get(f"https://other.example:{port}/hello")
        async with session.get(f"http://plain.example:{server.port}/hello") as answer:
            assert (await answer.json())["host"] == f"plain.example:{server.port}"
            assert str(answer.url) == f"http://plain.example:{server.port}/hello"
        assert proxy.heads[-1].startswith(f"GET http://[fd00::7]:{server.port}/hello HTTP/1.1\r\n")
        with pytest.raises(ClientConnectorError) as refused:
            await session.get(f"https://evil.example:{port}/hello")
        assert isinstance(refused.value.os_error, PermissionError)
        async with session.get(f"http://unjudged.example:{server.port}/hello") as answer:
            assert answer.status == 200
        assert "evil.example" not in proxy.hosts
        assert "unjudged.example" in proxy.hosts
        assert "server.example" not in proxy.hosts
    async with (
        connect_proxy(refuses="502 Bad Gateway") as proxy,
        client_session(proxies=through(proxy.url), judge=judge) as session,
    ):
        with pytest.raises(ProxyFailure, match=r"does not connect to 10\.1\.2\.3:1: 502 Bad Gateway"):
            await session.get("https://server.example:1/")
        assert [target for target, _ in proxy.requests] == ["fd00::7:1", "10.1.2.3:1"]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_fails_is_named_and_its_login_is_not(scheme: str) -> None:
    port = free_port()
    url = f"{scheme}://server.example:1/"
    async with connect_proxy("bob:other") as wants, connect_proxy(refuses="403 \x1b[1mNo") as refusing:
        for proxy, named, said in [
            (f"http://{LOGIN}@127.0.0.1:{port}", f"127.0.0.1:{port}", "connection refused"),
            (
                f"http://{LOGIN}@127.0.0.1:{wants.port}",
                f"127.0.0.1:{wants.port}",
                "it does not accept the login, or wants one (407)",
            ),
            (
                f"http://127.0.0.1:{wants.port}",
                f"127.0.0.1:{wants.port}",
                "it does not accept the login, or wants one (407)",
            ),
            ("http://proxy.invalid:3128", "proxy.invalid:3128", "its name cannot be resolved"),
            *(
                [(refusing.url, f"127.0.0.1:{refusing.port}", "it does not connect to server.example:1: 403 No")]
                if scheme == "https"
                else []
            ),
        ]:
            async with client_session(proxies=through(proxy)) as session:
                with pytest.raises(ProxyFailure) as failed:
                    await session.get(url)
            assert str(failed.value).startswith(f"proxy {named}: ")
            assert said in str(failed.value)
            assert "s3cret" not in f"{failed.value!r} {failed.value}"


async def test_a_proxy_that_accepts_and_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_CONNECTED_WITHIN_S", 0.1)
    async with silent_server() as port, client_session(proxies=through(f"127.0.0.1:{port}")) as session:
        with pytest.raises(ProxyFailure, match=f"proxy 127.0.0.1:{port}: no connection in time"):
            await session.get("https://server.example/", timeout=ClientTimeout(total=None))


async def test_a_request_with_a_proxy_of_its_own_is_sent_through_that_one(server: BaseTestServer) -> None:
    url = f"http://server.example:{server.port}/hello"
    async with connect_proxy() as one, connect_proxy() as other, client_session(proxies=through(one.url)) as session:
        async with session.get(url, proxy=other.url) as answer:
            assert answer.status == 200
        assert (len(one.requests), len(other.requests)) == (0, 1)


async def test_the_resolver_of_a_server_is_not_that_of_its_proxy(server: BaseTestServer) -> None:
    def opened(info: object) -> object:
        raise AssertionError(info)

    connector = HttpConnector(socket_factory=opened)
    async with (
        connect_proxy() as proxy,
        client_session(connector=connector, proxies=through(proxy.url)) as session,
        session.get(f"http://server.example:{server.port}/hello") as answer,
    ):
        assert answer.status == 200


async def test_the_environment_is_read_once(server: BaseTestServer) -> None:
    async with connect_proxy() as proxy:
        with environment(HTTP_PROXY=proxy.url):
            async with client_session() as session, session.get(f"http://server.example:{server.port}/hello"):
                pass
        with environment():
            assert not environment_proxies()
    assert len(proxy.requests) == 1
