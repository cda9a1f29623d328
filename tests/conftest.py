"""Fixtures of the tests across services: one lab and one installation in each wiring for the whole session."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest
from callers.user import User
from clouds.lab_process import LabControl, LabProcess
from real.real_cloud import REAL_CLOUD, RealCloud
from servers.installations import GivenInstallation, Installation, SingleInstallation, SixInstallation
from servers.mongodb import MongoServer, mongodb
from servers.processes import Process
from servers.rabbitmq import RabbitServer, rabbitmq
from servers.wirings import GIVEN_URL, variants

__all__ = ["mongodb", "rabbitmq"]


def pytest_configure() -> None:
    """Stop the session's servers and processes at SIGTERM, as at Ctrl-C; fork services from a Python that has imported them."""
    Process.are_forked = True
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


_ONLY_IN_THE_LAB: Final = {
    "faults": "a real cloud has no faults on request",
    "kubeadm": "`make test-machines` installs Kubernetes on real machines",
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have one worker begin with all tests of servers and six processes, another with those of the one process, a third with slow ones.

    Each worker begins with a contiguous part of the list, and would start for itself what its tests need. A slow test that begins last
    runs alone.
    On a real cloud, skip the tests that need what only the lab has.
    """
    if REAL_CLOUD is not None:
        for mark, reason in _ONLY_IN_THE_LAB.items():
            for item in items:
                if item.get_closest_marker(mark) is not None:
                    item.add_marker(pytest.mark.skip(reason=reason))
    if not hasattr(config, "workerinput"):
        return
    groups: tuple[list[pytest.Item], ...] = ([], [], [], [])
    *first, others = groups
    for item in items:
        groups[_group(item)].append(item)
    workers: int = config.workerinput["workercount"]
    number, ordered = 0, list[pytest.Item]()
    for index, group in enumerate(first):
        before = max(0, index % workers * (len(items) // workers) - len(ordered))
        ordered += [*others[number : number + before], *group]
        number += before
    items[:] = [*ordered, *others[number:]]


def _group(item: pytest.Item) -> int:
    """Return 0 for a test of servers and six processes, 1 for one of the one process, 2 for one that is slow, else 3."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    needed = {*getattr(item, "fixturenames", ()), *(value for value in values if isinstance(value, str))}
    if (
        needed & {"six", "six_chaos", "rabbitmq", "mongodb", "mongodb_url"}
        or item.get_closest_marker("server") is not None
    ):
        return 0
    if needed & {"lab_process", "single", "single_chaos"}:
        return 1
    return 3 if item.get_closest_marker("slow") is None else 2


@pytest.fixture(scope="session")
def lab_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess | RealCloud]:
    """A lab without simulated delays, shared by all tests of the session; or the real cloud."""
    if REAL_CLOUD is not None:
        yield RealCloud(REAL_CLOUD)
        return
    if GIVEN_URL is not None:
        yield LabProcess.given(tmp_path_factory.mktemp("lab"), json.loads(os.environ["KUBEVNFM_E2E_LAB"]))
        return
    lab = LabProcess(tmp_path_factory.mktemp("lab"))
    try:
        lab.start()
        yield lab
    finally:
        lab.stop()


@pytest.fixture
async def lab(lab_process: LabProcess | RealCloud) -> AsyncIterator[LabControl | RealCloud]:
    """The control interface of the lab; the faults that a test injects end with the test."""
    if isinstance(lab_process, RealCloud):
        yield lab_process
        return
    async with LabControl(lab_process.control_url) as control:
        yield control


@pytest.fixture(scope="session")
def single(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """kubevnfm in one process, on SQLite."""
    yield from _running(SingleInstallation(tmp_path_factory.mktemp("single"), lab_process))


@pytest.fixture(scope="session")
def six(
    lab_process: LabProcess,
    rabbitmq: RabbitServer,
    mongodb: MongoServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """kubevnfm in six processes, on RabbitMQ and mongo-java-server."""
    yield from _running(SixInstallation(tmp_path_factory.mktemp("six"), lab_process, rabbitmq, mongodb))


@pytest.fixture(scope="session")
def given(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The running installation at ``$KUBEVNFM_E2E_URL``."""
    assert GIVEN_URL is not None
    yield from _running(GivenInstallation(tmp_path_factory.mktemp("given"), lab_process, GIVEN_URL))


def _running(installation: Installation) -> Iterator[Installation]:
    try:
        installation.start()
        yield installation
    finally:
        installation.stop()


@pytest.fixture(params=variants(every_run=lambda wiring: wiring == "single"))
def installation(request: pytest.FixtureRequest) -> Installation:
    """kubevnfm in one process or as given; in six processes too where a test has `wirings.in_six`, and in deep runs."""
    found: Installation = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def user(installation: Installation) -> AsyncIterator[User]:
    """A user of API version 2, with the lab as the default VIM."""
    async with User(installation) as caller:
        await caller.register_lab()
        yield caller


@pytest.fixture
async def v1(installation: Installation, user: User) -> AsyncIterator[User]:
    """A user of API version 1, with the lab as the default VIM."""
    async with User(installation, "v1") as caller:
        yield caller
