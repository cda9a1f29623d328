"""OS::Nova resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.compute.records import AttachedVolume, Server, ServerRequest
from kubevnfm_lab.openstack.compute.views import NEWEST_MINOR
from kubevnfm_lab.openstack.errors import ServiceError, bad_request
from kubevnfm_lab.openstack.ids import new_uuid
from kubevnfm_lab.openstack.network.records import Port
from kubevnfm_lab.openstack.orchestration.failures import ResourceFailure, ResourceInError, validation_failed
from kubevnfm_lab.openstack.orchestration.stack import Resource, follow
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType, UpdateReplace
from kubevnfm_lab.openstack.settings import Flavor


class ServerType(ResourceType):
    """OS::Nova::Server."""

    name = "OS::Nova::Server"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "image": Property(updatable=True, constraint="glance.image"),
        "flavor": Property(required=True, updatable=True, constraint="nova.flavor"),
        "flavor_update_policy": Property(default="RESIZE", updatable=True),
        "image_update_policy": Property(default="REBUILD", updatable=True),
        "networks": Property("list", updatable=True),
        "key_name": Property(constraint="nova.keypair"),
        "user_data": Property(default=""),
        "user_data_format": Property(default="HEAT_CLOUDINIT", allowed=("HEAT_CLOUDINIT", "SOFTWARE_CONFIG", "RAW")),
        "user_data_update_policy": Property(default="REPLACE", updatable=True),
        "metadata": Property("map", updatable=True),
        "security_groups": Property("list", default=[]),
        "availability_zone": Property(),
        "block_device_mapping": Property("list"),
        "block_device_mapping_v2": Property("list"),
        "scheduler_hints": Property("map"),
        "config_drive": Property("boolean"),
        "admin_pass": Property(updatable=True),
        "admin_user": Property(),
        "diskConfig": Property(),
        "reservation_id": Property(),
        "personality": Property("map", default={}),
        "software_config_transport": Property(updatable=True),
        "deployment_swift_data": Property("map", default={}, updatable=True),
        "tags": Property("list", updatable=True),
    }
    attributes = frozenset(
        {
            "name",
            "addresses",
            "networks",
            "first_address",
            "instance_name",
            "accessIPv4",
            "accessIPv6",
            "console_urls",
            "os_collect_config",
            "tags",
        }
    )

    def validate(self, resource_name: str, props: Json) -> None:
        """Require an image or a volume to boot from."""
        if not props["image"] and not props["block_device_mapping"] and not props["block_device_mapping_v2"]:
            raise validation_failed(
                f"Either volume_id, snapshot_id, image_id or swap_size must be specified, or an image for instance"
                f" {resource_name}."
            )

    async def create(self, resource: Resource) -> None:
        """Create the server and wait until it is ACTIVE."""
        request = self._request(resource)
        await self.services.enter("nova", "server_create", request.name)
        nova = self.services.nova
        server = nova.begin(request, project_id=resource.stack.project_id, user_id=resource.stack.user_id)
        # Set before the build, so that a delete finds the server even if the build fails.
        resource.physical_id = server.server_id
        await nova.build(server, request)
        if server.status != "ACTIVE":
            fault = server.fault or {"message": "Unknown", "code": "Unknown"}
            raise ResourceInError(f"Message: {fault['message']}, Code: {fault['code']}")

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename, resize, rebuild or reconnect the server."""
        server = self._server(resource)
        if server is None:
            raise UpdateReplace
        props = resource.props
        await self.services.enter("nova", "server_update", server.name)
        if "name" in changed:
            server.name = props["name"] or resource.physical_name
        if "metadata" in changed:
            server.metadata = _text_map(props["metadata"])
        if "tags" in changed:
            server.tags = list(props["tags"] or ())
        if "flavor" in changed:
            if props["flavor_update_policy"] == "REPLACE":
                raise UpdateReplace
            self.services.nova.resize(server, self._flavor(props["flavor"]))
        if "image" in changed:
            if props["image_update_policy"] == "REPLACE":
                raise UpdateReplace
            image = self.services.glance.find(str(props["image"]))
            # A rebuild keeps the server's id, ports and addresses.
            self.services.nova.begin_rebuild(server, image.image_id if image else None)
            await self.services.nova.rebuild(server)
        if "networks" in changed:
            # The ports change in Neutron first; the machine then boots with the new addresses.
            self._reconnect(resource, server)
            await self.services.nova.rewire(server)

    async def delete(self, resource: Resource) -> None:
        """Delete the server and wait until it is gone."""
        server = self._server(resource)
        if server is not None:
            await self.services.enter("nova", "server_delete", server.name)
            await self.services.nova.destroy(server)

    async def suspend(self, resource: Resource) -> None:
        """Suspend the server and wait until it is SUSPENDED."""
        server = self._found(resource)
        if server.status != "SUSPENDED":
            await self.services.enter("nova", "server_action", server.name)
            await self.services.nova.suspend(server)

    async def resume(self, resource: Resource) -> None:
        """Resume the server and wait until it is ACTIVE."""
        server = self._found(resource)
        if server.status != "ACTIVE":
            await self.services.enter("nova", "server_action", server.name)
            await self.services.nova.resume(server)

    async def before_replacement(self, resource: Resource) -> None:
        """Release the ports for the server's replacement."""
        server = self._server(resource)
        if server is not None:
            await self.services.nova.cut_off(server)

    def is_there(self, resource: Resource) -> bool:
        """A server in ERROR does not count."""
        server = self._server(resource)
        return server is not None and server.status not in ("ERROR", "DELETED")

    def show(self, resource: Resource) -> Json:
        """Return what Nova shows of the server."""
        server = self._server(resource)
        if server is None:
            return {}
        # Heat asks for the newest micro-version it knows, so all fields are present.
        shown = self.services.server_views.show(server, self.services.base_url, NEWEST_MINOR)
        return {**shown, "os_collect_config": {}}

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return an attribute; ``networks`` are plain addresses by network name and id."""
        server = self._server(resource)
        if server is None:
            return None
        if name == "show":
            return follow(self.show(resource), path)
        if name == "name":
            return server.name
        if name == "tags":
            return server.tags
        if name == "instance_name":
            return f"instance-{server.server_id[:8]}"
        by_network = self.services.server_views.addresses(server)
        if name == "first_address":
            return next((one["addr"] for shown in by_network.values() for one in shown), "")
        if name == "networks":
            plain: dict[str, Any] = {network: [one["addr"] for one in shown] for network, shown in by_network.items()}
            # Templates refer to networks by name or by id, so both keys lead to the addresses.
            for port in self.services.nova.ports_of(server):
                network = self.services.neutron.networks[port.network_id]
                plain[network.record_id] = plain[network.name]
            return follow(plain, path)
        if name == "addresses":
            return follow(self._addresses_with_ports(server), path)
        return None

    def _addresses_with_ports(self, server: Server) -> Json:
        shown = self.services.server_views.addresses(server)
        ports = {port.mac: port for port in self.services.nova.ports_of(server)}
        for name, addresses in list(shown.items()):
            for one in addresses:
                one["port"] = ports[one["OS-EXT-IPS-MAC:mac_addr"]].record_id
            network_id = ports[addresses[0]["OS-EXT-IPS-MAC:mac_addr"]].network_id if addresses else name
            shown[network_id] = addresses
        return shown

    def _server(self, resource: Resource) -> Server | None:
        return self.services.nova.servers.get(resource.physical_id or "")

    def _found(self, resource: Resource) -> Server:
        server = self._server(resource)
        if server is None:
            raise ResourceFailure("NotFound", f"Failed to find server {resource.physical_id}")
        return server

    def _flavor(self, name: Any) -> Flavor:
        found = self.services.nova.find_flavor(str(name))
        if found is None:
            raise bad_request("nova", f"Flavor {name} could not be found.")
        return found

    def _request(self, resource: Resource) -> ServerRequest:
        props = resource.props
        image = self.services.glance.find(str(props["image"])) if props["image"] else None
        # "zone:host" pins a server to a host.
        zone, _, host = str(props["availability_zone"] or "").partition(":")
        request = ServerRequest(
            name=props["name"] or resource.physical_name,
            flavor=self._flavor(props["flavor"]),
            image_id=image.image_id if image else None,
            key_name=props["key_name"],
            user_data=self._user_data(props),
            metadata=_text_map(props["metadata"]),
            security_groups=[str(one) for one in props["security_groups"]],
            availability_zone=zone or None,
            host=host or None,
            group_id=(props["scheduler_hints"] or {}).get("group"),
            tags=list(props["tags"] or ()),
            config_drive=bool(props["config_drive"]),
        )
        for network in props["networks"] or ():
            self._connect(request, network, resource.stack.project_id)
        for one in props["block_device_mapping_v2"] or ():
            self._add_volume(request, one)
        for one in props["block_device_mapping"] or ():
            self._add_volume(request, one)
        return request

    def _user_data(self, props: Json) -> str:
        text = str(props["user_data"] or "")
        # a software configuration is given by its id
        return self.services.configs.get(text, text)

    def _connect(self, request: ServerRequest, network: Json, project_id: str) -> None:
        neutron = self.services.neutron
        if network.get("port"):
            port = neutron.find(neutron.ports, str(network["port"]), project_id)
            if port is None:
                raise bad_request("nova", f"Port {network['port']} could not be found.")
            request.port_ids.append(port.record_id)
            return
        subnet = neutron.find(neutron.subnets, str(network.get("subnet") or ""), project_id)
        wanted = network.get("network") or network.get("uuid") or (subnet.network_id if subnet else "")
        found = neutron.find_network(str(wanted), project_id)
        if found is None:
            raise bad_request("nova", f"Network {wanted} could not be found.")
        request.network_ids.append((found.record_id, network.get("fixed_ip")))

    def _add_volume(self, request: ServerRequest, one: Json) -> None:
        device = str(one.get("device_name") or "")
        goes_with_server = str(one.get("delete_on_termination", False)).lower() == "true"
        volume_id = one.get("volume_id")
        # The boot volume is the first disk, under the name that cloud images expect.
        boots = one.get("boot_index") in (0, "0")
        if boots and not device:
            device = "/dev/vda"
        if volume_id:
            request.volumes.append(
                AttachedVolume(
                    volume_id=str(volume_id), device=device, delete_on_termination=goes_with_server, boots=boots
                )
            )
        elif one.get("image") or one.get("volume_size"):
            image = self.services.glance.find(str(one.get("image") or one.get("image_id") or ""))
            size = int(one.get("volume_size") or 1)
            request.new_volumes.append((size, image.image_id if image else None, goes_with_server))

    def _reconnect(self, resource: Resource, server: Server) -> None:
        neutron, nova = self.services.neutron, self.services.nova
        request = ServerRequest(name=server.name, flavor=server.flavor)
        # Ports that stay are not touched, so the server keeps their addresses.
        for network in resource.props["networks"] or ():
            self._connect(request, network, server.project_id)
        for port in nova.ports_of(server):
            if port.record_id not in request.port_ids:
                nova.detach_port(server, port)
        for port_id in request.port_ids:
            if port_id not in server.port_ids:
                nova.attach_port(server, neutron.ports[port_id])
        for network_id, address in request.network_ids:
            asked = [{"ip_address": address}] if address else None
            made: Port = neutron.create_port(
                server.project_id,
                neutron.networks[network_id],
                fixed_ips=asked,
                device_id=server.server_id,
                device_owner="compute:nova",
                made_by_nova=True,
            )
            server.port_ids.append(made.record_id)


class ServerGroupType(ResourceType):
    """OS::Nova::ServerGroup."""

    name = "OS::Nova::ServerGroup"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(),
        "policies": Property("list", default=[]),
        "rules": Property("map"),
    }

    async def create(self, resource: Resource) -> None:
        """Create the group."""
        await self.services.enter("nova", "server_group_create")
        policies = resource.props["policies"] or ["anti-affinity"]
        made = self.services.nova.add_group(
            name=resource.props["name"] or resource.physical_name,
            policy=str(policies[0]),
            project_id=resource.stack.project_id,
            user_id=resource.stack.user_id,
        )
        resource.physical_id = made.group_id

    async def delete(self, resource: Resource) -> None:
        """Delete the group; its servers stay."""
        await self.services.enter("nova", "server_group_delete")
        self.services.nova.groups.pop(resource.physical_id or "", None)

    def show(self, resource: Resource) -> Json:
        """Return what Nova shows of the group."""
        group = self.services.nova.groups.get(resource.physical_id or "")
        return group.view(NEWEST_MINOR) if group else {}


class KeyPairType(ResourceType):
    """OS::Nova::KeyPair."""

    name = "OS::Nova::KeyPair"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(required=True),
        "public_key": Property(),
        "save_private_key": Property("boolean", default=False),
        "type": Property(),
        "user": Property(),
    }
    attributes = frozenset({"public_key", "private_key"})

    async def create(self, resource: Resource) -> None:
        """Store the public key; Nova has generated none itself since 2.92."""
        await self.services.enter("nova", "keypair_create")
        if not resource.props["public_key"]:
            raise ServiceError(
                "nova",
                400,
                "BadRequest",
                "Invalid input for field/attribute keypair. Value: {'name': "
                f"{resource.props['name']!r}, 'type': 'ssh'}}. 'public_key' is a required property",
            )
        self.services.nova.add_key_pair(resource.stack.user_id, resource.props["name"], resource.props["public_key"])
        resource.physical_id = resource.props["name"]

    async def delete(self, resource: Resource) -> None:
        """Delete the key."""
        await self.services.enter("nova", "keypair_delete")
        self.services.nova.key_pairs.pop((resource.stack.user_id, resource.physical_id or ""), None)

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return the public key; there is no private one."""
        key = self.services.nova.key_pairs.get((resource.stack.user_id, resource.physical_id or ""))
        if name == "public_key":
            return key.public_key if key else None
        return follow(key.view(NEWEST_MINOR), path) if key and name == "show" else None

    def show(self, resource: Resource) -> Json:
        """Return both keys as the API shows them."""
        return {"public_key": resource.props.get("public_key"), "private_key": ""}


class FlavorType(ResourceType):
    """OS::Nova::Flavor."""

    name = "OS::Nova::Flavor"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(),
        "flavorid": Property(default="auto"),
        "ram": Property("integer", required=True),
        "vcpus": Property("integer", required=True),
        "disk": Property("integer", default=0),
        "swap": Property("integer", default=0),
        "ephemeral": Property("integer", default=0),
        "rxtx_factor": Property("number", default=1.0),
        "extra_specs": Property("map", updatable=True),
        "is_public": Property("boolean", default=True),
        "tenants": Property("list", default=[], updatable=True),
        "description": Property(updatable=True),
    }
    attributes = frozenset({"is_public", "extra_specs"})

    async def create(self, resource: Resource) -> None:
        """Create the flavor."""
        props = resource.props
        await self.services.enter("nova", "flavor_create")
        flavor_id = new_uuid() if props["flavorid"] == "auto" else str(props["flavorid"])
        if flavor_id in self.services.nova.flavors:
            raise ServiceError("nova", 409, "Conflict", f"Flavor with ID {flavor_id} already exists.")
        self.services.nova.flavors[flavor_id] = Flavor(
            flavor_id,
            props["name"] or resource.physical_name,
            props["vcpus"],
            props["ram"],
            props["disk"],
            _text_map(props["extra_specs"]),
        )
        resource.physical_id = flavor_id

    async def delete(self, resource: Resource) -> None:
        """Delete the flavor; servers of it stay."""
        await self.services.enter("nova", "flavor_delete")
        self.services.nova.flavors.pop(resource.physical_id or "", None)

    def show(self, resource: Resource) -> Json:
        """Return its attributes."""
        return {"is_public": True, "extra_specs": _text_map(resource.props.get("extra_specs"))}


def _text_map(value: Any) -> dict[str, str]:
    return {str(key): str(one) for key, one in (value or {}).items()}


COMPUTE_TYPES: Final[Sequence[type[ResourceType]]] = (ServerType, ServerGroupType, KeyPairType, FlavorType)
