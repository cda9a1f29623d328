"""One machine during a phase: its session, which is opened again when it breaks, and the script's tasks on it."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_secrets import Mask
from pydantic import BaseModel, ConfigDict, ValidationError

from kubevnfm_mgmt_executor.domain.errors import CommandTimedOut, CommandUnsuccessful, ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Address, CommandOutput, Login, Machine, Machines, OutputLog, Waits
from kubevnfm_mgmt_executor.domain.recorder import TaskResult

CALLS_AT_A_TIME: Final = 6
"""Calls of the script on one machine: sshd allows 10 channels in a session (MaxSessions), and files take some of them."""
SESSION_TRIES: Final = 3
"""How often a task is started when its session breaks. Every task finds out first what is left to do."""
# `verify` returns all Node objects as kubectl prints them, and a cluster may have many.
PUBLISHED_EVERY_S: Final = 1.0
RESULT_LIMIT: Final = 16 * 1024 * 1024

T = TypeVar("T")
A = TypeVar("A", bound="ScriptAnswer")
B = TypeVar("B", bound=BaseModel)


class ScriptAnswer(BaseModel):
    """The JSON object that a task of the install script writes."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    changed: bool = False
    """Whether the task changed the machine."""


class _ScriptFailure(BaseModel):
    """The JSON object that a task writes when it fails."""

    command: str | None = None
    """The command in the script that failed."""
    exit_code: int | None = None
    error: str | None = None
    """The script's own reason."""


def assignments(values: Mapping[str, str]) -> bytes:
    """Return shell assignments of exactly these values, whatever characters they have except NUL."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()).encode()


class _Opening:
    """Publishes why a machine is waited for, and that it is no longer."""

    def __init__(self, waits: Waits) -> None:
        self._waits, self._has_said = waits, False

    async def say(self, text: str) -> None:
        """Publish the reason."""
        self._has_said = True
        await self._waits(text)

    async def end(self) -> None:
        """Take a reason back."""
        if self._has_said:
            await self._waits("")


class _Said:
    """Publishes the reason why a script waits, while it runs: the newest one, and not more than one in a while."""

    def __init__(self, waits: Waits) -> None:
        self._waits, self.last, self._shown = waits, "", ""
        self._new = asyncio.Event()
        self._is_open = False
        """Whether a reason may be shown now: a task that is cancelled leaves open what it has published."""

    def say(self, text: str) -> None:
        """Note what the script waits for now."""
        self.last = text
        self._new.set()

    @asynccontextmanager
    async def published(self) -> AsyncIterator[None]:
        """Publish within the block, and take the reason back behind it: a session that breaks says no more, and its task goes on."""
        work = asyncio.create_task(self._publish())
        try:
            yield
        except asyncio.CancelledError:
            # This worker may have lost its claim to another one, whose reasons stay.
            self._is_open = False
            raise
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            if self._is_open:
                await self._waits("")

    async def _publish(self) -> None:
        while True:
            await self._new.wait()
            self._new.clear()
            if self.last != self._shown:
                self._shown = said = self.last
                self._is_open = True
                await self._waits(said)
                self._is_open = bool(said)
                await asyncio.sleep(PUBLISHED_EVERY_S)


@dataclass(frozen=True)
class ScriptFiles:
    """The folder on the machine (relative to the login's home) and the name of the script in it."""

    folder: str
    script: str


class NodeSession:
    """A machine that a phase works on."""

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
        waits: Waits,
    ) -> None:
        """``waits`` publishes what the install script waits for on the machine."""
        self.address = address
        self._login, self._files = login, files
        self._machines, self._output_log, self._mask, self._clock = machines, output_log, mask, clock
        self._operation_id = operation_id
        self._ready_within_s, self._waits = ready_within_s, waits
        self._machine: Machine | None = None
        self._opening = asyncio.Lock()
        self._calls = asyncio.Semaphore(CALLS_AT_A_TIME)

    async def reach(self, waits: Waits | None = None) -> None:
        """Open the session; ``waits``: as `Machines.reach`."""
        await self._open(waits)

    async def _open(self, waits: Waits | None = None) -> Machine:
        async with self._opening:  # tasks that run side by side on one node share its session
            if self._machine is None:
                said = _Opening(waits or self._waits)
                self._machine = await self._machines.reach(
                    self.address, self._login, within_s=self._ready_within_s, waits=said.say
                )
                await said.end()
            return self._machine

    async def _reopening(self, work: Callable[[Machine], Awaitable[T]]) -> T:
        for left in reversed(range(SESSION_TRIES)):
            machine = await self._open()
            try:
                return await work(machine)
            except ConnectionLost:
                # Another task of this node may have opened a new session already: that one must stay.
                if self._machine is machine:
                    self._machine = None
                await machine.close()
                if not left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def copy(self, files: Mapping[str, bytes]) -> None:
        """Put files into the folder."""
        await self._reopening(lambda machine: machine.upload(self._files.folder, files))

    async def run_script(
        self,
        task: str,
        values: Mapping[str, str],
        *,
        timeout_s: float,
        answer: type[A],
        about: str = "",
        script: str = "",
    ) -> A:
        """Run a task of the install script as root; return the JSON object that it wrote.

        ``about``: the node that the task is about, if it is another one than this machine. Errors and output then name it,
        and tasks about several nodes can run side by side. ``script``: another script in the folder than the usual one.

        Raises: CommandUnsuccessful naming the command in the script that failed; CommandTimedOut; NodeFailure when
        the script wrote no JSON, or not of the form ``answer``.
        """

        async def once(machine: Machine) -> A:
            async with self._calls:
                return await self._run_script(machine, task, values, timeout_s, answer, about, script)

        return await self._reopening(once)

    async def change(
        self, task: str, values: Mapping[str, str], *, timeout_s: float, about: str = "", script: str = ""
    ) -> TaskResult:
        """Run a task that answers only whether it has changed the machine; the rest is as for `run_script`."""
        answer = await self.run_script(
            task, values, timeout_s=timeout_s, answer=ScriptAnswer, about=about, script=script
        )
        return TaskResult(changed=answer.changed)

    async def _run_script(
        self,
        machine: Machine,
        task: str,
        values: Mapping[str, str],
        timeout_s: float,
        answer: type[A],
        about: str,
        script: str,
    ) -> A:
        folder, node = self._files.folder, about or self.address.node
        name = f"{task}-{about}" if about else task
        params, result = f"{name}.env", f"{name}.json"
        # In a file, because every user of the machine can read the arguments of processes. The empty result replaces
        # that of an earlier try: if the script is killed, the old result must not be taken for its own.
        await machine.upload(folder, {params: assignments(values), result: b""})
        script = script or self._files.script
        argv = ["bash", f"{folder}/{script}", task]
        argv += ["--params", f"{folder}/{params}", "--result", f"{folder}/{result}"]
        try:
            exit_code, last_lines = await self._run(machine, argv, task=task, timeout_s=timeout_s, node=node)
        except CommandTimedOut as error:
            raise CommandTimedOut(error.reason, node=node, task=task) from error
        raw = await machine.read(f"{folder}/{result}", limit=RESULT_LIMIT)
        if exit_code != 0:
            failure = self._parsed(raw, task, _ScriptFailure)
            raise CommandUnsuccessful(
                node=node,
                task=task,
                command=self._mask(failure.command or f"{script} {task}"),
                exit_code=exit_code if failure.exit_code is None else failure.exit_code,
                last_lines=last_lines,
                reason=self._mask(failure.error or ""),
            )
        return self._parsed(raw, task, answer)

    def _parsed(self, raw: bytes, task: str, form: type[B]) -> B:
        try:
            return form.model_validate(read_foreign(raw) if raw.strip() else {})
        except ValidationError as error:
            # Without the values: a result may hold a token.
            found = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, found["loc"])) or "the whole"
            reason = f"the result of the install script is not as expected: {place}: {found['msg']}"
            raise NodeFailure(reason, node=self.address.node, task=task) from None
        except ValueError as error:
            raise NodeFailure(
                "the result of the install script is not JSON", node=self.address.node, task=task
            ) from error

    async def run_own(self, arguments: Sequence[str], *, task: str, timeout_s: float) -> None:
        """Run the script with arguments, as the login's user; once, because it may not be repeatable.

        Raises: CommandUnsuccessful; CommandTimedOut; ConnectionLost, and how far the script came is unknown then.
        """
        machine = await self._open()
        argv = ["bash", f"{self._files.folder}/{self._files.script}", *arguments]
        exit_code, last_lines = await self._run(machine, argv, task=task, timeout_s=timeout_s, as_root=False)
        if exit_code != 0:
            raise CommandUnsuccessful(
                node=self.address.node,
                task=task,
                command=self._files.script,
                exit_code=exit_code,
                last_lines=last_lines,
            )

    async def _run(
        self, machine: Machine, argv: list[str], *, task: str, timeout_s: float, node: str = "", as_root: bool = True
    ) -> tuple[int | None, str]:
        said = _Said(self._waits)
        collected = CollectedOutput(self._mask, on_wait=said.say)
        started_at, began = rfc3339(self._clock.now()), time.monotonic()
        exit_code: int | None = None
        try:
            async with said.published():
                exit_code = await machine.run(
                    argv, task=task, timeout_s=timeout_s, output=collected.add, as_root=as_root
                )
            return exit_code, collected.last_lines()
        except CommandTimedOut as error:
            if said.last:
                error.reason = f"{error.reason}; it waited: {said.last}"
            raise
        finally:
            # Also after an error or a cancellation: the output until then is what shows the reason.
            await self._output_log.keep(
                CommandOutput(
                    vnf_instance_id=self.address.vnf_instance_id,
                    operation_id=self._operation_id,
                    node=node or self.address.node,
                    task=task,
                    started_at=started_at,
                    duration_s=round(time.monotonic() - began, 3),
                    exit_code=exit_code,
                    text=collected.text(),
                )
            )

    async def clean(self) -> None:
        """Remove the folder, if the machine still answers. A folder that stays is readable by its user only."""
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
