"""Steps that run scripts of the package: those of the phases of an operation, and those that coordinate machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, cast

from kubevnfm_events import Command, Event, PackageRef
from kubevnfm_events.infra import ServerFacts, StackResources
from kubevnfm_events.mgmt import READ_ADMIN, RunScript, ScriptAnswer, ScriptDone
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import SecretParams, without_secrets

from kubevnfm_lcm_api.lifecycle.clusters.nodes import connection_address
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import RunDriverPhase
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.needs import NeedsInstance
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import Moment
from kubevnfm_lcm_api.lifecycle.core.step import Step

if TYPE_CHECKING:
    from kubevnfm_lcm_api.lifecycle.core.plan import Plan

SCRIPT_TIMEOUT_S: Final = 7200.0
"""As long as a native driver has for a cluster. Tacker has no limit, and packages install whole applications."""
_MODIFY_END: Final = "modify_information_end"
_BUILDING: Final = ("instantiate_end", "heal_end")
"""The phases at whose end a script may have built a cluster."""
_OPERATION_ID: Final = "vnfLcmOpOccId"


class NeedsScripts(NeedsInstance, Protocol):
    """An operation that can run scripts of the package."""

    @property
    def package(self) -> PackageRef | None: ...

    @property
    def new_package(self) -> PackageRef | None:
        """A modification: the package that it changes to."""
        ...

    @property
    def scripts(self) -> Mapping[str, str]:
        """File by phase; ``file::Class`` for a driver class of Tacker's v1."""
        ...

    @property
    def script_request(self) -> SecretParams: ...

    @property
    def script_data(self) -> SecretParams: ...

    @property
    def grant_request(self) -> SecretParams: ...

    @property
    def grant(self) -> SecretParams: ...

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """Before the operation, and now."""
        ...

    def instance_at(self, moment: Moment) -> dict[str, Any]:
        """Return the VnfInstance in v2 form."""
        ...

    @property
    def registers_vim(self) -> bool:
        """Whether a driver class has created a VIM that is to be registered."""
        ...

    @property
    def registered_vim_name(self) -> str | None:
        """The VIM that the cluster which is built again is registered as."""
        ...

    @property
    def reads_admin(self) -> bool:
        """Whether a script has built a cluster and has left no VIM for it."""
        ...

    def with_script(self, answer: ScriptAnswer) -> Draft:
        """Return the draft with what a script has answered."""
        ...


@dataclass(frozen=True)
class RunScriptPhase(Step[NeedsScripts, ScriptDone]):
    """Run the script that the VNFD maps a phase to (sequences.md 6.5).

    Adds: what the script changes of the instance, and what it keeps for a run after a failure.
    Again: the script runs again; it finds what it kept.
    Fails: an exit status other than 0, with the last lines that the script wrote.
    """

    phase: str

    kind: ClassVar[str] = "run_script"
    command: ClassVar[type[Command]] = RunScript
    label: ClassVar[str] = "Script of the package: {phase}"
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S

    def ask(self, draft: NeedsScripts) -> RunScript:
        """Ask for the script; at the end of an operation it gets the instance as it will be."""
        return phase_command(draft, self.phase)

    def fold(self, draft: NeedsScripts, reply: ScriptDone) -> Draft:
        """Keep what the script answered."""
        return draft.with_script(reply.answer)

    def fold_remains(self, draft: NeedsScripts, remains: Mapping[str, object]) -> Draft:
        """Keep what a script that failed has answered."""
        return draft.with_script(ScriptAnswer.model_validate(remains))

    def extend(self, draft: NeedsScripts, plan: Plan[NeedsScripts]) -> None:
        """Register the cluster that the script has built (sequences.md 6.7), before what comes after the script.

        Its access data are those of the VIM that a driver class has created, or are read on a master.
        """
        if self.phase not in _BUILDING or not (draft.registers_vim or draft.reads_admin):
            return
        phases = last_phases(draft)
        # Only an instantiation and a heal of machines register one, and their drafts have what the steps need.
        steps = cast("Plan[Any]", plan)
        read = [] if draft.registers_vim else [steps.add(RunDriverPhase(READ_ADMIN), id=READ_ADMIN)]
        steps.add(RegisterClusterVim(), after=read, before=phases[phases.index(self.phase) + 1 :][:1])

    def undo(self, draft: NeedsScripts) -> None:
        """The VNFD maps a rollback to scripts of its own (`RunRollbackScript`)."""


@dataclass(frozen=True)
class RunRollbackScript(Step[NeedsScripts, ScriptDone]):
    """In a rollback, run the script that the VNFD maps ``<operation>_rollback_start`` or ``_end`` to.

    The first of a rollback and the last. Forwards it does nothing.
    """

    phase: str

    kind: ClassVar[str] = "run_rollback_script"
    command: ClassVar[type[Command]] = RunScript
    label: ClassVar[str] = "In a rollback, script of the package: {phase}"
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S
    only_undo: ClassVar[bool] = True

    @property
    def begins_rollback(self) -> bool:
        """Whether it comes before all compensations."""
        return self.phase.endswith("_rollback_start")

    def ask(self, draft: NeedsScripts) -> None:
        """Nothing is to be done forwards."""

    def fold(self, draft: NeedsScripts, reply: ScriptDone) -> Draft:
        """Keep what the script answered."""
        return draft.with_script(reply.answer)

    def undo(self, draft: NeedsScripts) -> RunScript:
        """Ask for the script."""
        return phase_command(draft, self.phase)

    def undone(self, draft: NeedsScripts, reply: Event) -> Draft:
        """Keep what the script answered."""
        assert isinstance(reply, ScriptDone)
        return self.fold(draft, reply)

    def fold_undo_remains(self, draft: NeedsScripts, remains: Mapping[str, object]) -> Draft:
        """Keep what a script that failed has answered; the next rollback runs it again."""
        return draft.with_script(ScriptAnswer.model_validate(remains))


def phase_command(draft: NeedsScripts, phase: str) -> RunScript:
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


def _facts_for_driver(draft: NeedsScripts, known: Sequence[StackResources | None]) -> dict[str, Any]:
    """Return what a driver class of Tacker's v1 may ask about its instance (sequences.md 6.7); the last stack is the present one."""
    before, _ = draft.stacks
    # Before, because a VNF that is terminated has none any more.
    info = draft.instance_at("before").get("instantiatedVnfInfo") or {}
    stack = next((one for one in reversed(known) if one is not None), None)
    return {
        # `nfv` are the parameters of the stack, which may hold secrets of the request.
        "stack": stack.model_dump(mode="json", exclude={"nfv"}) if stack is not None else None,
        "earlier_stacks": [server.stack_id for server in before.servers] if before is not None else [],
        "instantiated_with": info.get("additionalParams") or {},
        **({"cluster_vim_name": draft.registered_vim_name} if draft.registered_vim_name is not None else {}),
    }


def without_access(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, a grant or an instance without the secrets of its VIMs: no script reaches a VIM."""
    found = tree.get("vimConnectionInfo")
    return {**tree, **({"vimConnectionInfo": without_secrets(found)} if found else {})}


def last_phases(draft: NeedsScripts) -> tuple[str, ...]:
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


class NeedsCoordination(NeedsScripts, Protocol):
    """A change of package that coordinates each machine."""

    @property
    def coordination(self) -> Mapping[Literal["new", "old"], str]: ...

    @property
    def coordination_params(self) -> SecretParams: ...

    def machines_to_coordinate(self, age: Literal["new", "old"]) -> tuple[ServerFacts, ...]:
        """Return the machines that the change touches."""
        ...

    def machines_of(self, part: str) -> tuple[ServerFacts, ...]:
        """Return the machines of a part of a rolling update."""
        ...


@dataclass(frozen=True)
class CoordinateNew(Step[NeedsCoordination, ScriptDone]):
    """Run ``lcm-operation-coordinate-new-vnf`` for one machine that the change has touched (sequences.md 6.5).

    Again: the script runs again.
    Fails: an exit status other than 0; a connection point that the machine does not have.
    """

    vdu_id: str
    number: int
    """Among the machines of the change, or of the part."""
    part: str = ""
    """A rolling update: the resource of the top stack that holds the machine."""

    kind: ClassVar[str] = "coordinate_new"
    command: ClassVar[type[Command]] = RunScript
    label: ClassVar[str] = "Coordinate a changed machine of {vdu_id}"
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S

    def ask(self, draft: NeedsCoordination) -> RunScript:
        """Ask for the script."""
        return _coordination(draft, "new", self.vdu_id, self.number, self.part)

    def fold(self, draft: NeedsCoordination, reply: ScriptDone) -> None:
        """A coordination script has no answer."""

    def undo(self, draft: NeedsCoordination) -> None:
        """The reversal of the change has a script of its own (`CoordinateOld`)."""


@dataclass(frozen=True)
class CoordinateOld(Step[NeedsCoordination, ScriptDone]):
    """In a rollback, run ``lcm-operation-coordinate-old-vnf`` for one machine that is as before. Forwards it does nothing."""

    vdu_id: str
    number: int
    part: str = ""

    kind: ClassVar[str] = "coordinate_old"
    command: ClassVar[type[Command]] = RunScript
    label: ClassVar[str] = "In a rollback, coordinate a machine of {vdu_id}"
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S
    only_undo: ClassVar[bool] = True

    def ask(self, draft: NeedsCoordination) -> None:
        """Nothing is to be done forwards."""

    def fold(self, draft: NeedsCoordination, reply: ScriptDone) -> None:
        """A coordination script has no answer."""

    def undo(self, draft: NeedsCoordination) -> RunScript:
        """Ask for the script."""
        return _coordination(draft, "old", self.vdu_id, self.number, self.part)


def _coordination(
    draft: NeedsCoordination, age: Literal["new", "old"], vdu_id: str, number: int, part: str
) -> RunScript:
    """Return the command for one machine. Raises Unprocessable if it has no such connection point."""
    is_rollback = age == "old"
    before, now = draft.stacks
    stack = now or before
    assert stack is not None
    assert draft.package is not None
    machines = draft.machines_of(part) if part else draft.machines_to_coordinate(age)
    place = f"additionalParams/vdu_params/{vdu_id}/{age}_vnfc_param/cp_name"
    if number >= len(machines):
        raise Unprocessable(place, f"the stack has {len(machines)} machines, and no machine {number} to coordinate")
    server = machines[number]
    params: Mapping[str, Any] = draft.coordination_params[vdu_id][f"{age}_vnfc_param"]
    instance = draft.instance_at("rolled_back" if is_rollback else "completed")
    vnfcs = instance["instantiatedVnfInfo"].get("vnfcInfo") or ()
    vnfc_ids = [one["id"] for one in vnfcs if one.get("vnfcResourceInfoId") == server.vnfc_id]
    operation_id = str(draft.grant_request.get(_OPERATION_ID, ""))
    return RunScript(
        vnf_instance_id=draft.vnf_instance_id,
        package=draft.package,
        file=draft.coordination[age],
        task=f"coordinate-{age}/{part or vdu_id}/{number}",
        given={
            **params,
            "ssh_ip": connection_address(server, stack, str(params["cp_name"]), field=place),
            "is_rollback": is_rollback,
            "LcmCoordRequest": {
                "vnfInstanceId": draft.vnf_instance_id,
                "vnfLcmOpOccId": operation_id,
                "lcmOperationType": "CHANGE_VNFPKG",
                # The script sets it: the VNFD does not name it.
                "coordinationActionName": "should_be_set_by_script",
                "_links": {
                    "vnfLcmOpOcc": {"href": f"/vnflcm/v2/vnf_lcm_op_occs/{operation_id}"},
                    "vnfInstance": {"href": f"/vnflcm/v2/vnf_instances/{draft.vnf_instance_id}"},
                },
            },
            "inst": without_access(instance),
            **({"vnfc_info_id": vnfc_ids[0]} if vnfc_ids else {}),
        },
        reach=addresses(stack),
        answers=False,
    )
