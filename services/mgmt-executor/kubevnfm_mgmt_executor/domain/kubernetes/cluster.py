"""A cluster as it is requested: parameters, machines and their names, checked before any machine is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, ip_address, ip_network

from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_cluster.rules import check_networks, node_mask, refuse_shared_addresses
from kubevnfm_cluster.ssh_login import SshLogin
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret, map_secrets

from kubevnfm_mgmt_executor.domain.logins import bastion, login
from kubevnfm_mgmt_executor.domain.names import node_names
from kubevnfm_mgmt_executor.domain.ports import Address, Login

# kubeadm's default, and the bindPort that the install script writes.
API_PORT = 6443
# Where haproxy listens on each of several masters: beside the API server, which has the other port (SEQ-159).
BALANCER_PORT = 16443


@dataclass(frozen=True)
class Cluster:
    """Everything about the cluster that is known before the first login."""

    vnf_instance_id: str
    parameters: ClusterParameters
    reveal: Callable[[Secret], str] = field(repr=False)
    masters: Sequence[ManagedNode]
    workers: Sequence[ManagedNode]
    name_by_vnfc: Mapping[str, str]
    address: str
    """The API's address in the cluster's own network: of several masters the virtual one."""
    public_address: str | None
    node_mask: int
    gone: Sequence[ManagedNode] = ()
    """Nodes whose machines no longer exist, and that no other has replaced; ``name_by_vnfc`` has them too."""
    storage: ManagedNode | None = None
    """The storage server, which is no node of the cluster."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Cinder id by resource name of the volumes of the storage server."""
    nfs_addresses: Mapping[str, str] = field(default_factory=dict)
    """The addresses at which the nodes reach the storage server, by port."""
    kuryr: KuryrNetwork | None = None
    """The network entities of a cluster with Kuryr, where the phase needs them."""
    live: ManagedNode | None = None
    """The master that was found to answer; None: none was looked for."""
    leaving: ManagedNode | None = None
    """The master that is taken out of the cluster; None: none is."""

    @property
    def master(self) -> ManagedNode:
        """The master through which the cluster is worked on: the first one of a cluster that is being built."""
        return self.live or self.masters[0]

    @property
    def is_balanced(self) -> bool:
        """Whether there are several masters, behind a virtual address (sequences.md 1.4, B2)."""
        return len(self.masters) > 1

    def through(self, master: ManagedNode) -> Cluster:
        """Return the cluster as it is worked on through this master."""
        return replace(self, live=master)

    @property
    def targets(self) -> Sequence[ManagedNode]:
        """The workers that the phase adds or takes out."""
        return [node for node in self.workers if node.is_target]

    def without(self, master: ManagedNode) -> Cluster:
        """Return the cluster as this master is taken out of it."""
        return replace(self, leaving=master)

    @property
    def serving(self) -> Sequence[ManagedNode]:
        """The masters behind the virtual address: all but the one that leaves."""
        return [node for node in self.masters if node is not self.leaving]

    @property
    def new_masters(self) -> Sequence[ManagedNode]:
        """The masters whose machines the phase makes masters, or is asked to replace."""
        return [node for node in self.masters if node.is_target]

    @property
    def others(self) -> Sequence[ManagedNode]:
        """The nodes beside ``master`` that stay as they are."""
        return [node for node in self.nodes if not node.is_target and node is not self.master]

    @property
    def nodes(self) -> Sequence[ManagedNode]:
        """The masters, then the workers."""
        return (*self.masters, *self.workers)

    @property
    def machines(self) -> Sequence[ManagedNode]:
        """The nodes, and the storage server."""
        return self.nodes if self.storage is None else (*self.nodes, self.storage)

    @property
    def node_names(self) -> Mapping[str, str]:
        """The names of the nodes by VNFC id."""
        return {node.vnfc_id: self.name(node) for node in self.nodes}

    def name(self, node: ManagedNode) -> str:
        """Return the node's host name."""
        return self.name_by_vnfc[node.vnfc_id]

    def login(self, node: ManagedNode) -> Login:
        """Return the login of the node's role."""
        group = self._group(node)
        return login(group.username, group.password, group.private_key, self.reveal)

    def ssh_address(self, node: ManagedNode) -> Address:
        """Return where the node's sshd is reached, through the bastion of its role if there is one."""
        group = self._group(node)
        way = bastion(group.bastion, self.reveal)
        return Address(self.name(node), self.vnf_instance_id, node.vnfc_id, node.ssh_address, group.ssh_port, way)

    def _group(self, node: ManagedNode) -> SshLogin:
        if node.role == "storage" and self.parameters.storage_server is not None:
            return self.parameters.storage_server
        return self.parameters.group("master" if node.role == "master" else "worker")

    @property
    def port(self) -> int:
        """The port of the API at ``address``."""
        return BALANCER_PORT if self.is_balanced else API_PORT

    @property
    def endpoint(self) -> str:
        """``host:port`` as kubeadm takes it."""
        return f"{bracketed(self.address)}:{self.port}"

    @property
    def server(self) -> str:
        """The API's URL for clients outside the cluster's own network."""
        return f"https://{bracketed(self.public_address or self.address)}:{self.port}"


def bracketed(address: str) -> str:
    """Return an address in the form that URLs have."""
    # RFC 3986, 3.2.2: without brackets, the colons of an IPv6 address read as the beginning of the port.
    return f"[{address}]" if ip_address(address).version == 6 else address


def read_cluster(command: RunPhase, reveal: Callable[[Secret], str]) -> Cluster:
    """Return the cluster of a command. Raises InvalidInput, Unprocessable, SharedAddress."""
    parameters = _parameters(command, reveal)
    masters = [node for node in command.nodes if node.role == "master"]
    workers = [node for node in command.nodes if node.role == "worker"]
    if not masters:
        raise Unprocessable("nodes", "no master among the VNF's machines")
    if len(masters) > 1 and command.cluster_address is None:
        raise Unprocessable("cluster_address", f"missing: the virtual address of {len(masters)} masters expected")
    nodes = [*masters, *workers]
    storage = _storage(command, parameters)
    machines = [*nodes, storage] if storage is not None else nodes
    # The name of a machine that was replaced belongs to the one at its address; names of a cluster that is gone are free.
    addresses = {node.nic_address for node in machines}
    is_new = all(node.is_target for node in nodes)
    gone = (
        []
        if is_new
        else [node for node in command.gone if node.role != "storage" and node.nic_address not in addresses]
    )
    # Two separate checks: on one machine, both addresses may be the same.
    refuse_shared_addresses((f"{node.role} {node.vnfc_id}", node.ssh_address) for node in machines)
    refuse_shared_addresses((f"{node.role} {node.vnfc_id}", node.nic_address) for node in machines)
    check_networks(parameters, _networks(nodes))
    for name, address in (
        ("cluster_address", command.cluster_address),
        ("cluster_public_address", command.cluster_public_address),
    ):
        if address is not None:
            _check_address(name, address)
    return Cluster(
        vnf_instance_id=command.vnf_instance_id,
        parameters=parameters,
        reveal=reveal,
        masters=masters,
        workers=workers,
        name_by_vnfc=node_names([*machines, *gone]),
        address=command.cluster_address or masters[0].nic_address,
        public_address=command.cluster_public_address,
        # Set once, when kubeadm runs: so it counts the nodes to which the VNF may be scaled.
        node_mask=node_mask(parameters.master_node.pod_cidr, nodes=max(command.max_nodes or 0, len(nodes))),
        gone=gone,
        storage=storage,
        volumes=command.volumes,
        nfs_addresses=command.nfs_addresses,
        kuryr=command.kuryr,
    )


def _storage(command: RunPhase, parameters: ClusterParameters) -> ManagedNode | None:
    asked = parameters.storage_server
    if asked is None:
        return None
    found = next((node for node in command.nodes if node.role == "storage"), None)
    if found is None:
        raise Unprocessable("nodes", "no storage server among the VNF's machines")
    unknown = [one.volume_resource_id for one in asked.cinder_volume_setup_params]
    unknown = [name for name in unknown if name not in command.volumes]
    if unknown:
        raise Unprocessable("volumes", f"missing: the id of volume {unknown[0]} expected")
    for name, address in command.nfs_addresses.items():
        _check_address(f"nfs_addresses.{name}", address)
    return found


def _parameters(command: RunPhase, reveal: Callable[[Secret], str]) -> ClusterParameters:
    # A command of version 0.1.0, sent before an upgrade, has its cluster in additionalParams only.
    given = command.parameters if command.cluster is None else {CLUSTER: command.cluster.model_dump()}
    # The sender has checked the same forms and rules, but values reach machines from here, and its version may be
    # another. Secrets are opened, because the form of a sealed one cannot be checked.
    return read_cluster_parameters(map_secrets(given, reveal))


def _networks(nodes: Sequence[ManagedNode]) -> Iterator[tuple[str, IPv4Network]]:
    """Yield the networks that the machines really have: Heat chooses some of them after the request is accepted."""
    for node in nodes:
        taken = ip_network(node.subnet_cidr or node.nic_address, strict=False)
        if isinstance(taken, IPv4Network):  # pods and Services have IPv4 addresses, which no IPv6 network overlaps
            yield f"the network of the machine at {node.nic_address},", taken


def _check_address(name: str, address: str) -> None:
    try:
        ip_address(address)
    except ValueError as error:
        raise Unprocessable(name, "an IP address expected") from error


def no_proxy(cluster: Cluster) -> str:
    """Return the hosts and networks that are reached without a proxy, divided by commas.

    They are the request's list, the cluster's own networks (as networks: a /16 as addresses would fill 861 kB), and
    the machine itself.
    """
    parameters = cluster.parameters
    nodes = parameters.proxy.k8s_node_cidr or _surroundings(cluster.masters[0].nic_address)
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
    # Always in the same order: the script restarts containerd when the text in its proxy file changes.
    return ",".join(dict.fromkeys([*parameters.proxy.exceptions, *own]))


def _surroundings(address: str) -> IPv4Network | None:
    return IPv4Network(f"{address}/24", strict=False) if ip_address(address).version == 4 else None
