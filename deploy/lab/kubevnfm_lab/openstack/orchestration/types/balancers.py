"""OS::Octavia resources: load balancers, listeners, pools and their members."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.balancer.octavia import Octavia
from kubevnfm_lab.openstack.balancer.records import Listener, LoadBalancer, Member, Pool, Record
from kubevnfm_lab.openstack.errors import ServiceError, not_found
from kubevnfm_lab.openstack.orchestration.failures import ResourceFailure
from kubevnfm_lab.openstack.orchestration.stack import Resource
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Invalid, Property, ResourceType, UpdateReplace

_COMMON: Final[Mapping[str, Property]] = {
    "name": Property(updatable=True),
    "description": Property(default="", updatable=True),
    "admin_state_up": Property("boolean", default=True, updatable=True),
}


class OctaviaType(ResourceType):
    """The base of all Octavia types: each change waits until the load balancer can be changed, and until it is made."""

    label: ClassVar[str]
    """As in the API's verbs: loadbalancer, listener, pool, member."""

    @property
    def octavia(self) -> Octavia:
        """The load balancers of the cloud."""
        return self.services.octavia

    @abstractmethod
    def record(self, resource: Resource) -> Record | None:
        """Return Octavia's record of it."""

    @abstractmethod
    def make(self, resource: Resource, facts: Json) -> Record:
        """Create it; raise ServiceError."""

    @abstractmethod
    def drop(self, resource: Resource) -> None:
        """Delete it; raise ServiceError."""

    def owner(self, resource: Resource) -> LoadBalancer | None:
        """Return its load balancer."""
        record = self.record(resource)
        if isinstance(record, Listener | Pool):
            return self.octavia.balancers.get(record.balancer_id)
        return record if isinstance(record, LoadBalancer) else None

    async def create(self, resource: Resource) -> None:
        """Create it, and wait until it is ACTIVE."""
        props = resource.props
        facts = {
            "name": props["name"] if props.get("name") else resource.physical_name,
            "description": props.get("description") or "",
            "admin_state_up": props["admin_state_up"],
        }

        async def once() -> None:
            await self.services.enter("octavia", f"{self.label}_create")
            resource.physical_id = self.make(resource, facts).record_id

        await self._when_mutable(once)
        while (record := self.record(resource)) is not None and record.status != "ACTIVE":
            if record.status == "ERROR":
                raise ResourceFailure("ResourceInError", 'Went to status ERROR due to "Unknown"')
            await self.octavia.next_move()

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename it, or turn it on or off."""
        record, owner = self.record(resource), self.owner(resource)
        if record is None or owner is None:
            raise UpdateReplace

        async def once() -> None:
            await self.services.enter("octavia", f"{self.label}_update")
            self.octavia.change(owner)

        await self._when_mutable(once)
        record.name = resource.props["name"] or resource.physical_name
        record.admin_state_up = resource.props["admin_state_up"]

    async def delete(self, resource: Resource) -> None:
        """Delete it, and wait until it is gone."""

        async def once() -> None:
            if self.record(resource) is not None:
                await self.services.enter("octavia", f"{self.label}_delete")
                self.drop(resource)

        await self._when_mutable(once)
        while self.record(resource) is not None:
            await self.octavia.next_move()

    async def _when_mutable(self, once: Callable[[], Awaitable[None]]) -> None:
        """Try again as long as another change of the load balancer is being made, as Heat does."""
        while True:
            try:
                await once()
                return
            except ServiceError as error:
                if error.kind not in ("ImmutableObject", "LBPendingStateError"):
                    raise
                await self.octavia.next_move()

    def is_there(self, resource: Resource) -> bool:
        """Whether Octavia still has it."""
        return self.record(resource) is not None

    def show(self, resource: Resource) -> Json:
        """Return what Octavia shows of it."""
        record = self.record(resource)
        assert record is None or isinstance(record, LoadBalancer | Listener | Pool | Member)
        return record.view() if record is not None else {}

    def named(self, kind: str, name: Any, resource: Resource) -> str:
        """Return the id of a record that a property names; raise Octavia's 404."""
        found = self.octavia.find(kind, str(name), resource.stack.project_id)
        if found is None:
            raise not_found("octavia", "NotFound", f"{kind} {name} not found.")
        return found.record_id


class LoadBalancerType(OctaviaType):
    """OS::Octavia::LoadBalancer."""

    name, label = "OS::Octavia::LoadBalancer", "loadbalancer"
    properties: ClassVar[Mapping[str, Property]] = {
        **_COMMON,
        "vip_subnet": Property(required=True, constraint="neutron.subnet"),
        "vip_address": Property(),
        "provider": Property(),
        "tenant_id": Property(constraint="keystone.project"),
        "flavor": Property(),
    }
    attributes = frozenset({"vip_address", "vip_port_id", "vip_subnet_id", "pools", "flavor_id"})

    def make(self, resource: Resource, facts: Json) -> Record:
        """Create it."""
        props, project_id, neutron = resource.props, resource.stack.project_id, self.services.neutron
        subnet = neutron.find(neutron.subnets, str(props["vip_subnet"]), project_id)
        subnet_id = subnet.record_id if subnet is not None else str(props["vip_subnet"])
        return self.octavia.create_balancer(project_id, subnet_id=subnet_id, address=props["vip_address"], **facts)

    def drop(self, resource: Resource) -> None:
        """Delete it."""
        self.octavia.delete_balancer(self.octavia.balancer(resource.physical_id or ""), cascade=False)

    def record(self, resource: Resource) -> LoadBalancer | None:
        """Return the load balancer."""
        return self.octavia.balancers.get(resource.physical_id or "")


class ListenerType(OctaviaType):
    """OS::Octavia::Listener."""

    name, label = "OS::Octavia::Listener", "listener"
    properties: ClassVar[Mapping[str, Property]] = {
        **_COMMON,
        "protocol": Property(required=True, allowed=("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP")),
        "protocol_port": Property("integer", required=True, low=1, high=65535),
        "loadbalancer": Property(constraint="octavia.loadbalancer"),
        "default_pool": Property(updatable=True, constraint="octavia.pool"),
        "connection_limit": Property("integer", default=-1, updatable=True),
        "tenant_id": Property(constraint="keystone.project"),
    }
    attributes = frozenset({"loadbalancers", "default_pool_id"})

    def validate(self, resource_name: str, props: Json) -> None:
        """Require the load balancer, of itself or of its pool."""
        if props["loadbalancer"] is None and props["default_pool"] is None:
            where = f"resources.{resource_name}.properties"
            raise Invalid(
                "", where, "At least one of the following properties must be specified: loadbalancer, default_pool"
            )

    def make(self, resource: Resource, facts: Json) -> Record:
        """Create it."""
        props = resource.props
        pool_id = self.named("pool", props["default_pool"], resource) if props["default_pool"] else None
        balancer_id = (
            self.named("loadbalancer", props["loadbalancer"], resource)
            if props["loadbalancer"]
            else self.octavia.pool(pool_id or "").balancer_id
        )
        return self.octavia.create_listener(
            self.octavia.balancer(balancer_id),
            protocol=props["protocol"],
            port=props["protocol_port"],
            pool_id=pool_id,
            **facts,
        )

    def drop(self, resource: Resource) -> None:
        """Delete it."""
        self.octavia.delete_listener(self.octavia.listener(resource.physical_id or ""))

    def record(self, resource: Resource) -> Listener | None:
        """Return the listener."""
        return self.octavia.listeners.get(resource.physical_id or "")


class PoolType(OctaviaType):
    """OS::Octavia::Pool."""

    name, label = "OS::Octavia::Pool", "pool"
    properties: ClassVar[Mapping[str, Property]] = {
        **_COMMON,
        "protocol": Property(required=True, allowed=("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP")),
        "lb_algorithm": Property(
            required=True, updatable=True, allowed=("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
        ),
        "listener": Property(constraint="octavia.listener"),
        "loadbalancer": Property(constraint="octavia.loadbalancer"),
        "session_persistence": Property("map"),
    }
    attributes = frozenset({"healthmonitor_id", "listeners", "members"})

    def validate(self, resource_name: str, props: Json) -> None:
        """Require the listener or the load balancer."""
        if props["listener"] is None and props["loadbalancer"] is None:
            where = f"resources.{resource_name}.properties"
            raise Invalid(
                "", where, "At least one of the following properties must be specified: listener, loadbalancer"
            )

    def make(self, resource: Resource, facts: Json) -> Record:
        """Create it."""
        props, octavia = resource.props, self.octavia
        listener = props["listener"] and octavia.listener(self.named("listener", props["listener"], resource))
        balancer = props["loadbalancer"] and octavia.balancer(
            self.named("loadbalancer", props["loadbalancer"], resource)
        )
        return octavia.create_pool(
            balancer=balancer or None,
            listener=listener or None,
            protocol=props["protocol"],
            algorithm=props["lb_algorithm"],
            **facts,
        )

    def drop(self, resource: Resource) -> None:
        """Delete it."""
        self.octavia.delete_pool(self.octavia.pool(resource.physical_id or ""))

    def record(self, resource: Resource) -> Pool | None:
        """Return the pool."""
        return self.octavia.pools.get(resource.physical_id or "")


class PoolMemberType(OctaviaType):
    """OS::Octavia::PoolMember."""

    name, label = "OS::Octavia::PoolMember", "member"
    properties: ClassVar[Mapping[str, Property]] = {
        "pool": Property(required=True, constraint="octavia.pool"),
        "address": Property(required=True),
        "protocol_port": Property("integer", required=True, low=1, high=65535),
        "subnet": Property(constraint="neutron.subnet"),
        "weight": Property("integer", default=1, updatable=True, low=0, high=256),
        "admin_state_up": Property("boolean", default=True, updatable=True),
        "monitor_address": Property(updatable=True),
        "monitor_port": Property("integer", updatable=True),
        "backup": Property("boolean", default=False, updatable=True),
        "tags": Property("list", updatable=True),
    }
    attributes = frozenset({"address", "pool_id"})

    def owner(self, resource: Resource) -> LoadBalancer | None:
        """Return its load balancer."""
        pool = self._pool(resource)
        return self.octavia.balancers.get(pool.balancer_id) if pool is not None else None

    def make(self, resource: Resource, facts: Json) -> Record:
        """Create it."""
        props, neutron = resource.props, self.services.neutron
        subnet = props["subnet"] and neutron.find(neutron.subnets, str(props["subnet"]), resource.stack.project_id)
        return self.octavia.create_member(
            self.octavia.pool(self.named("pool", props["pool"], resource)),
            address=str(props["address"]),
            port=props["protocol_port"],
            subnet_id=subnet.record_id if subnet else None,
            weight=props["weight"],
            **facts,
        )

    def drop(self, resource: Resource) -> None:
        """Delete it."""
        pool, member = self._pool(resource), self.record(resource)
        if pool is not None and member is not None:
            self.octavia.delete_member(pool, member)

    def record(self, resource: Resource) -> Member | None:
        """Return the member."""
        pool = self._pool(resource)
        return pool.members.get(resource.physical_id or "") if pool is not None else None

    def _pool(self, resource: Resource) -> Pool | None:
        # By the member's id, which is unique: the properties may be those of a later update.
        member_id = resource.physical_id or ""
        return next((one for one in self.octavia.pools.values() if member_id in one.members), None)


BALANCER_TYPES: Final[Sequence[type[ResourceType]]] = (LoadBalancerType, ListenerType, PoolType, PoolMemberType)
