"""Steps by which infra-openstack changes a stack that exists, and starts or stops its servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from kubevnfm_events import Command, Event
from kubevnfm_events.stacks import (
    ChangeConnections,
    ChangeTemplate,
    HealResources,
    OperateServers,
    ResourcesChanged,
    RestoreResources,
    ScaleResources,
    ServersOperated,
    StackCommand,
)

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft, OperateVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.coordinate_steps import CoordinateNew
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.inventory import part_of
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.stack_steps import StackStep, stack_command
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases

V = TypeVar("V", bound=ChangeVmDraft, contravariant=True)


def _restored(draft: ChangeVmDraft) -> StackCommand:
    """Return the same without what the request asked for: a restore takes the stack back to its former state."""
    # No user data: a class would compute the state that the failed operation asked for.
    return stack_command(StackCommand, draft).model_copy(
        update={"request": {}, "grant": {}, "grant_request": {}, "user_data": None}
    )


def _as_before(draft: ChangeVmDraft) -> dict[str, Any]:
    """Return what a command has that leaves the stack as it was."""
    return {"before": draft.before.model_copy(update={"nfv": {}}), "connections_before": draft.connections_before}


@dataclass(frozen=True)
class ChangeStep(StackStep[V, ResourcesChanged]):
    """The common part: a rollback restores the earlier resources."""

    def undone(self, draft: V, reply: Event) -> Draft:
        """Keep what the restored stack holds: a port that was created again has another id."""
        assert isinstance(reply, ResourcesChanged)
        # Nothing was restored, as the stack was deleted by hand: the instance stays as it was, and shows its drift.
        return draft.with_resources(None) if reply.is_missing else draft.restored(reply.resources)

    def undo(self, draft: V) -> RestoreResources | None:
        """Restore the stack as it was when the operation began."""
        return RestoreResources(**vars(_restored(draft)), **_as_before(draft), staying=draft.staying)


@dataclass(frozen=True)
class ScaleVnf(ChangeStep[ScaleVmDraft]):
    """Bring the VDUs' instances to their counts (sequences.md A2, A3).

    Again: safe; the counts are absolute, not relative.
    """

    kind: ClassVar[str] = "scale_resources"
    command: ClassVar[type[Command]] = ScaleResources
    label: ClassVar[str] = "Scale the virtual resources"

    def ask(self, draft: ScaleVmDraft) -> ScaleResources:
        return stack_command(ScaleResources, draft).model_copy(update={"leaving": draft.leaving})


def replacement(draft: HealVmDraft, servers: tuple[str, ...]) -> HealResources:
    """Return the command that replaces servers, with the volumes that no other server of the heal uses."""
    others = set(draft.servers).difference(servers)
    used = {one.resource_id for one in draft.before.volumes if one.server_id in others}
    volumes = tuple(volume for volume in draft.volumes if volume not in used)
    parts = {"servers": servers, "volumes": volumes, **_as_before(draft)}
    return stack_command(HealResources, draft).model_copy(update=parts)


@dataclass(frozen=True)
class HealVnfcs(ChangeStep[HealVmDraft]):
    """Replace machines (sequences.md A4); ports and addresses stay.

    Again: safe; a machine that was replaced already has another id and is left alone.
    """

    kind: ClassVar[str] = "heal_resources"
    command: ClassVar[type[Command]] = HealResources
    label: ClassVar[str] = "Replace the machines"

    def ask(self, draft: HealVmDraft) -> HealResources:
        """Ask for the machines, and the volumes that are replaced with them."""
        return replacement(draft, draft.replaced_together)


@dataclass(frozen=True)
class RestoreScale(ChangeStep[ChangeVmDraft]):
    """Bring a stack that was created again to its earlier number of machines, in case user data did not.

    Again: safe; the counts are absolute.
    """

    kind: ClassVar[str] = "restore_scale"
    command: ClassVar[type[Command]] = ScaleResources
    label: ClassVar[str] = "Restore the number of machines"

    def ask(self, draft: ChangeVmDraft) -> ScaleResources:
        """Ask for the counts by the built-in rules; the user data class was already used at the creation."""
        return stack_command(ScaleResources, draft).model_copy(update={"user_data": None})

    def undo(self, draft: ChangeVmDraft) -> None:
        """A heal cannot be rolled back (api.md 4.3)."""


@dataclass(frozen=True)
class ConnectVnf(ChangeStep[ChangeVmDraft]):
    """Move external connection points to other links.

    Again: safe; the links are absolute.
    """

    kind: ClassVar[str] = "change_connections"
    command: ClassVar[type[Command]] = ChangeConnections
    label: ClassVar[str] = "Change the external connectivity"

    def ask(self, draft: ChangeVmDraft) -> ChangeConnections:
        return stack_command(ChangeConnections, draft)


def _of_earlier_package(draft: ReplaceVmDraft) -> StackCommand:
    earlier = {"package": draft.before_package, "flavour_id": draft.before_flavour_id}
    return _restored(draft).model_copy(update=earlier)


def _new_template(draft: ReplaceVmDraft) -> ChangeTemplate:
    update = {"changed_vdus": draft.changed_vdus, "instantiate_request": draft.instantiate_request}
    return stack_command(ChangeTemplate, draft).model_copy(update=update)


@dataclass(frozen=True)
class ReplaceTemplate(ChangeStep[ReplaceVmDraft]):
    """Give the stack the template of another flavour or package.

    Again: safe; resources that the template still names stay.
    """

    kind: ClassVar[str] = "change_template"
    command: ClassVar[type[Command]] = ChangeTemplate
    label: ClassVar[str] = "Change to the other flavour or package"

    def ask(self, draft: ReplaceVmDraft) -> ChangeTemplate:
        return _new_template(draft)

    def extend(self, draft: ReplaceVmDraft, plan: Plan[ReplaceVmDraft]) -> None:
        """Coordinate each changed machine, one after the other, before the scripts at the operation's end."""
        joins = last_phases(draft)[:1]
        after: tuple[str, ...] = ()
        for number, server in enumerate(draft.machines_to_coordinate("new")):
            step_id = f"coordinate-new/{server.vdu_id}/{number}"
            after = (plan.add(CoordinateNew(server.vdu_id, number), id=step_id, after=after, before=joins),)

    def undo(self, draft: ReplaceVmDraft) -> RestoreResources:
        """Restore the earlier stack, by the earlier descriptor."""
        return RestoreResources(**vars(_of_earlier_package(draft)), **_as_before(draft), staying=draft.staying)


@dataclass(frozen=True)
class ChangeMachines(ChangeStep[ReplaceVmDraft]):
    """A rolling update: change the machines of one resource of the top stack; those of later steps stay as they are.

    Again: safe; the command names all that is not changed yet.
    """

    part: str

    kind: ClassVar[str] = "change_machines"
    command: ClassVar[type[Command]] = ChangeTemplate
    label: ClassVar[str] = "Change the machines of {part}"

    def ask(self, draft: ReplaceVmDraft) -> ChangeTemplate:
        """Ask for the new template with the earlier form of all parts of later steps."""
        return _new_template(draft).model_copy(update={"unchanged": draft.rolling[self._place(draft) + 1 :]})

    def undo(self, draft: ReplaceVmDraft) -> RestoreResources:
        """Restore the machines of this step; with the first, the whole stack, by the earlier descriptor."""
        place = self._place(draft)
        # Machines of other steps were restored already, or are restored later: their present servers stay.
        _, now = draft.stacks
        others = tuple(s.server_id for s in (now.servers if now else ()) if part_of(s) != self.part)
        return RestoreResources(
            **vars(_of_earlier_package(draft)),
            # Until then the machines of other steps have the new form.
            **({} if place else _as_before(draft)),
            staying=tuple(dict.fromkeys((*draft.staying, *others))),
            restored=draft.rolling[place:] if place else (),
        )

    def undone(self, draft: ReplaceVmDraft, reply: Event) -> Draft:
        """Keep what the stack holds; the earlier links are back with the first step."""
        assert isinstance(reply, ResourcesChanged)
        if self._place(draft) and not reply.is_missing:
            return draft.with_resources(reply.resources)
        return super().undone(draft, reply)

    def _place(self, draft: ReplaceVmDraft) -> int:
        return draft.rolling.index(self.part)


@dataclass(frozen=True)
class OperateVnf(Step[OperateVmDraft, ServersOperated]):
    """Start or stop machines.

    Again: safe; a machine that is in the wanted state is left alone.
    """

    graceful_wait_s: float = 0.0
    """GRACEFUL stop: seconds to wait before it."""

    kind: ClassVar[str] = "operate_servers"
    command: ClassVar[type[Command]] = OperateServers
    label: ClassVar[str] = "Start or stop the machines"
    base_timeout_s: ClassVar[float] = 3600.0
    """Nova's own timeout of a graceful shutdown is an hour at most."""

    @property
    def timeout_s(self) -> float:
        """The stop's own time starts after the wait."""
        return self.base_timeout_s + self.graceful_wait_s

    def ask(self, draft: OperateVmDraft) -> OperateServers:
        """Ask for the state; a GRACEFUL stop waits first."""
        return OperateServers(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            servers=draft.servers,
            state=draft.state,
            graceful_wait_s=self.graceful_wait_s,
        )

    def fold(self, draft: OperateVmDraft, reply: ServersOperated) -> Draft:
        return draft.operated(is_done=True)

    def forget(self, draft: OperateVmDraft) -> Draft:
        return draft.operated(is_done=False)

    def undo(self, draft: OperateVmDraft) -> OperateServers:
        """Ask for the opposite state, without a wait; servers that were deleted by hand are left out."""
        state: Literal["STARTED", "STOPPED"] = "STARTED" if draft.state == "STOPPED" else "STOPPED"
        return OperateServers(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            servers=draft.servers,
            state=state,
            existing_only=True,
        )
