"""Calls of an OpenStack through a proxy, by the one rule of all clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from kubevnfm_keystone import Failure, KeystoneLogin, KeystoneSession, failure_of
from servers.certificates import Authority
from servers.connect_proxy import connect_proxy, environment, silent_server
from servers.ports import free_port


async def version(_: web.Request) -> web.Response:
    return web.json_response({"version": {"id": "v3.14"}})


async def refuse(_: web.Request) -> web.Response:
    return web.json_response({"error": {"code": 401, "message": "no", "title": "Unauthorized"}}, status=401)


@pytest.fixture
async def clouds(tmp_path: Path) -> AsyncIterator[dict[str, KeystoneLogin]]:
    """Log-ins to a Keystone by http and https, under a name that this machine does not resolve."""
    authority = Authority(tmp_path)
    pair = authority.issue("server", dns="cloud.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.add_routes([web.get("/v3", version), web.post("/v3/auth/tokens", refuse)])
    runner = web.AppRunner(app)
    await runner.setup()
    for tls in (None, context):
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    ports = [address[1] for address in runner.addresses]
    urls = {"http": f"http://cloud.example:{ports[0]}/v3", "https": f"https://cloud.example:{ports[1]}/v3"}
    yield {
        scheme: KeystoneLogin(
            url, username="u", password="hidden", project="p", certificates=authority.file.read_text()
        )
        for scheme, url in urls.items()
    }
    await runner.cleanup()


async def failure(login: KeystoneLogin, timeout_s: float = 10) -> Failure:
    session = KeystoneSession(login, timeout_s=timeout_s)
    try:
        with pytest.raises(Exception) as caught:
            await asyncio.to_thread(session.log_in)
    finally:
        session.close()
    return failure_of(caught.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_cloud_behind_a_proxy_is_logged_in_to_and_an_exception_is_direct(
    scheme: str, clouds: dict[str, KeystoneLogin]
) -> None:
    login = clouds[scheme]
    async with connect_proxy("ada:s3cret") as proxy:
        with environment(HTTP_PROXY=proxy.url, HTTPS_PROXY=proxy.url, NO_PROXY="10.0.0.0/8"):
            assert (await failure(login)).kind == "unauthorized"
        assert proxy.hosts == {"cloud.example"}
        assert (proxy.heads[0].startswith("CONNECT cloud.example:"), len(proxy.requests)) == (
            (True, 1) if scheme == "https" else (False, 2)
        )
        unnamed = replace(login, auth_url=login.auth_url.replace("cloud.", "other."))
        with environment(HTTP_PROXY=proxy.url, HTTPS_PROXY=proxy.url):
            assert (await failure(unnamed)).kind == ("refused" if scheme == "https" else "unauthorized")
            assert (await failure(replace(unnamed, check_host_name=False))).kind == "unauthorized"
        proxy.requests.clear()
        with environment(HTTP_PROXY=proxy.url, HTTPS_PROXY=proxy.url, NO_PROXY=".example"):
            assert (await failure(login)).reason == "its host name cannot be resolved"
        assert proxy.requests == []


async def test_a_proxy_that_accepts_and_says_nothing_is_named(clouds: dict[str, KeystoneLogin]) -> None:
    async with silent_server() as port:
        with environment(HTTPS_PROXY=f"127.0.0.1:{port}"):
            found = await failure(clouds["https"], timeout_s=0.2)
    assert found == Failure("unavailable", f"proxy 127.0.0.1:{port}: no connection in time", is_of_proxy=True)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_fails_is_named_instead_of_the_cloud(scheme: str, clouds: dict[str, KeystoneLogin]) -> None:
    dead = free_port()
    async with connect_proxy("ada:s3cret") as wants, connect_proxy(refuses="403 Forbidden") as refusing:
        for url, port, said in [
            (f"http://127.0.0.1:{dead}", dead, "connection refused"),
            (
                f"http://bob:s3cret@127.0.0.1:{wants.port}",
                wants.port,
                "it does not accept the login, or wants one (407)",
            ),
            *([(refusing.url, refusing.port, "it does not connect to the server: 403")] if scheme == "https" else []),
        ]:
            with environment(HTTP_PROXY=url, HTTPS_PROXY=url):
                found = await failure(clouds[scheme])
            assert found == Failure("unavailable", f"proxy 127.0.0.1:{port}: {said}", is_of_proxy=True)
