"""Steps by which infra-openstack creates and deletes a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from kubevnfm_events import Command
from kubevnfm_events.infra import CreateResources, DeleteResources, ResourcesCreated, ResourcesDeleted, StackResources

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.needs import NeedsStack, NeedsStackBefore, NeedsStackName
from kubevnfm_lcm_api.lifecycle.core.step import Step

STACK_TIMEOUT_S: Final = 1200.0
"""Heat's own deadline; Tacker's default of 20 minutes, on which existing packages rely."""
CHANGE_TIMEOUT_S: Final = STACK_TIMEOUT_S + 300.0
"""A step that creates or changes a stack: Heat's deadline, and time for images and user data before it."""


@dataclass(frozen=True)
class CreateVnfResources(Step[NeedsStack, ResourcesCreated]):
    """Create the virtual resources of a VNF (sequences.md A1).

    Adds: the stack's resources.
    Again: safe; infra-openstack continues with the stack that carries the instance's tag.
    Fails: QuotaExceeded, StackFailed, user data failures at once; VimUnavailable when the tries are used up.
    """

    kind: ClassVar[str] = "create_resources"
    command: ClassVar[type[Command]] = CreateResources
    label: ClassVar[str] = "Create the virtual resources"
    base_timeout_s: ClassVar[float] = CHANGE_TIMEOUT_S

    def ask(self, draft: NeedsStack) -> CreateResources:
        """Ask for the stack."""
        return CreateResources(
            vnf_instance_id=draft.vnf_instance_id,
            # A repeated command finds the stack by its tag and continues with it.
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            package=draft.package,
            vim=draft.vim,
            flavour_id=draft.flavour_id,
            instantiation_level_id=draft.instantiation_level_id,
            api_version=draft.api_version,
            request=draft.request,
            grant=draft.grant,
            grant_request=draft.grant_request,
            instance=draft.instance,
            user_data=draft.user_data,
            timeout_s=STACK_TIMEOUT_S,
        )

    def fold(self, draft: NeedsStack, reply: ResourcesCreated) -> Draft:
        """Keep what the stack holds."""
        return draft.with_resources(reply.resources)

    def fold_remains(self, draft: NeedsStack, remains: Mapping[str, object]) -> Draft:
        """Keep what the failed stack holds; a retry deletes it and creates another."""
        return draft.with_resources(StackResources.model_validate(remains))

    def forget(self, draft: NeedsStack) -> Draft:
        """The stack is deleted."""
        return draft.with_resources(None)

    def undo(self, draft: NeedsStack) -> DeleteResources:
        """Delete by tag, so that a stack is found whose id was never reported."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id, tag=draft.vnf_instance_id, stack_name=draft.stack_name, vim=draft.vim
        )


class NeedsRecreation(NeedsStackBefore, Protocol):
    """An operation that replaces a whole stack."""

    @property
    def creation(self) -> NeedsStack:
        """The facts as at the first creation, in the form that user data expect: request, links and instance."""
        ...


@dataclass(frozen=True)
class RecreateVnf(Step[NeedsRecreation, ResourcesCreated]):
    """Create the whole stack again after the old one was deleted (sequences.md A5).

    Again: safe; as the first creation.
    """

    kind: ClassVar[str] = "recreate_resources"
    command: ClassVar[type[Command]] = CreateResources
    label: ClassVar[str] = "Create the virtual resources again"
    base_timeout_s: ClassVar[float] = CHANGE_TIMEOUT_S

    def ask(self, draft: NeedsRecreation) -> CreateResources:
        """Ask for the stack of the instantiate request, at the present number of machines."""
        # The same command as for the first creation, so that infra-openstack has one way to create a stack.
        return CreateVnfResources().ask(draft.creation)

    def fold(self, draft: NeedsRecreation, reply: ResourcesCreated) -> Draft:
        """Keep what the stack holds."""
        return draft.with_resources(reply.resources)

    def fold_remains(self, draft: NeedsRecreation, remains: Mapping[str, object]) -> Draft:
        """Keep what the failed stack holds."""
        return draft.with_resources(StackResources.model_validate(remains))

    def undo(self, draft: NeedsRecreation) -> None:
        """A heal cannot be rolled back (api.md 4.3)."""


class NeedsStackGone(NeedsStackName, Protocol):
    """An operation that deletes a stack."""

    def without_stack(self) -> Draft:
        """Return the draft once nothing is left of the stack."""
        ...


@dataclass(frozen=True)
class DeleteVnfResources(Step[NeedsStackGone, ResourcesDeleted]):
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

    def ask(self, draft: NeedsStackGone) -> DeleteResources:
        """Ask for the deletion; GRACEFUL waits first."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id,
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            vim=draft.vim,
            graceful_wait_s=self.graceful_wait_s,
        )

    def fold(self, draft: NeedsStackGone, reply: ResourcesDeleted) -> Draft:
        """Nothing is left."""
        return draft.without_stack()

    def undo(self, draft: NeedsStackGone) -> None:
        """Deleted machines cannot be brought back: terminate has no rollback (api.md 4.3)."""
