"""What the three parts of the lab know of one another: cloud, machines, clusters, and the faults told to all of them.

The cloud (`openstack`) boots machines; the machines' kubeadm stand-in makes clusters; all three ask the one `Faults`
before they act and count what they did in the one `Ledger`. `lab.py` alone puts the real classes behind these ports.
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
    """What Nova knows of a server when it boots."""

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
        """Start the machine; return once its sshd listens (or the boot delay told by a fault has passed)."""
        ...

    async def destroy(self, machine_id: str) -> None:
        """End the machine, its sessions, processes and files; nothing happens when there is none."""
        ...

    async def stop(self, machine_id: str) -> None:
        """Power it off: sshd gone, files kept."""
        ...

    async def start(self, machine_id: str) -> None:
        """Power it on again."""
        ...

    async def add_floating(self, floating: str, fixed: str) -> None:
        """Let a floating address lead to a fixed one, and no longer to another; raise OSError when it is taken."""
        ...

    async def remove_floating(self, floating: str) -> None:
        """Let a floating address lead nowhere; nothing happens when it does so already."""
        ...

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """One JSON-able mapping a machine: id, name, addresses, ssh port, how often each stand-in program ran."""
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
        """A bearer token of group system:masters (what admin.conf's client certificate gives on a real cluster)."""
        ...

    @property
    def version(self) -> str:
        """``v1.31.4`` and the like."""
        ...

    async def add_node(self, name: str, *, address: str, control_plane: bool) -> None:
        """Make (or adopt) the Node object and let it become Ready, as a joining kubelet does."""
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
        """Start an API server on ``address:port``; raise OSError when something listens there."""
        ...

    def at(self, address: str, port: int) -> Cluster | None:
        """Return the cluster whose endpoint this is."""
        ...

    async def close_at(self, address: str) -> None:
        """End the cluster whose control plane lives on ``address``; nothing happens when there is none."""
        ...

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """One JSON-able mapping a cluster: endpoint, nodes, joins by node name, objects by "kind/namespace/name"."""
        ...


class FaultInjected(Exception):
    """A fault says that this call fails; the part turns it into its own protocol's failure."""

    def __init__(self, *, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class ConnectionDropped(Exception):
    """A fault says that the connection is closed without an answer."""


class Faults(Protocol):
    """Asked before every call; slows, fails, hangs or drops it as told by ``POST /lab/v1/faults``."""

    async def check(self, part: str, verb: str, *, node: str = "") -> None:
        """Return when the call may go on.

        ``part``: keystone, heat, nova, neutron, glance, cinder, ssh, sftp, program, kubernetes. ``verb``: what is
        asked: ``stack_create``, ``port_show``, ``connect``, ``exec``, a program's name with its first argument
        (``kubeadm join``), or the Kubernetes verb and resource (``patch deployments``). ``node``: machine name.
        Raises: FaultInjected, ConnectionDropped.
        """
        ...


class Ledger(Protocol):
    """Counts what was asked of the lab, for tests that prove that nothing was done twice."""

    def count(self, part: str, verb: str, *, node: str = "") -> None: ...
