"""Which call-back of a workload cluster a command asks for, and what it must say (capi.md CR-074)."""

from __future__ import annotations

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_events import Command
from kubevnfm_events.credentials import SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import RunScript

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.workloads.drafts import ChangeWorkloadDraft, InstantiateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.recreating import RecreateWorkloadDraft


def awaited_by(command: Command, operation_id: str, *, cluster_uid: str | None) -> AwaitedCallback | None:
    """Return the call-back that follows from a command to mgmt-executor; None: it asks for none.

    ``cluster_uid``: the uid of the Cluster object, unless the command has it; None: not known.
    """
    asked: Command | None = command
    if isinstance(command, RunScript):
        asked = None if command.sender is None else command.sender.sends or command.sender.withdraws
    match asked:
        case SendCredentials():
            return AwaitedCallback(
                event="ROTATED" if asked.is_rotation else "CREATED",
                operation_id=operation_id,
                vnfd_id=asked.vnfd_id,
                management_vim_id=asked.vim.vim_id,
                cluster_name=asked.cluster.name,
                cluster_namespace=asked.cluster.namespace,
                cluster_uid=cluster_uid,
                register_vim=asked.register_vim,
                vim_name=asked.vim_name,
                vim_default=asked.vim_default,
            )
        case WithdrawCredentials():
            return AwaitedCallback(
                event="DELETED",
                operation_id=operation_id,
                vnfd_id=asked.vnfd_id,
                management_vim_id=asked.vim.vim_id,
                cluster_name=asked.cluster.name,
                cluster_namespace=asked.cluster.namespace,
                cluster_uid=asked.cluster_uid or cluster_uid,
            )
    return None


def cluster_uid_of(draft: Draft) -> str | None:
    """Return the uid of the Cluster object whose credentials an operation sends or withdraws; None: it is not known."""
    match draft:
        # As infra-k8s has applied it, before anything was sent.
        case InstantiateWorkloadDraft() | RecreateWorkloadDraft() if draft.cluster_uid is not None:
            return draft.cluster_uid
        case InstantiateWorkloadDraft() | ChangeWorkloadDraft() if draft.credentials_sent is not None:
            return draft.credentials_sent.cluster_uid
    return None
