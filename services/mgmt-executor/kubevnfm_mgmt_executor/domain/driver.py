"""A management driver: a table from a life-cycle phase to the work that the phase means inside a VNF's machines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import Phase, RunPhase
from kubevnfm_kit.clock import Clock
from kubevnfm_secrets import Mask, Secret

from kubevnfm_mgmt_executor.domain.errors import DriverUnknown, PhaseUnsupported
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptFiles
from kubevnfm_mgmt_executor.domain.ports import Address, HostKeys, Journal, Login, Machines, OutputLog
from kubevnfm_mgmt_executor.domain.recorder import Recorder


class PackageFiles(Protocol):
    """The files of the VNF package."""

    async def read(self, path: str) -> bytes | None:
        """Return a file's content; None when the package has no such file."""
        ...


@dataclass(frozen=True)
class PhaseResult:
    """The facts that a phase reports to the life cycle."""

    cluster: ClusterAccess | None = None
    node_names: Mapping[str, str] = field(default_factory=dict)
    """Kubernetes node name by VNFC id."""
    left: str | None = None
    """The VNFC id of the master that has left the cluster; None: none has."""


@dataclass(frozen=True)
class Tools:
    """The ports that a driver works with, and the facts of its command; a new object for each command."""

    package: PackageFiles
    own_files: PackageFiles
    """The files that the drivers bring themselves."""
    machines: Machines
    journal: Journal
    host_keys: HostKeys
    output_log: OutputLog
    recorder: Recorder
    mask: Mask
    clock: Clock
    reveal: Callable[[Secret], str]
    """Opens a secret. To be called where the value is used, so that it is in clear in as few places as possible."""
    operation_id: str

    def session(self, address: Address, login: Login, script: str, *, ready_within_s: float) -> NodeSession:
        """Return a session with a machine, which is opened when it is used; ``script``: the one that its tasks run."""
        return NodeSession(
            address,
            login,
            ScriptFiles(f".kubevnfm/{address.vnf_instance_id[:8]}", script),
            machines=self.machines,
            output_log=self.output_log,
            mask=self.mask,
            clock=self.clock,
            operation_id=self.operation_id,
            ready_within_s=ready_within_s,
            waits=self.recorder.waits,
        )


PhaseWork = Callable[[RunPhase, Tools], Awaitable[PhaseResult]]
"""Runs a phase. It can be repeated, also after it was killed at any point.

Raises VnfmError; ConnectionLost when a repeat may succeed.
"""

Driver = Mapping[Phase, PhaseWork]
"""The phases that a driver supports."""


async def nothing(_: RunPhase, __: Tools) -> PhaseResult:
    """Do nothing: the phase has no meaning for the driver, but VNFDs of other managers map it to it."""
    return PhaseResult()


async def forget_machines(command: RunPhase, tools: Tools) -> PhaseResult:
    """Delete journal and host keys: the machines no longer exist, and others may get their addresses."""
    # The output stays, because operators read it after a termination; `ForgetInstance` deletes it with the instance.
    await tools.host_keys.forget(command.vnf_instance_id)
    await tools.journal.forget(command.vnf_instance_id)
    return PhaseResult()


MACHINE_PHASES: Final[Driver] = {
    "instantiate_start": nothing,
    "terminate_start": nothing,
    "terminate_end": forget_machines,
    "change_external_connectivity_start": nothing,
    "change_external_connectivity_end": nothing,
    "modify_information_start": nothing,
    "modify_information_end": nothing,
}
"""The phases that are alike for all drivers of a VNF of machines."""


def phase_work(drivers: Mapping[str, Driver], name: str, phase: Phase) -> PhaseWork:
    """Return the work of a driver's phase; ``name`` is the implementation name in the VNFD.

    Raises: DriverUnknown, PhaseUnsupported.
    """
    driver = drivers.get(name)
    if driver is None:
        raise DriverUnknown(name, known=", ".join(sorted(drivers)))
    work = driver.get(phase)
    if work is None:
        raise PhaseUnsupported(
            f"management driver {name!r} does not support phase {phase}; it supports {', '.join(sorted(driver))}"
        )
    return work
