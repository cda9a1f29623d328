"""OS::Neutron resources of the network itself: networks, subnets, routers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from kubevnfm_lab.openstack.errors import not_found
from kubevnfm_lab.openstack.network.records import Network, Record, Router, Subnet
from kubevnfm_lab.openstack.orchestration.stack import Resource
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType, UpdateReplace
from kubevnfm_lab.openstack.orchestration.types.neutron import NeutronType


class NetType(NeutronType):
    """OS::Neutron::Net."""

    name = "OS::Neutron::Net"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "admin_state_up": Property("boolean", default=True, updatable=True),
        "shared": Property("boolean", default=False, updatable=True),
        "tenant_id": Property(),
        "port_security_enabled": Property("boolean", updatable=True),
        "value_specs": Property("map", default={}, updatable=True),
        "dhcp_agent_ids": Property("list", updatable=True),
        "qos_policy": Property(updatable=True),
        "dns_domain": Property(updatable=True),
        "availability_zone_hints": Property("list"),
        "tags": Property("list", updatable=True),
    }
    attributes = frozenset(
        {
            "status",
            "name",
            "subnets",
            "admin_state_up",
            "tenant_id",
            "port_security_enabled",
            "mtu",
            "qos_policy_id",
            "l2_adjacency",
            "segments",
        }
    )

    async def create(self, resource: Resource) -> None:
        """Create the network."""
        props = resource.props
        await self.services.enter("neutron", "network_create")
        made = self.neutron.create_network(
            resource.stack.project_id,
            name=props["name"] or resource.physical_name,
            admin_state_up=props["admin_state_up"],
            shared=props["shared"],
            port_security=props["port_security_enabled"] is not False,
        )
        resource.physical_id = made.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename it."""
        network = self.record(resource)
        if network is None:
            raise UpdateReplace
        await self.services.enter("neutron", "network_update")
        network.name = resource.props["name"] or resource.physical_name
        network.admin_state_up = resource.props["admin_state_up"]
        network.touched()

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        network = self.record(resource)
        if network is not None:
            await self.services.enter("neutron", "network_delete")
            self.neutron.delete_network(network)

    def record(self, resource: Resource) -> Network | None:
        """Return the network."""
        return self.neutron.networks.get(resource.physical_id or "")


class SubnetType(NeutronType):
    """OS::Neutron::Subnet."""

    name = "OS::Neutron::Subnet"
    properties: ClassVar[Mapping[str, Property]] = {
        "network": Property(required=True, constraint="neutron.network"),
        "cidr": Property(),
        "name": Property(updatable=True),
        "ip_version": Property("integer", default=4),
        "gateway_ip": Property("any", default="auto", updatable=True),
        "enable_dhcp": Property("boolean", default=True, updatable=True),
        "allocation_pools": Property("list", updatable=True),
        "dns_nameservers": Property("list", default=[], updatable=True),
        "host_routes": Property("list", updatable=True),
        "subnetpool": Property(),
        "prefixlen": Property("integer"),
        "tenant_id": Property(),
        "ipv6_ra_mode": Property(),
        "ipv6_address_mode": Property(),
        "segment": Property(updatable=True),
        "value_specs": Property("map", default={}, updatable=True),
        "tags": Property("list", updatable=True),
    }
    attributes = frozenset(
        {
            "name",
            "network_id",
            "tenant_id",
            "allocation_pools",
            "gateway_ip",
            "host_routes",
            "ip_version",
            "cidr",
            "dns_nameservers",
            "enable_dhcp",
        }
    )

    async def create(self, resource: Resource) -> None:
        """Create the subnet."""
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "subnet_create")
        # An explicit null means no gateway, which a schema's default could not express.
        gateway = props["gateway_ip"] or "auto"
        given = resource.definition.properties
        if "gateway_ip" in given and given["gateway_ip"] is None:
            gateway = None
        made = self.neutron.create_subnet(
            project_id,
            self.network(props["network"], project_id),
            cidr=str(props["cidr"] or ""),
            name=props["name"] or resource.physical_name,
            gateway=gateway or None,
            pools=props["allocation_pools"] or (),
            enable_dhcp=props["enable_dhcp"],
            dns=list(props["dns_nameservers"] or ()),
            host_routes=list(props["host_routes"] or ()),
        )
        resource.physical_id = made.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename it, or change its DHCP options."""
        subnet = self.record(resource)
        if subnet is None:
            raise UpdateReplace
        await self.services.enter("neutron", "subnet_update")
        subnet.name = resource.props["name"] or resource.physical_name
        subnet.enable_dhcp = resource.props["enable_dhcp"]
        subnet.dns = list(resource.props["dns_nameservers"] or ())
        subnet.touched()

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        subnet = self.record(resource)
        if subnet is not None:
            await self.services.enter("neutron", "subnet_delete")
            self.neutron.delete_subnet(subnet)

    def record(self, resource: Resource) -> Subnet | None:
        """Return the subnet."""
        return self.neutron.subnets.get(resource.physical_id or "")


class RouterType(NeutronType):
    """OS::Neutron::Router."""

    name = "OS::Neutron::Router"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "external_gateway_info": Property("map", updatable=True),
        "admin_state_up": Property("boolean", default=True, updatable=True),
        "distributed": Property("boolean"),
        "ha": Property("boolean"),
        "l3_agent_ids": Property("list", updatable=True),
        "value_specs": Property("map", default={}, updatable=True),
        "availability_zone_hints": Property("list"),
        "tags": Property("list", updatable=True),
    }
    attributes = frozenset({"status", "external_gateway_info", "name", "admin_state_up", "tenant_id"})

    async def create(self, resource: Resource) -> None:
        """Create the router."""
        await self.services.enter("neutron", "router_create")
        made = self.neutron.create_router(
            resource.stack.project_id,
            name=resource.props["name"] or resource.physical_name,
            external_network_id=self._gateway(resource),
        )
        resource.physical_id = made.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename it or change its gateway."""
        router = self.record(resource)
        if router is None:
            raise UpdateReplace
        await self.services.enter("neutron", "router_update")
        router.name = resource.props["name"] or resource.physical_name
        router.external_network_id = self._gateway(resource)
        router.touched()

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        router = self.record(resource)
        if router is not None:
            await self.services.enter("neutron", "router_delete")
            self.neutron.delete_router(router)

    def record(self, resource: Resource) -> Router | None:
        """Return the router."""
        return self.neutron.routers.get(resource.physical_id or "")

    def _gateway(self, resource: Resource) -> str | None:
        gateway = resource.props["external_gateway_info"] or {}
        name = gateway.get("network")
        return self.network(name, resource.stack.project_id).record_id if name else None


class RouterInterfaceType(NeutronType):
    """OS::Neutron::RouterInterface."""

    name = "OS::Neutron::RouterInterface"
    properties: ClassVar[Mapping[str, Property]] = {
        "router": Property(required=True, constraint="neutron.router"),
        "subnet": Property(constraint="neutron.subnet"),
        "port": Property(constraint="neutron.port"),
    }

    async def create(self, resource: Resource) -> None:
        """Connect the router."""
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "router_interface_create")
        router = self.neutron.find(self.neutron.routers, str(props["router"]), project_id)
        if router is None:
            raise not_found("neutron", "RouterNotFound", f"Router {props['router']} could not be found")
        if props["subnet"]:
            subnet = self.subnet(props["subnet"], project_id)
            self.neutron.add_router_interface(router, subnet)
            # Heat's own form of the id, which names how the interface was made: its removal depends on that.
            resource.physical_id = f"{router.record_id}:subnet_id={subnet.record_id}"
            return
        port = self.neutron.find(self.neutron.ports, str(props["port"] or ""), project_id)
        if port is None:
            raise not_found("neutron", "PortNotFound", f"Port {props['port']} could not be found.")
        self.neutron.bind(port, device_id=router.record_id, owner="network:router_interface")
        router.interfaces[port.fixed_ips[0].subnet_id] = port.record_id
        resource.physical_id = f"{router.record_id}:port_id={port.record_id}"

    async def delete(self, resource: Resource) -> None:
        """Disconnect the router."""
        router_id, _, what = (resource.physical_id or "").partition(":")
        kind, _, record_id = what.partition("=")
        router = self.neutron.routers.get(router_id)
        if router is None:
            return
        await self.services.enter("neutron", "router_interface_delete")
        if kind == "subnet_id" and record_id in router.interfaces:
            self.neutron.remove_router_interface(router, record_id)
        elif kind == "port_id" and (port := self.neutron.ports.get(record_id)):
            router.interfaces = {s: p for s, p in router.interfaces.items() if p != record_id}
            self.neutron.unbind(port)

    def record(self, resource: Resource) -> Record | None:
        """Return its router."""
        return self.neutron.routers.get((resource.physical_id or "").partition(":")[0])

    def show(self, resource: Resource) -> Json:
        """It has no attributes of its own."""
        return {}


NETWORK_TYPES: Final[Sequence[type[ResourceType]]] = (NetType, SubnetType, RouterType, RouterInterfaceType)
