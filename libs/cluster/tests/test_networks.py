"""The networks of a cluster. Two modules had rules of their own before; each difference has a test here."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_cluster.rules import check_networks, node_mask
from kubevnfm_kit.errors import InvalidInput, Unprocessable


def cluster(*, k8s_node_cidr: str | None = None, **networks: object) -> ClusterParameters:
    login = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "x"}
    return read_cluster_parameters(
        {
            CLUSTER: {
                "script_path": "x.sh",
                "master_node": {**login, "cluster_cp_name": "CP1", **networks},
                "worker_node": login,
                "proxy": {"k8s_node_cidr": k8s_node_cidr},
            }
        }
    )


def test_host_bits_are_masked() -> None:
    assert cluster(pod_cidr="192.168.3.0/16").master_node.pod_cidr == IPv4Network("192.168.0.0/16")


@pytest.mark.parametrize("value", ["192.168.0.1", 3232235521, "fd00::/64", "pods", "10.0.0.0/33"])
def test_a_network_needs_a_prefix_length(value: object) -> None:
    """Difference: mgmt-executor took an address, and even a number, as a network of one address."""
    with pytest.raises(InvalidInput, match=rf"{ROOT}/master_node/pod_cidr: an IPv4 network such as"):
        cluster(pod_cidr=value)


@pytest.mark.parametrize(
    ("name", "value", "lengths"),
    [
        ("pod_cidr", "10.0.0.0/7", "/8 to /32"),
        ("cluster_cidr", "172.0.0.0/11", "/12 to /24"),
        ("cluster_cidr", "172.16.0.0/25", "/12 to /24"),
    ],
)
def test_pod_and_service_networks_have_the_sizes_that_kubernetes_takes(name: str, value: str, lengths: str) -> None:
    """Difference: mgmt-executor took pod networks of every size, and answered 422 instead of 400 for Services."""
    with pytest.raises(InvalidInput, match=f"with a prefix length from {lengths} expected") as caught:
        cluster(**{name: value})
    assert caught.value.status == 400


def test_pods_and_services_do_not_overlap() -> None:
    with pytest.raises(Unprocessable, match=r"pod_cidr: 10\.96\.0\.0/16 overlaps cluster_cidr 10\.96\.0\.0/12"):
        cluster(pod_cidr="10.96.0.0/16")


@pytest.mark.parametrize(("name", "value"), [("pod_cidr", "10.244.0.0/16"), ("cluster_cidr", "10.240.0.0/12")])
def test_neither_overlaps_the_nodes_network_of_the_proxy(name: str, value: str) -> None:
    """Difference: mgmt-executor did not compare with k8s_node_cidr."""
    with pytest.raises(Unprocessable, match=f"{name}: {value} overlaps the nodes' network k8s_node_cidr"):
        cluster(**{name: value}, k8s_node_cidr="10.244.7.0/24")


@pytest.mark.parametrize(
    ("taken", "name"),
    [("192.168.7.0/24", "pod_cidr"), ("192.0.0.0/8", "pod_cidr"), ("10.100.0.1/32", "cluster_cidr")],
)
def test_neither_overlaps_a_network_that_is_taken(taken: str, name: str) -> None:
    """Difference: lcm-api compared with the templates' subnets, mgmt-executor with those of the machines."""
    with pytest.raises(Unprocessable, match=f"{name}: .* overlaps subnet inside {taken}"):
        check_networks(
            cluster(), [("subnet outside", IPv4Network("203.0.113.0/24")), ("subnet inside", IPv4Network(taken))]
        )


@pytest.mark.parametrize(
    ("pods", "nodes", "mask"),
    [
        ("192.168.0.0/16", 51, 24),
        ("192.168.0.0/16", 256, 24),
        ("192.168.0.0/16", 257, 25),
        ("10.244.0.0/24", 1, 24),
        ("10.244.0.0/24", 3, 26),
        ("10.244.0.0/20", 17, 25),
        ("10.244.0.0/25", 1, 25),
        ("10.244.0.0/24", 0, 24),
        ("172.16.0.0/12", 7, 24),
        ("172.16.0.0/21", 7, 24),
        ("172.16.0.0/22", 7, 25),
        ("172.16.0.0/24", 7, 27),
    ],
)
def test_every_node_gets_its_part_of_the_pod_network(pods: str, nodes: int, mask: int) -> None:
    assert node_mask(IPv4Network(pods), nodes=nodes) == mask
    assert 2 ** (mask - IPv4Network(pods).prefixlen) >= nodes


@pytest.mark.parametrize(("pods", "nodes"), [("10.244.0.0/24", 17), ("10.244.0.0/29", 1), ("10.244.0.0/16", 4097)])
def test_a_pod_network_too_small_for_the_nodes_is_refused(pods: str, nodes: int) -> None:
    with pytest.raises(Unprocessable, match=f"pod_cidr: {pods} is too small for {nodes} nodes"):
        node_mask(IPv4Network(pods), nodes=nodes)
