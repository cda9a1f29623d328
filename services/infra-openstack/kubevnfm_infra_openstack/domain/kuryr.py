"""The network of a cluster with Kuryr-Kubernetes: which entities it needs, and how they must fit (sequences.md 1.8, 2.10).

Kuryr makes each Service a load balancer and each pod a port. They are outside of the stack, in its networks: so everything that
Kuryr makes carries a tag of the instance, by which it is found and deleted before the stack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final, Protocol

from kubevnfm_cluster.kuryr import KURYR, Kind, KuryrParameters, is_uuid
from kubevnfm_cluster.parameters import ROOT
from kubevnfm_events.kuryr import KuryrLogin
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_openstack.domain.stack import HeatResource

API_PORT: Final = 443
"""Pods reach the API at the first address of Services with this port: Kubernetes' Service ``default/kubernetes``."""
PATH: Final = f"{ROOT}/{KURYR}"
TYPES: Final[Mapping[Kind, str]] = {
    "subnet": "OS::Neutron::Subnet",
    "security_group": "OS::Neutron::SecurityGroup",
    "router": "OS::Neutron::Router",
    "network": "OS::Neutron::Net",
    "load_balancer": "OS::Octavia::LoadBalancer",
}


@dataclass(frozen=True)
class Subnet:
    """A subnet of Neutron."""

    cidr: str
    pools: tuple[tuple[str, str], ...]
    """First and last address of each allocation pool."""
    routers: frozenset[str]
    """The ids of the routers that have an interface in it."""


@dataclass(frozen=True)
class LoadBalancer:
    """A load balancer of Octavia."""

    status: str
    """Its ``provisioning_status``."""
    address: str
    subnet_id: str
    ports: frozenset[int]
    """Those of its listeners."""


@dataclass(frozen=True)
class Removed:
    """The number of things that one look at the cloud has found and begun to delete."""

    load_balancers: int = 0
    ports: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing was found."""
        return not (self.load_balancers or self.ports)


class KuryrPort(Protocol):
    """Neutron, Octavia and Keystone of one tenant, as far as Kuryr needs them. All may raise VimUnavailable, VimRefused."""

    async def project_id(self) -> str:
        """Return the tenant's id."""
        ...

    async def exists(self, kind: Kind, id: str) -> bool:
        """Return whether there is such an entity; a ``network`` must be an external one."""
        ...

    async def subnet(self, id: str) -> Subnet:
        """Return a subnet that exists."""
        ...

    async def load_balancer(self, id: str) -> LoadBalancer:
        """Return a load balancer that exists."""
        ...

    async def trunks(self, servers: Sequence[str]) -> Mapping[str, str]:
        """Return the status of the trunk by server, for those of the servers that have one."""
        ...

    async def login(self, name: str) -> KuryrLogin:
        """Return a new application credential of this name, in place of an earlier one; the VIM's own if it is one."""
        ...

    async def delete_login(self, name: str) -> None:
        """Delete the application credential of this name, if there is one."""
        ...

    async def remove_tagged(self, tag: str) -> Removed:
        """Begin to delete all load balancers, ports and security groups that carry the tag; return how many there were."""
        ...


def tag_of(instance_id: str) -> str:
    """Return the tag of everything that Kuryr makes for an instance, and the name of its application credential."""
    return f"kubevnfm-kuryr-{instance_id}"


def resolved(kuryr: KuryrParameters, resources: Collection[HeatResource], stack_id: str) -> Mapping[str, str]:
    """Return the id of each entity by attribute; names are those of resources in the top template.

    Raises: Unprocessable naming the field, for a name that the stack does not have.
    """
    known = {one.name: one for one in resources if one.stack_id == stack_id}
    found: dict[str, str] = {}
    for attribute, kind, name in kuryr.entities():
        resource = known.get(name)
        if resource is not None and resource.type == TYPES[kind] and resource.physical_id:
            found[attribute] = resource.physical_id
        elif is_uuid(name):
            found[attribute] = name
        else:
            fitting = ", ".join(sorted(one.name for one in known.values() if one.type == TYPES[kind])) or "none"
            raise Unprocessable(f"{PATH}/{attribute}", f"the stack has no {TYPES[kind]} {name}; fitting: {fitting}")
    return found


def check_service_subnet(subnet: Subnet, service_cidr: str) -> None:
    """Refuse a subnet of Services in which Octavia's ports and the addresses of Services could collide.

    The lower half is for Services, the allocation pools are in the upper half alone.
    """
    field = f"{PATH}/service_subnet_id"
    whole, services = IPv4Network(subnet.cidr), IPv4Network(service_cidr)
    lower, upper = whole.subnets() if whole.prefixlen < 32 else (whole, whole)
    if services != lower:
        raise Unprocessable(
            f"{ROOT}/master_node/cluster_cidr",
            f"{services}: {lower}, the lower half of the subnet of Services, expected",
        )
    for first, last in subnet.pools:
        if IPv4Address(first) not in upper or IPv4Address(last) not in upper:
            raise Unprocessable(field, f"its pool {first}-{last} is not in {upper}, the upper half of {whole}")


def check_balancer(balancer: LoadBalancer, *, service_subnet_id: str, service_cidr: str) -> None:
    """Refuse a load balancer that is not that of the API."""
    field, wanted = f"{PATH}/lbaas_id", str(IPv4Network(service_cidr)[1])
    if balancer.status == "ERROR":
        raise Unprocessable(field, "the load balancer is in ERROR")
    if balancer.address != wanted or balancer.subnet_id != service_subnet_id:
        raise Unprocessable(
            field, f"its address is {balancer.address}: {wanted}, the first one of the subnet of Services, expected"
        )
    if API_PORT not in balancer.ports:
        listed = ", ".join(map(str, sorted(balancer.ports))) or "none"
        raise Unprocessable(field, f"a listener of port {API_PORT} expected; there are: {listed}")


def check_routers(kuryr: KuryrParameters, ids: Mapping[str, str], pods: Subnet, services: Subnet) -> None:
    """Refuse subnets of pods and Services that no router joins, where the load balancers need one."""
    joining = pods.routers & services.routers
    if "router_id" in ids and ids["router_id"] not in joining:
        raise Unprocessable(f"{PATH}/router_id", "it does not join the subnets of pods and of Services")
    if kuryr.octavia_mode == "L3" and not joining:
        raise Unprocessable(
            f"{PATH}/octavia_mode", "L3: a router that joins the subnets of pods and of Services expected"
        )
