"""Clusters with Kuryr: what the request must say, and the steps of instantiate and terminate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_cluster import ClusterParameters
from kubevnfm_csar import BaseHot, Vnfd, open_csar, read_base_hot, read_vnfd
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.domain.cluster_parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.domain.plan import Plan
from kubevnfm_lcm_api.lifecycle.domain.plans import instantiate_vm, terminate_vm
from lcm_builders import a_terminate_draft, an_instantiate_draft
from package_builder import TOP_HOT, package, v1_files

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


def phases(**more: str) -> dict[str, str]:
    return {"instantiate_end": "kuryr-kubernetes", **more}


def kinds(plan: Plan[Any]) -> list[str]:
    return [step.kind for step in plan.steps]


def test_the_network_is_prepared_before_the_installation_and_emptied_before_the_stack_goes() -> None:
    """SEQ-013, SEQ-017."""
    cluster = ClusterParameters.model_validate(
        {
            "script_path": "x",
            "master_node": {"ssh_cp_name": "a", "cluster_cp_name": "a", "username": "u", "password": "p"},
            "worker_node": {"ssh_cp_name": "b", "username": "u", "password": "p"},
            "kuryr_param": KURYR,
        }
    )
    draft = an_instantiate_draft(phases=phases(), cluster_parameters=cluster, cluster_vim_name="v")
    assert kinds(instantiate_vm(draft)) == [
        "create_resources",
        "prepare_kuryr_network",
        "install_kuryr_cluster",
        "register_vim",
    ]
    end = a_terminate_draft(phases=phases(terminate_start="kuryr-kubernetes"))
    assert kinds(terminate_vm(end))[:3] == ["stop_kuryr", "remove_kuryr_resources", "delete_resources"]
    missing = end.model_copy(update={"is_stack_missing": True})
    assert kinds(terminate_vm(missing))[:2] == ["remove_kuryr_resources", "delete_resources"]
