"""The step that makes the machine of a VNF a private registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from kubevnfm_cluster import read_registry
from kubevnfm_events import Command, PackageRef
from kubevnfm_events.infra import StackResources
from kubevnfm_events.mgmt import ForgetInstance, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_registry
from kubevnfm_lcm_api.lifecycle.clusters.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.core.needs import NeedsInstance
from kubevnfm_lcm_api.lifecycle.core.step import Step


class NeedsRegistry(NeedsInstance, Protocol):
    """An operation that makes a private registry."""

    @property
    def package(self) -> PackageRef: ...

    @property
    def registry(self) -> RegistryVnf | None: ...

    @property
    def resources(self) -> StackResources | None: ...


@dataclass(frozen=True)
class RunRegistryPhase(Step[NeedsRegistry, PhaseDone]):
    """Install the registry on the VNF's machine, and wait until it answers (sequences.md 1.6).

    Again: safe; the machine says what is left to do.
    Fails: an address, login or script error names the task.
    """

    phase: Literal["instantiate_end", "heal_end"]

    kind: ClassVar[str] = "run_registry_phase"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Private registry: {phase}"
    base_timeout_s: ClassVar[float] = 7200.0

    def ask(self, draft: NeedsRegistry) -> RunPhase:
        """Ask for the phase on the machine that the request's connection point belongs to. Raises NodeNotFound."""
        assert draft.registry is not None
        assert draft.resources is not None
        asked = read_registry(draft.registry.parameters)
        return RunPhase(
            vnf_instance_id=draft.vnf_instance_id,
            driver=draft.registry.driver,
            phase=self.phase,
            package=draft.package,
            nodes=(find_registry(draft.resources, asked.ssh_cp_name),),
            parameters=draft.registry.parameters,
        )

    def fold(self, draft: NeedsRegistry, reply: PhaseDone) -> None:
        """Nothing to keep."""

    def undo(self, draft: NeedsRegistry) -> ForgetInstance | None:
        """Purge the records of a machine that is deleted with the stack; a heal has no rollback."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id) if self.phase == "instantiate_end" else None
