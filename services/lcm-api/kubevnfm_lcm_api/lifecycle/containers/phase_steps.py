"""Steps that mgmt-executor does for a CNF: the phases of a management driver, outside of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kubevnfm_events import Command
from kubevnfm_events.mgmt import INSTANTIATE_END, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.core.step import Step

BalancedDraft = InstantiateCnfDraft | HealCnfDraft | TerminateCnfDraft
"""An operation on a CNF whose VNFD maps phases to a driver of mgmt-executor."""


@dataclass(frozen=True)
class RunCnfPhase(Step[BalancedDraft, PhaseDone]):
    """Run one phase of a CNF's management driver, outside of the cluster.

    Again: safe; continues from the journal.
    Fails: an address, login or script error names the machine and the task.
    """

    phase: Literal["instantiate_end", "terminate_end"]

    kind: ClassVar[str] = "run_cnf_phase"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Management driver: {phase}"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: BalancedDraft) -> RunPhase:
        """Ask for the phase, with the CNF's node ports."""
        return self._command(draft, self.phase, force=draft.is_forceful)

    def undo(self, draft: BalancedDraft) -> RunPhase | None:
        """Ask for the opposite, as far as it can be reached: the failure may be that it cannot."""
        if self.phase != INSTANTIATE_END:
            return None  # Terminate has no rollback (api.md 4.3).
        return self._command(draft, "terminate_end", force=True)

    def _command(
        self, draft: BalancedDraft, phase: Literal["instantiate_end", "terminate_end"], *, force: bool
    ) -> RunPhase:
        assert draft.package is not None
        return RunPhase(
            vnf_instance_id=draft.vnf_instance_id,
            driver=draft.phases[self.phase],
            phase=phase,
            package=draft.package,
            nodes=(),
            parameters=draft.parameters,
            services=draft.release.services if draft.release is not None else (),
            force=force,
        )
