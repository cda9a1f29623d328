"""Values of a later request in place of those of the instantiation."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_cluster.overrides import with_overrides
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import KeyRing, Secret, opened, sealed

STORED: dict[str, Any] = {
    CLUSTER: {
        "script_path": "Scripts/install.sh",
        "master_node": {
            "ssh_cp_name": "CP1",
            "cluster_cp_name": "CP1",
            "username": "ubuntu",
            "password": Secret("first"),
            "pod_cidr": "192.168.0.0/16",
        },
        "worker_node": {"ssh_cp_name": "CP2", "username": "ubuntu", "password": Secret("second"), "ssh_port": 2222},
        "x_timeouts": {"drain": 30, "command": 20},
        "private_registry_connection_info": [
            {"connection_type": "1", "server": "r:5000", "username": "u", "password": Secret.from_sealed("v1.a.b")}
        ],
    }
}


def given(**section: Any) -> dict[str, Any]:
    return {CLUSTER: section}


RING = KeyRing.from_text(KeyRing.new_key())


def stored() -> dict[str, Any]:
    """Return the additionalParams as a document has them: each one has seals of its own."""
    read: dict[str, Any] = opened(sealed(STORED, RING))
    return read


def overridden(request: dict[str, Any]) -> ClusterParameters:
    """Return the cluster, whose parsed form and additionalParams are stored apart."""
    return with_overrides(read_cluster_parameters(stored()), stored(), request)


def test_without_values_the_stored_ones_hold() -> None:
    """W-41: no password has to be sent again."""
    found = overridden({"colour": "blue"})
    assert found.worker_node.ssh_port == 2222
    assert found.worker_node.password is not None


def test_the_same_parameters_again_are_accepted() -> None:
    """5.1: packages for Tacker's v2 API send all of them in every request."""
    again = {**STORED[CLUSTER], "master_node": {**STORED[CLUSTER]["master_node"], "pod_cidr": "192.168.3.0/16"}}
    assert overridden({CLUSTER: again}).model_dump(mode="json") == overridden({}).model_dump(mode="json")


def test_attributes_that_a_request_may_change_are_changed_one_by_one() -> None:
    changes = {"x_drain": {"force": True}, "x_max_parallel_nodes": 3, "x_install_script": "package"}
    found = overridden(given(x_timeouts={"drain": 5}, **changes))
    assert (found.x_timeouts.drain, found.x_timeouts.command) == (5, 20)
    assert found.x_drain.force
    assert (found.x_max_parallel_nodes, found.x_install_script) == (3, "package")


def test_a_registry_may_have_a_new_login_since_the_instantiation() -> None:
    registry = {"connection_type": 1, "server": "r:5000", "username": "other", "password": "new"}
    found = overridden(given(private_registry_connection_info=[registry]))
    (read,) = found.private_registry_connection_info
    assert (read.username, read.password) == ("other", Secret("new"))


def test_a_login_replaces_the_stored_one_as_a_whole() -> None:
    found = overridden({"worker_node_username": "admin", "worker_node_password": "new"})
    assert found.worker_node.username == "admin"
    assert found.worker_node.ssh_port == 2222
    assert found.master_node.username == "ubuntu"
    other = overridden(given(worker_node={"username": "root", "password": "new"}))
    assert other.worker_node.username == "root"


@pytest.mark.parametrize(
    ("change", "secret"),
    [
        ({"username": "root"}, "worker_node/password"),
        ({"ssh_port": 22}, "worker_node/password"),
        ({"bastion": {"host": "attacker.example", "username": "u", "password": "p"}}, "worker_node/password"),
    ],
)
def test_a_stored_password_is_for_its_user_port_and_bastion_only(change: dict[str, Any], secret: str) -> None:
    with pytest.raises(InvalidInput, match="required again") as caught:
        overridden(given(worker_node=change))
    assert caught.value.field == f"additionalParams/{CLUSTER}/{secret}"
    assert overridden(given(worker_node={**change, "password": "new"})).worker_node.password == Secret("new")


def test_an_override_of_a_cluster_with_kuryr_is_no_change_of_its_login() -> None:
    login = {"auth_url": "http://keystone/v3", "username": "u", "password": Secret("third")}
    kuryr = {
        "pod_security_group_ids": ["pods"],
        "pod_subnet_ids": ["pod_subnet"],
        "service_subnet_id": "service_subnet",
        "lbaas_id": "api_balancer",
        "worker_nodes_subnet_id": "node_subnet",
        "neutron_auth": login,
    }
    parsed, kept_beside = ({CLUSTER: {**stored()[CLUSTER], "kuryr_param": opened(sealed(kuryr, RING))}} for _ in "ab")
    present = read_cluster_parameters(parsed)
    assert present.kuryr_param != read_cluster_parameters(kept_beside).kuryr_param, "two seals of one password"
    assert with_overrides(present, kept_beside, given(x_max_parallel_nodes=3)).x_max_parallel_nodes == 3


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (given(master_node={"pod_cidr": "172.20.0.0/16"}), "master_node/pod_cidr"),
        (given(worker_node={"ssh_cp_name": "CP9"}), "worker_node/ssh_cp_name"),
        (given(worker_node={"vdu_id": "other"}), "worker_node/vdu_id"),
        (given(vim_name="other"), "vim_name"),
        (given(x_kubernetes_version="1.32.1"), "x_kubernetes_version"),
        (given(private_registry_connection_info=[]), "private_registry_connection_info"),
        (
            given(private_registry_connection_info=[{"connection_type": 1, "server": "other:5000"}]),
            "private_registry_connection_info",
        ),
        (given(helm_installation_script_path="Scripts/helm.sh"), "helm_installation_script_path"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_describes_the_cluster_cannot_be_changed(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(Unprocessable) as caught:
        overridden(asked)
    assert caught.value.field.endswith(f"{CLUSTER}/{field}")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({CLUSTER: "text"}, CLUSTER),
        (given(x_timeouts={"drain": 0}), "x_timeouts/drain"),
        ({"worker_node_username": "ubuntu"}, "worker_node_password"),
        ({"worker_node_password": "x"}, "worker_node_username"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_malformed_values_are_named(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        overridden(asked)
    assert caught.value.field.endswith(field)
