"""The step that registers a cluster as a VIM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command, VimConnection
from kubevnfm_events.vim import DeregisterVim, RegisterVim, VimRegistered
from kubevnfm_sol.vim import KUBERNETES

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.cluster_drafts import ClusterBuildDraft


@dataclass(frozen=True)
class RegisterClusterVim(Step[ClusterBuildDraft, VimRegistered]):
    """Register the finished cluster as a VIM (sequences.md M18, first half; the second is the draft's ``completed``).

    Adds: the VIM.
    Again: safe; upsert by (instance, name).
    Fails: the name belongs to another VIM; the cluster does not answer.
    """

    kind: ClassVar[str] = "register_vim"
    command: ClassVar[type[Command]] = RegisterVim
    label: ClassVar[str] = "Register the cluster as a VIM"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: ClusterBuildDraft) -> RegisterVim:
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
            # The owner: terminate and rollback remove the VIMs with this id.
            extra={"vnf_instance_id": draft.vnf_instance_id},
            vim_id=draft.wanted_vim_id,
        )

    def fold(self, draft: ClusterBuildDraft, reply: VimRegistered) -> Draft:
        return draft.with_cluster_vim(reply)

    def undo(self, draft: ClusterBuildDraft) -> DeregisterVim:
        """Remove the VIM by owner and name, as its id is unknown if the registration was not answered."""
        # Forced, also if another instance uses the VIM: the machines of the cluster are deleted next.
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, name=draft.cluster_vim_name, force=True)
