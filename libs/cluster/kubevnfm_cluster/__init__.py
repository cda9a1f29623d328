"""The parameters of a Kubernetes cluster: one model, its rules, and how the nodes of a role are chosen."""

from kubevnfm_cluster.parameters import (
    CLUSTER,
    ROOT,
    ClusterParameters,
    Drain,
    MasterGroup,
    Mirror,
    NodeChoice,
    NodeGroup,
    Proxy,
    Role,
    Timeouts,
    Vrrp,
)
from kubevnfm_cluster.request import RequestedCluster, StorageServer, read_cluster_parameters, read_request
from kubevnfm_cluster.rules import SharedAddress, check_networks, node_mask, refuse_shared_addresses

__all__ = [
    "CLUSTER",
    "ROOT",
    "ClusterParameters",
    "Drain",
    "MasterGroup",
    "Mirror",
    "NodeChoice",
    "NodeGroup",
    "Proxy",
    "RequestedCluster",
    "Role",
    "SharedAddress",
    "StorageServer",
    "Timeouts",
    "Vrrp",
    "check_networks",
    "node_mask",
    "read_cluster_parameters",
    "read_request",
    "refuse_shared_addresses",
]
