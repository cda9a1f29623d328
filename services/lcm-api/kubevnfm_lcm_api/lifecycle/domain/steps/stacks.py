"""Steps that infra-openstack does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kubevnfm_events import Event
from kubevnfm_events.infra import CreateResources, DeleteResources, ResourcesCreated, ResourcesDeleted, StackResources

from kubevnfm_lcm_api.lifecycle.domain.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step

STACK_TIMEOUT_S = 1200.0
"""Heat's own deadline; Tacker's default of 20 minutes, which existing packages count on."""


class CreateVnfResources(Step[InstantiateVmDraft, ResourcesCreated]):
    """Create the virtual resources of a VNF (sequences.md A1).

    Needs: package, VIM, request. Adds: ``resources``.
    Again: safe; infra-openstack goes on with the stack that carries the instance's tag.
    Fails: QuotaExceeded, StackFailed, user data failures at once; VimUnavailable when the tries are used up.
    """

    name: ClassVar[str] = "create_resources"
    title: ClassVar[str] = "Create the virtual resources"
    timeout_s: ClassVar[float] = STACK_TIMEOUT_S + 300.0
    reply: ClassVar[type[Event]] = ResourcesCreated

    def ask(self, draft: InstantiateVmDraft) -> CreateResources:
        """Ask for the stack."""
        return CreateResources(
            vnf_instance_id=draft.vnf_instance_id,
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

    def fold(self, draft: InstantiateVmDraft, reply: ResourcesCreated) -> InstantiateVmDraft:
        """Keep what the stack holds."""
        return draft.model_copy(update={"resources": reply.resources})

    def keep_remains(self, draft: InstantiateVmDraft, remains: Mapping[str, object]) -> InstantiateVmDraft:
        """Keep what the failed stack holds; a retry makes the stack anew and replaces it."""
        return draft.model_copy(update={"resources": StackResources.model_validate(remains)})

    def forget(self, draft: InstantiateVmDraft) -> InstantiateVmDraft:
        """The stack is gone."""
        return draft.model_copy(update={"resources": None})

    def undo(self, draft: InstantiateVmDraft) -> DeleteResources:
        """Delete by tag: half a stack goes too."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id, tag=draft.vnf_instance_id, stack_name=draft.stack_name, vim=draft.vim
        )


class DeleteVnfResources(Step[TerminateVmDraft, ResourcesDeleted]):
    """Delete the VNF's stack and the images made for it (sequences.md A9).

    Again: safe; what is gone is gone.
    """

    name: ClassVar[str] = "delete_resources"
    title: ClassVar[str] = "Delete the virtual resources"
    timeout_s: ClassVar[float] = STACK_TIMEOUT_S + 600.0
    reply: ClassVar[type[Event]] = ResourcesDeleted

    def ask(self, draft: TerminateVmDraft) -> DeleteResources:
        """Ask for the deletion; GRACEFUL waits first."""
        return DeleteResources(
            vnf_instance_id=draft.vnf_instance_id,
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            vim=draft.vim,
            graceful_wait_s=draft.graceful_wait_s,
        )

    def fold(self, draft: TerminateVmDraft, reply: ResourcesDeleted) -> TerminateVmDraft:
        """Nothing is left."""
        return draft.model_copy(update={"is_gone": True})

    def undo(self, draft: TerminateVmDraft) -> None:
        """Nothing brings deleted machines back: terminate has no rollback (api.md 4.3)."""
