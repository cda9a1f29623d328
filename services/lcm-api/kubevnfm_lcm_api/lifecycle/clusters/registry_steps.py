"""The step that makes the machine of a VNF a private registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kubevnfm_cluster.registry_vnf import read_registry
from kubevnfm_events import Command
from kubevnfm_events.mgmt import ForgetInstance, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_registry
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft


@dataclass(frozen=True)
class RunRegistryPhase(Step[InstantiateVmDraft | HealVmDraft, PhaseDone]):
    """Install the registry on the VNF's machine, and wait until it answers (sequences.md 1.6).

    Again: safe; the machine says what is left to do.
    Fails: an address, login or script error names the task.
    """

    phase: Literal["instantiate_end", "heal_end"]

    kind: ClassVar[str] = "run_registry_phase"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Private registry: {phase}"
    base_timeout_s: ClassVar[float] = 7200.0

    def ask(self, draft: InstantiateVmDraft | HealVmDraft) -> RunPhase:
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

    def undo(self, draft: InstantiateVmDraft | HealVmDraft) -> ForgetInstance | None:
        """Purge the records of a machine that is deleted with the stack; a heal has no rollback."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id) if self.phase == "instantiate_end" else None
