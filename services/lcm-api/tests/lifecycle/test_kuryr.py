"""Clusters with Kuryr: what the request must say, and the steps of instantiate and terminate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.archive import open_csar
from kubevnfm_csar.hot import BaseHot, read_base_hot
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_events.kuryr import AwaitTrunks
from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.clusters.parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.clusters.scaling import ScaleClusterDraft
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.plans import instantiate_vm, terminate_vm
from kubevnfm_secrets import hide
from packages.package_builder import TOP_HOT, package, v1_files
from worlds.cluster_moves import a_cluster_change, phase_of, run
from worlds.lcm_builders import (
    CLUSTER_PARAMETERS,
    KURYR_NETWORK,
    RESOURCES,
    a_server,
    a_terminate_draft,
    an_instantiate_draft,
)
from worlds.lcm_moves import granted

KURYR: Mapping[str, Any] = {
    "pod_security_group_ids": ["pods"],
    "pod_subnet_ids": ["pod_subnet"],
    "service_subnet_id": "service_subnet",
    "lbaas_id": "api",
    "worker_nodes_subnet_id": "7d5e2b1a-93a7-4c1c-8f5e-2b1f9f0e6a11",
    "router_id": "router",
}
ENTITIES = """\
  pods: {type: OS::Neutron::SecurityGroup}
  pod_subnet: {type: OS::Neutron::Subnet, properties: {network: net0, cidr: 10.200.0.0/16}}
  service_subnet: {type: OS::Neutron::Subnet, properties: {network: net0, cidr: 10.96.0.0/16}}
  router: {type: OS::Neutron::Router}
  api: {type: OS::Octavia::LoadBalancer, properties: {vip_subnet: {get_resource: service_subnet}}}
"""
FIELD = "additionalParams/k8s_cluster_installation_param/kuryr_param"


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Vnfd, BaseHot, frozenset[str]]:
    files = v1_files()
    files["BaseHOT/simple/cluster.yaml"] = TOP_HOT + ENTITIES
    csar = open_csar(package(tmp_path_factory.mktemp("package"), files))
    hot = read_base_hot(csar, "simple")
    assert hot is not None
    return read_vnfd(csar), hot, csar.names()


def check(
    taken_in: tuple[Vnfd, BaseHot, frozenset[str]],
    kuryr: object,
    *,
    is_driven: bool = True,
    has_hot: bool = True,
) -> CheckedCluster:
    vnfd, hot, names = taken_in
    login = {"username": "ubuntu", "password": "ubuntu"}
    master = {**login, "aspect_id": "master_instance", "ssh_cp_name": "masterNode_CP1"}
    cidrs = {"pod_cidr": "10.200.0.0/16", "cluster_cidr": "10.96.0.0/17"}
    cluster = {
        "script_path": "Scripts/install_k8s_cluster.sh",
        "master_node": {**master, "cluster_cp_name": "masterNode_CP1", **cidrs},
        "worker_node": {**login, "aspect_id": "worker_instance", "ssh_cp_name": "workerNode_CP2"},
        "kuryr_param": kuryr,
    }
    return check_cluster_parameters(
        {"k8s_cluster_installation_param": cluster},
        flavour=vnfd.flavour("simple"),
        base_hot=hot if has_hot else None,
        file_names=names,
        api_version="v1",
        has_user_data=True,
        has_kuryr_driver=is_driven,
    )


def test_the_subnets_of_pods_and_services_hold_the_clusters_networks(
    taken_in: tuple[Vnfd, BaseHot, frozenset[str]],
) -> None:
    """SEQ-013, SEQ-016."""
    assert check(taken_in, KURYR).parameters.kuryr_param is not None


@pytest.mark.parametrize(
    ("kuryr", "options", "field", "status", "expected"),
    [
        (None, {}, FIELD, 400, "missing: an object expected, as the VNFD names driver kuryr-kubernetes"),
        (KURYR, {"is_driven": False}, FIELD, 422, "the VNFD does not name driver kuryr-kubernetes"),
        # SEQ-014
        (KURYR, {"has_hot": False}, FIELD, 422, "TOSCA has neither the router nor the load balancer"),
        ({**KURYR, "lbaas_id": "absent"}, {}, f"{FIELD}/lbaas_id", 422, "has no resource absent; fitting: api"),
        ({**KURYR, "router_id": "pods"}, {}, f"{FIELD}/router_id", 422, "OS::Neutron::Router expected"),
        ({**KURYR, "pod_subnet_ids": ["x", "y"]}, {}, f"{FIELD}/pod_subnet_ids/0", 422, "fitting: pod_subnet"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_by_field(
    taken_in: tuple[Vnfd, BaseHot, frozenset[str]],
    kuryr: object,
    options: dict[str, bool],
    field: str,
    status: int,
    expected: str,
) -> None:
    """SEQ-014, SEQ-016."""
    with pytest.raises((InvalidInput, Unprocessable), match=expected) as refused:
        check(taken_in, kuryr, **options)
    assert (refused.value.field, refused.value.status) == (field, status)


def test_only_the_clusters_own_subnets_may_hold_its_networks(taken_in: tuple[Vnfd, BaseHot, frozenset[str]]) -> None:
    other = {**KURYR, "pod_subnet_ids": ["7d5e2b1a-93a7-4c1c-8f5e-2b1f9f0e6a12"]}
    with pytest.raises(Unprocessable, match=r"pod_cidr: 10\.200\.0\.0/16 overlaps subnet pod_subnet"):
        check(taken_in, other)


def a_cluster(**kuryr: Any) -> ClusterParameters:
    section = {**CLUSTER_PARAMETERS["k8s_cluster_installation_param"], "kuryr_param": {**KURYR, **kuryr}}
    return read_cluster_parameters({"k8s_cluster_installation_param": section})


PARAMETERS: Mapping[str, Any] = {
    "k8s_cluster_installation_param": {**CLUSTER_PARAMETERS["k8s_cluster_installation_param"], "kuryr_param": KURYR}
}


def phases(**more: str) -> dict[str, str]:
    return {"instantiate_end": "kuryr-kubernetes", **more}


def kinds(plan: Plan[Any]) -> list[str]:
    return [step.kind for step in plan.steps]


def test_the_network_is_prepared_before_the_installation_and_emptied_before_the_stack_goes() -> None:
    """SEQ-013, SEQ-017."""
    draft = an_instantiate_draft(phases=phases(), cluster_parameters=a_cluster(), cluster_vim_name="v")
    assert kinds(instantiate_vm(draft)) == [
        "create_resources",
        "prepare_kuryr_network",
        "install_kuryr_cluster",
        "register_vim",
    ]
    end = a_terminate_draft(
        phases=phases(terminate_start="kuryr-kubernetes"), parameters=hide(PARAMETERS), cluster_parameters=a_cluster()
    )
    assert kinds(terminate_vm(end))[:3] == ["stop_kuryr", "remove_kuryr_resources", "delete_resources"]
    # Also where a heal of the whole cluster has failed before it made the machines again.
    empty = RESOURCES.model_copy(update={"servers": ()})
    for change in ({"is_stack_missing": True}, {"resources": empty}):
        missing = end.model_copy(update=change)
        assert kinds(terminate_vm(missing))[:2] == ["remove_kuryr_resources", "delete_resources"]


def replaced(*names: str) -> StackResources:
    """Return the stack after the machines of these VNFCs were replaced."""
    servers = [
        server.model_copy(update={"vnfc_id": f"{server.vnfc_id}b", "server_id": f"{server.server_id}b"})
        if server.vnfc_id in names
        else server
        for server in RESOURCES.servers
    ]
    return RESOURCES.model_copy(update={"servers": tuple(servers)})


def a_kuryr_change(kind: Any, **known: Any) -> Any:
    return a_cluster_change(kind, **{"driver": "kuryr-kubernetes", "cluster_parameters": a_cluster(), **known})


def test_the_trunks_of_new_workers_are_waited_for_before_they_join() -> None:
    """C2k."""
    new = a_server("w3", "workerNode", "worker_instance", "10.10.0.7")
    grown = RESOURCES.model_copy(update={"servers": (*RESOURCES.servers, new)})
    out = a_kuryr_change(ScaleClusterDraft, counts={"masterNode": 1, "workerNode": 3})
    _, sent = run(granted(out), grown)
    assert [command.stepid for command in sent] == ["scale_resources", "await_new_trunks", "scale_end"]
    assert isinstance(sent[1].data, AwaitTrunks)
    assert sent[1].data.servers == ("server-w3",)
    assert phase_of(sent[2]).driver == "kuryr-kubernetes"

    without = out.model_copy(update={"cluster_parameters": a_cluster(pod_vif_driver="nested-macvlan")})
    _, sent = run(granted(without), grown)
    assert [command.stepid for command in sent] == ["scale_resources", "scale_end"]

    shrunk = RESOURCES.model_copy(update={"servers": RESOURCES.servers[:-1]})
    less = a_kuryr_change(ScaleClusterDraft, counts={"masterNode": 1, "workerNode": 1}, leaving=("server-w2",))
    _, sent = run(granted(less), shrunk)
    assert [command.stepid for command in sent] == ["scale_start", "scale_resources", "scale_end"]


def test_a_healed_worker_joins_once_its_trunk_is_ready() -> None:
    """E1, C2k."""
    _, sent = run(granted(a_kuryr_change(HealClusterDraft, servers=("server-w1",))), replaced("vnfc-w1"))
    assert [command.stepid for command in sent] == ["heal_start", "heal_resources", "await_new_trunks", "heal_end"]
    assert isinstance(sent[2].data, AwaitTrunks)
    assert sent[2].data.servers == ("server-w1b",)


@pytest.mark.parametrize("is_recreated", [True, False])
@pytest.mark.parametrize("has_old_nodes", [True, False])
def test_a_cluster_that_is_built_again_is_emptied_of_what_the_old_kuryr_has_made(
    *, is_recreated: bool, has_old_nodes: bool
) -> None:
    """E4: the new cluster gets a login of its own."""
    whole = a_kuryr_change(
        HealClusterDraft,
        servers=tuple(server.server_id for server in RESOURCES.servers),
        is_whole=True,
        is_recreated=is_recreated,
        has_old_nodes=has_old_nodes,
        cluster_vim_id="vim-2",
        cluster_vim_name="cluster-1",
    )
    _, sent = run(granted(whole), replaced("vnfc-m1", "vnfc-w1", "vnfc-w2"))
    stack = ["delete_resources", "recreate_resources", "restore_scale"] if is_recreated else ["heal_resources"]
    assert [command.stepid for command in sent] == [
        *(["stop_ill_kuryr"] if has_old_nodes else []),
        "remove_kuryr_resources",
        *stack,
        "prepare_kuryr_network",
        "heal_end",
        "register_vim",
    ]
    by_step = {command.stepid: command for command in sent}
    assert phase_of(by_step["heal_end"]).kuryr == KURYR_NETWORK
    if has_old_nodes:
        stop = phase_of(by_step["stop_ill_kuryr"])
        assert (stop.phase, stop.force) == ("terminate_start", True)
        assert [node.vnfc_id for node in stop.nodes] == ["vnfc-m1", "vnfc-w1", "vnfc-w2"]
