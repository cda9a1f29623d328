"""Receivers over HTTPS (CR-068): which ones the sender trusts, what it presents, and what it refuses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_kit.http import serving
from kubevnfm_kit.tls import ClientTls, ServerTls
from kubevnfm_mgmt_executor.adapters.receivers import HttpReceivers
from kubevnfm_mgmt_executor.domain.capi.answers import Answer, Silence
from servers.certificates import Authority
from servers.connect_proxy import connect_proxy, environment
from servers.ports import free_port


@dataclass
class WebServer:
    """A receiver of an operator. It answers 201, or the status that a test has set."""

    status: int = 201
    location: str = ""
    bodies: list[bytes] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    """The common names of the certificates that callers presented; empty for none."""

    def app(self) -> web.Application:
        async def receive(request: web.Request) -> web.Response:
            assert request.transport is not None
            self.bodies.append(await request.read())
            shown = request.transport.get_extra_info("peercert") or {}
            names = dict(pair for parts in shown.get("subject", ()) for pair in parts)
            self.callers.append(names.get("commonName", ""))
            return web.json_response({"id": "1"}, status=self.status, headers={"Location": self.location})

        app = web.Application()
        app.router.add_post("/{tail:.*}", receive)
        return app


async def send(tls: ClientTls, port: int, *, host: str = "127.0.0.1", scheme: str = "https") -> Answer | Silence:
    async with HttpReceivers.connected(tls) as receivers:
        return await receivers.post(f"{scheme}://{host}:{port}/hook", b"the body", {"Content-Type": "application/json"})


@asynccontextmanager
async def alerting(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Yield the port of a server that says by an alert why it ends a handshake; asyncio's servers only close."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            try:
                context.wrap_socket(connection.dup(), server_side=True).close()
            except ssl.SSLError:
                # All that was sent meanwhile is read: otherwise the connection is reset, and the alert is lost.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, name="alerting server")
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        await asyncio.to_thread(thread.join)


@asynccontextmanager
async def old_server(app: web.Application, context: ssl.SSLContext) -> AsyncIterator[int]:
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_a_receiver_is_verified_with_the_ca_of_the_operator(tmp_path: Path) -> None:
    """CR-068: not with the CAs of the machine, not with another one, and for the host of the URL only."""
    ca, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair = ca.issue("receiver")
    receiver = WebServer()
    async with serving(receiver.app(), host="127.0.0.1", port=0, tls=ServerTls(pair.certificate, pair.key)) as port:
        accepted = await send(ClientTls(ca.file), port)
        assert isinstance(accepted, Answer)
        assert accepted.status == 201
        assert receiver.bodies == [b"the body"]
        for trusted in (None, other.file):
            answer = await send(ClientTls(trusted), port)
            assert isinstance(answer, Silence)
            assert answer.reason.startswith("the TLS certificate is not trusted: ")
        wrong = await send(ClientTls(ca.file), port, host="localhost")
        assert isinstance(wrong, Silence)
        assert "not valid for 'localhost'" in wrong.reason
        plain = await send(ClientTls(ca.file), port, scheme="http")
        assert isinstance(plain, Silence)
    assert receiver.bodies == [b"the body"]


async def test_a_receiver_may_ask_for_the_certificate_of_kubevnfm(tmp_path: Path) -> None:
    """CR-068: mTLS."""
    ca, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair, own, stranger = ca.issue("receiver"), ca.issue("kubevnfm"), other.issue("stranger")
    receiver = WebServer()
    mutual = ServerTls(pair.certificate, pair.key, ca.file)
    async with serving(receiver.app(), host="127.0.0.1", port=0, tls=mutual) as port:
        answer = await send(ClientTls(ca.file, own.certificate, own.key), port)
        assert isinstance(answer, Answer)
        assert (answer.status, receiver.callers) == (201, ["kubevnfm"])
        for tls in (ClientTls(ca.file), ClientTls(ca.file, stranger.certificate, stranger.key)):
            refused = await send(tls, port)
            assert isinstance(refused, Silence)
            assert "receiver_certificate" in refused.reason
    assert receiver.callers == ["kubevnfm"]


async def test_a_server_that_says_why_it_refuses_is_quoted(tmp_path: Path) -> None:
    """CR-068."""
    ca, other = Authority(tmp_path), Authority(tmp_path, "other")
    pair, stranger = ca.issue("receiver"), other.issue("stranger")
    mutual = ServerTls(pair.certificate, pair.key, ca.file).context()
    for tls, says in (
        (ClientTls(ca.file), "the server asks for a client certificate"),
        (ClientTls(ca.file, stranger.certificate, stranger.key), "the server does not accept the client certificate"),
    ):
        async with alerting(mutual) as port:
            assert await send(tls, port) == Silence(says)
    mutual.maximum_version = ssl.TLSVersion.TLSv1_2
    async with alerting(mutual) as port:
        refused = await send(ClientTls(ca.file), port)
    assert isinstance(refused, Silence)
    assert "it may ask for a client certificate" in refused.reason


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_before_1_2_is_refused(tmp_path: Path) -> None:
    """CR-068."""
    ca = Authority(tmp_path)
    pair = ca.issue("receiver")
    receiver = WebServer()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.load_cert_chain(pair.certificate, pair.key)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    async with old_server(receiver.app(), old) as port:
        assert isinstance(await send(ClientTls(ca.file), port), Answer)  # the newest that both know
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    async with old_server(receiver.app(), old) as port:
        # The server does speak this version: a caller that admits it is answered.
        lax = ssl.create_default_context(cafile=str(ca.file))
        lax.set_ciphers("ALL:@SECLEVEL=0")
        lax.minimum_version = ssl.TLSVersion.TLSv1
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=lax)) as session:
            assert (await session.post(f"https://127.0.0.1:{port}/")).status == 201
        refused = await send(ClientTls(ca.file), port)
        assert isinstance(refused, Silence)
        assert "not speak TLS 1.2" in refused.reason
    async with alerting(old) as port:
        assert await send(ClientTls(ca.file), port) == Silence(
            "TLS 1.2 or later expected: the server speaks an older version"
        )
    assert receiver.bodies == [b"the body", b""]


async def test_a_redirect_is_not_followed_to_another_server(tmp_path: Path) -> None:
    """CR-068."""
    ca = Authority(tmp_path)
    pair = ca.issue("receiver")
    tls = ServerTls(pair.certificate, pair.key)
    first, second = WebServer(), WebServer()
    async with (
        serving(first.app(), host="127.0.0.1", port=0, tls=tls) as port,
        serving(second.app(), host="127.0.0.1", port=0, tls=tls) as target,
    ):
        for status in (301, 302, 303, 307, 308):
            first.status, first.location = status, f"https://127.0.0.1:{target}/hook"
            answer = await send(ClientTls(ca.file), port)
            assert isinstance(answer, Answer)
            assert answer.status == status
    assert second.bodies == []


async def test_a_server_without_tls_gets_no_credentials() -> None:
    """CR-068."""
    receiver = WebServer()
    async with serving(receiver.app(), host="127.0.0.1", port=0) as port:
        answer = await send(ClientTls(), port)
    assert isinstance(answer, Silence)
    assert "does not speak TLS" in answer.reason
    assert receiver.bodies == []


async def test_credentials_pass_the_proxy_of_the_environment_except_to_our_own_receiver() -> None:
    server, body, dead = WebServer(), {"Content-Type": "application/json"}, free_port()
    async with serving(server.app(), host="127.0.0.1", port=0) as port, connect_proxy("ada:s3cret") as proxy:
        theirs, own = f"http://receiver.example:{port}/hook", f"http://own.example:{port}/hook"
        with environment(HTTP_PROXY=proxy.url):
            async with HttpReceivers.connected(ClientTls(), own) as receivers:
                answer = await receivers.post(theirs, b"sealed", body)
                assert isinstance(answer, Answer)
                # This machine does not resolve it.
                assert isinstance(await receivers.post(own, b"sealed", body), Silence)
        assert (answer.status, proxy.hosts, server.bodies) == (201, {"receiver.example"}, [b"sealed"])
        with environment(HTTP_PROXY=f"http://ada:s3cret@127.0.0.1:{dead}"):
            async with HttpReceivers.connected(ClientTls(), own) as receivers:
                silence = await receivers.post(theirs, b"sealed", body)
    assert silence == Silence(f"the receiver is not reached: proxy 127.0.0.1:{dead}: connection refused")
