"""lcm-api while its database is frozen, or its disk is full: 503 in time, nothing acknowledged is lost, and all goes on afterwards."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from functools import partial
from pathlib import Path

import pytest
from patience import until_true
from servers.mongodb import MongoServer, own_mongodb
from worlds.lcm_world import World, lcm_world
from worlds.mongo_storage import storage_on

__all__ = ["own_mongodb"]

pytestmark = pytest.mark.server

IMPATIENT = "?serverSelectionTimeoutMS=3000&connectTimeoutMS=3000&heartbeatFrequencyMS=500&socketTimeoutMS=3000"
"""The driver finds out in seconds, which by the product's settings take half a minute, that the server does not answer."""
CREATE = "infra.openstack.create_resources"


async def refused(world: World, instance: str) -> None:
    """Check that requests that read and that write are refused."""
    async with asyncio.timeout(60):
        answers = await asyncio.gather(
            world.lcm("GET", "/vnf_instances"),
            world.lcm("GET", f"/vnf_instances/{instance}"),
            world.lcm("PATCH", f"/vnf_instances/{instance}", {"vnfInstanceDescription": "changed"}),
        )
    for answer in answers:
        assert answer.problem(503)["type"].endswith("store-unavailable")
        assert int(answer.headers["Retry-After"]) > 0


async def is_stopped(pid: int) -> bool:
    """Return whether each thread of a process stands still: one that runs on another core may answer after the signal."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {each.rpartition(")")[2].split()[0] for each in stats} == {"T"}


async def test_a_frozen_database(tmp_path: Path, own_mongodb: MongoServer) -> None:
    async with lcm_world(tmp_path, storage_on(own_mongodb.url + IMPATIENT)) as world:
        await world.sample()
        instances = [await world.create(), await world.create()]
        world.twins.waiting.add(CREATE)
        operation = await world.instantiate(instances[0])
        await world.twins.has_asked(1)
        [pid] = own_mongodb.pids
        os.kill(pid, signal.SIGSTOP)
        try:
            await until_true(partial(is_stopped, pid))
            # The answer to the step arrives while nothing can be stored: the bus keeps it until it was handled.
            released = asyncio.create_task(world.twins.release())
            await refused(world, instances[0])
        finally:
            os.kill(pid, signal.SIGCONT)
        await released
        await world.reached(operation, "COMPLETED")
        for instance in instances:
            (await world.lcm("GET", f"/vnf_instances/{instance}")).must(200)
        await world.reached(await world.instantiate(instances[1]), "COMPLETED")


async def test_a_database_whose_disk_is_full(tmp_path: Path, own_mongodb: MongoServer) -> None:
    async with lcm_world(tmp_path, storage_on(own_mongodb.url + IMPATIENT)) as world:
        await world.sample()
        acknowledged = [await world.create()]
        world.twins.waiting.add(CREATE)
        operation = await world.instantiate(acknowledged[0])
        await world.twins.has_asked(1)
        assert own_mongodb.file is not None
        [pid] = own_mongodb.pids
        most = own_mongodb.file.stat().st_size + 2**18
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        request = {"vnfdId": (await world.packages("GET")).json[0]["vnfdId"]}
        async with asyncio.timeout(300):
            while (answer := await world.lcm("POST", "/vnf_instances", request)).status == 201:
                acknowledged.append(answer.json["id"])
        answer.problem(503)
        released = asyncio.create_task(world.twins.release())
        await refused(world, acknowledged[0])
        # As MongoDB does, it has ended; its next process has a disk with room.
        own_mongodb.stop()
        await asyncio.to_thread(own_mongodb.start)
        await released
        await world.reached(operation, "COMPLETED")
        for instance in acknowledged:
            (await world.lcm("GET", f"/vnf_instances/{instance}")).must(200)
        assert len(acknowledged) > 1
        await world.reached(await world.instantiate(acknowledged[1]), "COMPLETED")
