"""The drill of a restore: a backup in the middle of operations, the loss of everything that is stored, and the restore."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from patience import until

from servers.chaos import PATIENCE_S
from servers.installations import Installation, SixInstallation


@dataclass
class Drill:
    """One drill on one installation."""

    installation: Installation
    user: User
    lab: LabControl
    folder: Path
    """For the archive."""
    _made: list[str] = field(default_factory=list)
    """The VNF instances that exist at the end."""
    _gone: list[str] = field(default_factory=list)
    _operations: list[str] = field(default_factory=list)

    async def run(self, *, machines: int, ends: int, clusters: int, cnfs: int) -> None:
        """Restore in the middle of so many operations: VMs that are built and torn down, clusters that are built, CNFs that come and go."""
        vm = await self.user.sample("vm")
        body = sample_body("vm", "instantiate")
        ending = [await self.user.create(vm) for _ in range(ends)]
        await asyncio.gather(*(self.user.do(each, "instantiate", body) for each in ending))
        hosts = [await self._cluster() for _ in range(cnfs)]
        building = [await self.user.create(vm) for _ in range(machines)]
        growing = [await self.user.create(await self.user.sample("cluster")) for _ in range(clusters)]
        leaving = [await self._cnf(host) for host in hosts[1::2]]
        await asyncio.gather(*(self.user.do(one, "instantiate", request) for one, request in leaving))
        coming = [await self._cnf(host) for host in hosts[::2]]
        archive = self.folder / "backup"
        # Some machines are made before the backup, and the others are asked for and not there.
        await self.lab.forget_calls()
        async with self.lab.fault("nova", "server_create", effect="hang", after=machines // 2):
            await self._start("instantiate", [(each, body) for each in building], self._made)
            await self._start("instantiate", [(each, self.user.cluster()) for each in growing], self._made)
            await self._start("instantiate", coming, self._made)
            await self._start("terminate", [(each, GRACEFUL) for each in ending], self._gone)
            await self._start("terminate", [(each, GRACEFUL) for each, _ in leaving], self._gone)
            await self.lab.called("nova", "server_create", times=machines // 2 + 1)
            await self.command("backup", str(archive), *self._with_keys)
        # The infrastructure is newer than the backup then.
        await asyncio.gather(*(self._completed(each) for each in self._operations[: machines // 2 + 1]))
        await asyncio.to_thread(self.installation.kill_all)
        await self._lose_all()
        await self.command("restore", str(archive), *self._replace)
        await asyncio.to_thread(self.installation.start)
        for operation in self._operations:
            await self._completed(operation)
        await self._exists_once()
        await self._end([*self._made, *hosts, *self._gone], [each for each, _ in coming])

    @property
    def _with_keys(self) -> Sequence[str]:
        return () if isinstance(self.installation, SixInstallation) else ("--with-keys",)

    @property
    def _replace(self) -> Sequence[str]:
        return ("--replace",) if isinstance(self.installation, SixInstallation) else ()

    async def command(self, *words: str) -> str:
        """Run a verb of the command line where the data are; it must succeed. Return what it said."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
        ran = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kubevnfm.cli", *words,
            env=inherited | dict(self.installation.environment),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said = (await ran.communicate())[0].decode()
        assert ran.returncode == 0, said
        return said

    async def _cluster(self) -> str:
        instance_id = await self.user.create(await self.user.sample("cluster"))
        await self.user.do(instance_id, "instantiate", self.user.cluster())
        return instance_id

    async def _cnf(self, cluster_id: str) -> tuple[str, dict[str, Any]]:
        cnf_id = await self.user.create(await self.user.sample("cnf"))
        vim = (await self.user.vims())[f"kubernetes_vim_{cluster_id}"]
        on_it = {"cluster": {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}}
        return cnf_id, {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it}

    async def _start(self, task: str, asked: Sequence[tuple[str, dict[str, Any]]], noted: list[str]) -> None:
        self._operations += await asyncio.gather(*(self.user.start(each, task, body) for each, body in asked))
        noted += [each for each, _ in asked]

    async def _completed(self, operation: str) -> None:
        view = await self.user.rest(operation, timeout_s=PATIENCE_S)
        assert view["state"] == "COMPLETED", json.dumps(view, indent=1)

    async def _lose_all(self) -> None:
        if isinstance(self.installation, SixInstallation):
            # `--replace` drops the databases.
            shutil.rmtree(self.installation.folder / "data")
            rabbit = self.installation.rabbit
            names = await asyncio.to_thread(rabbit.control, "list_queues", "--quiet", "--no-table-headers", "name")
            for name in names.split():
                await asyncio.to_thread(rabbit.control, "purge_queue", name)
        else:
            shutil.rmtree(self.installation.folder / "data")

    async def _exists_once(self) -> None:
        """Check that each VNF has one stack and no machine twice, and that nothing is left of those that have ended."""
        found = await self.lab.inventory()
        stacks = Counter(stack["name"] for stack in found["stacks"])
        machines = Counter(server["name"] for server in found["servers"])
        for instance_id in self._made:
            shown = (await self.user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
            assert shown
            if stacks[f"vnf-{instance_id}"]:
                assert stacks[f"vnf-{instance_id}"] == 1
                assert sum(count for name, count in machines.items() if instance_id in name) == len(shown)
        for instance_id in self._gone:
            assert not any(instance_id in name for name in [*stacks, *machines])

    async def _end(self, instances: Sequence[str], first: Sequence[str]) -> None:
        """Remove everything, the VNFs on clusters before these."""
        for part in (first, [each for each in instances if each not in first]):
            await asyncio.gather(*(self._remove(each) for each in part))

    async def _remove(self, instance_id: str) -> None:
        if instance_id not in self._gone:
            await self.user.do(instance_id, "terminate", GRACEFUL)

        async def is_deleted() -> bool | None:
            status = (await self.user.lcm("DELETE", f"/vnf_instances/{instance_id}")).status
            return status in (204, 404) or None

        await until(is_deleted)
