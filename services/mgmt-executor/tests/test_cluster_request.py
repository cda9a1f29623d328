"""Clusters as they are requested: machines, names, and the parameters of the script."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters
from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster, no_proxy, read_cluster
from kubevnfm_mgmt_executor.domain.node_session import assignments
from kubevnfm_secrets import KeyRing, Secret, hide, opened, sealed

RING = KeyRing([b"0" * 32])
LOGIN = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "secret"}
MASTER = {**LOGIN, "cluster_cp_name": "CP1"}


def reveal(secret: Secret) -> str:
    return secret.reveal(RING)


def parameters(**changes: Any) -> Mapping[str, Any]:
    return {CLUSTER: {"script_path": "Scripts/x.sh", "master_node": MASTER, "worker_node": LOGIN} | changes}


def nodes(*, workers: int = 1, hosts: Sequence[str | None] = ()) -> Sequence[ManagedNode]:
    made = [ManagedNode(vnfc_id="m", role="master", ssh_address="10.10.0.5", nic_address="10.10.0.5")]
    for number in range(workers):
        address = f"10.10.0.{10 + number}"
        host = hosts[number] if number < len(hosts) else None
        made.append(
            ManagedNode(vnfc_id=f"w{number}", role="worker", ssh_address=address, nic_address=address, host=host)
        )
    return made


def a_request(*, given: Sequence[ManagedNode] | None = None, max_nodes: int | None = None, **changes: Any) -> RunPhase:
    return RunPhase(
        vnf_instance_id="instance",
        phase="instantiate_end",
        nodes=tuple(nodes() if given is None else given),
        driver="kubernetes",
        package=PackageRef(package_id="p", vnfd_id="d"),
        cluster=ClusterParameters.model_validate(parameters(**changes)[CLUSTER]),
        cluster_address="10.10.0.5",
        cluster_public_address="203.0.113.7",
        max_nodes=max_nodes,
    )


def a_cluster(*, given: Sequence[ManagedNode] | None = None, **changes: Any) -> Cluster:
    return read_cluster(a_request(given=given, **changes), reveal)


def test_a_command_of_version_0_1_0_has_its_cluster_in_the_parameters_alone() -> None:
    sent = a_request(x_timeouts={"command": 5})
    stored = sealed(hide(parameters(x_timeouts={"command": 5})), RING)
    cluster = read_cluster(sent.model_copy(update={"cluster": None, "parameters": opened(stored)}), reveal)
    assert cluster.parameters == read_cluster(sent, reveal).parameters
    assert cluster.login(cluster.workers[0]).password == "secret"


def test_rules_are_checked_again_because_the_sender_may_be_of_another_version() -> None:
    with pytest.raises(Unprocessable, match="x_kubernetes_version"):
        a_cluster(x_kubernetes_version="1.99.0")


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"master_node": {**MASTER, "password": "x\nreboot"}}, "master_node/password"),
        ({"proxy": {"https_proxy": "http://u:p@proxy:1$(reboot)"}}, "proxy/https_proxy"),
        ({"x_mirror": {"apt": "https://u:p@mirror/ reboot"}}, "x_mirror/apt"),
    ],
)
def test_the_form_of_a_sealed_secret_is_checked_when_it_is_opened(
    changes: Mapping[str, Any], field: str, is_older: bool
) -> None:
    params = opened(sealed(hide(parameters(**changes)), RING))
    cluster = None if is_older else ClusterParameters.model_validate(params[CLUSTER])
    command = a_request().model_copy(update={"cluster": cluster, "parameters": params})
    with pytest.raises(InvalidInput, match=f"^{ROOT}/{field}: .* expected") as caught:
        read_cluster(command, reveal)
    assert "reboot" not in str(caught.value)


def test_nodes_that_scaling_adds_later_count_for_the_pod_network() -> None:
    small = {**MASTER, "pod_cidr": "10.244.0.0/24"}
    assert a_cluster(master_node=small).node_mask == 25
    assert read_cluster(a_request(max_nodes=7, master_node=small), reveal).node_mask == 27
    with pytest.raises(Unprocessable, match="too small for 17 nodes"):
        read_cluster(a_request(max_nodes=17, master_node=small), reveal)


def test_the_networks_of_the_cluster_go_past_the_proxy_as_networks() -> None:
    """SEQ-138."""
    cluster = a_cluster(proxy={"http_proxy": "http://p:1", "no_proxy": "corp.example, 10.1.0.0/16"})
    assert no_proxy(cluster).split(",") == [
        "corp.example",
        "10.1.0.0/16",
        "192.168.0.0/16",
        "10.96.0.0/12",
        "127.0.0.1",
        "localhost",
        ".svc",
        ".cluster.local",
        "10.10.0.5",
        "10.10.0.0/24",
    ]


def test_two_clusters_on_one_network_have_other_numbers_and_passwords_of_vrrp() -> None:
    """SEQ-192: and a request can choose the number, where two are the same by chance."""
    first = a_cluster()
    second = replace(first, vnf_instance_id="another")
    (one, two) = (values.balance(cluster, cluster.masters[0]) for cluster in (first, second))
    for name in ("ROUTER_ID", "VRRP_PASSWORD"):
        assert one[name] != two[name]
    assert 1 <= int(one["ROUTER_ID"]) <= 255
    chosen = a_cluster(x_vrrp={"router_id": 7})
    assert values.balance(chosen, chosen.masters[0])["ROUTER_ID"] == "7"


def test_the_api_is_reached_by_its_public_address_which_the_certificate_names() -> None:
    cluster = a_cluster()
    assert cluster.server == "https://203.0.113.7:6443"
    assert cluster.endpoint == "10.10.0.5:6443"
    assert values.init(cluster)["CERT_SANS"].split() == ["10.10.0.5", "203.0.113.7", "master5"]


def test_workers_of_one_compute_host_are_labelled_together() -> None:
    cluster = a_cluster(given=nodes(workers=4, hosts=["cmp-1", "cmp-2", "cmp-1", None]))
    assert values.labels(cluster)["LABELS"].splitlines() == [
        "CIS-node=cmp-1|worker10 worker12",
        "CIS-node=cmp-2|worker11",
    ]


def test_workers_carry_the_zone_that_they_are_in() -> None:
    given = nodes(workers=1, hosts=["cmp-1"])
    cluster = a_cluster(given=tuple(node.model_copy(update={"zone": "zone-a"}) for node in given))
    assert values.labels(cluster)["LABELS"] == (
        "CIS-node=cmp-1 kubernetes.io/zone=zone-a topology.kubernetes.io/zone=zone-a|worker10"
    )


def test_a_compute_host_that_cannot_be_a_label_is_refused() -> None:
    with pytest.raises(Unprocessable, match="cannot be the value of label CIS-node"):
        values.labels(a_cluster(given=nodes(workers=1, hosts=["cmp 1;reboot"])))


def test_a_master_is_needed() -> None:
    with pytest.raises(Unprocessable, match="no master"):
        a_cluster(given=nodes()[1:])


@pytest.mark.parametrize("value", ["plain", "a'b", '"', "$(id)`id`${x}", "two\nlines", "\\", "ü ~ * !", ""])
def test_values_reach_the_script_as_they_are(value: str) -> None:
    script = assignments({"VALUE": value}).decode() + 'printf %s "$VALUE"'
    ran = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True)
    assert ran.stdout == value
    assert shlex.split(assignments({"V": "x y"}).decode()) == ["V=x y"]
