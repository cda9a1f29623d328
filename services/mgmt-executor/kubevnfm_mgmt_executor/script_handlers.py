"""The inbox for scripts of packages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import structlog
from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import DriverVim, RunScript, ScriptAnswer, ScriptDone
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.printable import printable, quoted_end, quoted_start
from kubevnfm_sandbox.answers import AnswerRefused, judged
from kubevnfm_secrets import KeyRing, Mask, Secret, revealed
from kubevnfm_worker.outcome import Done, Outcome, StepContext

from kubevnfm_mgmt_executor.domain.answered import Answered
from kubevnfm_mgmt_executor.domain.driver_vims import read_vim, secrets_of, vim_id_of
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Claim, CommandOutput, Earlier, Journal, OutputLog
from kubevnfm_mgmt_executor.domain.recorder import NodeId, Recorder, TaskResult
from kubevnfm_mgmt_executor.domain.scripts import (
    Answer,
    Granted,
    Grants,
    ScriptFailed,
    ScriptOutcome,
    ScriptRun,
    Scripts,
    ScriptTimedOut,
    is_text,
    read_answer,
    secrets_in,
    with_access,
)
from kubevnfm_mgmt_executor.script_senders import Found, Prepared, ScriptSenders

log = structlog.get_logger()

_NODE: Final = NodeId("script", "script")
"""A script runs beside the service and on no machine; under this name it has its tasks and its output."""
_WITHOUT_NETWORK: Final = (
    "Function not implemented",
    "name resolution",
    "Name or service not known",
    "start new thread",
)
"""Texts of the errors that calls for sockets, names and threads raise in a script without addresses."""
_NO_NETWORK: Final = " (a script has no network and no threads if its VNF has no machines, as that of a CNF)"
_MOST_REFUSED: Final = 3
"""Number of refused addresses that an error names: a VNF may have hundreds of machines."""
_END_BYTES: Final = 3072
"""How much of a script's stderr its error quotes (capi.md chapter 3); an error has at most 4 KiB."""
_REASON_BYTES: Final = 512
_RESERVE_S: Final = 5.0
"""Time before the command's deadline in which the script is killed, so that its error names the script."""


@dataclass(frozen=True)
class _Said:
    """The output of a script, as errors show it."""

    is_printed: bool
    """Whether its stdout is a text."""
    end: str
    """The end of stderr, or of the text if stderr is empty; quoted."""


class _Keep(Protocol):
    async def __call__(self, outcome: ScriptOutcome, *, is_killed: bool) -> _Said: ...


class ScriptHandlers:
    """Runs scripts of packages."""

    def __init__(
        self,
        *,
        scripts: Scripts,
        folder: Callable[[PackageRef], Awaitable[Path]],
        journal: Journal,
        output_log: OutputLog,
        key_ring: KeyRing,
        clock: Clock,
        timeout_s: float,
        senders: ScriptSenders,
        grants: Grants,
    ) -> None:
        self._senders, self._grants = senders, grants
        self._scripts, self._folder, self._journal = scripts, folder, journal
        self._output_log, self._key_ring, self._clock = output_log, key_ring, clock
        self._timeout_s = timeout_s

    async def run_script(self, command: RunScript, context: StepContext) -> Outcome:
        """Run the script; a repeat runs it again. The error of one that fails carries what it has answered."""
        answers: list[tuple[Answer, DriverVim | None]] = []
        claim = Claim(context.operation_id, context.message_id, context.fencing)
        recorder = Recorder(self._journal, claim, vnf_instance_id=command.vnf_instance_id, publish=context.publish)
        recorder.total = 2 if command.sender is not None and command.sender.sends is not None else 1
        found = None
        if command.sender is not None:
            found = await self._senders.find(command.sender, recorder, context.operation_id)

        async def work(_: Earlier | None) -> TaskResult:
            granted = await self._grants.granted(command.reach)
            if granted.refused:
                await recorder.progress(_NODE, command.task, _not_granted(granted))
            async with self._prepared(command, found, context, recorder) as prepared:
                answers.append(await self._run(command, context, prepared, granted))
            return TaskResult()

        await recorder.perform(_NODE, command.task, work)
        answer, vim = answers[0]
        return Done(
            ScriptDone(
                answer=ScriptAnswer.model_validate({**answer.model_dump(), "vim": vim}),
                sent=found.sent if found is not None else None,
            )
        )

    @asynccontextmanager
    async def _prepared(
        self, command: RunScript, found: Found | None, context: StepContext, recorder: Recorder
    ) -> AsyncIterator[Prepared | None]:
        """Yield what a script that sends credentials gets; None for another one."""
        if command.sender is None or found is None:
            yield None
            return

        async def progress(message: str) -> None:
            await recorder.progress(_NODE, command.task, message)

        async with self._senders.prepared(
            command.sender,
            found,
            context.operation_id,
            progress=progress,
            life_s=self._latest_end(context.deadline),
        ) as prepared:
            yield prepared

    async def _run(
        self, command: RunScript, context: StepContext, prepared: Prepared | None, granted: Granted
    ) -> tuple[Answer, DriverVim | None]:
        secrets = secrets_in(command.given, self._reveal)
        given = revealed(command.given, self._key_ring)
        if prepared is not None:
            secrets |= prepared.secrets
            given = with_access(given, prepared.vim_key, prepared.entry)
        timeout_s = self._time_left(context.deadline)
        run = ScriptRun(
            file=command.file,
            package=await self._folder(command.package),
            given=given,
            folders={name: await self._folder(package) for name, package in command.folders.items()},
            reach=granted.reach,
            timeout_s=timeout_s,
            driver_class=command.driver_class,
            opening=prepared.opening if prepared is not None else None,
        )
        keep = self._keeper(command, context.operation_id, secrets)
        cut_short: list[ScriptOutcome] = []
        try:
            outcome = await self._scripts.run(run, when_cancelled=cut_short.append)
        except asyncio.CancelledError:
            # The output until then shows why the script hangs.
            for one in cut_short:
                await keep(one, is_killed=True)
            raise
        said = await keep(outcome, is_killed=outcome.timed_out)
        if outcome.timed_out:
            last_output = f"; its last output:{said.end}" if said.end else ""
            raise ScriptTimedOut(f"{command.task}: {command.file} was killed after {timeout_s:g} s{last_output}")
        # In a thread, because the answer has megabytes if the package wants it so.
        answer, vim = await asyncio.to_thread(self._judged, command, outcome, given, secrets, said, granted)
        if vim is not None and (refusal := await self._grants.refusal_of_url(vim.access.server)):
            raise ScriptFailed(command.task, f"{command.file}: create_vim: auth_url: {refusal}", remains=answer)
        return answer, vim

    def _keeper(self, command: RunScript, operation_id: str, secrets: frozenset[str]) -> _Keep:
        """Return what puts the output of the script, which starts now, into the operation's log."""
        started_at, began = rfc3339(self._clock.now()), time.monotonic()

        async def keep(outcome: ScriptOutcome, *, is_killed: bool) -> _Said:
            collected = CollectedOutput(Mask(secrets | secrets_of(outcome.value)))
            collected.add(outcome.output)
            # Taken before stdout is added: the reason of a failure is in stderr, however much was printed.
            end = collected.end(_END_BYTES)
            is_printed = (is_killed or bool(outcome.unreadable)) and bool(outcome.stdout) and is_text(outcome.stdout)
            if is_printed or not command.answers:
                collected.add(b"\n" + outcome.stdout)
                end = end or collected.end(_END_BYTES)
            await self._output_log.keep(
                CommandOutput(
                    vnf_instance_id=command.vnf_instance_id,
                    operation_id=operation_id,
                    node=_NODE.name,
                    task=command.task,
                    started_at=started_at,
                    duration_s=round(time.monotonic() - began, 3),
                    exit_code=None if is_killed else outcome.status,
                    text=collected.text(),
                )
            )
            return _Said(is_printed, quoted_end(end, _END_BYTES) if end else "")

        return keep

    def _judged(
        self,
        command: RunScript,
        outcome: ScriptOutcome,
        given: Mapping[str, object],
        secrets: frozenset[str],
        said: _Said,
        granted: Granted,
    ) -> tuple[Answer, DriverVim | None]:
        """Return the answer and the VIM that is to be registered.

        Raises ScriptFailed, with the answer that a script gave before it failed; AnswerRefused.
        """
        answer, problem = Answer(), ""
        if outcome.refused and (command.answers or not outcome.status):
            problem = outcome.refused
        elif command.answers and outcome.unreadable and not said.is_printed:
            unreadable = quoted_start(Mask(secrets)(printable(outcome.unreadable)), _REASON_BYTES)
            problem = f"its answer is not a pickle of plain values; reading it raises:{unreadable}"
        elif command.answers:
            try:
                if outcome.value is not None:
                    judged(outcome.value, Answered)
                answer = read_answer(
                    outcome.value,
                    given,
                    self._key_ring,
                    marked=secrets | secrets_of(outcome.value),
                    vim_id=vim_id_of(outcome.value, command.vnf_instance_id) if command.driver_class else None,
                )
            except (AnswerRefused, ValueError) as error:
                problem = str(error)
        if outcome.status != 0:
            reason = f"; its last output:{said.end}" if said.end else " and wrote nothing to stderr"
            if not command.reach and command.sender is None and any(sign in said.end for sign in _WITHOUT_NETWORK):
                reason = _NO_NETWORK + reason
            if granted.refused:
                # Before what the script has written: only the end of an error is cut.
                reason = f" ({_not_granted(granted)})" + reason
            raise ScriptFailed(
                command.task, f"{command.file} ended with exit status {outcome.status}{reason}", remains=answer
            )
        if problem:
            raise AnswerRefused(f"{command.task}: {command.file}: {problem}")
        try:
            return answer, read_vim(outcome.value, given, command.reach) if command.driver_class else None
        except ValueError as error:
            raise AnswerRefused(f"{command.task}: {command.file}: {error}", remains=answer) from None

    def _time_left(self, deadline: datetime | None) -> float:
        return max(1.0, min(self._timeout_s, self._latest_end(deadline) - _RESERVE_S))

    def _latest_end(self, deadline: datetime | None) -> float:
        """Return the time until the command is cancelled: a script may wait for others before it starts."""
        if deadline is None:
            return self._timeout_s + _RESERVE_S
        return (deadline - self._clock.now()).total_seconds()

    def _reveal(self, secret: Secret) -> str:
        return secret.reveal(self._key_ring)


def _not_granted(granted: Granted) -> str:
    """Return the sentence about addresses that the script may not connect to."""
    named, others = granted.refused[:_MOST_REFUSED], len(granted.refused) - _MOST_REFUSED
    more = f"; and {others} more" if others > 0 else ""
    return f"addresses of the VNF that the script may not connect to: {'; '.join(named)}{more}"
