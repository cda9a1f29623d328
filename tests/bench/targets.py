"""The measured installations: kubevnfm as one process or as six; the lab always runs in its own process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from figures import Figure
from servers import mongodb, rabbitmq
from servers.mongodb import MongoServer
from servers.ports import free_port
from servers.rabbitmq import RabbitServer
from servers.six_processes import SixProcesses, new_keys


@dataclass(frozen=True)
class Target:
    """A running kubevnfm."""

    name: str
    url: str
    pids: Mapping[str, int]
    """Process ids by the name of the program or service."""

    def memory_mib(self) -> dict[str, float]:
        """Return the resident memory of each process now."""
        return {name: _resident_mib(pid) for name, pid in self.pids.items()}

    def processor_s(self) -> dict[str, float]:
        """Return the processor time that each process has used."""
        return {name: _processor_s(pid) for name, pid in self.pids.items()}


class ProcessorTime:
    """The processor time that each process uses for a call, in user and system mode; work that a call leaves behind included."""

    def __init__(self, target: Target) -> None:
        self._target, self._last = target, target.processor_s()
        self._samples: dict[str, list[float]] = {name: [] for name in self._last}

    def add(self, calls: int) -> None:
        """Take one more sample, of the calls since the last one."""
        now = self._target.processor_s()
        for name, samples in self._samples.items():
            samples.append((now[name] - self._last[name]) / calls * 1000)
        self._last = now

    def figures(self, name: str) -> list[Figure]:
        """Return a figure for each process that took part."""
        return [
            Figure(f"{name}: {process}", "ms", samples) for process, samples in self._samples.items() if any(samples)
        ]


def _resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _processor_s(pid: int) -> float:
    # The name of the program, in brackets, may have spaces.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(after_name[11]), int(after_name[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def single(endpoints: Mapping[str, Any], data_dir: Path) -> AsyncIterator[Target]:
    """Yield kubevnfm in one process on SQLite."""
    port = free_port()
    environment = {
        **os.environ,
        "KUBEVNFM_PORT": str(port),
        "KUBEVNFM_DATA_DIR": str(data_dir),
        "KUBEVNFM_SSH_PORT": str(endpoints["ssh_port"]),
        "KUBEVNFM_TRUST_PACKAGES": "true",  # they are our own, and the measurement must run on every kernel
        "KUBEVNFM_LOG_LEVEL": "WARNING",
        "KUBEVNFM_ALLOWED_NETWORKS": "127.0.0.0/8",
        "KUBEVNFM_VNF_NETWORKS": "127.0.0.0/8",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kubevnfm.cli", "run", env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        await until_ready(url)
        yield Target("one process, SQLite", url, {"kubevnfm": process.pid})
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def six(endpoints: Mapping[str, Any], data_dir: Path, servers: Servers) -> AsyncIterator[Target]:
    """Yield kubevnfm in six processes on RabbitMQ and mongo-java-server."""
    processes = SixProcesses(
        data_dir,
        amqp_url=servers.rabbit.service_urls(),
        mongo_url=servers.mongodb.url,
        ssh_port=int(endpoints["ssh_port"]),
        keys=servers.keys,
        more={"lcm-api": {"ALLOWED_NETWORKS": "127.0.0.0/8"}},
    )
    try:
        await asyncio.to_thread(processes.start)
        yield Target("six processes, RabbitMQ, mongo-java-server", processes.url, processes.pids)
    finally:
        await asyncio.to_thread(processes.stop)


@dataclass(frozen=True)
class Servers:
    """The servers behind the six processes."""

    rabbit: RabbitServer
    mongodb: MongoServer
    keys: Mapping[str, str]


@contextmanager
def real_servers(folder: Path) -> Iterator[Servers]:
    """Yield a new RabbitMQ and a new mongo-java-server."""
    if mongodb.missing() is not None or rabbitmq.install() is not None:
        raise SystemExit("the servers are missing: `make servers` installs them")
    for name in ("rabbitmq", "mongodb"):
        (folder / name).mkdir()
    rabbit, documents = RabbitServer(folder / "rabbitmq"), MongoServer(folder / "mongodb")
    documents.start()
    try:
        rabbit.start()
        yield Servers(rabbit, documents, new_keys())
    finally:
        rabbit.close()
        documents.stop()


async def until_ready(url: str) -> None:
    """Return when the gateway reports that it is ready."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(300):
        while True:
            try:
                async with session.get(f"{url}/health/ready") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
