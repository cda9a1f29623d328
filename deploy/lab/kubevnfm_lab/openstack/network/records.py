"""Neutron's records: networks, subnets, ports, routers, security groups, floating IPs, and their API forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from kubevnfm_lab.openstack.ids import new_mac, new_uuid, now_z

Json = dict[str, Any]
AnyNetwork = IPv4Network | IPv6Network


@dataclass(kw_only=True, slots=True)
class Record:
    """The fields that all Neutron records have."""

    record_id: str = field(default_factory=new_uuid)
    name: str = ""
    project_id: str
    description: str = ""
    tags: list[str] = field(default_factory=list)
    created_at: str = field(default_factory=now_z)
    updated_at: str = field(default_factory=now_z)
    revision: int = 1

    def touched(self) -> None:
        """Record a change."""
        self.revision += 1
        self.updated_at = now_z()

    def _common(self) -> Json:
        return {
            "id": self.record_id,
            "name": self.name,
            "tenant_id": self.project_id,
            "project_id": self.project_id,
            "description": self.description,
            "tags": self.tags,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "revision_number": self.revision,
        }


@dataclass(kw_only=True, slots=True)
class Network(Record):
    """A layer 2 network."""

    external: bool = False
    shared: bool = False
    admin_state_up: bool = True
    port_security: bool = True
    provider: Json = field(default_factory=dict)
    subnet_ids: list[str] = field(default_factory=list)
    builtin: bool = False
    """Created with the lab; not in the inventory of what users created."""

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "admin_state_up": self.admin_state_up,
            "mtu": 1450,
            "status": "ACTIVE",
            "subnets": self.subnet_ids,
            "shared": self.shared,
            "availability_zone_hints": [],
            "availability_zones": [],
            "ipv4_address_scope": None,
            "ipv6_address_scope": None,
            "router:external": self.external,
            "port_security_enabled": self.port_security,
            "qos_policy_id": None,
            "l2_adjacency": True,
        }


@dataclass(kw_only=True, slots=True)
class Subnet(Record):
    """A range of addresses on a network."""

    network_id: str
    cidr: AnyNetwork
    gateway: str | None
    enable_dhcp: bool = True
    pools: list[tuple[int, int]]
    """First and last address of each allocation pool, as numbers."""
    dns: list[str] = field(default_factory=list)
    host_routes: list[Json] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    cursor: int = 0
    """Where the next search starts: a released address is not reused at once."""

    def view(self) -> Json:
        """Return it as the API shows it."""
        kind = type(self.cidr.network_address)
        return {
            **self._common(),
            "network_id": self.network_id,
            "ip_version": self.cidr.version,
            "subnetpool_id": None,
            "enable_dhcp": self.enable_dhcp,
            "ipv6_ra_mode": None,
            "ipv6_address_mode": None,
            "gateway_ip": self.gateway,
            "cidr": str(self.cidr),
            "allocation_pools": [{"start": str(kind(first)), "end": str(kind(last))} for first, last in self.pools],
            "host_routes": self.host_routes,
            "dns_nameservers": self.dns,
            "service_types": [],
        }

    def next_free(self) -> int | None:
        """Return the next free address of the pools, after the last one allocated."""
        # First from the last address on, then from the beginning: addresses that were released there are free again.
        for start_at_cursor in (True, False):
            for first, last in self.pools:
                start = max(first, self.cursor) if start_at_cursor else first
                for number in range(start, last + 1):
                    if number not in self.used:
                        self.cursor = number + 1
                        return number
        return None


@dataclass(slots=True)
class FixedIp:
    """One address of a port."""

    subnet_id: str
    address: str


@dataclass(kw_only=True, slots=True)
class Port(Record):
    """A connection to a network, used as a server's interface."""

    network_id: str
    mac: str = field(default_factory=new_mac)
    fixed_ips: list[FixedIp] = field(default_factory=list)
    address_pairs: list[Json] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    admin_state_up: bool = True
    port_security: bool = True
    device_id: str = ""
    device_owner: str = ""
    vnic_type: str = "normal"
    extra_dhcp_opts: list[Json] = field(default_factory=list)
    made_by_nova: bool = False
    """Created by Nova for a server, and deleted with it."""

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "network_id": self.network_id,
            "mac_address": self.mac,
            "admin_state_up": self.admin_state_up,
            "status": "ACTIVE" if self.device_id else "DOWN",
            "device_id": self.device_id,
            "device_owner": self.device_owner,
            "fixed_ips": [{"subnet_id": ip.subnet_id, "ip_address": ip.address} for ip in self.fixed_ips],
            "allowed_address_pairs": self.address_pairs,
            "extra_dhcp_opts": self.extra_dhcp_opts,
            "security_groups": self.security_groups,
            "binding:vnic_type": self.vnic_type,
            "port_security_enabled": self.port_security,
            "qos_policy_id": None,
            "qos_network_policy_id": None,
            "ip_allocation": "immediate",
        }


@dataclass(kw_only=True, slots=True)
class Router(Record):
    """A connection between networks."""

    external_network_id: str | None = None
    admin_state_up: bool = True
    interfaces: dict[str, str] = field(default_factory=dict)
    """Port id by subnet id."""

    def view(self) -> Json:
        """Return it as the API shows it."""
        gateway = None
        if self.external_network_id:
            gateway = {"network_id": self.external_network_id, "external_fixed_ips": [], "enable_snat": True}
        return {
            **self._common(),
            "admin_state_up": self.admin_state_up,
            "status": "ACTIVE",
            "external_gateway_info": gateway,
            "availability_zone_hints": [],
            "availability_zones": [],
            "routes": [],
            "flavor_id": None,
        }


@dataclass(kw_only=True, slots=True)
class SecurityGroup(Record):
    """Traffic rules; stored, never enforced."""

    rules: dict[str, Json] = field(default_factory=dict)
    stateful: bool = True

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "stateful": self.stateful,
            "shared": False,
            "security_group_rules": [
                {**rule, "tags": [], "standard_attr_id": index} for index, rule in enumerate(self.rules.values(), 1)
            ],
        }


@dataclass(kw_only=True, slots=True)
class FloatingIp(Record):
    """An address of an external network that leads to a port."""

    network_id: str
    address: str
    port_id: str | None = None
    fixed_address: str | None = None
    router_id: str | None = None

    def view(self) -> Json:
        """Return it as the API shows it."""
        shown = {
            **self._common(),
            "floating_network_id": self.network_id,
            "floating_ip_address": self.address,
            "fixed_ip_address": self.fixed_address,
            "port_id": self.port_id,
            "router_id": self.router_id,
            "status": "ACTIVE" if self.port_id else "DOWN",
            "port_details": None,
            "qos_policy_id": None,
        }
        del shown["name"]  # floating IPs are the only Neutron records without a name
        return shown


View = Callable[[], Json]
