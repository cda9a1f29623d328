"""The interfaces between the parts of the lab: cloud, machines, clusters, and the faults that all of them check.

The cloud (`openstack`) boots machines; the machines' kubeadm stand-in makes clusters; all three check the one `Faults`
before they act and count their calls in the one `Ledger`. `lab.py` alone puts the real classes behind these ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, Protocol


@dataclass(frozen=True)
class Nic:
    """One network interface of a machine."""

    address: IPv4Address
    """Its fixed address; the machine's sshd listens there if this host can bind it, as it can any loopback address."""
    mac: str
    network: str


@dataclass(frozen=True)
class MachineSpec:
    """Nova's request for a machine."""

    machine_id: str
    """The Nova server id."""
    name: str
    nics: Sequence[Nic]
    user_data: str = ""
    public_key: str | None = None
    volumes: Sequence[str] = ()
    """Ids of the attached Cinder volumes."""
    metadata: Mapping[str, str] = field(default_factory=dict)


class Machines(Protocol):
    """The bodies of the servers: SSH servers with a shell, a root folder and stand-in programs."""

    async def boot(self, spec: MachineSpec) -> None:
        """Start the machine; return once its sshd listens (or after the delay of a fault)."""
        ...

    async def destroy(self, machine_id: str) -> None:
        """Destroy the machine, its sessions, processes and files; does nothing if there is none."""
        ...

    async def stop(self, machine_id: str) -> None:
        """Power it off: sshd stops, files stay."""
        ...

    async def start(self, machine_id: str) -> None:
        """Power it on again."""
        ...

    async def add_floating(self, floating: str, fixed: str) -> None:
        """Let a floating address lead to a fixed one, and no longer to another; raise OSError if it is taken."""
        ...

    async def remove_floating(self, floating: str) -> None:
        """Let a floating address lead nowhere; does nothing if it does so already."""
        ...

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """Return one JSON-able mapping per machine: id, name, addresses, ssh port, runs of each stand-in program."""
        ...


class Cluster(Protocol):
    """One Kubernetes cluster: a TLS API server on its control plane's address, its nodes and bootstrap tokens."""

    @property
    def endpoint(self) -> str:
        """``https://<address>:<port>``."""
        ...

    @property
    def ca_pem(self) -> str: ...

    @property
    def admin_token(self) -> str:
        """A bearer token of group system:masters, equivalent to admin.conf's client certificate on a real cluster."""
        ...

    @property
    def version(self) -> str:
        """``v1.31.4`` and the like."""
        ...

    async def add_node(self, name: str, *, address: str, control_plane: bool) -> None:
        """Create (or adopt) the Node object and make it Ready, as a joining kubelet does."""
        ...

    def create_bootstrap_token(self, *, ttl_s: float) -> str:
        """Return ``[a-z0-9]{6}.[a-z0-9]{16}``, valid for ``ttl_s`` seconds."""
        ...

    def bootstrap_token_is_valid(self, token: str) -> bool: ...

    def delete_bootstrap_token(self, token: str) -> None: ...

    def ca_cert_hash(self) -> str:
        """``sha256:<hex of the CA public key's DER form>``, as kubeadm join takes it."""
        ...


class Clusters(Protocol):
    """All clusters of the lab."""

    async def create(
        self, *, address: str, port: int = 6443, version: str, pod_cidr: str, service_cidr: str, san: Sequence[str] = ()
    ) -> Cluster:
        """Start an API server on ``address:port``; raise OSError if something listens there."""
        ...

    def find(self, address: str, port: int) -> Cluster | None:
        """Return the cluster with this endpoint."""
        ...

    async def close_at(self, address: str) -> None:
        """Stop the cluster whose control plane is on ``address``; does nothing if there is none."""
        ...

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """Return a JSON-able mapping per cluster: endpoint, nodes, joins by node, objects by "kind/namespace/name"."""
        ...


class FaultInjected(Exception):
    """A fault makes this call fail; the part translates it into its own protocol's error."""

    def __init__(self, *, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class ConnectionDropped(Exception):
    """A fault closes the connection without an answer."""


class Faults(Protocol):
    """Checked before every call; slows, fails, hangs or drops it as ``POST /lab/v1/faults`` asked."""

    async def check(self, part: str, verb: str, *, node: str = "") -> None:
        """Return if the call may proceed.

        ``part``: keystone, heat, nova, neutron, glance, cinder, octavia, ssh, sftp, program, kubernetes. ``verb``: what
        is asked: ``stack_create``, ``port_show``, ``connect``, ``exec``, a program's name with its first argument
        (``kubeadm join``), or the Kubernetes verb and resource (``patch deployments``). ``node``: machine name.
        Raises: FaultInjected, ConnectionDropped.
        """
        ...


class Ledger(Protocol):
    """Counts the lab's calls, for tests that prove that nothing was done twice."""

    def count(self, part: str, verb: str, *, node: str = "") -> None: ...
