"""One machine during a phase: its session, opened again when it breaks, and the install script's tasks on it."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError

from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful, ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.domain.masking import Mask
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Address, CommandOutput, Login, Machine, Machines, OutputLog

SESSION_TRIES: Final = 3
"""How often a task is begun again because its session broke; every task looks before it acts."""
RESULT_LIMIT: Final = 16 * 1024 * 1024

T = TypeVar("T")


def assignments(values: Mapping[str, str]) -> bytes:
    """Return shell assignments that give exactly these values back, whatever is in them but NUL."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()).encode()


@dataclass(frozen=True)
class ScriptFiles:
    """The folder on the machine (relative to the login's home) and the name of the script in it."""

    folder: str
    script: str


class NodeSession:
    """A machine that is worked on."""

    def __init__(
        self,
        address: Address,
        login: Login,
        files: ScriptFiles,
        *,
        machines: Machines,
        output_log: OutputLog,
        mask: Mask,
        clock: Clock,
        operation_id: str,
        ready_within_s: float,
    ) -> None:
        self.address = address
        self._login, self._files = login, files
        self._machines, self._output_log, self._mask, self._clock = machines, output_log, mask, clock
        self._operation_id = operation_id
        self._ready_within_s = ready_within_s
        self._machine: Machine | None = None
        self._opening = asyncio.Lock()

    async def reach(self) -> None:
        """Open the session."""
        await self._open()

    async def _open(self) -> Machine:
        async with self._opening:  # tasks of one node that run side by side share one session
            if self._machine is None:
                self._machine = await self._machines.reach(self.address, self._login, within_s=self._ready_within_s)
            return self._machine

    async def _again_when_lost(self, work: Callable[[Machine], Awaitable[T]]) -> T:
        for left in reversed(range(SESSION_TRIES)):
            machine = await self._open()
            try:
                return await work(machine)
            except ConnectionLost:
                if self._machine is machine:
                    self._machine = None
                await machine.close()
                if not left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def copy(self, files: Mapping[str, bytes]) -> None:
        """Put files into the folder."""
        await self._again_when_lost(lambda machine: machine.upload(self._files.folder, files))

    async def run_script(self, task: str, values: Mapping[str, str], *, timeout_s: float) -> Mapping[str, Any]:
        """Run a task of the install script as root; return the JSON object that it wrote.

        Raises CommandUnsuccessful naming the command in the script that failed, CommandTimedOut.
        """

        async def once(machine: Machine) -> Mapping[str, Any]:
            return await self._run_script(machine, task, values, timeout_s)

        return await self._again_when_lost(once)

    async def _run_script(
        self, machine: Machine, task: str, values: Mapping[str, str], timeout_s: float
    ) -> Mapping[str, Any]:
        folder, params, result = self._files.folder, f"{task}.env", f"{task}.json"
        await machine.upload(folder, {params: assignments(values), result: b""})
        argv = ["bash", f"{folder}/{self._files.script}", task]
        argv += ["--params", f"{folder}/{params}", "--result", f"{folder}/{result}"]
        exit_code, said = await self._run(machine, argv, task=task, timeout_s=timeout_s)
        answer = self._answer(await machine.read(f"{folder}/{result}", limit=RESULT_LIMIT), task)
        if exit_code != 0:
            raise CommandUnsuccessful(
                node=self.address.node,
                task=task,
                command=self._mask(str(answer.get("command") or f"{self._files.script} {task}")),
                exit_code=answer.get("exit_code", exit_code),
                last_lines=said,
                reason=self._mask(str(answer.get("error") or "")),
            )
        return answer

    def _answer(self, raw: bytes, task: str) -> Mapping[str, Any]:
        if not raw.strip():
            return {}
        try:
            answer = json.loads(raw)
        except ValueError as error:
            raise NodeFailure(
                "the result of the install script is no JSON", node=self.address.node, task=task
            ) from error
        if not isinstance(answer, dict):
            raise NodeFailure("the result of the install script is no object", node=self.address.node, task=task)
        return answer

    async def _run(self, machine: Machine, argv: list[str], *, task: str, timeout_s: float) -> tuple[int | None, str]:
        collected = CollectedOutput(self._mask)
        started_at, began = rfc3339(self._clock.now()), time.monotonic()
        exit_code: int | None = None
        try:
            exit_code = await machine.run(argv, task=task, timeout_s=timeout_s, output=collected.add, as_root=True)
            return exit_code, collected.last_lines()
        finally:
            await self._output_log.keep(
                CommandOutput(
                    vnf_instance_id=self.address.vnf_instance_id,
                    operation_id=self._operation_id,
                    node=self.address.node,
                    task=task,
                    started_at=started_at,
                    duration_s=round(time.monotonic() - began, 3),
                    exit_code=exit_code,
                    text=collected.text(),
                )
            )

    async def clean(self) -> None:
        """Remove the folder, if the machine still answers; what cannot be removed now is private anyway."""
        if self._machine is None:
            return
        try:
            await self._machine.remove(self._files.folder)
        except VnfmError:
            return

    async def close(self) -> None:
        """Close the session."""
        if self._machine is not None:
            await self._machine.close()
            self._machine = None
