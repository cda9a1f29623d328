"""Scripts of packages as mgmt-executor runs them: its handler, a package in a folder, and what is kept of their output."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events import Event
from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import RunScript, ScriptDone, TaskProgressed
from kubevnfm_kit.clock import SystemClock
from kubevnfm_mgmt_executor.adapters.granted import GrantedAddresses
from kubevnfm_mgmt_executor.adapters.journal import StoredJournal
from kubevnfm_mgmt_executor.adapters.node_logs import StoredOutputLog
from kubevnfm_mgmt_executor.adapters.script_process import ScriptProcess
from kubevnfm_mgmt_executor.script_handlers import ScriptHandlers
from kubevnfm_mgmt_executor.script_senders import ScriptSenders
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, StepContext
from servers.vnf_networks import networks

PACKAGE = PackageRef(package_id="p", vnfd_id="d")


class PackageScripts:
    """The handler, and the folder of the package."""

    def __init__(
        self,
        folder: Path,
        store: SqliteStore,
        ring: KeyRing,
        limits: Limits,
        *,
        senders: ScriptSenders | None = None,
        vnf_networks: VnfNetworks | None = None,
        ssh_port: int = 22,
    ) -> None:
        """``senders``: None if no script sends credentials; ``vnf_networks``: None: any address may be one of a VNF."""
        self.package, self.logs = folder / "package", StoredOutputLog(store)
        self.package.mkdir()
        self.news: list[TaskProgressed] = []

        async def found(_: PackageRef) -> Path:
            return self.package

        self.handlers = ScriptHandlers(
            scripts=ScriptProcess(limits),
            folder=found,
            journal=StoredJournal(store, SystemClock()),
            output_log=self.logs,
            key_ring=ring,
            clock=SystemClock(),
            timeout_s=limits.timeout_s,
            grants=GrantedAddresses(vnf_networks or networks("0.0.0.0/0,127.0.0.0/8"), ssh_port=ssh_port),
            senders=senders,  # type: ignore[arg-type] # a test without a sender needs none
        )

    async def ask(self, command: RunScript, *, operation: str = "op-1", attempt: int = 1) -> ScriptDone:
        """Return the reply to the command."""

        async def publish(event: Event) -> None:
            assert isinstance(event, TaskProgressed)
            self.news.append(event)

        context = StepContext(
            message_id=f"{operation}/{attempt}",
            operation_id=operation,
            step_id=command.task,
            attempt=attempt,
            subject=command.vnf_instance_id,
            deadline=None,
            fencing=attempt,
            publish=publish,
        )
        outcome = await self.handlers.run_script(command, context)
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ScriptDone)
        return outcome.event

    async def log(self, operation: str = "op-1") -> str:
        """Return the output of the scripts, without the lines that name the commands."""
        text = b"".join([part async for part in self.logs.log(operation)]).decode()
        return "\n".join(line for line in text.splitlines() if not line.startswith("== "))
