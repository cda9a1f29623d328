"""Steps about the credentials of a workload cluster that Cluster API builds (capi.md, chapters 9 to 11).

Their place in an instantiation: after the wait for ControlPlaneInitialized `SendClusterCredentials`; after it
`RegisterWorkloadVim`, unless ``capi.register_vim`` is false (CR-085: then nothing is registered). The second one needs the facts of the
first.

In a heal that builds the cluster again: `ReleaseWorkloadVim` first, so that the VIM keeps its id, then
`WithdrawClusterCredentials`, the deletion of the Cluster, and the steps of an instantiation.

In a termination: `DeregisterClusterVim` of ``vims`` first (CR-104: it fails with 409 while other instances use the VIM, unless
forced; the VIM is no longer monitored afterwards), then `WithdrawClusterCredentials`, then the deletion of the Cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.credentials import (
    CredentialsMode,
    CredentialsSent,
    CredentialsWithdrawn,
    SendCredentials,
    WithdrawCredentials,
    WorkloadCluster,
)
from kubevnfm_events.vim import DeregisterVim, RegisterReceived, ReleaseVim, VimRegistered, VimReleased

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.workloads.drafts import WorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.recreating import NewClusterDraft


@dataclass(frozen=True)
class SendClusterCredentials(Step[WorkloadDraft, CredentialsSent]):
    """Read the kubeconfig Secret in the management cluster, and send credentials to the receiver (CR-059 to CR-078).

    Adds: the uid, the endpoint and the version of the cluster, and the hash of what was sent.
    Again: safe; a request with the same idempotency key changes nothing at the receiver (CR-078).
    Fails: the Secret is not as expected, the cluster does not answer within 120 s, or the receiver refuses.
    """

    mode: CredentialsMode = "service_account"
    cluster_role: str = "cluster-admin"
    callback_url: str | None = None
    """``capi.callback_url``. A request with a URL that contains a user name or a password is to be refused."""
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False
    is_rotation: bool = False
    """Whether earlier credentials are replaced: ROTATED."""

    kind: ClassVar[str] = "send_credentials"
    command: ClassVar[type[Command]] = SendCredentials
    label: ClassVar[str] = "Send the credentials of the workload cluster to the receiver"
    # 120 s for the cluster to answer, as many for the token, 5 min at most for the receiver, and what a restart takes.
    base_timeout_s: ClassVar[float] = 900.0

    def ask(self, draft: WorkloadDraft) -> SendCredentials:
        assert draft.workload_cluster is not None
        return SendCredentials(
            vnf_instance_id=draft.vnf_instance_id,
            vnfd_id=draft.vnfd_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            mode=self.mode,
            cluster_role=self.cluster_role,
            callback_url=self.callback_url,
            register_vim=self.register_vim,
            vim_name=self.vim_name or default_vim_name(draft.workload_cluster, draft.vnf_instance_id),
            vim_default=self.vim_default,
            is_rotation=self.is_rotation,
        )

    def fold(self, draft: WorkloadDraft, reply: CredentialsSent) -> Draft:
        """Keep the facts of the cluster."""
        return draft.with_credentials_sent(reply)

    def forget(self, draft: WorkloadDraft) -> Draft:
        """The receiver has erased them."""
        return draft.with_credentials_sent(None)

    def undo(self, draft: WorkloadDraft) -> WithdrawCredentials | None:
        """Have the receiver erase them; a receiver that is out of reach does not hold up the rollback."""
        # New credentials of a cluster that stays: the earlier ones are not restored, and these keep working.
        return None if self.is_rotation else _withdrawal(draft, self.callback_url, force=True)


@dataclass(frozen=True)
class RegisterWorkloadVim(Step[NewClusterDraft, VimRegistered]):
    """Register the workload cluster as a VIM with the credentials that the receiver has stored (CR-079 to CR-083).

    Adds: the VIM.
    Again: safe; the VIM is found by instance and uid of the cluster.
    Fails: the cluster does not answer within 5 min, its name belongs to another VIM (409), it is older than 1.25, or the receiver
    of kubevnfm has not got the credentials: ``callback_url`` leads to another one, so ``register_vim`` must be false.
    """

    vim_name: str | None = None
    vim_default: bool = False

    kind: ClassVar[str] = "register_workload_vim"
    command: ClassVar[type[Command]] = RegisterReceived
    label: ClassVar[str] = "Register the workload cluster as a VIM"
    # The tries of CR-080.
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: NewClusterDraft) -> RegisterReceived:
        """Ask for the registration, and so for its outcome."""
        assert draft.workload_cluster is not None
        assert draft.credentials_sent is not None
        return RegisterReceived(
            vnf_instance_id=draft.vnf_instance_id,
            cluster_name=draft.workload_cluster.name,
            cluster_uid=draft.credentials_sent.cluster_uid,
            vim_name=self.vim_name or default_vim_name(draft.workload_cluster, draft.vnf_instance_id),
            vim_default=self.vim_default,
            management_vim_id=draft.vim.vim_id,
        )

    def fold(self, draft: NewClusterDraft, reply: VimRegistered) -> Draft:
        """Keep the VIM."""
        return draft.with_workload_vim(reply)

    def undo(self, draft: NewClusterDraft) -> DeregisterVim:
        """Remove the VIM."""
        # By owner, as the id is unknown if the registration was not answered. Forced, also if another instance uses the
        # VIM: the cluster is deleted next.
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, force=True)


@dataclass(frozen=True)
class ReleaseWorkloadVim(Step[WorkloadDraft, VimReleased]):
    """Separate the VIM from the workload cluster, which is built again; the VIM waits for the new one (CR-117).

    Again: safe.
    Fails: another instance uses the VIM (409).
    """

    kind: ClassVar[str] = "release_workload_vim"
    command: ClassVar[type[Command]] = ReleaseVim
    label: ClassVar[str] = "Keep the VIM for the cluster that is built again"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: WorkloadDraft) -> ReleaseVim:
        assert draft.workload_cluster is not None
        return ReleaseVim(vnf_instance_id=draft.vnf_instance_id, cluster_name=draft.workload_cluster.name)

    def fold(self, draft: WorkloadDraft, reply: VimReleased) -> None:
        """Nothing to keep: the id stays."""

    def undo(self, draft: WorkloadDraft) -> None:
        """Heal has no rollback (api.md 4.3)."""


@dataclass(frozen=True)
class WithdrawClusterCredentials(Step[WorkloadDraft, CredentialsWithdrawn]):
    """Send DELETED to the receiver, which erases the credentials (CR-072, CR-105).

    Again: safe.
    Fails: the receiver refuses or does not answer, unless the termination is FORCEFUL.
    """

    callback_url: str | None = None
    """As it was when the credentials were sent."""
    is_forced: bool = False

    kind: ClassVar[str] = "withdraw_credentials"
    command: ClassVar[type[Command]] = WithdrawCredentials
    label: ClassVar[str] = "Have the receiver erase the credentials of the workload cluster"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: WorkloadDraft) -> WithdrawCredentials:
        return _withdrawal(draft, self.callback_url, force=self.is_forced)

    def fold(self, draft: WorkloadDraft, reply: CredentialsWithdrawn) -> Draft:
        """The receiver has erased them."""
        return draft.with_credentials_sent(None)

    def undo(self, draft: WorkloadDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""


def default_vim_name(cluster: WorkloadCluster, vnf_instance_id: str) -> str:
    """Return the name of a VIM for which the request has none (capi.md chapter 7)."""
    return f"{cluster.name}-{vnf_instance_id[:8]}"


def _withdrawal(draft: WorkloadDraft, callback_url: str | None, *, force: bool) -> WithdrawCredentials:
    assert draft.workload_cluster is not None
    sent = draft.credentials_sent
    return WithdrawCredentials(
        vnf_instance_id=draft.vnf_instance_id,
        vnfd_id=draft.vnfd_id,
        vim=draft.vim,
        cluster=draft.workload_cluster,
        # Unknown if the step that sends them was not answered: then it is read in the management cluster.
        cluster_uid=None if sent is None else sent.cluster_uid,
        endpoint="" if sent is None else sent.endpoint,
        callback_url=callback_url,
        force=force,
    )
