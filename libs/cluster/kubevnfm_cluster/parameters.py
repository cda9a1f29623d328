"""``k8s_cluster_installation_param``: how a cluster is installed on the VNF's machines (sequences.md chapter 2).

The attributes have the names that requests use, so the model reads a request, a stored document and a message alike.
Rules between values are in `rules`: a message whose values break a rule can still be read, and the
operation then fails with an error that names the field.

A request never carries addresses. It names a scaling aspect or a VDU, and the same choice of machines is made twice:
from VNFD and templates when the request is checked, and from the stack's servers once they exist.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Final, Literal, Protocol, Self

from kubevnfm_secrets import Secret

from kubevnfm_cluster.forms import (
    ARRAY,
    FLAG,
    HOST,
    Form,
    Part,
    in_clear,
    network,
    one_of,
    parsed,
    secret,
    text,
    whole,
)
from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_cluster.registries import Registry
from kubevnfm_cluster.ssh_login import PackagePath, Resource, SshLogin
from kubevnfm_cluster.storage import PersistentVolume, StorageServer

CLUSTER: Final = "k8s_cluster_installation_param"
ROOT: Final = f"additionalParams/{CLUSTER}"
"""How errors name it."""
POD_PREFIXES: Final = range(8, 33)
"""kube-controller-manager refuses a pod network more than 16 bits larger than a node's part of it, a /24."""
SERVICE_PREFIXES: Final = range(12, 25)
"""kube-apiserver takes at most 20 bits of host (/12); below a /24 a cluster soon runs out of Services."""
NODE_PREFIXES: Final = range(8, 33)
DEFAULT_NETWORK_MANIFEST: Final = "Files/kubernetes/cni.yaml"
_PROXY_URL: Final = rf"https?://([A-Za-z0-9._~%!*+,=:-]+@)?{HOST}(:(\d{{1,5}}|[a-z][a-z0-9-]{{0,14}}))?/?"
"""The port may be the name of a service: the samples of two seed documents write ``host1:port1``."""
_MIRROR_URL: Final = r'https?://[^\s"\\\']{1,2000}'
_EXCEPTION: Final = rf"(\*|\*?\.?{HOST}(:\d{{1,5}})?)"


def _proxy_url(value: object) -> object:
    url = in_clear(value)
    port = re.search(r":(\d+)/?$", url) if isinstance(url, str) else None
    if port is not None and not 1 <= int(port[1]) <= 65_535:
        raise ValueError
    return _PROXY.check(url)


def _exceptions(value: str) -> str:
    entries = [entry.strip() for entry in value.split(",") if entry.strip()]
    # ip_network returns a network or raises ValueError, which the form turns into its own error.
    if not all(re.fullmatch(_EXCEPTION, entry) or ip_network(entry, strict=False) for entry in entries):
        raise ValueError
    return ",".join(entries)


_PROXY: Final = secret("a URL http(s)://[user:password@]host[:port]", _PROXY_URL)
ProxyUrl = Annotated[Secret, Form(f"{_PROXY.expected} with a port from 1 to 65535", _proxy_url, _PROXY.schema)]
MirrorUrl = Annotated[Secret, secret("a URL http(s)://...", _MIRROR_URL)]
Seconds = Annotated[int, whole(1, 86_400)]
Flag = Annotated[bool, FLAG]


Role = Literal["master", "worker"]


class Server(Protocol):
    """A server of the stack, as far as a choice depends on it."""

    @property
    def group(self) -> str | None:
        """The group of nested stacks that it is a member of."""
        ...

    @property
    def vdu_id(self) -> str: ...

    @property
    def name(self) -> str:
        """Its resource name in the template."""
        ...


@dataclass(frozen=True)
class NodeChoice:
    """Which servers belong to a role. The first rule that applies: scaling aspect, VDU, name (sequences.md 3.1)."""

    by: Literal["aspect_id", "vdu_id", "name"]
    value: str
    """The aspect, the VDU, or the beginning of the name."""

    @classmethod
    def from_attributes(cls, role: Role, *, aspect_id: str | None, vdu_id: str | None) -> Self:
        """Return the choice that a group's attributes make; without attributes, names begin with their role (TOSCA)."""
        if aspect_id is not None:
            return cls("aspect_id", aspect_id)
        if vdu_id is not None:
            return cls("vdu_id", vdu_id)
        return cls("name", role)

    def includes(self, server: Server) -> bool:
        """Return whether the server is chosen."""
        if self.by == "aspect_id":
            return server.group == self.value
        if self.by == "vdu_id":
            return server.vdu_id == self.value
        return server.name.startswith(self.value)


class NodeGroup(SshLogin):
    """The machines of one role: how they are found in the stack, and how to log in to them."""

    aspect_id: Annotated[str, text("a scaling aspect of the VNFD")] | None = None
    vdu_id: Annotated[str, text("a VDU of the VNFD")] | None = None
    ssh_cp_name: Annotated[str, text("the port or floating IP for SSH")]
    nic_cp_name: Resource | None = None
    """The port in the cluster's own network; None: that of ``ssh_cp_name``."""

    @property
    def cluster_port(self) -> str:
        """The name of the port in the cluster's own network."""
        return self.nic_cp_name or self.ssh_cp_name

    def choice(self, role: Role) -> NodeChoice:
        """Return how the machines of the role are chosen."""
        return NodeChoice.from_attributes(role, aspect_id=self.aspect_id, vdu_id=self.vdu_id)


class MasterGroup(NodeGroup):
    """The control plane, and the cluster's networks."""

    pod_cidr: Annotated[IPv4Network, network(POD_PREFIXES)] = IPv4Network("192.168.0.0/16")
    # kubeadm's own default (serviceSubnet).
    cluster_cidr: Annotated[IPv4Network, network(SERVICE_PREFIXES)] = IPv4Network("10.96.0.0/12")
    """The network of Services."""
    cluster_cp_name: Annotated[str, text("the port of the Kubernetes API")]
    cluster_fip_name: Resource | None = None
    """The floating IP of the Kubernetes API."""


class Proxy(Part):
    """Proxies of the machines; each works without the other."""

    http_proxy: ProxyUrl | None = None
    https_proxy: ProxyUrl | None = None
    no_proxy: Annotated[
        str, parsed("a list of hosts, domains, addresses and networks, divided by commas,", _exceptions)
    ] = ""
    k8s_node_cidr: Annotated[IPv4Network, network(NODE_PREFIXES)] | None = None
    """None: the /24 of the first master."""

    @property
    def exceptions(self) -> tuple[str, ...]:
        """The entries of ``no_proxy``."""
        return tuple(self.no_proxy.split(",")) if self.no_proxy else ()


class Timeouts(Part):
    """Deadlines in seconds."""

    ssh_ready: Seconds = 600
    node_install: Seconds = 2700
    command: Seconds = 60
    drain: Seconds = 300
    node_ready: Seconds = 600
    node_dead: Seconds = 60
    """How long a node that is not Ready may take to be drained: after that its pods are given up."""


class Drain(Part):
    """How pods are evicted from a node."""

    delete_emptydir_data: Flag = True
    force: Flag = False
    on_failure: Annotated[Literal["fail", "continue"], one_of("fail", "continue")] = "fail"


class Vrrp(Part):
    """The virtual router of several masters."""

    router_id: Annotated[int, whole(1, 255)] | None = None
    prefix_len: Annotated[int, whole(1, 128)] | None = None


class Mirror(Part):
    """Where machines without internet access find packages and images."""

    apt: MirrorUrl | None = None
    """A copy of the Kubernetes project's apt repository for the minor version."""
    apt_key: MirrorUrl | None = None
    """Its signing key; None: ``Release.key`` in the repository."""
    images: MirrorUrl | None = None
    """A registry that serves the images of all others (containerd's ``_default`` host)."""


class ClusterParameters(Part):
    """The configuration of a cluster."""

    script_path: PackagePath
    """The install script in the package."""
    x_install_script: Annotated[Literal["auto", "package"], one_of("auto", "package")] = "auto"
    """``auto``: the driver's own script takes the place of one that does not declare its interface; ``package``: never."""
    vim_name: Annotated[str, text("1 to 255 printable characters", r"[^\x00-\x1f\x7f]{1,255}")] | None = None
    """The name of the VIM that the cluster becomes; None: a name made from the instance id."""
    master_node: MasterGroup
    worker_node: NodeGroup
    proxy: Proxy = Proxy()
    private_registry_connection_info: Annotated[tuple[Registry, ...], ARRAY] = ()
    """The private registries that every node is connected to."""
    storage_server: StorageServer | None = None
    """The machine with the disks of persistent volumes; None: there is none."""
    pv_registration_params: Annotated[tuple[PersistentVolume, ...], ARRAY] = ()
    """The persistent volumes that the storage server exports."""
    helm_installation_script_path: PackagePath | None = None
    """The script in the package that installs Helm on the masters; None: they have no Helm."""
    kuryr_param: KuryrParameters | None = None
    """None: pods have a network of their own."""
    # Kubernetes writes versions with a "v", its apt packages are named without it.
    x_kubernetes_version: (
        Annotated[str, parsed("a version such as 1.31.4", lambda value: value.removeprefix("v"))] | None
    ) = None
    """Without a leading ``v``; None: the version that the script names."""
    x_cri: Annotated[str, text("a container runtime")] = "containerd"
    x_cni: PackagePath | None = None
    """The pod network's manifest in the package; see ``network_manifest``."""
    x_max_parallel_nodes: Annotated[int, whole(1, 100)] = 10
    x_timeouts: Timeouts = Timeouts()
    x_drain: Drain = Drain()
    x_vrrp: Vrrp = Vrrp()
    x_mirror: Mirror = Mirror()

    @property
    def network_manifest(self) -> str:
        """The path of the pod network's manifest in the package."""
        return self.x_cni or DEFAULT_NETWORK_MANIFEST

    def install_limit_s(self, nodes: int, *, masters: int = 1) -> float:
        """Return how long an installation on ``nodes`` machines may take if every task on the way uses up its limit.

        Machines beyond ``x_max_parallel_nodes`` wait for the others: to be prepared, and to join. Several masters first
        share the API's address, then join one after another.
        """
        limits = self.x_timeouts
        rounds = math.ceil(nodes / self.x_max_parallel_nodes)
        start_s = limits.ssh_ready + limits.node_install  # the first master: reached, and kubeadm init
        by_round_s = 2 * limits.node_install + limits.node_ready + self.registries_limit_s()
        # The pod network, the administrator, checks at the end.
        rest_s = 10 * limits.command + 6 * limits.node_ready + self.storage_limit_s()
        by_master_s = limits.node_install + 2 * limits.node_ready + 5 * limits.command
        helm_s = self.helm_limit_s()
        kuryr_s = 2 * limits.command + 4 * limits.node_ready if self.kuryr_param is not None else 0
        return float(start_s + rounds * by_round_s + (masters - 1) * by_master_s + rest_s + kuryr_s + helm_s)

    def helm_limit_s(self) -> float:
        """Return how long it may take to install Helm on a master."""
        return float(self.x_timeouts.node_install) if self.helm_installation_script_path is not None else 0.0

    def registries_limit_s(self) -> float:
        """Return how long it may take to connect one node to the private registries."""
        # To write the files, and for each registry to ask for its API, for a token and for an image.
        count = len(self.private_registry_connection_info)
        return float((1 + 3 * count) * self.x_timeouts.command) if count else 0.0

    def storage_limit_s(self) -> float:
        """Return how long it may take to set up the storage server, and the persistent volumes after it."""
        limits = self.x_timeouts
        if self.storage_server is None:
            return 0.0
        return float(limits.ssh_ready + 3 * limits.node_install + 5 * limits.command)

    def drain_limit_s(self) -> float:
        """Return how long it may take to take workers out of the cluster if every task on the way uses up its limit."""
        limits = self.x_timeouts
        # To reach the master, and to be under way in the last call when the time to drain is over.
        return float(limits.ssh_ready + limits.drain + limits.node_ready + 20 * limits.command)

    def group(self, role: Role) -> NodeGroup:
        """Return the machines of a role."""
        return self.master_node if role == "master" else self.worker_node
