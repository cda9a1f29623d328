"""Slow senders, thousands of connections and huge uploads against running processes: each listener of the six services.

`libs/kit/tests/test_connections.py` has the same rules in short.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from clouds.lab_process import LabProcess
from kubevnfm_kit.connections import DEFAULT_LIMITS
from patience import until
from servers.hostile import MIB, flat_memory
from servers.installations import SingleInstallation, SixInstallation
from servers.six_processes import SERVICES

pytestmark = pytest.mark.deep

MOST_MIB = 60
SLOW = 200
HEALTH = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"POST /vnflcm/v2/vnf_instances HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
HELD = b"GET /kubevnfm/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
"""A stream of events: a request that is being answered for as long as its caller likes."""


class Caller:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def is_ended(self, *, within_s: float) -> bool:
        """Wait until the other side has closed."""
        try:
            async with asyncio.timeout(within_s):
                while await self.reader.read(65536):
                    pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    async def trickle(self, data: bytes) -> None:
        """Send a byte each second until the other side closes."""
        try:
            for byte in data:
                self.writer.write(bytes([byte]))
                await self.writer.drain()
                await asyncio.sleep(1)
        except ConnectionError:
            pass


@asynccontextmanager
async def callers(port: int, number: int) -> AsyncIterator[list[Caller]]:
    found: list[Caller] = []
    try:
        while len(found) < number:
            found.append(Caller(*await asyncio.open_connection("127.0.0.1", port)))
        yield found
    finally:
        for caller in found:
            caller.writer.close()


async def health(port: int) -> float:
    """Check that an honest caller is served; return the seconds that it took."""
    began = time.monotonic()
    async with callers(port, 1) as [caller], asyncio.timeout(20):
        caller.writer.write(HEALTH)
        assert b" 200 " in await caller.reader.readline()
    return time.monotonic() - began


@pytest.mark.parametrize("service", SERVICES)
async def test_slow_senders_are_ended_and_others_are_served(six: SixInstallation, service: str) -> None:
    port, pid = six.listeners[service]
    with flat_memory(MOST_MIB, pid):
        async with callers(port, SLOW) as slow:
            heads, bodies = slow[: SLOW // 2], slow[SLOW // 2 :]
            trickling = [asyncio.create_task(each.trickle(b"GET / HTTP/1.1\r\nX: " + b"x" * 1000)) for each in heads]
            for each in bodies:
                each.writer.write(BODY)
            trickling += [asyncio.create_task(each.trickle(b" " * 1000)) for each in bodies]
            ended = asyncio.gather(
                *(each.is_ended(within_s=DEFAULT_LIMITS.headers_s * 4) for each in heads),
                *(each.is_ended(within_s=DEFAULT_LIMITS.body_window_s * 4) for each in bodies),
            )
            while not ended.done():
                assert await health(port) < 10
                await asyncio.sleep(0.5)
            assert all(await ended)
            for task in trickling:
                task.cancel()
            await asyncio.gather(*trickling, return_exceptions=True)


@pytest.mark.parametrize("service", SERVICES)
async def test_two_thousand_connections_keep_no_caller_out(six: SixInstallation, service: str) -> None:
    port, pid = six.listeners[service]
    with flat_memory(MOST_MIB, pid):
        async with callers(port, 2000) as many:
            assert await health(port) < 10
            for caller in many:
                caller.writer.write(b"GET /hea")
            assert await health(port) < 10
            # As many as there are places remain, until their heads are late.
            assert all(await asyncio.gather(*(each.is_ended(within_s=60) for each in many)))
        assert await health(port) < 10


async def test_two_thousand_requests_at_once_are_answered_or_refused(six: SixInstallation) -> None:
    port, pid = six.listeners["lcm-api"]
    statuses: list[int] = []

    async def ask(session: aiohttp.ClientSession) -> None:
        try:
            async with session.get(
                f"http://127.0.0.1:{port}/vnflcm/v2/vnf_instances", headers={"Version": "2.0.0"}
            ) as answer:
                await answer.read()
                statuses.append(answer.status)
        except aiohttp.ClientConnectionError:
            statuses.append(0)  # closed in favour of another, before it had sent its request

    connector = aiohttp.TCPConnector(limit=2000)
    with flat_memory(3 * MOST_MIB, pid):
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
            asking = [asyncio.create_task(ask(session)) for _ in range(2000)]
            await asyncio.gather(*asking)
    assert set(statuses) <= {0, 200, 503}
    assert statuses.count(200) > 100
    assert await health(port) < 10


async def test_requests_that_hold_every_place_leave_those_for_health_checks(six: SixInstallation) -> None:
    port, pid = six.listeners["lcm-api"]
    with flat_memory(MOST_MIB, pid):
        async with callers(port, 1000) as many:
            for caller in many:
                caller.writer.write(HELD)
            refused = await asyncio.gather(*(each.is_ended(within_s=5) for each in many))
            assert refused.count(True) >= 1000 - DEFAULT_LIMITS.connections
            assert refused.count(False) > DEFAULT_LIMITS.connections / 2
            assert await health(port) < 10
        assert await until(lambda: is_served(port), timeout_s=60)


async def is_served(port: int) -> bool | None:
    async with callers(port, 1) as [caller], asyncio.timeout(20):
        caller.writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return b" 200 " in await caller.reader.readline() or None


# --- a package of 3 GB ------------------------------------------------------------------------------------------------

SIZE_MIB = 3 * 1024


@pytest.fixture(scope="module", params=["1", "16"])
def limit_gib(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def limited(
    lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory, limit_gib: str
) -> Iterator[SingleInstallation]:
    """An installation that admits packages up to this size."""
    found = SingleInstallation(tmp_path_factory.mktemp("limited"), lab_process, KUBEVNFM_PACKAGE_LIMIT_GIB=limit_gib)
    found.start()
    yield found
    found.stop()


def stored_mib(installation: SingleInstallation) -> float:
    files = [file for file in Path(installation.folder, "data").rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / MIB


async def package() -> AsyncIterator[bytes]:
    """The beginning of an archive, and then 3 GB."""
    yield b"PK\x03\x04"
    block = bytes(MIB)
    for _ in range(SIZE_MIB):
        yield block


@pytest.mark.parametrize("has_length", [True, False])
async def test_an_upload_of_3_gb_leaves_memory_flat_and_the_disk_clean(
    limited: SingleInstallation, limit_gib: str, has_length: bool
) -> None:
    url = f"{limited.url}/vnfpkgm/v1/vnf_packages"
    headers = {"Content-Type": "application/zip"} | ({"Content-Length": str(SIZE_MIB * MIB + 4)} if has_length else {})
    timeout = aiohttp.ClientTimeout(total=600)
    before = stored_mib(limited)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.post(url, json={}) as answer:
            package_url = f"{url}/{(await answer.json())['id']}"
        with flat_memory(MOST_MIB, limited.pid):
            status = 0
            try:
                async with session.put(f"{package_url}/package_content", data=package(), headers=headers) as answer:
                    status = answer.status
                    problem = json.loads(await answer.text() or "{}")
            except aiohttp.ClientConnectionError:
                assert limit_gib == "1"  # closed while the rest was being sent
            assert status == (202 if limit_gib == "16" else 413) or (status, limit_gib) == (0, "1")
            if status == 413:
                assert "bytes" in problem["detail"] or "GiB" in problem["detail"]

            async def is_over() -> bool | None:
                async with session.get(package_url) as answer:
                    state = (await answer.json())["onboardingState"]
                return state in {"ERROR", "CREATED"} or None

            assert await until(is_over, timeout_s=120)
        async with session.delete(package_url) as answer:
            assert answer.status == 204
    assert stored_mib(limited) < before + 10
