"""The cost of the lab's machines; run by hand: ``.venv/bin/python deploy/lab/tests/bench_machines.py``."""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import asyncssh
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lab.machines import SshMachines
from kubevnfm_lab.ports import MachineSpec, Nic

MACHINES = 50
AT_ONCE = 10
PROGRAMS = "for number in $(seq 30); do sudo sysctl -q net.ipv4.ip_forward; done"


@contextmanager
def measured(name: str, *, per: int) -> Iterator[None]:
    """Print wall time, and CPU of this process and of its children, for one of ``per`` things."""
    started, own, children = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    yield
    wall = time.perf_counter() - started
    own, children = _cpu(resource.RUSAGE_SELF) - own, _cpu(resource.RUSAGE_CHILDREN) - children
    line = f"{name:32} {wall:6.3f} s; each: lab and client {own / per * 1000:6.2f} ms CPU, programs {children / per * 1000:6.2f} ms"
    print(line)  # noqa: T201


def _cpu(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


async def bench() -> None:
    """Boot machines, run thirty stand-ins on each, destroy them."""
    faults, ledger = FaultBook(), CallLedger()
    clusters = LabClusters(faults=faults, ledger=ledger)
    specs = [
        MachineSpec(f"m{number}", f"m{number}", [Nic(IPv4Address(f"127.9.{number}.1"), "fa:16:3e:00:00:01", "net")])
        for number in range(MACHINES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with SshMachines.running(Path(folder), clusters=clusters, faults=faults, ledger=ledger) as machines:
            with measured(f"boot {MACHINES}", per=MACHINES):
                await asyncio.gather(*(machines.boot(spec) for spec in specs))
            slots = asyncio.Semaphore(AT_ONCE)

            async def use(spec: MachineSpec, command: str) -> None:
                async with slots, asyncssh.connect(
                    str(spec.nics[0].address), machines.ssh_port, username="ubuntu", password="ubuntu", known_hosts=None,
                    config=None, client_keys=None, agent_path=None,
                ) as connection:  # fmt: skip
                    await connection.run(command, check=True)

            with measured("log in and run `true`", per=MACHINES):
                await asyncio.gather(*(use(spec, "true") for spec in specs))
            with measured("log in and run 30 stand-ins", per=MACHINES):
                await asyncio.gather(*(use(spec, PROGRAMS) for spec in specs))
            with measured(f"destroy {MACHINES}", per=MACHINES):
                for spec in specs:
                    await machines.destroy(spec.machine_id)
    await clusters.close()


if __name__ == "__main__":
    asyncio.run(bench())
