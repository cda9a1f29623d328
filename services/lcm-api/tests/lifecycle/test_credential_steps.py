"""The steps about the credentials of a workload cluster: commands, facts and compensations."""

from __future__ import annotations

from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import (
    CredentialsSent,
    CredentialsWithdrawn,
    SendCredentials,
    WithdrawCredentials,
    WorkloadCluster,
)
from kubevnfm_events.objects import ObjectFacts
from kubevnfm_events.vim import DeregisterVim, RegisterReceived, VimRegistered
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import workload_connection
from kubevnfm_lcm_api.lifecycle.workloads.credential_steps import (
    RegisterWorkloadVim,
    SendClusterCredentials,
    WithdrawClusterCredentials,
)
from kubevnfm_lcm_api.lifecycle.workloads.drafts import InstantiateWorkloadDraft
from worlds.lcm_builders import a_workload_draft

CLUSTER = WorkloadCluster(name="edge", namespace="default")
SENT = CredentialsSent(
    cluster_uid="uid-1",
    endpoint="https://10.0.0.5:6443",
    contract="v1beta2",
    content_sha256="ab",
    auth_type="bearer_token",
)
VIM = VimRegistered(vim_id="vim-2", name="edge-vim", vim_type="ETSINFV.KUBERNETES.V_1", endpoint=SENT.endpoint)


OBJECT = ObjectFacts(
    api_version=CLUSTER.api_version, kind="Cluster", namespace=CLUSTER.namespace, name=CLUSTER.name, uid=""
)
DRAFT = a_workload_draft(
    vim=VimConnection(vim_id="vim-1"), release=Release(namespace="default", objects=(OBJECT,)), credentials_sent=None
)


def test_the_arguments_of_the_request_reach_the_sender_and_are_stored_with_the_plan() -> None:
    """CR-061, CR-069, CR-082."""
    step = SendClusterCredentials(
        mode="admin_kubeconfig",
        callback_url="https://own.example/x",
        register_vim=False,
        vim_name="v",
        vim_default=True,
    )
    assert SendClusterCredentials.from_arguments(step.arguments()) == step
    assert step.ask(DRAFT) == SendCredentials(
        vnf_instance_id="inst-1",
        vnfd_id=DRAFT.vnfd_id,
        vim=DRAFT.vim,
        cluster=CLUSTER,
        mode="admin_kubeconfig",
        callback_url="https://own.example/x",
        register_vim=False,
        vim_name="v",
        vim_default=True,
    )


def test_a_rollback_erases_what_was_sent_also_if_no_answer_came() -> None:
    """CR-112: the uid is then read in the management cluster."""
    step = SendClusterCredentials(callback_url="https://own.example/x")
    unanswered = step.undo(DRAFT)
    assert isinstance(unanswered, WithdrawCredentials)
    assert (unanswered.cluster_uid, unanswered.force) == (None, True)

    sent = step.fold(DRAFT, SENT)
    assert isinstance(sent, InstantiateWorkloadDraft)
    known = step.undo(sent)
    assert isinstance(known, WithdrawCredentials)
    assert (known.cluster_uid, known.endpoint, known.callback_url) == ("uid-1", SENT.endpoint, "https://own.example/x")
    assert step.forget(sent) == DRAFT
    assert SendClusterCredentials(is_rotation=True).undo(sent) is None


def test_the_registration_names_the_cluster_that_was_sent_and_its_vim_is_shown_without_access_data() -> None:
    """CR-079, CR-083."""
    sent = DRAFT.with_credentials_sent(SENT)
    step = RegisterWorkloadVim("edge-vim", vim_default=True)
    assert step.ask(sent) == RegisterReceived(
        vnf_instance_id="inst-1",
        cluster_name="edge",
        cluster_uid="uid-1",
        vim_name="edge-vim",
        vim_default=True,
        management_vim_id="vim-1",
    )
    folded = step.fold(sent, VIM)
    assert isinstance(folded, InstantiateWorkloadDraft)
    assert folded.workload_vim == VIM
    assert step.undo(sent) == DeregisterVim(vnf_instance_id="inst-1", force=True)
    shown = workload_connection(VIM)
    assert (shown.vim_id, shown.interface_info, shown.access_info) == ("vim-2", {"endpoint": SENT.endpoint}, {})


def test_a_termination_withdraws_by_force_only_if_it_is_forceful() -> None:
    """CR-105."""
    sent = DRAFT.with_credentials_sent(SENT)
    for is_forced in (False, True):
        step = WithdrawClusterCredentials("https://own.example/x", is_forced)
        command = step.ask(sent)
        assert (command.force, command.cluster_uid) == (is_forced, "uid-1")
        assert step.fold(sent, CredentialsWithdrawn(cluster_uid="uid-1")) == DRAFT
