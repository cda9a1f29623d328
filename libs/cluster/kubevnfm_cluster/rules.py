"""The rules between the values of a cluster, and between them and the machines.

Source of the rules for networks: kubernetes.io, "Cluster Networking": a cluster needs ranges for pods, Services and
nodes that do not overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, ip_address
from typing import Final

from kubevnfm_kit.errors import Unprocessable, VnfmError

from kubevnfm_cluster.kuryr import KURYR, check_kuryr
from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_cluster.registries import check_registries
from kubevnfm_cluster.storage import check_storage

FIRST_MINOR, LAST_MINOR = 28, 34
"""Kubernetes 1.28 is the first version in the community's package repositories by minor version."""
USUAL_NODE_MASK: Final = 24
"""kube-controller-manager, --node-cidr-mask-size-ipv4: 254 addresses for the 110 pods that a kubelet allows."""
LONGEST_NODE_MASK: Final = 28
"""14 addresses: with fewer, the system's own pods fill a node."""


def check_rules(parameters: ClusterParameters) -> None:
    """Refuse what cannot be installed, and values that contradict each other. Raises InvalidInput, Unprocessable."""
    release = parameters.x_kubernetes_version
    if release is not None:
        # Any patch is accepted: new patches appear after this list of minor versions was written.
        found = re.fullmatch(r"1\.(\d{1,3})\.\d{1,3}", release)
        if found is None or not FIRST_MINOR <= int(found[1]) <= LAST_MINOR:
            raise Unprocessable(
                f"{ROOT}/x_kubernetes_version", f"a version from 1.{FIRST_MINOR}.0 to 1.{LAST_MINOR}.x expected"
            )
    # Here and not in the model: the name is well-formed, so the answer is 422 and not 400.
    if parameters.x_cri != "containerd":
        raise Unprocessable(f"{ROOT}/x_cri", "this container runtime is not supported; containerd is")
    check_registries(parameters.private_registry_connection_info, path=ROOT)
    check_storage(parameters.storage_server, parameters.pv_registration_params, path=ROOT)
    if parameters.kuryr_param is not None:
        if parameters.x_install_script == "package":
            raise Unprocessable(
                f"{ROOT}/x_install_script", "clusters with Kuryr are always installed by the driver's own script"
            )
        check_kuryr(parameters.kuryr_param, path=f"{ROOT}/{KURYR}")
    check_networks(parameters)


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


class SharedAddress(VnfmError, code="shared-address", title="Two machines share an address"):
    """Two nodes would be reached at one address: two names mean the same machine, or a network has it twice."""

    def __init__(self, address: str, nodes: tuple[str, ...]) -> None:
        super().__init__(f"{address} is the address of {' and '.join(nodes)}")
        self.address, self.nodes = address, nodes


def refuse_shared_addresses(addresses: Iterable[tuple[str, str]]) -> None:
    """Refuse an address that two nodes have, in any spelling. ``addresses``: a node's name for errors, its address.

    Raises: SharedAddress; Unprocessable when a text is not an IP address.
    """
    nodes: dict[str, list[str]] = {}
    for node, text in addresses:
        try:
            # An IPv6 address has several spellings; only the parsed form is comparable.
            nodes.setdefault(str(ip_address(text)), []).append(node)
        except ValueError as error:
            raise Unprocessable(node, "an IP address expected") from error
    for address, users in nodes.items():
        if len(users) > 1:
            raise SharedAddress(address, tuple(users))
