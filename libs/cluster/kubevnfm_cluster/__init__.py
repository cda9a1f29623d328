"""The parameters of a Kubernetes cluster: one model, its rules, and how the nodes of a role are chosen."""

from kubevnfm_cluster.features import Feature, RequestedCluster, StorageServer
from kubevnfm_cluster.networks import check_networks, node_mask
from kubevnfm_cluster.nodes import NodeChoice, SharedAddress, refuse_shared_addresses
from kubevnfm_cluster.parameters import (
    CLUSTER,
    ROOT,
    ClusterParameters,
    Drain,
    MasterGroup,
    Mirror,
    NodeGroup,
    Proxy,
    Timeouts,
    Vrrp,
)
from kubevnfm_cluster.request import check_rules, read_cluster_parameters, read_request

__all__ = [
    "CLUSTER",
    "ROOT",
    "ClusterParameters",
    "Drain",
    "Feature",
    "MasterGroup",
    "Mirror",
    "NodeChoice",
    "NodeGroup",
    "Proxy",
    "RequestedCluster",
    "SharedAddress",
    "StorageServer",
    "Timeouts",
    "Vrrp",
    "check_networks",
    "check_rules",
    "node_mask",
    "read_cluster_parameters",
    "read_request",
    "refuse_shared_addresses",
]
