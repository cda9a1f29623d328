"""Clusters as they are asked for: parameters, networks, what the script is told."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

import pytest
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_mgmt_executor.domain.driver import PhaseRequest
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.networks import node_mask
from kubevnfm_mgmt_executor.domain.kubernetes.parameters import cluster_parameters
from kubevnfm_mgmt_executor.domain.kubernetes.request import ClusterRequest, cluster_request, no_proxy
from kubevnfm_mgmt_executor.domain.node_session import assignments

LOGIN = {"username": "ubuntu", "password": "secret"}


class NoPackage:
    async def read(self, path: str) -> bytes | None:
        return None


def parameters(**changes: Any) -> Mapping[str, Any]:
    given = {"script_path": "Scripts/x.sh", "master_node": LOGIN, "worker_node": LOGIN}
    return {"k8s_cluster_installation_param": given | changes}


def nodes(*, workers: int = 1, hosts: Sequence[str | None] = ()) -> Sequence[ManagedNode]:
    made = [ManagedNode(vnfc_id="m", role="master", ssh_address="10.10.0.5", nic_address="10.10.0.5")]
    for number in range(workers):
        address = f"10.10.0.{10 + number}"
        host = hosts[number] if number < len(hosts) else None
        made.append(
            ManagedNode(vnfc_id=f"w{number}", role="worker", ssh_address=address, nic_address=address, host=host)
        )
    return made


def a_cluster(*, given: Sequence[ManagedNode] | None = None, **changes: Any) -> ClusterRequest:
    return cluster_request(
        PhaseRequest(
            vnf_instance_id="instance",
            phase="instantiate_end",
            nodes=nodes() if given is None else given,
            package=NoPackage(),
            parameters=parameters(**changes),
            cluster_address="10.10.0.5",
            cluster_public_address="203.0.113.7",
        )
    )


def test_what_is_left_out_has_the_documented_defaults() -> None:
    cluster = a_cluster().parameters
    assert str(cluster.master_node.pod_cidr) == "192.168.0.0/16"
    assert str(cluster.master_node.cluster_cidr) == "10.96.0.0/12"
    assert (cluster.x_max_parallel_nodes, cluster.x_timeouts.ssh_ready, cluster.x_timeouts.node_install) == (
        10,
        600,
        2700,
    )


def test_host_bits_of_a_network_are_masked() -> None:
    cluster = a_cluster(master_node={**LOGIN, "pod_cidr": "192.168.3.0/16"})
    assert cluster.parameters.master_node.pod_cidr == IPv4Network("192.168.0.0/16")


def test_an_empty_proxy_is_none_and_each_works_alone() -> None:
    proxy = a_cluster(proxy={"http_proxy": "", "https_proxy": "https://proxy.example:3128"}).parameters.proxy
    assert proxy.http_proxy is None
    assert proxy.https_proxy == "https://proxy.example:3128"


@pytest.mark.parametrize("given", [{}, {"k8s_cluster_installation_param": []}, {"k8s_cluster_installation_param": "x"}])
def test_parameters_that_are_no_object_are_refused(given: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"additionalParams\.k8s_cluster"):
        cluster_parameters(given)


def test_an_error_never_quotes_the_value() -> None:
    with pytest.raises(InvalidInput) as caught:
        cluster_parameters(parameters(master_node={"username": "ubuntu", "password": "pass\nword"}))
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    ("pods", "count", "mask"),
    [("192.168.0.0/16", 51, 24), ("10.244.0.0/24", 1, 24), ("10.244.0.0/24", 3, 26), ("10.244.0.0/20", 17, 25)],
)
def test_the_nodes_piece_of_the_pod_network_fits(pods: str, count: int, mask: int) -> None:
    assert node_mask(IPv4Network(pods), nodes=count) == mask
    assert 2 ** (mask - IPv4Network(pods).prefixlen) >= count


def test_a_pod_network_too_small_for_the_nodes_is_refused() -> None:
    with pytest.raises(Unprocessable, match="too small for 17 nodes"):
        node_mask(IPv4Network("10.244.0.0/24"), nodes=17)


def test_the_networks_of_the_cluster_go_past_the_proxy_as_networks() -> None:
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
