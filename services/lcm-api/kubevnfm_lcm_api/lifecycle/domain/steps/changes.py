"""Steps by which infra-openstack changes a stack that exists, and starts or stops its servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from kubevnfm_events import Event, PackageRef
from kubevnfm_events.infra import (
    ChangeConnections,
    ChangeTemplate,
    CreateResources,
    HealResources,
    OperateServers,
    ResourcesChanged,
    ResourcesCreated,
    RestoreResources,
    ScaleResources,
    ServersOperated,
    StackResources,
)

from kubevnfm_lcm_api.lifecycle.domain.change_drafts import (
    ChangeVmDraft,
    ConnectVmDraft,
    HealVmDraft,
    OperateVmDraft,
    ReplaceVmDraft,
    ScaleVmDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step
from kubevnfm_lcm_api.lifecycle.domain.steps.stacks import STACK_TIMEOUT_S

_TIMEOUT_S = STACK_TIMEOUT_S + 300.0

V = TypeVar("V", bound=ChangeVmDraft)


def _stack(draft: ChangeVmDraft) -> dict[str, Any]:
    """Return what every command on the stack has in common."""
    return {
        "vnf_instance_id": draft.vnf_instance_id,
        "tag": draft.vnf_instance_id,
        "stack_name": draft.stack_name,
        "package": draft.package,
        "vim": draft.vim,
        "flavour_id": draft.flavour_id,
        "instantiation_level_id": draft.instantiation_level_id,
        "api_version": draft.api_version,
        "request": draft.request,
        "grant": draft.grant,
        "grant_request": draft.grant_request,
        "instance": draft.instance,
        "user_data": draft.user_data,
        "counts": draft.counts,
        "connections": draft.connections,
        "timeout_s": STACK_TIMEOUT_S,
    }


class _StackStep(Step[V, ResourcesChanged]):
    """What the steps share: the answer tells what the stack holds, and a rollback restores what it was."""

    timeout_s: ClassVar[float] = _TIMEOUT_S
    reply: ClassVar[type[Event]] = ResourcesChanged

    def fold(self, draft: V, reply: ResourcesChanged) -> V:
        """Keep what the stack holds."""
        return draft.model_copy(update={"resources": reply.resources})

    def keep_remains(self, draft: V, remains: Mapping[str, object]) -> V:
        """Keep what the stack holds after a change that failed."""
        return draft.model_copy(update={"resources": StackResources.model_validate(remains)})

    def undone(self, draft: V, reply: Event) -> V:
        """Keep what the restored stack holds: a port that was made anew has another id."""
        assert isinstance(reply, ResourcesChanged)
        return draft.model_copy(update={"resources": reply.resources, "connections": draft.connections_before})

    def undo(self, draft: V) -> RestoreResources | None:
        """Bring back what the operation found."""
        facts = {**_stack(draft), "request": {}, "grant": {}, "grant_request": {}, "user_data": None}
        return RestoreResources(**facts, staying=draft.staying)


class ScaleVnf(_StackStep[ScaleVmDraft]):
    """Bring the VDUs' instances to their counts (sequences.md A2, A3).

    Again: safe; counts are wanted, not added.
    """

    name: ClassVar[str] = "scale_resources"
    title: ClassVar[str] = "Scale the virtual resources"

    def ask(self, draft: ScaleVmDraft) -> ScaleResources:
        """Ask for the counts, and name who leaves."""
        return ScaleResources(**_stack(draft), leaving=draft.leaving)


class HealVnfcs(_StackStep[HealVmDraft]):
    """Make machines anew (sequences.md A4); ports and addresses stay.

    Again: safe; a machine that was replaced is not there to be replaced again.
    """

    name: ClassVar[str] = "heal_resources"
    title: ClassVar[str] = "Make the machines anew"

    def ask(self, draft: HealVmDraft) -> HealResources:
        """Ask for the machines, and the volumes that go with them."""
        return HealResources(**_stack(draft), servers=draft.servers, volumes=draft.volumes)

    def undo(self, draft: HealVmDraft) -> None:
        """What was broken is not wanted back (api.md 4.3)."""


class RecreateVnf(Step[HealVmDraft, ResourcesCreated]):
    """Make the whole stack anew after the old one is gone (sequences.md A5).

    Again: safe; as the first creation.
    """

    name: ClassVar[str] = "recreate_resources"
    title: ClassVar[str] = "Create the virtual resources anew"
    timeout_s: ClassVar[float] = _TIMEOUT_S
    reply: ClassVar[type[Event]] = ResourcesCreated

    def ask(self, draft: HealVmDraft) -> CreateResources:
        """Ask for the stack of the instantiate request, at the present number of machines."""
        return CreateResources(
            vnf_instance_id=draft.vnf_instance_id,
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            package=draft.package,
            vim=draft.vim,
            flavour_id=draft.flavour_id,
            instantiation_level_id=draft.instantiation_level_id,
            api_version=draft.api_version,
            request={**draft.instantiate_request, **_links(draft)},
            grant=draft.grant,
            grant_request=draft.grant_request,
            instance=draft.instance_to_make,
            user_data=draft.user_data,
            timeout_s=STACK_TIMEOUT_S,
        )

    def fold(self, draft: HealVmDraft, reply: ResourcesCreated) -> HealVmDraft:
        """Keep what the stack holds."""
        return draft.model_copy(update={"resources": reply.resources})

    def keep_remains(self, draft: HealVmDraft, remains: Mapping[str, object]) -> HealVmDraft:
        """Keep what the failed stack holds."""
        return draft.model_copy(update={"resources": StackResources.model_validate(remains)})

    def undo(self, draft: HealVmDraft) -> None:
        """A heal has no way back."""


def _links(draft: ChangeVmDraft) -> dict[str, Any]:
    """Return the links as they are now, which a later operation may have changed, in place of the request's."""
    return {name: links for name, links in draft.connections.items() if links}


class RestoreScale(_StackStep[HealVmDraft]):
    """Bring a stack that was made anew to the number of machines that it had, where user data did not.

    Again: safe.
    """

    name: ClassVar[str] = "restore_scale"
    title: ClassVar[str] = "Bring back the number of machines"

    def ask(self, draft: HealVmDraft) -> ScaleResources:
        """Ask for the counts by the built-in rules: the class has said at creation what it wants."""
        return ScaleResources(**{**_stack(draft), "user_data": None})

    def undo(self, draft: HealVmDraft) -> None:
        """A heal has no way back."""


class ConnectVnf(_StackStep[ConnectVmDraft]):
    """Put external connection points on other links.

    Again: safe; the links are wanted as they shall be.
    """

    name: ClassVar[str] = "change_connections"
    title: ClassVar[str] = "Change the external connectivity"

    def ask(self, draft: ConnectVmDraft) -> ChangeConnections:
        """Ask for the links."""
        return ChangeConnections(**_stack(draft))


class ReplaceTemplate(_StackStep[ReplaceVmDraft]):
    """Give the stack the template of another flavour or package.

    Again: safe; what is there stays as far as the template still names it.
    """

    name: ClassVar[str] = "change_template"
    title: ClassVar[str] = "Change to the other flavour or package"

    def ask(self, draft: ReplaceVmDraft) -> ChangeTemplate:
        """Ask for the new template."""
        return ChangeTemplate(**_stack(draft))

    def undo(self, draft: ReplaceVmDraft) -> RestoreResources:
        """Bring back what there was, read by the descriptor of before."""
        package: PackageRef = draft.before_package
        facts = {
            **_stack(draft),
            "request": {},
            "grant": {},
            "grant_request": {},
            "user_data": None,
            "package": package,
            "flavour_id": draft.before_flavour_id,
        }
        return RestoreResources(**facts, staying=draft.staying)


class OperateVnf(Step[OperateVmDraft, ServersOperated]):
    """Start or stop machines.

    Again: safe; one that is in the state is left alone.
    """

    name: ClassVar[str] = "operate_servers"
    title: ClassVar[str] = "Start or stop the machines"
    timeout_s: ClassVar[float] = 90_000.0
    """The longest gracefulStopTimeout that a request may give, an hour of Nova's own included."""
    reply: ClassVar[type[Event]] = ServersOperated

    def ask(self, draft: OperateVmDraft) -> OperateServers:
        """Ask for the state; a GRACEFUL stop waits first."""
        return OperateServers(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            servers=draft.servers,
            state=draft.state,
            graceful_wait_s=draft.graceful_wait_s,
        )

    def fold(self, draft: OperateVmDraft, reply: ServersOperated) -> OperateVmDraft:
        """They are in the state."""
        return draft.model_copy(update={"is_done": True})

    def forget(self, draft: OperateVmDraft) -> OperateVmDraft:
        """They are as before."""
        return draft.model_copy(update={"is_done": False})

    def undo(self, draft: OperateVmDraft) -> OperateServers:
        """Ask for the opposite, at once."""
        state = "STARTED" if draft.state == "STOPPED" else "STOPPED"
        return OperateServers(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, servers=draft.servers, state=state)
