"""ScriptProcess: runs scripts of packages in the sandbox."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final

import structlog
from kubevnfm_sandbox.process import Limits, Sandbox, SandboxState, Script, ScriptEnded
from kubevnfm_sandbox.shim import DRIVER_RUNNER, SCRIPT_MODULES, TACKER_SHIM

from kubevnfm_mgmt_executor.domain.scripts import ScriptOutcome, ScriptRun

log = structlog.get_logger()

_ANY_PORT: Final = 0


class ScriptProcess:
    """Runs one process of the sandbox for each script."""

    def __init__(self, limits: Limits, *, ssh_port: int) -> None:
        """``ssh_port``: the only port that a script reaches of an address of this host itself."""
        self._sandbox, self._ssh_port = Sandbox(limits), ssh_port

    async def state(self) -> SandboxState:
        """Try the sandbox; log and return whether scripts of packages are run. A trial takes some 60 ms."""
        return await self._sandbox.reported_state("scripts")

    async def run(self, run: ScriptRun, *, when_cancelled: Callable[[ScriptOutcome], None]) -> ScriptOutcome:
        """See Scripts."""
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
                reach=(*self._granted(run.reach), *(opening.reach if opening is not None else ())),
                names=opening.names if opening is not None else {},
                private_files=opening.private_files if opening is not None else {},
                timeout_s=run.timeout_s,
            ),
            when_cancelled=lambda ended: when_cancelled(_outcome(ended)),
        )
        return _outcome(ended)

    def _granted(self, addresses: Iterable[str]) -> Iterable[tuple[str, int]]:
        """Yield the granted pairs. A VIM reports the addresses, and one of them may be an address of this host."""
        for text in addresses:
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                log.warning("address_malformed", address=text)
                continue
            address = getattr(address, "ipv4_mapped", None) or address
            if address.is_unspecified or address.is_link_local or address.is_multicast:
                continue
            # The services listen there, each at another port.
            yield text, self._ssh_port if address.is_loopback else _ANY_PORT


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
