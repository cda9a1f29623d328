"""ScriptProcess: runs scripts of packages in the sandbox."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from kubevnfm_events.mgmt import ANSIBLE
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, SandboxState, Script, ScriptEnded, ScriptRefused
from kubevnfm_sandbox.shim import (
    ANSIBLE_MODULES,
    ANSIBLE_NATIVE,
    ANSIBLE_RUNNER,
    DRIVER_RUNNER,
    SCRIPT_MODULES,
    TACKER_SHIM,
)

from kubevnfm_mgmt_executor.domain.scripts import ScriptOutcome, ScriptRun


def why_no_ansible() -> str:
    """Return why no playbooks can be run; "" if ansible-core is installed."""
    if all(importlib.util.find_spec(name) is not None for name in ANSIBLE_MODULES):
        return ""
    return "Ansible playbooks need ansible-core, which mgmt-executor does not have: pip install 'kubevnfm-mgmt-executor[ansible]'"


class ScriptProcess:
    """Runs one process of the sandbox for each script."""

    def __init__(self, limits: Limits) -> None:
        self._sandbox = Sandbox(limits)

    async def state(self) -> SandboxState:
        """Try the sandbox; log and return whether scripts of packages are run. A trial takes some 60 ms."""
        return await self._sandbox.reported_state("scripts")

    async def run(self, run: ScriptRun, *, when_cancelled: Callable[[ScriptOutcome], None]) -> ScriptOutcome:
        opening, is_ansible = run.opening, run.driver_class == ANSIBLE
        if is_ansible and (reason := why_no_ansible()):
            raise ScriptRefused(f"{run.file}: {reason}")
        ended = await self._sandbox.run_script(
            Script(
                file=run.file,
                package=run.package,
                given={**run.given, "driver_class": run.driver_class} if run.driver_class else run.given,
                via=ANSIBLE_RUNNER if is_ansible else DRIVER_RUNNER if run.driver_class else "",
                folders=run.folders,
                shim=TACKER_SHIM,
                modules=(*SCRIPT_MODULES, *ANSIBLE_MODULES) if is_ansible else SCRIPT_MODULES,
                native=ANSIBLE_NATIVE if is_ansible else frozenset(),
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
