"""The check of receivers: it passes the receiver of kubevnfm, and names what is wrong with others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from kubevnfm import callback_check
from kubevnfm.callback_check import Result, Target, verify
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients import callback
from kubevnfm_clients.awaited import AwaitedCallback, CallbackEvent
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from worlds.receiver_twins import INSTANCE, MASTER, receiver_settings


def a_target(url: str) -> Target:
    return Target(url, INSTANCE, callback.instance_key(MASTER, INSTANCE))


async def results(url: str) -> list[Result]:
    async with aiohttp.ClientSession() as session:
        return [result async for result in verify(a_target(url), session)]


@asynccontextmanager
async def server(answer: web.Response | None = None) -> AsyncIterator[str]:
    async def receive(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=201 if answer is None else answer.status, text="" if answer is None else answer.text)

    app = web.Application(client_max_size=2**20)
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


class AwaitingCheck:
    """The twin of lcm-api: it awaits what the check sends, in its order. The id of its operation is the uid of its cluster."""

    def __init__(self) -> None:
        # For each request that is neither refused before nor known: new credentials, those with a wrong kubeconfig, the
        # deletion, and credentials that come too late.
        self._events: Iterator[CallbackEvent] = cycle(("CREATED", "CREATED", "DELETED", "CREATED"))

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback:
        return AwaitedCallback(
            event=next(self._events),
            operation_id=operation_id,
            cluster_name=f"check-{operation_id[:8]}",
            cluster_namespace="default",
            cluster_uid=operation_id,
            register_vim=False,
        )


async def test_the_receiver_of_kubevnfm_passes(tmp_path: Path) -> None:
    """CR-076: also with the limit of failures as it is by default, and for the second time."""
    ring = KeyRing.from_text(KeyRing.new_key())
    async with (
        InProcessBus(ring) as bus,
        SqliteStore.open(tmp_path / "store.db") as store,
        credentials_receiver(receiver_settings(), Backends(bus, store, ring), awaiting=AwaitingCheck()) as service,
    ):
        for _ in range(2):
            found = await results(f"http://127.0.0.1:{service.port}{callback.PATH}")
            assert [(result.case.name, result.problem) for result in found if result.problem] == []
            assert len(found) > 20


async def test_a_receiver_that_believes_everything_is_found_out() -> None:
    """CR-076."""
    async with server() as url:
        wrong = {result.case.name: result.problem for result in await results(url) if result.problem}
    assert wrong["a wrong signature"] == "expected 401, got 201"
    assert wrong["a body that was changed by one byte"] == "expected 401, got 201"
    assert wrong["a nonce for the second time"] == "expected 409, got 201"
    assert "new credentials" not in wrong


async def test_a_receiver_that_is_not_there_is_named() -> None:
    async with server() as url:
        pass
    assert all(result.status is None and "no answer" in result.problem for result in await results(url))


async def test_the_command_ends_with_1_if_an_answer_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """CR-076."""
    key = tmp_path / "key"
    key.write_text(KeyRing.new_key())
    async with server() as url:
        status = await asyncio.to_thread(callback_check.main, ["verify", url, "--master-key-file", str(key)])
    printed = capsys.readouterr().out
    assert status == 1
    assert "WRONG 201 a wrong signature: expected 401, got 201" in printed
    assert key.read_text() not in printed


@pytest.mark.parametrize(
    "arguments", [["verify", "receiver.example"], ["verify", "https://r.example", "--master-key-file", "/none"]]
)
def test_wrong_arguments_are_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        callback_check.main(arguments)
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err or "/none" in arguments
