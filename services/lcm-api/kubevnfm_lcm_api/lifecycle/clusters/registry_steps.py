"""The step that makes the machine of a VNF a private registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from kubevnfm_cluster.registry_vnf import read_registry
from kubevnfm_events import Command
from kubevnfm_events.mgmt import ForgetInstance, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_registry
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf


class HealRegistryDraft(HealVmDraft):
    """HEAL of a private registry: it is made again on the machine that replaces the old one."""

    is_reversible: ClassVar[bool] = False
    """The registry of the old machine is lost."""

    registry: RegistryVnf

    @classmethod
    def has_stored(cls, document: Mapping[str, Any]) -> bool:
        """Return whether the machine is a registry."""
        return document.get("registry") is not None

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """As for every change; the registry may have other addresses."""
        done = super().completed(instance)
        return (
            done if self.resources is None else done.with_internals(own_registry=self.registry.places(self.resources))
        )


@dataclass(frozen=True)
class RunRegistryPhase(Step[InstantiateVmDraft | HealRegistryDraft, PhaseDone]):
    """Install the registry on the VNF's machine, and wait until it answers (sequences.md 1.6).

    Again: safe; the machine says what is left to do.
    Fails: an address, login or script error names the task.
    """

    phase: Literal["instantiate_end", "heal_end"]

    kind: ClassVar[str] = "run_registry_phase"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Private registry: {phase}"
    base_timeout_s: ClassVar[float] = 7200.0

    def ask(self, draft: InstantiateVmDraft | HealRegistryDraft) -> RunPhase:
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

    def undo(self, draft: InstantiateVmDraft | HealRegistryDraft) -> ForgetInstance | None:
        """Purge the records of a machine that is deleted with the stack; a heal has no rollback."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id) if self.phase == "instantiate_end" else None
