"""A cluster as it is asked for: parameters, machines and their names, checked before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_address

from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_mgmt_executor.domain.driver import PhaseRequest
from kubevnfm_mgmt_executor.domain.errors import PhaseUnsupported
from kubevnfm_mgmt_executor.domain.kubernetes.networks import check_addresses, check_networks, node_mask
from kubevnfm_mgmt_executor.domain.kubernetes.parameters import ClusterParameters, cluster_parameters
from kubevnfm_mgmt_executor.domain.names import node_names

API_PORT = 6443


@dataclass(frozen=True)
class ClusterRequest:
    """Everything about the cluster that is known before the first login."""

    vnf_instance_id: str
    parameters: ClusterParameters
    master: ManagedNode
    workers: Sequence[ManagedNode]
    name_by_vnfc: Mapping[str, str]
    address: str
    """Where the API is from inside."""
    public_address: str | None
    node_mask: int

    @property
    def nodes(self) -> Sequence[ManagedNode]:
        """The master, then the workers."""
        return (self.master, *self.workers)

    def name(self, node: ManagedNode) -> str:
        """Return the node's host name."""
        return self.name_by_vnfc[node.vnfc_id]

    @property
    def endpoint(self) -> str:
        """``host:port`` as kubeadm takes it."""
        return f"{bracketed(self.address)}:{API_PORT}"

    @property
    def server(self) -> str:
        """The URL for those outside."""
        return f"https://{bracketed(self.public_address or self.address)}:{API_PORT}"


def bracketed(address: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{address}]" if ip_address(address).version == 6 else address


def cluster_request(request: PhaseRequest) -> ClusterRequest:
    """Check the request. Raises InvalidInput, Unprocessable, PhaseUnsupported."""
    parameters = cluster_parameters(request.parameters)
    masters = [node for node in request.nodes if node.role == "master"]
    workers = [node for node in request.nodes if node.role == "worker"]
    if not masters:
        raise Unprocessable("nodes", "no master among the VNF's machines")
    if len(masters) > 1:
        raise PhaseUnsupported(f"{len(masters)} masters: clusters with several (high availability) cannot be made yet")
    nodes = [*masters, *workers]
    check_addresses(nodes)
    check_networks(parameters, nodes)
    for field, address in (
        ("cluster_address", request.cluster_address),
        ("cluster_public_address", request.cluster_public_address),
    ):
        if address is not None:
            _check_address(field, address)
    return ClusterRequest(
        vnf_instance_id=request.vnf_instance_id,
        parameters=parameters,
        master=masters[0],
        workers=workers,
        name_by_vnfc=node_names(nodes),
        address=request.cluster_address or masters[0].nic_address,
        public_address=request.cluster_public_address,
        node_mask=node_mask(parameters.master_node.pod_cidr, nodes=max(request.max_nodes or 0, len(nodes))),
    )


def _check_address(field: str, address: str) -> None:
    try:
        ip_address(address)
    except ValueError as error:
        raise Unprocessable(field, "an IP address expected") from error


def no_proxy(cluster: ClusterRequest) -> str:
    """Return what is reached without proxy: the user's list, this cluster's networks and itself, divided by commas."""
    parameters = cluster.parameters
    nodes = parameters.proxy.k8s_node_cidr or _surroundings(cluster.master.nic_address)
    own = [
        str(parameters.master_node.pod_cidr),
        str(parameters.master_node.cluster_cidr),
        "127.0.0.1",
        "localhost",
        ".svc",
        ".cluster.local",
        cluster.address,
        *([str(nodes)] if nodes else []),
    ]
    given = [entry for entry in parameters.proxy.no_proxy.replace(",", " ").split() if entry]
    return ",".join(dict.fromkeys([*given, *own]))


def _surroundings(address: str) -> IPv4Network | None:
    return IPv4Network(f"{address}/24", strict=False) if ip_address(address).version == 4 else None
