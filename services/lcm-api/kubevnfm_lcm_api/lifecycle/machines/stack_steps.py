"""Steps by which infra-openstack creates and deletes a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from kubevnfm_events import Command
from kubevnfm_events.stacks import (
    CreateResources,
    DeleteResources,
    ResourcesChanged,
    ResourcesCreated,
    ResourcesDeleted,
    StackCommand,
    StackResources,
)

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.inventory import shown_resources
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft

STACK_TIMEOUT_S: Final = 1200.0
"""Heat's own deadline; Tacker's default of 20 minutes, on which existing packages rely."""

C = TypeVar("C", bound=CreateResources | StackCommand)
V = TypeVar("V", bound=StackDraft, contravariant=True)
R = TypeVar("R", bound=ResourcesCreated | ResourcesChanged, contravariant=True)


def stack_command(kind: type[C], draft: StackDraft) -> C:
    """Return the command, with what all that make or change a stack have in common."""
    shown = {"shown": shown_resources(draft.stacks)} if issubclass(kind, StackCommand) else {}
    return kind(
        **vars(draft.order),
        **shown,
        vnf_instance_id=draft.vnf_instance_id,
        # A repeated command finds the stack by its tag and continues with it.
        tag=draft.vnf_instance_id,
        timeout_s=STACK_TIMEOUT_S,
    )


@dataclass(frozen=True)
class StackStep(Step[V, R]):
    """The common part of the steps that make or change a stack: the reply has its resources, also if it failed."""

    base_timeout_s: ClassVar[float] = STACK_TIMEOUT_S + 300.0
    """Heat's deadline, and time for images and user data before it."""

    def fold(self, draft: V, reply: R) -> Draft:
        return draft.with_resources(reply.resources)

    def fold_remains(self, draft: V, remains: Mapping[str, object]) -> Draft:
        """Keep what the stack holds after a failure."""
        # `resourceChanges` and a rollback need the real state, not the one from before the failure.
        return draft.with_resources(StackResources.model_validate(remains))


@dataclass(frozen=True)
class CreateVnfResources(StackStep[InstantiateVmDraft, ResourcesCreated]):
    """Create the virtual resources of a VNF (sequences.md A1).

    Adds: the stack's resources.
    Again: safe; infra-openstack continues with the stack that carries the instance's tag.
    Fails: QuotaExceeded, StackFailed, user data failures at once; VimUnavailable when the tries are used up.
    """

    kind: ClassVar[str] = "create_resources"
    command: ClassVar[type[Command]] = CreateResources
    label: ClassVar[str] = "Create the virtual resources"

    def ask(self, draft: InstantiateVmDraft) -> CreateResources:
        return stack_command(CreateResources, draft)

    def forget(self, draft: InstantiateVmDraft) -> Draft:
        return draft.with_resources(None)

    def undo(self, draft: InstantiateVmDraft) -> DeleteResources:
        """Delete by tag, so that a stack is found whose id was never reported; a retry creates another."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id, tag=draft.vnf_instance_id, stack_name=draft.stack_name, vim=draft.vim
        )


@dataclass(frozen=True)
class RecreateVnf(StackStep[HealVmDraft, ResourcesCreated]):
    """Create the whole stack again after the old one was deleted (sequences.md A5).

    Again: safe; as the first creation.
    """

    kind: ClassVar[str] = "recreate_resources"
    command: ClassVar[type[Command]] = CreateResources
    label: ClassVar[str] = "Create the virtual resources again"

    def ask(self, draft: HealVmDraft) -> CreateResources:
        """Ask for the stack of the instantiate request, at the present number of machines."""
        # The same command as for the first creation, so that infra-openstack has one way to create a stack.
        return stack_command(CreateResources, draft.creation)

    def undo(self, draft: HealVmDraft) -> None:
        """A heal cannot be rolled back (api.md 4.3)."""


@dataclass(frozen=True)
class DeleteVnfResources(Step[TerminateVmDraft | HealVmDraft, ResourcesDeleted]):
    """Delete the VNF's stack and the images made for it (sequences.md A9).

    Again: safe; what is deleted already is left alone.
    """

    graceful_wait_s: float = 0.0
    """GRACEFUL: seconds to wait before the deletion."""

    kind: ClassVar[str] = "delete_resources"
    command: ClassVar[type[Command]] = DeleteResources
    label: ClassVar[str] = "Delete the virtual resources"
    base_timeout_s: ClassVar[float] = STACK_TIMEOUT_S + 600.0

    @property
    def timeout_s(self) -> float:
        """The deletion's own time starts after the wait."""
        return self.base_timeout_s + self.graceful_wait_s

    def ask(self, draft: TerminateVmDraft | HealVmDraft) -> DeleteResources:
        """Ask for the deletion; GRACEFUL waits first, and a heal names the stack that is made after it."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id,
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            vim=draft.vim,
            graceful_wait_s=self.graceful_wait_s,
            successor=draft.creation.order if isinstance(draft, HealVmDraft) else None,
        )

    def fold(self, draft: TerminateVmDraft | HealVmDraft, reply: ResourcesDeleted) -> Draft:
        return draft.without_stack()

    def undo(self, draft: TerminateVmDraft | HealVmDraft) -> None:
        """Deleted machines cannot be brought back: terminate has no rollback (api.md 4.3)."""
