"""The address ranges of a cluster: pods, Services and nodes.

Source: kubernetes.io, "Cluster Networking": a cluster needs ranges for pods, Services and nodes that do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Final

from kubevnfm_kit.errors import Unprocessable

from kubevnfm_cluster.parameters import ROOT, ClusterParameters

USUAL_NODE_MASK: Final = 24
"""kube-controller-manager, --node-cidr-mask-size-ipv4: 254 addresses for the 110 pods that a kubelet allows."""
LONGEST_NODE_MASK: Final = 28
"""14 addresses: with fewer, the system's own pods fill a node."""


def check_networks(parameters: ClusterParameters, taken: Iterable[tuple[str, IPv4Network]] = ()) -> None:
    """Refuse a pod or Service network that overlaps the other, the nodes' network, or one of those that are taken.

    ``taken``: a phrase that names the network, and the network. Raises Unprocessable naming the field.
    """
    pods, services = parameters.master_node.pod_cidr, parameters.master_node.cluster_cidr
    others = list(taken)
    if parameters.proxy.k8s_node_cidr is not None:
        others.append(("the nodes' network k8s_node_cidr", parameters.proxy.k8s_node_cidr))
    for name, own, against in (
        ("pod_cidr", pods, [("cluster_cidr", services), *others]),
        ("cluster_cidr", services, others),
    ):
        for phrase, other in against:
            if own.overlaps(other):
                raise Unprocessable(f"{ROOT}/master_node/{name}", f"{own} overlaps {phrase} {other}")


def node_mask(pods: IPv4Network, *, nodes: int) -> int:
    """Return the prefix length of a node's part of the pod network, so that there are parts for ``nodes`` nodes.

    24 where that is enough, otherwise as long as needed (sequences.md 2.3): kubeadm's default of 24 would leave one
    node in a pod network of /24. Raises Unprocessable when a part would be smaller than /28.
    """
    if pods.prefixlen <= USUAL_NODE_MASK and 2 ** (USUAL_NODE_MASK - pods.prefixlen) >= nodes:
        return USUAL_NODE_MASK
    mask = pods.prefixlen + max(nodes - 1, 0).bit_length()
    if mask > LONGEST_NODE_MASK:
        raise Unprocessable(
            f"{ROOT}/master_node/pod_cidr",
            f"{pods} is too small for {nodes} nodes: each would get a /{mask}, a /{LONGEST_NODE_MASK} at least expected",
        )
    return mask
