"""``kuryr_param``: its forms, defaults and rules (sequences.md 2.10)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_cluster.kuryr import KuryrParameters, is_uuid
from kubevnfm_cluster.parameters import CLUSTER, ROOT
from kubevnfm_cluster.request import read_cluster_parameters, read_request
from kubevnfm_kit.errors import InvalidInput, Unprocessable

KURYR: dict[str, Any] = {
    "pod_security_group_ids": ["pod_security_group"],
    "pod_subnet_ids": ["pod_subnet"],
    "service_subnet_id": "service_subnet",
    "lbaas_id": "api_balancer",
    "worker_nodes_subnet_id": "node_subnet",
}
AUTH = {"auth_url": "http://keystone/v3", "username": "u", "password": "hidden-word"}
LOGIN = {"username": "ubuntu", "password": "x"}


def request(**changes: Any) -> dict[str, Any]:
    """Return additionalParams; a change to None removes the attribute."""
    kuryr = {name: value for name, value in {**KURYR, **changes}.items() if value is not None}
    return {
        CLUSTER: {
            "script_path": "Scripts/install.sh",
            "master_node": {**LOGIN, "ssh_cp_name": "CP1", "cluster_cp_name": "CP1"},
            "worker_node": {**LOGIN, "ssh_cp_name": "CP2"},
            "kuryr_param": kuryr,
        }
    }


def read(**changes: Any) -> KuryrParameters:
    found = read_request(request(**changes)).kuryr_param
    assert found is not None
    return found


def test_what_is_left_out_has_the_documented_defaults() -> None:
    """SEQ-016."""
    found = read()
    assert (found.ovs_bridge, found.octavia_mode, found.pod_vif_driver) == ("br-int", "L3", "nested-vlan")
    assert (found.project_id, found.neutron_auth, found.link_iface) == (None, None, "eth0")
    assert found.has_trunks
    assert not read(pod_vif_driver="neutron-vif", worker_nodes_subnet_id=None).is_nested


def test_a_project_is_read_with_and_without_dashes() -> None:
    plain = "1f6f2c8c2a8b4cfb8d3f0e6b2d7a9c55"
    assert read(project_id=plain).project_id == read(project_id="1f6f2c8c-2a8b-4cfb-8d3f-0e6b2d7a9c55").project_id
    assert is_uuid(plain)


@pytest.mark.parametrize(
    ("change", "field", "status", "expected"),
    [
        ({"pod_security_group_ids": None}, "pod_security_group_ids", 400, "at least one UUID or name"),
        ({"pod_subnet_ids": []}, "pod_subnet_ids", 400, "at least one UUID or name"),
        ({"pod_subnet_ids": ["$(reboot)"]}, "pod_subnet_ids", 400, "at least one UUID or name"),
        ({"service_subnet_id": None}, "service_subnet_id", 400, "a UUID or the name of a resource"),
        ({"lbaas_id": None}, "lbaas_id", 400, "missing"),
        ({"project_id": "nfv"}, "project_id", 400, "a UUID expected"),
        ({"ovs_bridge": "br int"}, "ovs_bridge", 400, "the name of a bridge"),
        ({"octavia_mode": "L4"}, "octavia_mode", 400, "L2 or L3 expected"),
        ({"pod_vif_driver": "sriov"}, "pod_vif_driver", 400, "nested-vlan or nested-macvlan or neutron-vif"),
        ({"neutron_auth": {**AUTH, "password": "a\nb"}}, "neutron_auth/password", 400, "one line of text"),
        ({"neutron_auth": {**AUTH, "auth_url": "keystone"}}, "neutron_auth/auth_url", 400, "a URL"),
        ({"worker_nodes_subnet_id": None}, "worker_nodes_subnet_id", 422, "nested-vlan needs the nodes' subnet"),
        ({"external_svc_subnet_id": "s"}, "external_svc_net_id", 422, "missing"),
        ({"pod_subnet_ids": ["a", "a"]}, "pod_subnet_ids", 422, "listed twice"),
    ],
)
def test_a_wrong_value_is_refused_by_field(change: dict[str, Any], field: str, status: int, expected: str) -> None:
    with pytest.raises((InvalidInput, Unprocessable), match=expected) as refused:
        read(**change)
    assert (refused.value.field, refused.value.status) == (f"{ROOT}/kuryr_param/{field}", status)


def test_the_packages_install_script_cannot_be_asked_for() -> None:
    asked = request()
    asked[CLUSTER]["x_install_script"] = "package"
    with pytest.raises(Unprocessable, match="always installed by the driver's own script") as refused:
        read_request(asked)
    assert refused.value.field == f"{ROOT}/x_install_script"


def test_the_password_of_keystone_is_a_secret() -> None:
    found = read_cluster_parameters(request(neutron_auth=AUTH))
    assert "hidden-word" not in found.model_dump_json()
    assert "hidden-word" not in repr(found)


def test_an_installation_may_take_longer_with_kuryr() -> None:
    without = request()
    del without[CLUSTER]["kuryr_param"]
    with_kuryr = read_request(request()).install_limit_s(2)
    assert with_kuryr > read_request(without).install_limit_s(2)
