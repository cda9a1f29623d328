"""The phases of a management driver: the command carries the cluster as the request was read."""

from __future__ import annotations

import pytest
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_START, RunPhase
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import RunDriverPhase
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_secrets import hide
from kubevnfm_sol.granting import Grant
from worlds.lcm_builders import (
    CLUSTER_PARAMETERS,
    RESOURCES,
    RING,
    a_terminate_draft,
    an_instance,
    an_instantiate_draft,
)

CLUSTER = "k8s_cluster_installation_param"
READ = read_cluster_parameters(CLUSTER_PARAMETERS)


def command(draft: InstantiateVmDraft) -> RunPhase:
    return RunDriverPhase(INSTANTIATE_END).ask(draft)


def test_the_command_carries_what_was_read_at_the_request() -> None:
    draft = an_instantiate_draft(resources=RESOURCES, cluster_parameters=READ, parameters={})
    stored = InstantiateVmDraft.from_document(draft.document(RING))
    sent = command(stored)
    assert sent.cluster is not None
    assert sent.cluster.worker_node.password is not None
    assert sent.cluster.worker_node.password.reveal(RING) == "ubuntu"
    assert sent.cluster.model_dump(mode="json") == READ.model_dump(mode="json")
    assert {node.role for node in sent.nodes} == {"master", "worker"}


def test_an_operation_that_version_0_1_0_stored_is_read_from_its_parameters() -> None:
    document = an_instantiate_draft(resources=RESOURCES).document(RING)
    assert "cluster_parameters" not in document
    sent = command(InstantiateVmDraft.from_document(document))
    assert sent.cluster is not None
    assert sent.cluster.worker_node.password is not None
    assert sent.cluster.worker_node.password.reveal(RING) == "ubuntu"
    assert sent.parameters[CLUSTER]["script_path"] == "Scripts/install.sh"


def test_a_termination_of_an_earlier_version_is_read_from_its_parameters() -> None:
    drivers = {"instantiate_end": "kubernetes", "terminate_start": "kubernetes"}
    document = a_terminate_draft(parameters=hide(CLUSTER_PARAMETERS), phases=drivers).document(RING)
    assert "cluster_parameters" not in document
    sent = RunDriverPhase(TERMINATE_START).ask(TerminateVmDraft.from_document(document))
    assert sent.cluster is not None
    assert {node.role for node in sent.nodes} == {"master", "worker"}


def test_an_instance_stores_the_cluster_that_was_instantiated() -> None:
    """An instance of an earlier version has it in its parameters alone."""
    drivers = {"instantiate_end": "kubernetes"}
    draft = an_instantiate_draft(resources=RESOURCES, phases=drivers, cluster_parameters=READ)
    document = draft.completed(an_instance()).document(RING)
    stored = document["internal"].pop("cluster")
    of_now = InstanceRecord.from_document({**document, "internal": {**document["internal"], "cluster": stored}})
    for record in (of_now, InstanceRecord.from_document(document)):
        assert record.internals.cluster is not None
        assert record.internals.cluster.worker_node.password is not None
        assert record.internals.cluster.worker_node.password.reveal(RING) == "ubuntu"


def test_a_vnf_that_is_not_a_cluster_has_other_nodes_whatever_its_parameters_are() -> None:
    draft = a_terminate_draft(parameters={CLUSTER: {"script_path": 7}}, phases={"terminate_start": "kubernetes"})
    sent = RunDriverPhase(TERMINATE_START).ask(draft)
    assert sent.cluster is None
    assert {node.role for node in sent.nodes} == {"other"}


def test_a_grant_replaces_the_cluster_of_the_request() -> None:
    """SOL003: entries of a grant's additionalParams replace those of the request."""
    draft = an_instantiate_draft(resources=RESOURCES, cluster_parameters=READ)
    section = {**CLUSTER_PARAMETERS[CLUSTER], "x_max_parallel_nodes": 3}
    grant = Grant(id="g", vnf_instance_id="i", vnf_lcm_op_occ_id="o", additional_params={CLUSTER: section})
    changed = draft.granted(grant, {})
    assert isinstance(changed, InstantiateVmDraft)
    sent = command(changed)
    assert sent.cluster is not None
    assert sent.cluster.x_max_parallel_nodes == 3

    worker = {**section["worker_node"], "password": "two\nlines"}
    for changes, reason in (
        ({"x_max_parallel_nodes": 0}, "x_max_parallel_nodes: a whole number from 1 to 100 expected"),
        ({"worker_node": worker}, "worker_node/password: one line of text expected"),
    ):
        # A grant that was received has hidden secrets; their form is checked all the same.
        unusable = grant.model_copy(update={"additional_params": hide({CLUSTER: {**section, **changes}})})
        with pytest.raises(GrantUnusable, match=reason):
            draft.granted(unusable, {})


def test_parameters_that_no_longer_fit_the_rules_are_left_to_the_driver_which_names_their_field() -> None:
    broken = hide({CLUSTER: {**CLUSTER_PARAMETERS[CLUSTER], "x_kubernetes_version": "1.99.0"}})
    document = an_instantiate_draft(resources=RESOURCES, parameters=broken).document(RING)
    sent = command(InstantiateVmDraft.from_document(document))
    assert sent.cluster is None
    with pytest.raises(InvalidInput, match=f"additionalParams/{CLUSTER}/x_kubernetes_version"):
        read_cluster_parameters(sent.parameters)


@pytest.mark.parametrize(("node_install", "seconds"), [(1, 7200.0), (86_400, 264_600.0)])
def test_the_phase_has_the_time_that_the_requests_limits_add_up_to(node_install: int, seconds: float) -> None:
    cluster = READ.model_copy(update={"x_timeouts": READ.x_timeouts.model_copy(update={"node_install": node_install})})
    steps = SEQUENCES.planned(an_instantiate_draft(cluster_parameters=cluster))
    assert {step.id: step.timeout_s for step in steps}["instantiate_end"] == seconds
