"""Neutron's rules: the addresses of ports, what may be deleted, what the quota permits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, Final, TypeVar

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_z
from kubevnfm_lab.openstack.network.addresses import AddressRange
from kubevnfm_lab.openstack.network.records import (
    AnyNetwork,
    FixedIp,
    FloatingIp,
    Json,
    Network,
    Port,
    Record,
    Router,
    SecurityGroup,
    Subnet,
)
from kubevnfm_lab.openstack.quotas import Quotas

_FIRST_ADDRESS: Final = 10
"""Below it: the gateway (.1), DHCP (.2), and addresses that a person binds by hand."""
LAB_NETWORKS: Final = (
    ("net0", "subnet0", 0, 24),
    ("net1", "subnet1", 1, 24),
    ("net_mgmt", "subnet_mgmt", 2, 24),
    ("net_large", "subnet_large", 128, 18),
)
"""Name, subnet, third octet and prefix; net_large takes about 16,000 ports, where a /24 is too small."""

R = TypeVar("R", bound=Record)


class Neutron:
    """All networks of the cloud."""

    def __init__(
        self, quotas: Quotas, addresses: AddressRange, *, route_floating: Callable[[str, str | None], None]
    ) -> None:
        """``route_floating`` is called with a floating address and the fixed address behind it, or None."""
        self._quotas, self._route_floating = quotas, route_floating
        self.networks: dict[str, Network] = {}
        self.subnets: dict[str, Subnet] = {}
        self.ports: dict[str, Port] = {}
        self.routers: dict[str, Router] = {}
        self.security_groups: dict[str, SecurityGroup] = {}
        self.floating_ips: dict[str, FloatingIp] = {}
        self._ports_by_network: dict[str, dict[str, Port]] = {}
        self._default_groups: dict[str, SecurityGroup] = {}
        self._addresses = addresses
        self.port_guards: list[Callable[[Port], None]] = []
        """Called before a port is deleted; each may refuse."""

    def make_lab_networks(self, project_id: str, *, shared: bool = False) -> None:
        """Create the networks that exist from the start: those of the project, and the external ``public``."""
        for name, subnet, third, prefix in LAB_NETWORKS:
            made = self.create_network(project_id, name=name, shared=shared, builtin=True)
            self.create_subnet(project_id, made, name=subnet, cidr=str(self._addresses.network(third, prefix)))
        public = self.create_network(project_id, name="public", external=True, builtin=True)
        outside = str(self._addresses.network(254))
        self.create_subnet(project_id, public, name="public-subnet", cidr=outside, enable_dhcp=False)
        # They are older than the project, so its quota is for its own networks only.
        self._quotas.release(project_id, network=len(LAB_NETWORKS) + 1, subnet=len(LAB_NETWORKS) + 1)

    # -- networks and subnets

    def create_network(self, project_id: str, *, name: str = "", **facts: Any) -> Network:
        """Create a network."""
        self._claim(project_id, "network")
        made = Network(project_id=project_id, name=name, **facts)
        self.networks[made.record_id] = made
        self._ports_by_network[made.record_id] = {}
        return made

    def delete_network(self, network: Network) -> None:
        """Delete a network and its subnets; raise NetworkInUse while it has ports of servers or users."""
        if ports := self._ports_by_network[network.record_id]:
            raise conflict(
                "neutron",
                "NetworkInUse",
                f"Unable to complete operation on network {network.record_id}. There are one or more ports still in use"
                f" on the network, id for these ports is: {','.join(ports)}.",
            )
        for subnet_id in list(network.subnet_ids):
            self.delete_subnet(self.subnets[subnet_id])
        del self.networks[network.record_id], self._ports_by_network[network.record_id]
        self._quotas.release(network.project_id, network=1)

    def create_subnet(
        self,
        project_id: str,
        network: Network,
        *,
        cidr: str,
        name: str = "",
        gateway: str | None = "auto",
        pools: Sequence[Mapping[str, str]] = (),
        **facts: Any,
    ) -> Subnet:
        """Create a subnet; raise BadRequest for a bad or overlapping range. ``gateway``: "auto": the first address."""
        try:
            net: AnyNetwork = ip_network(cidr)
        except ValueError as error:
            message = f"Invalid input for operation: {cidr} is not in a CIDR format."
            raise bad_request("neutron", message, "InvalidInput") from error
        for other_id in network.subnet_ids:
            if net.version == self.subnets[other_id].cidr.version and net.overlaps(self.subnets[other_id].cidr):
                raise bad_request(
                    "neutron",
                    f"Invalid input for operation: Requested subnet with cidr: {cidr} for network: {network.record_id}"
                    f" overlaps with another subnet.",
                    "InvalidInput",
                )
        self._claim(project_id, "subnet")
        base = int(net.network_address)
        # Networks of one or two addresses have no broadcast address (RFC 3021).
        last = base + net.num_addresses - 2 if net.num_addresses > 2 else base + net.num_addresses - 1
        # Only the lab's own addresses can be bound by hand; other networks start at .1, as in Neutron.
        lab_range = net.is_loopback and net.num_addresses > 2 * _FIRST_ADDRESS
        ranges = [(int(ip_address(p["start"])), int(ip_address(p["end"]))) for p in pools] or [
            (base + (_FIRST_ADDRESS if lab_range else 1), last)
        ]
        if gateway == "auto":
            gateway = str(net.network_address + 1) if net.num_addresses > 2 else None
        made = Subnet(
            project_id=project_id,
            name=name,
            network_id=network.record_id,
            cidr=net,
            gateway=gateway,
            pools=ranges,
            **facts,
        )
        if gateway:
            made.used.add(int(ip_address(gateway)))
        self.subnets[made.record_id] = made
        network.subnet_ids.append(made.record_id)
        return made

    def delete_subnet(self, subnet: Subnet) -> None:
        """Delete a subnet; raise SubnetInUse while a port has an address of it."""
        for port in self._ports_by_network[subnet.network_id].values():
            if any(ip.subnet_id == subnet.record_id for ip in port.fixed_ips):
                raise conflict(
                    "neutron",
                    "SubnetInUse",
                    f"Unable to complete operation on subnet {subnet.record_id}: One or more ports have an IP"
                    f" allocation from this subnet.",
                )
        self.networks[subnet.network_id].subnet_ids.remove(subnet.record_id)
        del self.subnets[subnet.record_id]
        self._quotas.release(subnet.project_id, subnet=1)

    # -- ports

    def create_port(
        self,
        project_id: str,
        network: Network,
        *,
        fixed_ips: Sequence[Mapping[str, Any]] | None = None,
        security_groups: Sequence[str] | None = None,
        **facts: Any,
    ) -> Port:
        """Create a port with the requested addresses (``{ip_address, subnet_id}``, either), else any free one."""
        self._claim(project_id, "port")
        try:
            addresses = self._allocate(network, fixed_ips)
        except ServiceError:
            self._quotas.release(project_id, port=1)
            raise
        # An empty list means no group at all, as router interfaces have it.
        groups = list(security_groups) if security_groups is not None else [self.default_group(project_id).record_id]
        made = Port(
            project_id=project_id, network_id=network.record_id, fixed_ips=addresses, security_groups=groups, **facts
        )
        self.ports[made.record_id] = made
        self._ports_by_network[network.record_id][made.record_id] = made
        return made

    def readdress_port(self, port: Port, fixed_ips: Sequence[Mapping[str, Any]]) -> None:
        """Change a port's addresses; it keeps its own if the requested ones are taken."""
        before = port.fixed_ips
        # Freed first: the request may keep some of the port's own addresses.
        self._free(before)
        try:
            port.fixed_ips = self._allocate(self.networks[port.network_id], fixed_ips)
        except ServiceError:
            for ip in before:
                self.subnets[ip.subnet_id].used.add(int(ip_address(ip.address)))
            raise
        port.touched()

    def delete_port(self, port: Port) -> None:
        """Delete a port, release its addresses, and detach the floating IPs that lead to it."""
        if port.record_id not in self.ports:
            return
        if port.device_owner == "network:router_interface":
            raise conflict(
                "neutron",
                "ServicePortInUse",
                f"Port {port.record_id} cannot be deleted directly via the port API: has device owner"
                f" network:router_interface.",
            )
        for guard in self.port_guards:
            guard(port)
        self.drop_port(port)

    def drop_port(self, port: Port) -> None:
        """Delete a port, even one that a router owns."""
        del self.ports[port.record_id], self._ports_by_network[port.network_id][port.record_id]
        self._free(port.fixed_ips)
        self._quotas.release(port.project_id, port=1)
        # Most ports have none, and the search is linear.
        if self.floating_ips:
            for floating in self.floating_ips.values():
                if floating.port_id == port.record_id:
                    floating.router_id = None
                    self.associate(floating, None)

    def bind(self, port: Port, *, device_id: str, owner: str) -> None:
        """Bind a port to a device; raise PortInUse if another has it."""
        if port.device_id and port.device_id != device_id:
            raise conflict("neutron", "PortInUse", f"Port {port.record_id} is still in use.")
        port.device_id, port.device_owner = device_id, owner
        port.touched()

    def unbind(self, port: Port) -> None:
        """Unbind a port from its device."""
        port.device_id = port.device_owner = ""
        port.touched()

    def ports_of_network(self, network_id: str) -> Iterable[Port]:
        """Return the ports on a network."""
        return self._ports_by_network.get(network_id, {}).values()

    # -- routers

    def create_router(self, project_id: str, *, name: str = "", external_network_id: str | None = None) -> Router:
        """Create a router."""
        self._claim(project_id, "router")
        made = Router(project_id=project_id, name=name, external_network_id=external_network_id)
        self.routers[made.record_id] = made
        return made

    def delete_router(self, router: Router) -> None:
        """Delete a router; raise RouterInUse while it has interfaces."""
        if router.interfaces:
            ports = ",".join(router.interfaces.values())
            message = f"Router {router.record_id} has ports still attached: {ports}"
            raise conflict("neutron", "RouterInUse", message)
        del self.routers[router.record_id]
        self._quotas.release(router.project_id, router=1)

    def add_router_interface(self, router: Router, subnet: Subnet) -> Port:
        """Connect a router with a subnet, at the subnet's gateway address."""
        if subnet.record_id in router.interfaces:
            raise bad_request("neutron", f"Router already has a port on subnet {subnet.record_id}", "BadRequest")
        gateway = subnet.gateway
        if gateway:
            # The gateway's address is reserved for this very port.
            subnet.used.discard(int(ip_address(gateway)))
        asked: Json = {"subnet_id": subnet.record_id, **({"ip_address": gateway} if gateway else {})}
        port = self.create_port(
            router.project_id,
            self.networks[subnet.network_id],
            fixed_ips=[asked],
            security_groups=[],
            device_id=router.record_id,
            device_owner="network:router_interface",
        )
        router.interfaces[subnet.record_id] = port.record_id
        return port

    def remove_router_interface(self, router: Router, subnet_id: str) -> Port:
        """Disconnect a router from a subnet."""
        port_id = router.interfaces.get(subnet_id)
        if port_id is None:
            message = f"Router {router.record_id} has no interface on subnet {subnet_id}"
            raise not_found("neutron", "RouterInterfaceNotFoundForSubnet", message)
        port = self.ports[port_id]
        self.drop_port(port)
        del router.interfaces[subnet_id]
        subnet = self.subnets.get(subnet_id)
        if subnet is not None and subnet.gateway:
            subnet.used.add(int(ip_address(subnet.gateway)))
        return port

    # -- security groups

    def default_group(self, project_id: str) -> SecurityGroup:
        """Return a project's default group, which its ports get if they name none."""
        group = self._default_groups.get(project_id)
        if group is None:
            group = SecurityGroup(project_id=project_id, name="default", description="Default security group")
            self._default_groups[project_id] = self.security_groups[group.record_id] = group
            # Neutron's default group permits everything outwards, and inwards among its members.
            self.add_rule(group, direction="egress")
            self.add_rule(group, direction="ingress")
        return group

    def create_security_group(self, project_id: str, *, name: str = "", description: str = "") -> SecurityGroup:
        """Create a security group; it permits all outgoing traffic, as Neutron's do."""
        self._claim(project_id, "security_group")
        made = SecurityGroup(project_id=project_id, name=name, description=description)
        self.security_groups[made.record_id] = made
        self.add_rule(made, direction="egress")
        return made

    def delete_security_group(self, group: SecurityGroup) -> None:
        """Delete a security group; raise SecurityGroupInUse while a port has it."""
        if any(group.record_id in port.security_groups for port in self.ports.values()):
            raise conflict("neutron", "SecurityGroupInUse", f"Security Group {group.record_id} in use.")
        if self._default_groups.get(group.project_id) is group:
            message = "Insufficient rights for removing default security group."
            raise conflict("neutron", "SecurityGroupCannotRemoveDefault", message)
        del self.security_groups[group.record_id]
        self._quotas.release(group.project_id, security_group=1)

    def add_rule(self, group: SecurityGroup, *, direction: str, **facts: Any) -> Json:
        """Add a rule to a group and return its API form."""
        rule: Json = {
            "id": new_uuid(),
            "tenant_id": group.project_id,
            "project_id": group.project_id,
            "security_group_id": group.record_id,
            "ethertype": facts.get("ethertype") or "IPv4",
            "direction": direction,
            "protocol": facts.get("protocol"),
            "port_range_min": facts.get("port_range_min"),
            "port_range_max": facts.get("port_range_max"),
            "remote_ip_prefix": facts.get("remote_ip_prefix"),
            "remote_group_id": facts.get("remote_group_id"),
            "remote_address_group_id": None,
            "normalized_cidr": facts.get("remote_ip_prefix"),
            "description": facts.get("description"),
            "created_at": now_z(),
            "updated_at": now_z(),
            "revision_number": 0,
        }
        group.rules[rule["id"]] = rule
        return rule

    # -- floating IPs

    def create_floating_ip(
        self,
        project_id: str,
        network: Network,
        *,
        port: Port | None = None,
        fixed_address: str | None = None,
        **facts: Any,
    ) -> FloatingIp:
        """Allocate an address of an external network, for a port if one is given."""
        if not network.external:
            message = f"Network {network.record_id} is not a valid external network"
            raise bad_request("neutron", f"Bad floatingip request: {message}.", "BadRequest")
        self._claim(project_id, "floatingip")
        address = self._allocate(network, None)[0].address
        made = FloatingIp(project_id=project_id, network_id=network.record_id, address=address, **facts)
        self.floating_ips[made.record_id] = made
        if port is not None:
            self.associate(made, port, fixed_address)
        return made

    def associate(self, floating: FloatingIp, port: Port | None, fixed_address: str | None = None) -> None:
        """Point a floating IP to a port, or to none."""
        floating.port_id = port.record_id if port else None
        floating.fixed_address = None
        if port is not None:
            floating.fixed_address = fixed_address or (port.fixed_ips[0].address if port.fixed_ips else None)
        floating.touched()
        self._route_floating(floating.address, floating.fixed_address)

    def delete_floating_ip(self, floating: FloatingIp) -> None:
        """Release a floating IP."""
        del self.floating_ips[floating.record_id]
        self._route_floating(floating.address, None)
        for subnet_id in self.networks[floating.network_id].subnet_ids:
            self.subnets[subnet_id].used.discard(int(ip_address(floating.address)))
        self._quotas.release(floating.project_id, floatingip=1)

    # -- finding

    def find_network(self, name_or_id: str, project_id: str) -> Network | None:
        """Return a network by id or, among those the project can use, by name."""
        found = self.networks.get(name_or_id)
        if found is not None:
            return found
        usable = (n for n in self.networks.values() if n.project_id == project_id or n.shared or n.external)
        return next((n for n in usable if n.name == name_or_id), None)

    def find(self, table: Mapping[str, R], name_or_id: str, project_id: str) -> R | None:
        """Return a record of the project by id or name."""
        found = table.get(name_or_id)
        if found is not None:
            return found
        return next((r for r in table.values() if r.name == name_or_id and r.project_id == project_id), None)

    # -- the inside

    def _claim(self, project_id: str, name: str) -> None:
        if self._quotas.exceeded(project_id, **{name: 1}):
            raise conflict("neutron", "OverQuota", f"Quota exceeded for resources: ['{name}'].")
        self._quotas.use(project_id, **{name: 1})

    def _allocate(self, network: Network, asked: Sequence[Mapping[str, Any]] | None) -> list[FixedIp]:
        if asked is None:
            return self._any_address(network)
        allocated: list[FixedIp] = []
        try:
            # One by one, so that the handler below can release those already taken.
            for one in asked:
                allocated += [self._asked_address(network, one)]
        except ServiceError:
            self._free(allocated)
            raise
        return allocated

    def _any_address(self, network: Network) -> list[FixedIp]:
        subnets = [self.subnets[subnet_id] for subnet_id in network.subnet_ids]
        if not subnets:
            return []
        for subnet in subnets:
            number = subnet.next_free()
            if number is not None:
                return [_take(subnet, number)]
        message = f"No more IP addresses available on network {network.record_id}."
        raise conflict("neutron", "IpAddressGenerationFailure", message)

    def _asked_address(self, network: Network, asked: Mapping[str, Any]) -> FixedIp:
        subnet_id = asked.get("subnet_id")
        text = asked.get("ip_address")
        if subnet_id and subnet_id not in network.subnet_ids:
            raise bad_request(
                "neutron",
                f"Invalid input for operation: Failed to create port on network {network.record_id}, because fixed_ips"
                f" included invalid subnet {subnet_id}.",
                "InvalidInput",
            )
        subnets = [self.subnets[subnet_id]] if subnet_id else [self.subnets[one] for one in network.subnet_ids]
        if not text:
            for subnet in subnets:
                number = subnet.next_free()
                if number is not None:
                    return _take(subnet, number)
            message = f"No more IP addresses available on network {network.record_id}."
            raise conflict("neutron", "IpAddressGenerationFailure", message)
        try:
            address = ip_address(str(text))
        except ValueError as error:
            message = f"Invalid input for fixed_ips. Reason: '{text}' is not a valid IP address."
            raise bad_request("neutron", message, "HTTPBadRequest") from error
        for subnet in subnets:
            if address in subnet.cidr:
                if int(address) in subnet.used:
                    raise conflict(
                        "neutron",
                        "IpAddressAlreadyAllocated",
                        f"IP address {address} already allocated in subnet {subnet.record_id}",
                    )
                return _take(subnet, int(address))
        raise bad_request(
            "neutron",
            f"IP address {address} is not a valid IP for any of the subnets on the specified network.",
            "InvalidIpForNetwork",
        )

    def _free(self, addresses: Iterable[FixedIp]) -> None:
        for ip in addresses:
            subnet = self.subnets.get(ip.subnet_id)
            if subnet is not None:
                subnet.used.discard(int(ip_address(ip.address)))


def _take(subnet: Subnet, number: int) -> FixedIp:
    subnet.used.add(number)
    kind = type(subnet.cidr.network_address)
    return FixedIp(subnet.record_id, str(kind(number)))


def ipv4_addresses(port: Port) -> list[IPv4Address]:
    """Return the port's IPv4 addresses."""
    return [IPv4Address(ip.address) for ip in port.fixed_ips if ":" not in ip.address]
