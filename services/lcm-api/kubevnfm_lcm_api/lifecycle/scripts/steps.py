"""Steps that run the scripts of the package for the phases of an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from kubevnfm_events import Command, Event
from kubevnfm_events.mgmt import READ_ADMIN, RunScript, ScriptAnswer, ScriptDone
from kubevnfm_events.stacks import StackResources
from kubevnfm_secrets import without_secrets

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import Moment, ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.step import STEP_KINDS, Step

if TYPE_CHECKING:
    from kubevnfm_lcm_api.lifecycle.core.step import Plan

SCRIPT_TIMEOUT_S: Final = 7200.0
"""As long as a native driver has for a cluster. Tacker has no limit, and packages install whole applications."""
_MODIFY_END: Final = "modify_information_end"
_BUILDING: Final = ("instantiate_end", "heal_end")
"""The phases at whose end a script may have built a cluster."""


@dataclass(frozen=True)
class _ScriptStep(Step[ScriptedDraft, ScriptDone]):
    """The common part: the draft keeps what the script answers."""

    phase: str

    command: ClassVar[type[Command]] = RunScript
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S

    def fold(self, draft: ScriptedDraft, reply: ScriptDone) -> Draft:
        return draft.with_script(reply.answer)


@dataclass(frozen=True)
class RunScriptPhase(_ScriptStep):
    """Run the script that the VNFD maps a phase to (sequences.md 6.5).

    Adds: what the script changes of the instance, and what it keeps for a run after a failure.
    Again: the script runs again; it finds what it kept.
    Fails: an exit status other than 0, with the last lines that the script wrote.
    """

    kind: ClassVar[str] = "run_script"
    label: ClassVar[str] = "Script of the package: {phase}"

    def ask(self, draft: ScriptedDraft) -> RunScript:
        """Ask for the script; at the end of an operation it gets the instance as it will be."""
        return phase_command(draft, self.phase)

    def fold_remains(self, draft: ScriptedDraft, remains: Mapping[str, object]) -> Draft:
        return draft.with_script(ScriptAnswer.model_validate(remains))

    def extend(self, draft: ScriptedDraft, plan: Plan[ScriptedDraft]) -> None:
        """Register the cluster that the script has built (sequences.md 6.7), before what comes after the script.

        Its access data are those of the VIM that a driver class has created, or are read on a master.
        """
        if self.phase not in _BUILDING or not (draft.registers_vim or draft.reads_admin):
            return
        phases = last_phases(draft)
        # Only an instantiation and a heal of machines register one, and their drafts have what the steps need.
        steps = cast("Plan[Any]", plan)
        # By their stored kinds: clusters, whose steps they are, stand above scripts.
        reading = STEP_KINDS["run_driver_phase"].from_arguments({"phase": READ_ADMIN})
        read = [] if draft.registers_vim else [steps.add(reading, id=READ_ADMIN)]
        steps.add(
            STEP_KINDS["register_vim"].from_arguments({}), after=read, before=phases[phases.index(self.phase) + 1 :][:1]
        )

    def undo(self, draft: ScriptedDraft) -> None:
        """The VNFD maps a rollback to scripts of its own (`RunRollbackScript`)."""


@dataclass(frozen=True)
class RunRollbackScript(_ScriptStep):
    """In a rollback, run the script that the VNFD maps ``<operation>_rollback_start`` or ``_end`` to.

    The first of a rollback and the last. Forwards it does nothing.
    """

    kind: ClassVar[str] = "run_rollback_script"
    label: ClassVar[str] = "In a rollback, script of the package: {phase}"
    only_undo: ClassVar[bool] = True

    @property
    def begins_rollback(self) -> bool:
        return self.phase.endswith("_rollback_start")

    def ask(self, draft: ScriptedDraft) -> None:
        """Nothing is to be done forwards."""

    def undo(self, draft: ScriptedDraft) -> RunScript:
        return phase_command(draft, self.phase)

    def undone(self, draft: ScriptedDraft, reply: Event) -> Draft:
        assert isinstance(reply, ScriptDone)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: ScriptedDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what a script that failed has answered; the next rollback runs it again."""
        return draft.with_script(ScriptAnswer.model_validate(remains))


def phase_command(draft: ScriptedDraft, phase: str) -> RunScript:
    """Return the command that runs the script of a phase; at the end of an operation it gets the instance as it will be."""
    before, now = draft.stacks
    is_end, is_rollback = phase.endswith("_end"), "_rollback_" in phase
    moment: Moment = "completed" if is_end and not is_rollback else "before"
    known = (now,) if is_end else (before, now) if is_rollback else (before,)
    assert draft.package is not None
    file, _, driver_class = draft.scripts[phase].partition("::")
    return RunScript(
        vnf_instance_id=draft.vnf_instance_id,
        package=draft.package,
        file=file,
        driver_class=driver_class,
        task=phase,
        given={
            "operation": phase,
            "request": without_access(draft.script_request),
            "vnf_instance": without_access(draft.instance_at("rolled_back" if is_end and is_rollback else moment)),
            "grant_request": draft.grant_request or None,
            "grant_response": without_access(draft.grant) or None,
            "user_script_err_handling_data": draft.script_data,
            **(_facts_for_driver(draft, known) if driver_class else {}),
        },
        folders={
            "tmp_csar_dir": draft.package,
            **({"new_csar_dir": draft.new_package} if phase == _MODIFY_END and draft.new_package is not None else {}),
        },
        reach=addresses(*known),
    )


def _facts_for_driver(draft: ScriptedDraft, known: Sequence[StackResources | None]) -> dict[str, Any]:
    """Return what a driver class of Tacker's v1 may ask about its instance (sequences.md 6.7); the last stack is the present one."""
    before, _ = draft.stacks
    # Before, because a VNF that is terminated has none any more.
    info = draft.instance_at("before").get("instantiatedVnfInfo") or {}
    stack = next((one for one in reversed(known) if one is not None), None)
    return {
        # `nfv` are the parameters of the stack, which may hold secrets of the request.
        "stack": stack.model_dump(mode="json", exclude={"nfv"}) if stack is not None else None,
        "earlier_stacks": [server.stack_id for server in before.servers] if before is not None else [],
        "earlier_servers": [server.server_id for server in before.servers] if before is not None else [],
        "instantiated_with": info.get("additionalParams") or {},
        **({"cluster_vim_name": draft.registered_vim_name} if draft.registered_vim_name is not None else {}),
    }


def without_access(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, a grant or an instance without the secrets of its VIMs: no script reaches a VIM."""
    found = tree.get("vimConnectionInfo")
    return {**tree, **({"vimConnectionInfo": without_secrets(found)} if found else {})}


def last_phases(draft: ScriptedDraft) -> tuple[str, ...]:
    """Return the phases whose steps come after all others, in order."""
    ends = [phase for phase in draft.scripts if phase.endswith("_end") and "_rollback_" not in phase]
    return (*ends, *(phase for phase in draft.scripts if phase.endswith("_rollback_start")))


def addresses(*stacks: StackResources | None) -> tuple[str, ...]:
    """Return every address of the stacks' ports, floating ones included."""
    found: dict[str, None] = {}
    for stack in stacks:
        for port in () if stack is None else (*(p for s in stack.servers for p in s.ports), *stack.ports):
            found.update(dict.fromkeys(port.addresses))
            if port.floating_address is not None:
                found[port.floating_address] = None
    return tuple(found)
