"""Outages of the database and of the broker, as the logs of the six services show them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from patience import until_true
from servers.mongodb import MongoServer, own_mongodb
from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES, SixProcesses

__all__ = ["own_mongodb"]

pytestmark = [pytest.mark.server, pytest.mark.deep]

ASK_BY_THEMSELVES: Final = ("infra-k8s", "lcm-api", "mgmt-executor", "vim-registry")
"""Services that ask the database when nothing is to be done; the others notice that it was away only if they ask just then."""


@pytest.fixture
def own_rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    server = RabbitServer(tmp_path_factory.mktemp("own-rabbit"))
    server.start()
    yield server
    server.close()


@pytest.fixture
def six(tmp_path: Path, own_mongodb: MongoServer, own_rabbit: RabbitServer) -> Iterator[SixProcesses]:
    processes = SixProcesses(
        tmp_path / "six",
        amqp_url=own_rabbit.service_urls(),
        mongo_url=own_mongodb.url,
        # The first round asks vim-registry, which may begin later than lcm-api: an outage of another kind.
        more={"lcm-api": {"DRIFT_EVERY_S": "0"}},
    )
    try:
        processes.start()
        yield processes
    finally:
        processes.stop()


def lines_of(six: SixProcesses) -> Mapping[str, Sequence[Any]]:
    """Return the log of each service; each line must be JSON, but for one that is being written."""
    logs = {service: (six.logs / f"{service}.log").read_text() for service in SERVICES}
    return {
        service: [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        for service, text in logs.items()
    }


def severe(lines: Sequence[Any]) -> Sequence[tuple[str, str | None]]:
    """Return the lines about outages, and all others that an operator would look at; those of libraries are left out."""
    return [
        (line["event"], line.get("system"))
        for line in lines
        if line["event"].startswith("outage_")
        or (line["level"] in ("warning", "error") and line["event"] != "library_said")
    ]


async def say(six: SixProcesses, event: str, system: str, services: Sequence[str]) -> None:
    """Return when each of the services has said this about the system."""

    async def have_said() -> bool:
        lines = lines_of(six)
        return all((event, system) in severe(lines[service]) for service in services)

    await until_true(have_said, pause_s=0.1)


async def test_an_outage_is_two_lines_of_each_service(
    six: SixProcesses, own_mongodb: MongoServer, own_rabbit: RabbitServer
) -> None:
    """Killed, not closed: nothing is said by the other side, and libraries write what they like."""
    for server, system, noticed_by in (
        (own_mongodb, "database", ASK_BY_THEMSELVES),
        (own_rabbit, "broker", SERVICES),
    ):
        await asyncio.to_thread(partial(server.stop, kill=True))
        await say(six, "outage_began", system, noticed_by)
        await asyncio.to_thread(server.start)
        await say(six, "outage_ended", system, noticed_by)
        for service in SERVICES:
            await asyncio.to_thread(six.await_ready, service)
    await asyncio.to_thread(six.stop)
    of_broker = [("outage_began", "broker"), ("outage_ended", "broker")]
    of_database = [("outage_began", "database"), ("outage_ended", "database")]
    lines = lines_of(six)
    said_by = {service: severe(lines[service]) for service in SERVICES}
    expected = {
        service: (of_database if service in ASK_BY_THEMSELVES or {*of_database} & {*said_by[service]} else [])
        + of_broker
        for service in SERVICES
    }
    assert said_by == expected
    said = [line for each in lines.values() for line in each if line["event"] == "library_said"]
    assert len(said) < 5 * len(SERVICES), said
