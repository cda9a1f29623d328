"""The cluster's address ranges: they may not overlap, and every node needs a piece of the pod network."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from math import ceil, log2
from typing import Final

from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_mgmt_executor.domain.kubernetes.parameters import ROOT, ClusterParameters

USUAL_MASK: Final = 24
"""kube-controller-manager, --node-cidr-mask-size-ipv4."""
LONGEST_MASK: Final = 28
"""Fewer than 16 addresses are of no use to a node."""

_MASTER: Final = f"additionalParams.{ROOT}.master_node"


def node_mask(pod_cidr: IPv4Network, *, nodes: int) -> int:
    """Return the prefix length of a node's piece of the pod network: 24, or longer in a network too small for that.

    Raises Unprocessable when ``nodes`` pieces would have to be smaller than a /28.
    """
    if pod_cidr.prefixlen <= USUAL_MASK and 2 ** (USUAL_MASK - pod_cidr.prefixlen) >= nodes:
        return USUAL_MASK
    mask = pod_cidr.prefixlen + ceil(log2(max(nodes, 1)))
    if mask > LONGEST_MASK:
        raise Unprocessable(f"{_MASTER}.pod_cidr", f"{pod_cidr} is too small for {nodes} nodes")
    return max(mask, USUAL_MASK)


def check_networks(parameters: ClusterParameters, nodes: Sequence[ManagedNode]) -> None:
    """Raise Unprocessable when pod network, service network and the nodes' addresses get into each other's way."""
    pods, services = parameters.master_node.pod_cidr, parameters.master_node.cluster_cidr
    if pods.overlaps(services):
        raise Unprocessable(f"{_MASTER}.pod_cidr", f"{pods} overlaps cluster_cidr {services}")
    if services.prefixlen < 12 or services.prefixlen > 24:
        raise Unprocessable(f"{_MASTER}.cluster_cidr", f"{services}: a network of /12 to /24 expected")
    for name, network in (("pod_cidr", pods), ("cluster_cidr", services)):
        for node in nodes:
            taken = _addresses_of(node)
            if taken is not None and network.overlaps(taken):
                there = f"{taken}, the network of the machine at {node.nic_address}"
                raise Unprocessable(f"{_MASTER}.{name}", f"{network} overlaps {there}")


def _addresses_of(node: ManagedNode) -> IPv4Network | None:
    if node.subnet_cidr:
        subnet = ip_network(node.subnet_cidr, strict=False)
        return subnet if isinstance(subnet, IPv4Network) else None
    address = ip_address(node.nic_address)
    return IPv4Network(address) if isinstance(address, IPv4Address) else None


def check_addresses(nodes: Sequence[ManagedNode]) -> None:
    """Raise Unprocessable when two nodes have one address, or an address is none."""
    for kind in ("ssh_address", "nic_address"):
        owner: dict[str, str] = {}
        for node in nodes:
            text = getattr(node, kind)
            try:
                address = str(ip_address(text))
            except ValueError as error:
                raise Unprocessable(f"nodes.{node.vnfc_id}.{kind}", "an IP address expected") from error
            if address in owner:
                raise Unprocessable(
                    f"nodes.{node.vnfc_id}.{kind}", f"{address} is the address of {owner[address]} already"
                )
            owner[address] = node.vnfc_id
