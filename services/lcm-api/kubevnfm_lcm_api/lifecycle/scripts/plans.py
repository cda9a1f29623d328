"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from collections.abc import Collection

from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyDraft, ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.scripts.steps import RunRollbackScript, RunScriptPhase, last_phases


def begin(plan: Plan[ScriptedDraft], draft: ScriptedDraft, *, later: Collection[str] = ()) -> None:
    """Add the scripts at the operation's beginning; the one at the end of a rollback is undone after all other steps.

    ``later``: phases for which the sequence has another place.
    """
    for phase in draft.scripts:
        if phase.endswith("_rollback_end"):
            plan.then(RunRollbackScript(phase), id=phase)
    for phase in draft.scripts:
        if phase.endswith("_start") and "_rollback_" not in phase and phase not in later:
            plan.then(RunScriptPhase(phase), id=phase)


def finish(plan: Plan[ScriptedDraft], draft: ScriptedDraft, *, earlier: Collection[str] = ()) -> None:
    """Add the scripts at the operation's end, and the one at the beginning of a rollback.

    ``earlier``: phases for which the sequence has another place.
    """
    for phase in last_phases(draft):
        if phase not in earlier:
            plan.then(RunRollbackScript(phase) if "_rollback_" in phase else RunScriptPhase(phase), id=phase)


@SEQUENCES.sequence(ModifyDraft)
def modify_info(_: ModifyDraft) -> Plan[ModifyDraft]:
    """Change the instance's document at the end; no service takes part."""
    return Plan[ModifyDraft]()


@SEQUENCES.sequence(ModifyScriptedDraft)
def modify_scripted(draft: ModifyScriptedDraft) -> Plan[ModifyScriptedDraft]:
    """Run the scripts of a modification, then change the instance's document."""
    plan = Plan[ModifyScriptedDraft]()
    begin(plan, draft)
    finish(plan, draft)
    return plan
