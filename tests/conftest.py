"""Fixtures of the tests across services: one lab and one installation in each wiring for the whole session."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from installations import GivenInstallation, Installation, SingleInstallation, SixInstallation
from lab_process import LabControl, LabProcess
from real_cloud import REAL_CLOUD, RealCloud
from servers.ferretdb import FerretServer, ferretdb
from servers.rabbitmq import RabbitServer, rabbitmq
from user import User
from wirings import GIVEN_URL, WIRINGS

__all__ = ["ferretdb", "rabbitmq"]


def pytest_configure() -> None:
    """Stop the session's servers and processes at SIGTERM, as at Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread the longest tests evenly over the list, because each worker begins with a contiguous part of it.

    On a real cloud, skip the tests that need the lab's faults.
    """
    if REAL_CLOUD is not None:
        for item in items:
            if item.get_closest_marker("faults") is not None:
                item.add_marker(pytest.mark.skip(reason="a real cloud has no faults on request"))
    if not hasattr(config, "workerinput"):
        return
    longest = [item for item in items if _is_long(item)]
    others = [item for item in items if not _is_long(item)]
    step = len(others) // (len(longest) or 1)
    items[:] = [
        item for number, first in enumerate(longest) for item in (first, *others[number * step : (number + 1) * step])
    ] + others[len(longest) * step :]


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("chaos") is not None or item.path.stem == "test_tls_everywhere"


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
    ferretdb: FerretServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    """kubevnfm in six processes, on RabbitMQ and FerretDB."""
    yield from _running(SixInstallation(tmp_path_factory.mktemp("six"), lab_process, rabbitmq, ferretdb))


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


@pytest.fixture(params=WIRINGS)
def installation(request: pytest.FixtureRequest) -> Installation:
    """kubevnfm in each of its wirings, or the given installation."""
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
