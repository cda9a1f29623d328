"""ScriptProcess: runs scripts of packages in the sandbox."""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, SandboxState, Script, ScriptEnded
from kubevnfm_sandbox.shim import DRIVER_RUNNER, SCRIPT_MODULES, TACKER_SHIM

from kubevnfm_mgmt_executor.domain.scripts import ScriptOutcome, ScriptRun


class ScriptProcess:
    """Runs one process of the sandbox for each script."""

    def __init__(self, limits: Limits) -> None:
        self._sandbox = Sandbox(limits)

    async def state(self) -> SandboxState:
        """Try the sandbox; log and return whether scripts of packages are run. A trial takes some 60 ms."""
        return await self._sandbox.reported_state("scripts")

    async def run(self, run: ScriptRun, *, when_cancelled: Callable[[ScriptOutcome], None]) -> ScriptOutcome:
        opening = run.opening
        ended = await self._sandbox.run_script(
            Script(
                file=run.file,
                package=run.package,
                given={**run.given, "driver_class": run.driver_class} if run.driver_class else run.given,
                via=DRIVER_RUNNER if run.driver_class else "",
                folders=run.folders,
                shim=TACKER_SHIM,
                modules=SCRIPT_MODULES,
                reach=(*run.reach, *(opening.reach if opening is not None else ())),
                names=opening.names if opening is not None else {},
                private_files=opening.private_files if opening is not None else {},
                timeout_s=run.timeout_s,
            ),
            when_cancelled=lambda ended: when_cancelled(_outcome(ended)),
        )
        return _outcome(ended)


def _outcome(ended: ScriptEnded) -> ScriptOutcome:
    return ScriptOutcome(
        ended.status,
        ended.stderr,
        ended.stdout,
        ended.timed_out,
        value=ended.value,
        unreadable=ended.unreadable,
        refused=ended.refused,
    )
