"""Octavia's records: load balancers, listeners, pools, members, and their API forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kubevnfm_lab.openstack.ids import new_uuid, now_z

Json = dict[str, Any]
Provisioning = Literal["PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE", "ACTIVE", "ERROR"]


@dataclass(kw_only=True)
class Record:
    """The fields that all records have."""

    record_id: str = field(default_factory=new_uuid)
    name: str = ""
    description: str = ""
    project_id: str
    admin_state_up: bool = True
    tags: list[str] = field(default_factory=list)
    status: Provisioning = "PENDING_CREATE"
    created_at: str = field(default_factory=now_z)
    updated_at: str | None = None

    def _common(self) -> Json:
        return {
            "id": self.record_id,
            "name": self.name,
            "description": self.description,
            "project_id": self.project_id,
            "tenant_id": self.project_id,
            "admin_state_up": self.admin_state_up,
            "provisioning_status": self.status,
            "operating_status": "ONLINE" if self.status in ("ACTIVE", "PENDING_UPDATE") else "OFFLINE",
            "tags": self.tags,
            "created_at": self.created_at.removesuffix("Z"),
            "updated_at": self.updated_at,
        }


@dataclass(kw_only=True)
class Member(Record):
    """A target of a pool."""

    address: str
    port: int
    subnet_id: str | None = None
    weight: int = 1

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "operating_status": "NO_MONITOR",
            "address": self.address,
            "protocol_port": self.port,
            "subnet_id": self.subnet_id,
            "weight": self.weight,
            "backup": False,
            "monitor_address": None,
            "monitor_port": None,
        }


@dataclass(kw_only=True)
class Pool(Record):
    """Targets, and how one of them is chosen."""

    protocol: str
    algorithm: str
    listener_ids: list[str] = field(default_factory=list)
    """The listeners that use it when no rule says otherwise."""
    balancer_id: str
    members: dict[str, Member] = field(default_factory=dict)

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "protocol": self.protocol,
            "lb_algorithm": self.algorithm,
            "session_persistence": None,
            "healthmonitor_id": None,
            "loadbalancers": [{"id": self.balancer_id}],
            "listeners": [{"id": one} for one in self.listener_ids],
            "members": [{"id": one} for one in self.members],
        }


@dataclass(kw_only=True)
class Listener(Record):
    """A port of the virtual address."""

    protocol: str
    port: int
    balancer_id: str
    pool_id: str | None = None

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "protocol": self.protocol,
            "protocol_port": self.port,
            "connection_limit": -1,
            "default_pool_id": self.pool_id,
            "loadbalancers": [{"id": self.balancer_id}],
            "l7policies": [],
            "insert_headers": {},
        }


@dataclass(kw_only=True)
class LoadBalancer(Record):
    """A virtual address."""

    vip_address: str
    vip_port_id: str
    vip_subnet_id: str
    vip_network_id: str
    amphora_port_id: str
    """The port by which the balancer's own machine is in the network: on the same subnet as the virtual address."""
    listener_ids: list[str] = field(default_factory=list)
    pool_ids: list[str] = field(default_factory=list)

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {
            **self._common(),
            "vip_address": self.vip_address,
            "vip_port_id": self.vip_port_id,
            "vip_subnet_id": self.vip_subnet_id,
            "vip_network_id": self.vip_network_id,
            "vip_qos_policy_id": None,
            "provider": "amphora",
            "flavor_id": None,
            "availability_zone": None,
            "listeners": [{"id": one} for one in self.listener_ids],
            "pools": [{"id": one} for one in self.pool_ids],
        }
