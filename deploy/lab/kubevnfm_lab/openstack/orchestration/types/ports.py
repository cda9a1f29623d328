"""OS::Neutron resources of servers: ports, floating IPs, security groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.errors import ServiceError, not_found
from kubevnfm_lab.openstack.network.records import Port, Record, SecurityGroup
from kubevnfm_lab.openstack.orchestration.stack import Resource, follow
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Invalid, Property, ResourceType, UpdateReplace
from kubevnfm_lab.openstack.orchestration.types.neutron import NeutronType


class PortType(NeutronType):
    """OS::Neutron::Port."""

    name = "OS::Neutron::Port"
    properties: ClassVar[Mapping[str, Property]] = {
        "network": Property(constraint="neutron.network"),
        "network_id": Property(constraint="neutron.network"),
        "name": Property(updatable=True),
        "fixed_ips": Property("list", updatable=True),
        "allowed_address_pairs": Property("list", default=[], updatable=True),
        "security_groups": Property("list", updatable=True),
        "admin_state_up": Property("boolean", default=True, updatable=True),
        "device_id": Property(default="", updatable=True),
        "device_owner": Property(default="", updatable=True),
        "mac_address": Property(updatable=True),
        "port_security_enabled": Property("boolean", updatable=True),
        "binding:vnic_type": Property(default="normal", updatable=True),
        "value_specs": Property("map", default={}, updatable=True),
        "qos_policy": Property(updatable=True),
        "dns_name": Property(updatable=True),
        "tags": Property("list", updatable=True),
        "replacement_policy": Property(default="AUTO", updatable=True),
        "no_fixed_ips": Property("boolean", default=False, updatable=True),
        "propagate_uplink_status": Property("boolean"),
    }
    attributes = frozenset(
        {
            "admin_state_up",
            "device_id",
            "device_owner",
            "fixed_ips",
            "mac_address",
            "name",
            "network_id",
            "security_groups",
            "status",
            "tenant_id",
            "allowed_address_pairs",
            "subnets",
            "port_security_enabled",
            "qos_policy_id",
            "dns_assignment",
            "network",
            "propagate_uplink_status",
        }
    )

    def validate(self, resource_name: str, props: Json) -> None:
        """Require a network."""
        if props["network"] is None and props["network_id"] is None:
            raise Invalid("Property error", f"resources.{resource_name}.properties", "Property network not assigned")

    async def create(self, resource: Resource) -> None:
        """Create the port."""
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "port_create")
        if self.services.durations.port_create_s:
            await asyncio.sleep(self.services.durations.port_create_s)
        network = self.network(props["network"] or props["network_id"], project_id)
        port = self.neutron.create_port(
            project_id,
            network,
            fixed_ips=self._fixed_ips(props, project_id),
            security_groups=self._groups(props, project_id),
            name=props["name"] or resource.physical_name,
            address_pairs=list(props["allowed_address_pairs"] or ()),
            admin_state_up=props["admin_state_up"],
            vnic_type=props["binding:vnic_type"],
            port_security=props["port_security_enabled"] is not False,
            device_owner=props["device_owner"] or "",
            device_id=props["device_id"] or "",
        )
        if props["mac_address"]:
            port.mac = props["mac_address"]
        resource.physical_id = port.record_id
        self._fill_pairs(port)

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Update the port."""
        port = self.record(resource)
        if port is None:
            raise UpdateReplace
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "port_update")
        if "fixed_ips" in changed:
            # An empty request asks for any free address, as Neutron gives one to a port without fixed_ips.
            self.neutron.readdress_port(port, self._fixed_ips(props, project_id) or [{}])
        if "name" in changed:
            port.name = props["name"] or resource.physical_name
        if "allowed_address_pairs" in changed:
            port.address_pairs = list(props["allowed_address_pairs"] or ())
            self._fill_pairs(port)
        if "security_groups" in changed:
            groups = self._groups(props, project_id)
            port.security_groups = groups if groups is not None else [self.neutron.default_group(project_id).record_id]
        if "admin_state_up" in changed:
            port.admin_state_up = props["admin_state_up"]
        port.touched()

    async def delete(self, resource: Resource) -> None:
        """Delete the port."""
        port = self.record(resource)
        if port is not None:
            await self.services.enter("neutron", "port_delete")
            self.neutron.delete_port(port)

    async def before_replacement(self, resource: Resource) -> None:
        """Release its addresses: the replacement may ask for the same."""
        port = self.record(resource)
        if port is not None:
            self.neutron.readdress_port(port, [])

    def record(self, resource: Resource) -> Port | None:
        """Return the port."""
        return self.neutron.ports.get(resource.physical_id or "")

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return an attribute; the addresses, the most frequent one, without building the whole answer."""
        port = self.record(resource)
        if port is None:
            return None
        if name == "fixed_ips":
            return follow([{"subnet_id": ip.subnet_id, "ip_address": ip.address} for ip in port.fixed_ips], path)
        if name == "subnets":
            subnets = self.neutron.subnets
            views = [subnets[ip.subnet_id].view() for ip in port.fixed_ips if ip.subnet_id in subnets]
            return follow(views, path)
        if name == "network":
            network = self.neutron.networks.get(port.network_id)
            return follow(network.view(), path) if network else None
        return super().attribute(resource, name, path)

    def _fixed_ips(self, props: Json, project_id: str) -> list[Json] | None:
        # None leaves the choice to Neutron, an empty list asks for a port without any address.
        if props["no_fixed_ips"]:
            return []
        if not props["fixed_ips"]:
            return None
        asked: list[Json] = []
        for one in props["fixed_ips"]:
            wanted: Json = {}
            if one.get("ip_address"):
                wanted["ip_address"] = one["ip_address"]
            subnet = one.get("subnet") or one.get("subnet_id")
            if subnet:
                wanted["subnet_id"] = self.subnet(subnet, project_id).record_id
            asked.append(wanted)
        return asked

    def _groups(self, props: Json, project_id: str) -> list[str] | None:
        if props["security_groups"] is None:
            return None
        ids: list[str] = []
        for name in props["security_groups"]:
            found = self.neutron.find(self.neutron.security_groups, str(name), project_id)
            if found is None:
                raise not_found("neutron", "SecurityGroupNotFound", f"Security group {name} does not exist")
            ids.append(found.record_id)
        return ids

    def _fill_pairs(self, port: Port) -> None:
        for pair in port.address_pairs:
            if not pair.get("mac_address"):
                pair["mac_address"] = port.mac


class FloatingIpType(NeutronType):
    """OS::Neutron::FloatingIP."""

    name = "OS::Neutron::FloatingIP"
    properties: ClassVar[Mapping[str, Property]] = {
        "floating_network": Property(required=True, constraint="neutron.network"),
        "floating_subnet": Property(constraint="neutron.subnet"),
        "port_id": Property(updatable=True, constraint="neutron.port"),
        "fixed_ip_address": Property(updatable=True),
        "floating_ip_address": Property(),
        "value_specs": Property("map", default={}),
        "dns_name": Property(updatable=True),
        "dns_domain": Property(updatable=True),
    }
    attributes = frozenset(
        {"router_id", "tenant_id", "floating_network_id", "fixed_ip_address", "floating_ip_address", "port_id"}
    )

    async def create(self, resource: Resource) -> None:
        """Allocate an address of the external network."""
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "floatingip_create")
        made = self.neutron.create_floating_ip(
            project_id,
            self.network(props["floating_network"], project_id),
            port=self._port(resource),
            fixed_address=props["fixed_ip_address"],
        )
        resource.physical_id = made.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Point it to another port."""
        floating = self.neutron.floating_ips.get(resource.physical_id or "")
        if floating is None:
            raise UpdateReplace
        await self.services.enter("neutron", "floatingip_update")
        self.neutron.associate(floating, self._port(resource), resource.props["fixed_ip_address"])

    async def delete(self, resource: Resource) -> None:
        """Release it."""
        floating = self.neutron.floating_ips.get(resource.physical_id or "")
        if floating is not None:
            await self.services.enter("neutron", "floatingip_delete")
            self.neutron.delete_floating_ip(floating)

    def record(self, resource: Resource) -> Record | None:
        """Return the floating IP."""
        return self.neutron.floating_ips.get(resource.physical_id or "")

    def _port(self, resource: Resource) -> Port | None:
        wanted = resource.props["port_id"]
        if not wanted:
            return None
        port = self.neutron.find(self.neutron.ports, str(wanted), resource.stack.project_id)
        if port is None:
            raise ServiceError("neutron", 404, "PortNotFound", f"Port {wanted} could not be found.")
        return port


class FloatingIpAssociationType(NeutronType):
    """OS::Neutron::FloatingIPAssociation."""

    name = "OS::Neutron::FloatingIPAssociation"
    properties: ClassVar[Mapping[str, Property]] = {
        "floatingip_id": Property(required=True, updatable=True),
        "port_id": Property(required=True, updatable=True, constraint="neutron.port"),
        "fixed_ip_address": Property(updatable=True),
    }

    async def create(self, resource: Resource) -> None:
        """Point the floating IP to the port."""
        props = resource.props
        await self.services.enter("neutron", "floatingip_update")
        floating = self.neutron.floating_ips.get(str(props["floatingip_id"]))
        port = self.neutron.find(self.neutron.ports, str(props["port_id"]), resource.stack.project_id)
        if floating is None or port is None:
            message = f"Floating IP {props['floatingip_id']} could not be found"
            raise not_found("neutron", "FloatingIPNotFound", message)
        self.neutron.associate(floating, port, props["fixed_ip_address"])
        resource.physical_id = floating.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Point it elsewhere."""
        await self.create(resource)

    async def delete(self, resource: Resource) -> None:
        """Point it nowhere."""
        floating = self.neutron.floating_ips.get(resource.physical_id or "")
        if floating is not None:
            await self.services.enter("neutron", "floatingip_update")
            self.neutron.associate(floating, None)

    def record(self, resource: Resource) -> Record | None:
        """Return the floating IP."""
        return self.neutron.floating_ips.get(resource.physical_id or "")


class SecurityGroupType(NeutronType):
    """OS::Neutron::SecurityGroup."""

    name = "OS::Neutron::SecurityGroup"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "description": Property(default="", updatable=True),
        "rules": Property("list", default=[], updatable=True),
    }

    async def create(self, resource: Resource) -> None:
        """Create the group and its rules."""
        await self.services.enter("neutron", "security_group_create")
        made = self.neutron.create_security_group(
            resource.stack.project_id,
            name=resource.props["name"] or resource.physical_name,
            description=resource.props["description"] or "",
        )
        resource.physical_id = made.record_id
        self._rules(resource, made)

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Replace the rules."""
        group = self.record(resource)
        if group is None:
            raise UpdateReplace
        await self.services.enter("neutron", "security_group_update")
        group.name = resource.props["name"] or resource.physical_name
        group.description = resource.props["description"] or ""
        group.rules.clear()
        # A group without this rule lets nothing out: Neutron adds it to every group, and Heat restores it on an update.
        self.neutron.add_rule(group, direction="egress")
        self._rules(resource, group)
        group.touched()

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        group = self.record(resource)
        if group is not None:
            await self.services.enter("neutron", "security_group_delete")
            self.neutron.delete_security_group(group)

    def record(self, resource: Resource) -> SecurityGroup | None:
        """Return the group."""
        return self.neutron.security_groups.get(resource.physical_id or "")

    def _rules(self, resource: Resource, group: SecurityGroup) -> None:
        for rule in resource.props["rules"] or ():
            facts = {**rule, "direction": rule.get("direction") or "ingress"}
            # Without a group of its own choice, such a rule means the group that it belongs to.
            if facts.pop("remote_mode", None) == "remote_group_id" and not facts.get("remote_group_id"):
                facts["remote_group_id"] = group.record_id
            self.neutron.add_rule(group, **facts)


PORT_TYPES: Final[Sequence[type[ResourceType]]] = (
    PortType,
    FloatingIpType,
    FloatingIpAssociationType,
    SecurityGroupType,
)
