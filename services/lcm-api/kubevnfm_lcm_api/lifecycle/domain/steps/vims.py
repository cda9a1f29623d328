"""Steps that vim-registry does."""

from __future__ import annotations

from typing import ClassVar

from kubevnfm_events import Event, VimConnection
from kubevnfm_events.vim import DeregisterVim, RegisterVim, VimDeregistered, VimRegistered
from kubevnfm_sol.vim import KUBERNETES

from kubevnfm_lcm_api.lifecycle.domain.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step


class RegisterClusterVim(Step[InstantiateVmDraft, VimRegistered]):
    """Register the finished cluster as a VIM (sequences.md M18, first half; the second is the draft's ``completed``).

    Needs: ``cluster``. Adds: ``cluster_vim``.
    Again: safe; upsert by (instance, name).
    Fails: the name belongs to another VIM; the cluster does not answer.
    """

    name: ClassVar[str] = "register_vim"
    title: ClassVar[str] = "Register the cluster as a VIM"
    timeout_s: ClassVar[float] = 600.0
    reply: ClassVar[type[Event]] = VimRegistered

    def ask(self, draft: InstantiateVmDraft) -> RegisterVim:
        """Ask for the registration with the service account's token."""
        assert draft.cluster is not None
        assert draft.cluster_vim_name is not None
        cluster = draft.cluster
        access: dict[str, object] = {"bearer_token": cluster.bearer_token, "ssl_ca_cert_hash": cluster.ssl_ca_cert_hash}
        if cluster.certificate_key is not None:
            access["certificate_key"] = cluster.certificate_key
        return RegisterVim(
            vnf_instance_id=draft.vnf_instance_id,
            name=draft.cluster_vim_name,
            connection=VimConnection(
                vim_type=KUBERNETES,
                interface_info={"endpoint": cluster.server, "ssl_ca_cert": cluster.ssl_ca_cert},
                access_info=access,
            ),
            extra={"vnf_instance_id": draft.vnf_instance_id},
        )

    def fold(self, draft: InstantiateVmDraft, reply: VimRegistered) -> InstantiateVmDraft:
        """Keep the VIM's id."""
        return draft.model_copy(update={"cluster_vim": reply})

    def undo(self, draft: InstantiateVmDraft) -> DeregisterVim:
        """Remove the row by owner and name, registered or half registered."""
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, name=draft.cluster_vim_name, force=True)


class DeregisterClusterVim(Step[TerminateVmDraft, VimDeregistered]):
    """Remove the cluster's VIM and its access data, after the machines are gone (sequences.md D1, SEQ-035).

    Again: safe.
    Fails: another instance uses the VIM and the termination is GRACEFUL.
    """

    name: ClassVar[str] = "deregister_vim"
    title: ClassVar[str] = "Remove the cluster's VIM"
    timeout_s: ClassVar[float] = 300.0
    reply: ClassVar[type[Event]] = VimDeregistered

    def ask(self, draft: TerminateVmDraft) -> DeregisterVim:
        """Ask for the removal of every VIM that the instance owns."""
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, force=draft.is_forceful)

    def fold(self, draft: TerminateVmDraft, reply: VimDeregistered) -> TerminateVmDraft:
        """Nothing to keep."""
        return draft

    def undo(self, draft: TerminateVmDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
