"""The backends of a service: readiness, indexes, a listener with health endpoints, a worker."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_events.queues import SERVICE_STATES
from kubevnfm_events.services import ServiceReported
from kubevnfm_kit.clock import SteadyClock
from kubevnfm_kit.health import add_health
from kubevnfm_kit.http import serving
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Index
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker import health, reports
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.certificates import CertificateFile
from kubevnfm_worker.health import Health, Lack, Part
from kubevnfm_worker.outcome import Done, Outcome, StepContext
from kubevnfm_worker.parts import PACKAGE_CODE, disk_part
from kubevnfm_worker.reports import reporting
from patience import until_true
from servers.certificates import Authority
from servers.processes import PROJECT
from structlog.testing import capture_logs
from worlds.worker_world import RING, SERVICE, MoodyStore, Work, Worked


class Broker(InProcessBus):
    """A bus that can be away."""

    is_away = False

    async def is_ready(self) -> bool:
        return not self.is_away and await super().is_ready()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MoodyStore]:
    async with MoodyStore.open(tmp_path / "store.db") as opened:
        yield opened


async def readiness(session: aiohttp.ClientSession, url: str) -> tuple[int, str, dict[str, str]]:
    """Return the status of HTTP, the status in the body, and the state of each part that is not ready."""
    async with session.get(f"{url}/health/ready") as answer:
        body = await answer.json()
    assert [each["part"] for each in body["parts"]] == [
        "store",
        "broker",
        "disk",
        "sandbox",
        "parked-commands",
        "certificates",
    ]
    lacking = {each["part"]: each["state"] for each in body["parts"] if each["state"] != "ready"}
    assert lacking.keys() == {each["part"] for each in body["parts"] if "text" in each}
    return answer.status, body["status"], lacking


async def test_the_listener_has_health_endpoints_beside_the_application(
    store: MoodyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-199: readiness names each part that is not ready, as docs/health.md has them; without a broker that was there it still
    serves, and without a database it does not. Nothing has an address, a path or a login.
    """

    async def greet(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    monkeypatch.setattr(health, "_FRESH_S", 0.0)
    app = web.Application()
    app.router.add_get("/greeting", greet)
    backends = Backends(Broker(RING), store, RING)
    backends.process.folders.append(tmp_path)
    assert isinstance(backends.bus, Broker)
    async with aiohttp.ClientSession() as session:
        async with backends.bus, backends.serving(app, SERVICE, host="127.0.0.1", port=0, tls=None) as port:
            url = f"http://127.0.0.1:{port}"
            assert await (await session.get(f"{url}/greeting")).text() == "hello"
            # A broker that was never reached may have a wrong address: an upgrade must not replace what works.
            backends.bus.is_away = True
            assert await readiness(session, url) == (503, "not ready", {"broker": "failed"})
            shown = (await (await session.get(f"{url}/metrics")).text()).splitlines()
            assert {
                'kubevnfm_part_ready{part="broker"} 0.0',
                'kubevnfm_part_ready{part="store"} 1.0',
                f'kubevnfm_http_requests_total{{method="GET",route="/greeting",service="{SERVICE}",status="2xx"}} 1.0',
                f'kubevnfm_http_requests_total{{method="GET",route="/health/ready",service="{SERVICE}",status="5xx"}} 1.0',
                f'kubevnfm_http_request_seconds_count{{method="GET",route="/greeting",service="{SERVICE}"}} 1.0',
                f'kubevnfm_http_requests_running{{service="{SERVICE}"}} 1.0',
            } <= set(shown)
            backends.bus.is_away = False
            assert await readiness(session, url) == (200, "ready", {})
            backends.bus.is_away = True
            monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2**40, used=2**40 - 1, free=1))
            backends.states[PACKAGE_CODE] = "refused"
            backends._show_parked(SERVICE, [{"command": "infra.k8s.apply_objects"}])
            ending = Authority(tmp_path).issue("server").certificate
            backends.process.certificates["tls_certificate"] = CertificateFile(ending)
            lacking = {
                "broker": "failed", **dict.fromkeys(("disk", "sandbox", "parked-commands", "certificates"), "degraded"),
            }  # fmt: skip
            assert await readiness(session, url) == (200, "degraded", lacking)
            page = (PROJECT / "docs" / "health.md").read_text()
            assert {"store", *lacking} == set(
                re.findall(r"^\| `([a-z-]+)` \| [a-z]+ [^|]*\| [25]", page, re.MULTILINE)
            ) - {"ready"}
            # Anybody may ask.
            assert str(tmp_path) not in await (await session.get(f"{url}/health/ready")).text()
            troubles = {each.part: each.text for each in await backends.health.troubles()}
            assert [name for name, text in troubles.items() if str(tmp_path) in text] == ["disk", "certificates"]
            store.is_down = True
            assert await readiness(session, url) == (503, "not ready", {"store": "failed", **lacking})
            assert (await session.get(f"{url}/health/live")).status == 200
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{url}/greeting")


async def test_a_database_that_hangs_or_stores_nothing_is_seen_without_a_late_answer(
    store: MoodyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within two looks; many who ask cost one look, and it is ready again as soon as it answers."""
    asked, goes_on = list[None](), asyncio.Event()

    async def hang() -> bool:
        asked.append(None)
        await goes_on.wait()
        return True

    async def state() -> tuple[str, bool]:
        part = (await backends.health.parts())[0]
        assert part.part == "store"
        return part.state, part.is_vital

    async with InProcessBus(RING) as bus:
        backends = Backends(bus, store, RING)
        monkeypatch.setattr(health, "_LOOK_EVERY_S", 0.01)
        monkeypatch.setattr(health, "HANGS_S", 0.05)
        async with backends.health.watching():
            assert (await state())[0] == "ready"
            monkeypatch.setattr(store, "is_ready", hang)
            await until_true(lambda: is_now(state, ("failed", True)))
            backends.health.changed.clear()
            async with asyncio.timeout(30):
                for _ in range(1000):
                    await state()
            assert len(asked) == 1
            goes_on.set()
            await backends.health.changed.wait()
            assert (await state())[0] == "ready"
            monkeypatch.setattr(SqliteStore, "takes_writes", False)
            await until_true(lambda: is_now(state, ("failed", True)))
    assert health._LOOK_EVERY_S + health.HANGS_S < 5


async def is_now(state: Callable[[], Awaitable[object]], wanted: object) -> bool:
    return await state() == wanted


async def test_a_process_reports_at_once_what_it_lacks_and_that_it_ends(
    store: MoodyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end also while the database is silent."""
    heard = asyncio.Queue[ServiceReported]()

    async def hear(envelope: Envelope[Message]) -> None:
        assert isinstance(envelope.data, ServiceReported)
        heard.put_nowait(envelope.data)

    async with InProcessBus(RING) as bus, bus.watch_events(SERVICE_STATES, hear):
        backends = Backends(bus, store, RING, states={PACKAGE_CODE: "refused"})
        backends.process.services.append(SERVICE)
        backends.process.folders += [tmp_path, tmp_path / "not-there"]
        store.is_down = True
        async with reporting(backends):
            first = await heard.get()
            monkeypatch.setattr(store, "is_ready", asyncio.Event().wait)
        async with asyncio.timeout(30):
            last = await heard.get()
    assert [(each.part, each.is_blocking) for each in first.troubles] == [("store", True), ("sandbox", False)]
    assert (first.services, first.pid, first.has_ended) == ((SERVICE,), os.getpid(), False)
    assert (last.process, last.has_ended) == (first.process, True)
    # Without a broker neither the reports nor the end of the process wait for it.
    async with asyncio.timeout(30):
        async with reporting(Backends(bus, store, RING)):
            pass


async def test_a_disk_that_hangs_takes_one_thread_and_is_named(
    store: MoodyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the process is known all the same; a nearly full disk is named once it answers."""
    goes_on, looks = threading.Event(), list[Path]()

    def hang(folder: Path) -> SimpleNamespace:
        looks.append(folder)
        goes_on.wait(300)
        return SimpleNamespace(total=100 * 2**30, used=100 * 2**30 - 1, free=1)

    monkeypatch.setattr(shutil, "disk_usage", hang)
    monkeypatch.setattr(health, "HANGS_S", 0.05)
    monkeypatch.setattr(health, "_FRESH_S", 0.0)
    async with InProcessBus(RING) as bus:
        backends = Backends(bus, store, RING)
        backends.process.folders.append(tmp_path)
        try:
            for _ in range(3):
                (trouble,) = (await backends.report()).troubles
                assert trouble.text.startswith(f"The disk of {tmp_path} does not answer.")
            assert looks == [tmp_path]
        finally:
            goes_on.set()
        monkeypatch.setattr(health, "HANGS_S", 300.0)
        monkeypatch.setattr(health, "_WAIT_S", 300.0)
        (trouble,) = (await backends.report()).troubles
        assert (trouble.part, trouble.is_blocking) == ("disk", False)
        assert "is nearly full" in trouble.text


async def test_a_report_that_cannot_be_made_is_not_the_last_one(
    store: MoodyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither because a part cannot be examined, nor because the report itself fails."""
    heard, thread, publish = asyncio.Event(), threading.Thread, InProcessBus.publish

    async def hear(_: Envelope[Message]) -> None:
        heard.set()

    def refused(*_: object, **__: object) -> threading.Thread:
        monkeypatch.setattr(threading, "Thread", thread)
        raise RuntimeError("can't start new thread")

    async def failing(*_: object) -> None:
        monkeypatch.setattr(InProcessBus, "publish", publish)
        raise RuntimeError("no such luck")

    monkeypatch.setattr(threading, "Thread", refused)
    monkeypatch.setattr(InProcessBus, "publish", failing)
    monkeypatch.setattr(reports, "EVERY_S", 0.01)
    async with InProcessBus(RING) as bus, bus.watch_events(SERVICE_STATES, hear), asyncio.timeout(30):
        backends = Backends(bus, store, RING)
        backends.process.folders.append(tmp_path)
        async with reporting(backends):
            await heard.wait()
    assert threading.Thread is thread


async def test_a_process_does_not_serve_before_it_knows_its_vital_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a look that fails again and again is one line of the log, until one succeeds."""
    goes_on, faults = asyncio.Event(), [ValueError("first"), ValueError("second"), None, ValueError("third")]

    async def look() -> Sequence[Lack]:
        await goes_on.wait()
        fault = faults.pop(0)
        if fault is not None:
            raise fault
        return []

    watched = Health(SteadyClock(), [Part("store", look, lambda: Lack("It is away.", is_blocking=True, is_vital=True))])
    app = web.Application()
    add_health(app, watched.parts)
    monkeypatch.setattr(health, "_FRESH_S", 0.0)
    monkeypatch.setattr(health, "HANGS_S", 300.0)
    monkeypatch.setattr(health, "_WAIT_S", 0.01)
    async with (
        serving(app, host="127.0.0.1", port=0) as port,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/health/ready") as answer,
    ):
        shown = await answer.json()
    assert (answer.status, shown["status"], shown["parts"][0]["state"]) == (503, "not ready", "unknown")
    goes_on.set()
    monkeypatch.setattr(health, "_WAIT_S", 300.0)
    with capture_logs() as lines:
        found = [(await watched.parts())[0].state for _ in range(4)]
    assert found == ["failed", "failed", "ready", "failed"]
    assert [(each["event"], each["part"]) for each in lines] == [("look_failed", "store")] * 2


def test_a_disk_that_hangs_does_not_hold_up_the_end_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the end of the event loop waits for its thread, nor that of the interpreter."""
    goes_on, looks = threading.Event(), list[bool]()

    def hang(folder: Path) -> SimpleNamespace:
        looks.append(threading.current_thread().daemon)
        assert goes_on.wait(30), "the end has waited for the disk"
        return SimpleNamespace(total=1, used=0, free=1)

    monkeypatch.setattr(shutil, "disk_usage", hang)
    monkeypatch.setattr(health, "HANGS_S", 0.05)
    (trouble,) = asyncio.run(Health(SteadyClock(), [disk_part([tmp_path])]).troubles())
    assert "does not answer" in trouble.text
    assert looks == [True]
    (thread,) = (each for each in threading.enumerate() if each.name == "disks")
    goes_on.set()
    thread.join(30)
    assert not thread.is_alive()


async def test_indexes_of_several_collections_are_created(store: MoodyStore) -> None:
    async with InProcessBus(RING) as bus:
        await Backends(bus, store, RING).ensure_indexes({"one": [Index(["name"], unique=True)], "two": []})
        await store.insert("one", "a", {"name": "x"})
        with pytest.raises(AlreadyExists):
            await store.insert("one", "b", {"name": "x"})


async def test_the_worker_handles_the_commands_of_its_service(store: MoodyStore) -> None:
    answers: asyncio.Queue[Message] = asyncio.Queue()

    async def work(command: Work, context: StepContext) -> Outcome:
        return Done(Worked(number=command.number))

    async def receive(delivery: Delivery) -> Verdict:
        answers.put_nowait(delivery.envelope.data)
        return Ack()

    async with (
        InProcessBus(RING) as bus,
        Backends(bus, store, RING).worker(SERVICE, layer="Tests", lease_s=60.0) as worker,
    ):
        worker.handle(Work, work)
        await worker.start()
        await bus.consume_events("tests", [Worked.routing_key()], receive)
        await bus.publish(Envelope(Work(number=7), source="/test"))
        async with asyncio.timeout(300):
            assert await answers.get() == Worked(number=7)
