"""A package that costs too much: the process that reads it is ended, the service and other packages are not."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kubevnfm_lcm_api.packages.adapters.unpacking_process import UnpackingProcesses, UnpackingRules
from packages.package_builder import ONE_VNFD, with_meta, zip_of
from worlds.lcm_world import lcm_world

LARGE = [f"large_{number}.yaml" for number in range(8)]
ENDLESS = ONE_VNFD.replace("imports: [", f"imports: [{', '.join(LARGE)}, ")
"""Imports files that are each just below the limits of a text; one takes a second."""


def children() -> set[int]:
    """Return the processes that check packages, of this process."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"unpacking_child" in stat.with_name("cmdline").read_bytes():
                found.add(int(stat.parent.name))
    return found


async def end_children() -> None:
    """Kill these processes. Only one that has ended is seen as dead when the next package comes."""
    for child in children():
        os.kill(child, signal.SIGKILL)
        # The process stays for its parent to collect. Its command line is gone before it has ended.
        with suppress(ChildProcessError):
            await asyncio.to_thread(os.waitid, os.P_PID, child, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def endless(tmp_path: Path) -> bytes:
    large = f"tosca_definitions_version: tosca_simple_yaml_1_2\nmetadata: {{x: [{'[],' * 480_000}1]}}\n"
    files = {"one.yaml": ENDLESS, **dict.fromkeys(LARGE, large)}
    return zip_of(tmp_path / "endless.zip", with_meta(files, entry="one.yaml")).read_bytes()


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    # The next tests are not slowed down by what these have left.
    assert len(children()) <= 2


async def test_a_package_that_takes_too_long_is_refused_while_others_are_onboarded(
    tmp_path: Path, endless: bytes
) -> None:
    """API-112: refused with the reason; API-110: another package is not held up."""
    async with lcm_world(tmp_path, onboarding_cpu_s=1) as world:
        async with asyncio.TaskGroup() as uploads:
            slow = uploads.create_task(world.upload(endless))
            await world.sample()
        package = slow.result()
        assert package["onboardingState"] == "ERROR"
        details = package["onboardingFailureDetails"]
        assert details["type"] == "package-unreadable"
        assert "1 s of processor time" in details["detail"]
        assert not list((tmp_path / "data/packages" / package["id"]).glob("onboarding-*"))


async def test_an_onboarding_that_is_given_up_ends_its_process(tmp_path: Path, endless: bytes) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/content.zip").write_bytes(endless)
    before = children()
    work = asyncio.create_task(UnpackingProcesses(UnpackingRules(cpu_s=600)).unpack(tmp_path / "package"))
    # Nothing announces the start of the work in the process.
    while not list((tmp_path / "package").glob("onboarding-*")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    work.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await work
    while children() - before:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert time.monotonic() - began < 5


async def test_a_process_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        await end_children()
        (await world.packages("GET")).must(200)
        assert (await world.sample("cnf"))["onboardingState"] == "ONBOARDED"


async def test_a_process_takes_the_next_package_however_much_memory_its_parent_has(tmp_path: Path) -> None:
    ballast = b"x" * (300 * 1024 * 1024)
    async with lcm_world(tmp_path) as world:
        await world.sample()
        await end_children()
        await world.sample("cnf")
        (started,) = children()
        await world.sample("cluster")
        assert children() == {started}
    assert ballast
