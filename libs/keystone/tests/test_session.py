"""Logging in over TLS: the CA of the cloud, and the failures that are named."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from callers.metrics import metrics_text
from keystoneauth1.access import create
from keystoneauth1.session import Session
from kubevnfm_keystone import Failure, KeystoneLogin, KeystoneSession, OpenstackMetrics, failure_of
from kubevnfm_kit import live_spans
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import TraceContext
from live_trace import facts_of, live_trace, parent_of
from servers.certificates import Authority

LOGIN = KeystoneLogin("", username="u", password="hidden-password", project="p")


async def version(_: web.Request) -> web.Response:
    return web.json_response({"version": {"id": "v3.14"}})


async def refuse(_: web.Request) -> web.Response:
    return web.json_response({"error": {"code": 401, "message": "no", "title": "Unauthorized"}}, status=401)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def url(authority: Authority) -> AsyncIterator[str]:
    """The address of a Keystone over TLS that rejects every user."""
    pair = authority.issue("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.add_routes([web.get("/v3", version), web.post("/v3/auth/tokens", refuse)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}/v3"
    await runner.cleanup()


async def failure(login: KeystoneLogin, metrics: Metrics | None = None) -> Failure:
    """Return why the log-in fails."""
    session = KeystoneSession(login, timeout_s=10, counts=OpenstackMetrics(metrics or Metrics()))
    try:
        with pytest.raises(Exception) as caught:
            await asyncio.to_thread(session.log_in)
    finally:
        session.close()
    found = failure_of(caught.value)
    assert "hidden-password" not in found.reason
    return found


async def test_the_ca_of_the_cloud_is_trusted(url: str, authority: Authority) -> None:
    login = replace(LOGIN, auth_url=url)
    untrusted = await failure(login)
    assert untrusted.kind == "refused"
    assert untrusted.reason.startswith("the TLS certificate is not trusted: ")
    for trusting in (replace(login, certificates=authority.file.read_text()), replace(login, check_certificate=False)):
        assert (await failure(trusting)).kind == "unauthorized"


async def test_requests_count_by_their_api_and_status(url: str, authority: Authority) -> None:
    metrics = Metrics()
    login = replace(LOGIN, auth_url=url, certificates=authority.file.read_text())
    await failure(login, metrics)
    await failure(replace(login, certificates=""), metrics)
    lines = set((await metrics_text(metrics)).splitlines())
    assert {
        'kubevnfm_openstack_requests_total{api="identity",code="200"} 1.0',
        'kubevnfm_openstack_requests_total{api="identity",code="401"} 1.0',
        'kubevnfm_openstack_requests_total{api="identity",code="none"} 1.0',
        'kubevnfm_openstack_request_seconds_count{api="identity"} 3.0',
    } <= lines


async def test_a_call_in_a_step_is_a_live_span_without_a_secret(url: str, authority: Authority) -> None:
    step = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    login = replace(LOGIN, auth_url=url, certificates=authority.file.read_text())
    with live_trace() as trace:
        await failure(login)
        assert trace.names == []
        with live_spans.under(step):
            await failure(login)
    read, refused = trace.spans
    assert {parent_of(span) for span in trace.spans} == {step.span_id}
    facts = {"http.request.method": "GET", "kubevnfm.openstack.api": "identity", "http.response.status_code": 200}
    assert (read.name, facts_of(read)) == ("GET identity", facts)
    assert facts_of(refused) == {
        "http.request.method": "POST",
        "kubevnfm.openstack.api": "identity",
        "http.response.status_code": 401,
        "error.type": "Unauthorized",
    }
    assert "hidden-password" not in trace.text()


async def test_a_host_name_is_checked_unless_the_access_data_say_otherwise(url: str, authority: Authority) -> None:
    by_name = replace(LOGIN, auth_url=url.replace("127.0.0.1", "localhost"), certificates=authority.file.read_text())
    assert "localhost" in (await failure(by_name)).reason
    assert (await failure(replace(by_name, check_host_name=False))).kind == "unauthorized"


async def test_a_closed_port_and_an_unknown_host_are_unavailable(unused_tcp_port: int) -> None:
    for address, reason in (
        (f"http://127.0.0.1:{unused_tcp_port}/v3", "connection refused"),
        ("http://nowhere.invalid/v3", "its host name cannot be resolved"),
    ):
        assert await failure(replace(LOGIN, auth_url=address)) == Failure("unavailable", reason)


def test_a_401_of_one_thread_does_not_take_the_token_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads read the token while others find that it has been revoked; keystoneauth alone then returns None for it."""
    auth = LOGIN.plugin()
    monkeypatch.setattr(
        auth, "get_auth_ref", lambda _session: create(body={"token": {"expires_at": "2999-01-01T00:00:00Z"}})
    )
    over = threading.Event()

    def revoke() -> None:
        while not over.is_set():
            auth.invalidate()

    between, thread = sys.getswitchinterval(), threading.Thread(target=revoke)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        assert all(auth.get_access(Session()) is not None for _ in range(500))
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(between)
