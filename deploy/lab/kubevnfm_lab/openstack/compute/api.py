"""Nova's v2.1 API."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.records import AttachedVolume, Server, ServerRequest
from kubevnfm_lab.openstack.compute.views import (
    NEWEST_MINOR,
    ServerViews,
    flavor_detail,
    flavor_links,
    links,
)
from kubevnfm_lab.openstack.errors import bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_z
from kubevnfm_lab.openstack.image.glance import Glance
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.settings import Flavor
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

_QUOTAS: Final = ("instances", "cores", "ram", "key_pairs", "server_groups")
_FIXED_QUOTAS: Final = {"metadata_items": 128, "server_group_members": -1}
_OLD_QUOTAS: Final[dict[str, int]] = {
    "injected_files": 5,
    "injected_file_content_bytes": 10240,
    "injected_file_path_bytes": 255,
    "fixed_ips": -1,
    "floating_ips": -1,
    "security_groups": -1,
    "security_group_rules": -1,
}
"""Gone since micro-version 2.57."""
ConsoleLog = Callable[[str], str]


class ComputeApi:
    """The handlers of Nova's routes."""

    def __init__(
        self,
        nova: Nova,
        wire: Wire,
        *,
        views: ServerViews,
        neutron: Neutron,
        glance: Glance,
        quotas: Quotas,
        console_log: ConsoleLog,
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self._nova, self._views, self._neutron, self._glance = nova, views, neutron, glance
        self._quotas, self._console_log, self._spawn = quotas, console_log, spawn
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v2.1", "/v2.1/"):
            wire.route("GET", path, "version", self.version, open_to_all=True)
        self._route_servers(wire)
        self._route_flavors(wire)
        root = "/v2.1"
        wire.route("GET", root + "/os-keypairs", "keypair_list", self.list_keys)
        wire.route("POST", root + "/os-keypairs", "keypair_create", self.create_key)
        wire.route("GET", root + "/os-keypairs/{name}", "keypair_show", self.show_key)
        wire.route("DELETE", root + "/os-keypairs/{name}", "keypair_delete", self.delete_key)
        wire.route("GET", root + "/os-server-groups", "server_group_list", self.list_groups)
        wire.route("POST", root + "/os-server-groups", "server_group_create", self.create_group)
        wire.route("GET", root + "/os-server-groups/{id}", "server_group_show", self.show_group)
        wire.route("DELETE", root + "/os-server-groups/{id}", "server_group_delete", self.delete_group)
        wire.route("GET", root + "/os-availability-zone", "availability_zone_list", self.zones)
        wire.route("GET", root + "/os-availability-zone/detail", "availability_zone_list", self.zones)
        wire.route("GET", root + "/limits", "limits_show", self.limits)
        wire.route("GET", root + "/os-quota-sets/{project}", "quota_show", self.quota)
        wire.route("GET", root + "/os-quota-sets/{project}/detail", "quota_show", self.quota_detail)
        wire.route("GET", root + "/os-quota-sets/{project}/defaults", "quota_show", self.quota)

    def _route_servers(self, wire: Wire) -> None:
        servers, server = "/v2.1/servers", "/v2.1/servers/{id}"
        wire.route("GET", servers, "server_list", self.list_servers)
        wire.route("GET", servers + "/detail", "server_list", self.list_servers_detail)
        wire.route("POST", servers, "server_create", self.create, node=_asked_name)
        wire.route("GET", server, "server_show", self.show, node=self._name)
        wire.route("PUT", server, "server_update", self.update, node=self._name)
        wire.route("DELETE", server, "server_delete", self.delete, node=self._name)
        wire.route("POST", server + "/action", "server_action", self.action, node=self._name)
        wire.route("GET", server + "/metadata", "server_metadata", self.metadata)
        wire.route("POST", server + "/metadata", "server_metadata_set", self.set_metadata)
        wire.route("GET", server + "/ips", "server_addresses", self.ips)
        wire.route("GET", server + "/os-interface", "interface_list", self.interfaces)
        wire.route("POST", server + "/os-interface", "interface_attach", self.attach_interface, node=self._name)
        wire.route(
            "DELETE", server + "/os-interface/{port}", "interface_detach", self.detach_interface, node=self._name
        )
        attachments = server + "/os-volume_attachments"
        wire.route("GET", attachments, "volume_attachment_list", self.attachments)
        wire.route("POST", attachments, "volume_attach", self.attach, node=self._name)
        wire.route("GET", attachments + "/{volume}", "volume_attachment_show", self.attachment)
        wire.route("DELETE", attachments + "/{volume}", "volume_detach", self.detach, node=self._name)
        wire.route("GET", server + "/os-security-groups", "server_security_groups", self.security_groups)

    def _route_flavors(self, wire: Wire) -> None:
        flavors = "/v2.1/flavors"
        wire.route("GET", flavors, "flavor_list", self.list_flavors)
        wire.route("GET", flavors + "/detail", "flavor_list", self.list_flavors_detail)
        wire.route("POST", flavors, "flavor_create", self.create_flavor)
        wire.route("GET", flavors + "/{id}", "flavor_show", self.show_flavor)
        wire.route("DELETE", flavors + "/{id}", "flavor_delete", self.delete_flavor)
        wire.route("GET", flavors + "/{id}/os-extra_specs", "flavor_extra_specs", self.extra_specs)

    # -- the service

    async def versions(self, call: Call) -> web.Response:
        return json_answer({"versions": [_version(call)]})

    async def version(self, call: Call) -> web.Response:
        media = {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
        return json_answer({"version": {**_version(call), "media-types": [media]}})

    async def zones(self, call: Call) -> web.Response:
        zone: Json = {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
        if call.request.path.endswith("/detail"):
            service = {"nova-compute": {"active": True, "available": True, "updated_at": None}}
            zone["hosts"] = dict.fromkeys(self._nova.hosts, service)
        return json_answer({"availabilityZoneInfo": [zone]})

    async def limits(self, call: Call) -> web.Response:
        used = {name: self._quotas.used(call.project_id, name) for name in _QUOTAS}
        limits = self._quotas.limits
        absolute = {
            "maxTotalInstances": limits["instances"],
            "maxTotalCores": limits["cores"],
            "maxTotalRAMSize": limits["ram"],
            "maxTotalKeypairs": limits["key_pairs"],
            "maxServerGroups": limits["server_groups"],
            "maxServerMeta": 128,
            "maxPersonality": 5,
            "maxPersonalitySize": 10240,
            "maxImageMeta": 128,
            "maxServerGroupMembers": -1,
            "maxSecurityGroups": -1,
            "maxSecurityGroupRules": -1,
            "maxTotalFloatingIps": -1,
            "totalRAMUsed": used["ram"],
            "totalCoresUsed": used["cores"],
            "totalInstancesUsed": used["instances"],
            "totalFloatingIpsUsed": 0,
            "totalSecurityGroupsUsed": 0,
            "totalServerGroupsUsed": len(self._nova.groups),
        }
        return json_answer({"limits": {"rate": [], "absolute": absolute}})

    async def quota(self, call: Call) -> web.Response:
        limits = {name: self._quotas.limits[name] for name in _QUOTAS}
        return json_answer({"quota_set": {"id": call.path("project"), **limits, **_constant_quotas(call)}})

    async def quota_detail(self, call: Call) -> web.Response:
        project = call.path("project")
        shown: Json = {
            name: {"in_use": self._quotas.used(project, name), "limit": self._quotas.limits[name], "reserved": 0}
            for name in _QUOTAS
        }
        old = {name: {"in_use": 0, "limit": limit, "reserved": 0} for name, limit in _constant_quotas(call).items()}
        return json_answer({"quota_set": {"id": project, **shown, **old}})

    # -- servers

    async def list_servers(self, call: Call) -> web.Response:
        base = base_url(call.request)
        listed = [{"id": s.server_id, "name": s.name, "links": links(s, base)} for s in self._listed(call)]
        return json_answer({"servers": listed})

    async def list_servers_detail(self, call: Call) -> web.Response:
        base, minor = base_url(call.request), _minor(call)
        return json_answer({"servers": [self._views.detail(s, base, minor) for s in self._listed(call)]})

    async def show(self, call: Call) -> web.Response:
        return json_answer({"server": self._views.show(self._server(call), base_url(call.request), _minor(call))})

    async def create(self, call: Call) -> web.Response:
        """Take the server into the books; it is built after the answer."""
        body = call.part_of_body("nova", "server")
        request = self._request(call, body)
        server = self._nova.begin(request, project_id=call.project_id, user_id=call.token.user.user_id)
        self._spawn(self._nova.build(server, request))
        answer = {
            "id": server.server_id,
            "links": links(server, base_url(call.request)),
            "OS-DCF:diskConfig": "MANUAL",
            "security_groups": [{"name": name} for name in server.security_groups],
            "adminPass": new_uuid()[:12],
        }
        location = f"{base_url(call.request)}/compute/v2.1/servers/{server.server_id}"
        return json_answer({"server": answer}, 202, {"Location": location})

    async def update(self, call: Call) -> web.Response:
        server = self._server(call)
        body = call.part_of_body("nova", "server")
        if "name" in body:
            server.name = str(body["name"])
        server.updated = now_z()
        return json_answer({"server": self._views.show(server, base_url(call.request), _minor(call))})

    async def delete(self, call: Call) -> web.Response:
        """Begin to end the server."""
        server = self._server(call)
        server.task_state = "deleting"
        self._spawn(self._nova.destroy(server))
        return no_content()

    async def action(self, call: Call) -> web.Response:
        """Do what the body's one key names."""
        server = self._server(call)
        if len(call.body) != 1:
            raise bad_request("nova", "There is no such action: exactly one is expected in the body")
        ((name, argument),) = call.body.items()
        argument = argument if isinstance(argument, dict) else {}
        if name == "os-stop":
            _expect(server, "stop", "ACTIVE", "ERROR")
            server.task_state = "powering-off"
            self._spawn(self._nova.stop(server))
        elif name == "os-start":
            _expect(server, "start", "SHUTOFF")
            server.task_state = "powering-on"
            self._spawn(self._nova.start(server))
        elif name == "reboot":
            server.task_state = "rebooting"
            self._spawn(self._nova.reboot(server))
        elif name == "rebuild":
            image = self._glance.find(str(argument.get("imageRef", "")))
            self._spawn(self._nova.rebuild(server, image.image_id if image else None))
            return json_answer({"server": self._views.show(server, base_url(call.request), _minor(call))}, 202)
        elif name == "os-getConsoleOutput":
            lines = self._console_log(server.server_id).splitlines()
            length = argument.get("length")
            return json_answer({"output": "\n".join(lines[-int(length) :] if length else lines) + "\n"})
        elif name in ("lock", "unlock"):
            server.locked = name == "lock"
        elif name in ("addSecurityGroup", "removeSecurityGroup"):
            self._change_groups(server, name, str(argument.get("name", "")))
        else:
            raise bad_request("nova", f"There is no such action: {name}")
        return no_content(202)

    async def metadata(self, call: Call) -> web.Response:
        return json_answer({"metadata": self._server(call).metadata})

    async def set_metadata(self, call: Call) -> web.Response:
        server = self._server(call)
        given = call.part_of_body("nova", "metadata")
        server.metadata.update({str(key): str(value) for key, value in given.items()})
        return json_answer({"metadata": server.metadata})

    async def ips(self, call: Call) -> web.Response:
        by_network = self._views.addresses(self._server(call))
        plain = {
            network: [{"version": one["version"], "addr": one["addr"]} for one in shown]
            for network, shown in by_network.items()
        }
        return json_answer({"addresses": plain})

    async def security_groups(self, call: Call) -> web.Response:
        server = self._server(call)
        ids = dict.fromkeys(g for port in self._nova.ports_of(server) for g in port.security_groups)
        groups = [self._neutron.security_groups[one] for one in ids if one in self._neutron.security_groups]
        shown = [
            {
                "id": group.record_id,
                "name": group.name,
                "description": group.description,
                "tenant_id": group.project_id,
                "rules": [],
            }
            for group in groups
        ]
        return json_answer({"security_groups": shown})

    async def interfaces(self, call: Call) -> web.Response:
        return json_answer({"interfaceAttachments": [_interface(p) for p in self._nova.ports_of(self._server(call))]})

    async def attach_interface(self, call: Call) -> web.Response:
        server, body = self._server(call), call.part_of_body("nova", "interfaceAttachment")
        if body.get("port_id"):
            port = self._neutron.ports.get(str(body["port_id"]))
            if port is None:
                raise bad_request("nova", f"Port {body['port_id']} could not be found.")
            self._nova.attach_port(server, port)
        else:
            network = self._neutron.find_network(str(body.get("net_id", "")), call.project_id)
            if network is None:
                raise bad_request("nova", f"Network {body.get('net_id')} could not be found.")
            port = self._neutron.create_port(call.project_id, network, made_by_nova=True)
            self._nova.attach_port(server, port)
        return json_answer({"interfaceAttachment": _interface(port)})

    async def detach_interface(self, call: Call) -> web.Response:
        server, port_id = self._server(call), call.path("port")
        if port_id not in server.port_ids:
            raise not_found("nova", "PortNotFound", f"Instance {server.server_id} has no port {port_id}")
        self._nova.detach_port(server, self._neutron.ports[port_id])
        return no_content(202)

    async def attachments(self, call: Call) -> web.Response:
        server = self._server(call)
        return json_answer({"volumeAttachments": [_attachment(server, one, _minor(call)) for one in server.volumes]})

    async def attachment(self, call: Call) -> web.Response:
        server = self._server(call)
        for one in server.volumes:
            if one.volume_id == call.path("volume"):
                return json_answer({"volumeAttachment": _attachment(server, one, _minor(call))})
        raise not_found("nova", "VolumeNotFound", f"volume_id not found: {call.path('volume')}")

    async def attach(self, call: Call) -> web.Response:
        server, body = self._server(call), call.part_of_body("nova", "volumeAttachment")
        one = await self._nova.attach_volume(server, str(body.get("volumeId", "")), str(body.get("device") or ""))
        return json_answer({"volumeAttachment": _attachment(server, one, _minor(call))})

    async def detach(self, call: Call) -> web.Response:
        self._nova.detach_volume(self._server(call), call.path("volume"))
        return no_content(202)

    # -- flavors, key pairs, groups

    async def list_flavors(self, call: Call) -> web.Response:
        base = base_url(call.request)
        listed = [
            {"id": f.flavor_id, "name": f.name, "links": flavor_links(f, base)} for f in self._nova.flavors.values()
        ]
        return json_answer({"flavors": listed})

    async def list_flavors_detail(self, call: Call) -> web.Response:
        base, minor = base_url(call.request), _minor(call)
        return json_answer({"flavors": [flavor_detail(f, base, minor) for f in self._nova.flavors.values()]})

    async def show_flavor(self, call: Call) -> web.Response:
        return json_answer({"flavor": flavor_detail(self._flavor(call), base_url(call.request), _minor(call))})

    async def create_flavor(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "flavor")
        flavor_id = str(body.get("id") or new_uuid())
        if flavor_id in self._nova.flavors:
            raise conflict("nova", "FlavorIdExists", f"Flavor with ID {flavor_id} already exists.")
        try:
            made = Flavor(flavor_id, str(body["name"]), int(body["vcpus"]), int(body["ram"]), int(body.get("disk", 0)))
        except (KeyError, ValueError, TypeError) as error:
            raise bad_request("nova", f"Invalid input for field/attribute flavor: {error}") from error
        self._nova.flavors[flavor_id] = made
        return json_answer({"flavor": flavor_detail(made, base_url(call.request), _minor(call))})

    async def delete_flavor(self, call: Call) -> web.Response:
        del self._nova.flavors[self._flavor(call).flavor_id]
        return no_content(202)

    async def extra_specs(self, call: Call) -> web.Response:
        return json_answer({"extra_specs": dict(self._flavor(call).extra_specs)})

    async def list_keys(self, call: Call) -> web.Response:
        mine = [key for key in self._nova.key_pairs.values() if key.user_id == call.token.user.user_id]
        return json_answer({"keypairs": [{"keypair": key.view(_minor(call))} for key in mine]})

    async def create_key(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "keypair")
        if not body.get("public_key"):
            message = f"Invalid input for field/attribute keypair. Value: {body}. 'public_key' is a required property"
            raise bad_request("nova", message)
        user_id = call.token.user.user_id
        minor = _minor(call)
        made = self._nova.add_key_pair(user_id, str(body.get("name", "")), str(body["public_key"]))
        return json_answer({"keypair": {**made.view(minor), "user_id": user_id}}, 201 if minor >= 2 else 200)

    async def show_key(self, call: Call) -> web.Response:
        key = (call.token.user.user_id, call.path("name"))
        found = self._nova.key_pairs.get(key)
        if found is None:
            raise not_found("nova", "KeypairNotFound", f"Keypair {key[1]} not found for user {key[0]}")
        more = {
            "user_id": found.user_id,
            "id": 1,
            "deleted": False,
            "created_at": found.created_at,
            "deleted_at": None,
            "updated_at": None,
        }
        return json_answer({"keypair": {**found.view(_minor(call)), **more}})

    async def delete_key(self, call: Call) -> web.Response:
        key = (call.token.user.user_id, call.path("name"))
        if self._nova.key_pairs.pop(key, None) is None:
            raise not_found("nova", "KeypairNotFound", f"Keypair {key[1]} not found for user {key[0]}")
        return no_content(204 if _minor(call) >= 2 else 202)

    async def list_groups(self, call: Call) -> web.Response:
        mine = [group.view(_minor(call)) for group in self._nova.groups.values() if group.project_id == call.project_id]
        return json_answer({"server_groups": mine})

    async def create_group(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "server_group")
        made = self._nova.add_group(
            name=str(body.get("name", "")),
            policy=str(body.get("policy") or (body.get("policies") or [""])[0]),
            project_id=call.project_id,
            user_id=call.token.user.user_id,
        )
        return json_answer({"server_group": made.view(_minor(call))})

    async def show_group(self, call: Call) -> web.Response:
        found = self._nova.groups.get(call.path("id"))
        if found is None:
            raise not_found("nova", "InstanceGroupNotFound", f"Instance group {call.path('id')} could not be found.")
        return json_answer({"server_group": found.view(_minor(call))})

    async def delete_group(self, call: Call) -> web.Response:
        if self._nova.groups.pop(call.path("id"), None) is None:
            raise not_found("nova", "InstanceGroupNotFound", f"Instance group {call.path('id')} could not be found.")
        return no_content()

    # -- the inside

    def _server(self, call: Call) -> Server:
        server = self._nova.get(call.path("id"))
        if server.project_id != call.project_id:
            message = f"Instance {server.server_id} could not be found."
            raise not_found("nova", "InstanceNotFound", message)
        return server

    def _name(self, call: Call) -> str:
        server = self._nova.servers.get(call.path("id"))
        return server.name if server else ""

    def _flavor(self, call: Call) -> Flavor:
        found = self._nova.flavors.get(call.path("id"))
        if found is None:
            raise not_found("nova", "FlavorNotFound", f"Flavor {call.path('id')} could not be found.")
        return found

    def _listed(self, call: Call) -> list[Server]:
        name, status, limit, marker = (call.query(key) for key in ("name", "status", "limit", "marker"))
        found = [
            server
            for server in reversed(self._nova.servers.values())
            if server.project_id == call.project_id
            and (name is None or name in server.name)
            and (status is None or status.upper() == server.status)
        ]
        if marker is not None:
            ids = [server.server_id for server in found]
            found = found[ids.index(marker) + 1 :] if marker in ids else []
        return found[: int(limit)] if limit and limit.isdigit() else found

    def _request(self, call: Call, body: Json) -> ServerRequest:
        flavor = self._nova.find_flavor(str(body.get("flavorRef", "")))
        if flavor is None:
            raise bad_request("nova", f"Flavor {body.get('flavorRef')} could not be found.")
        image_ref = body.get("imageRef")
        if image_ref and self._glance.images.get(str(image_ref)) is None:
            raise bad_request("nova", "Can not find requested image")
        hints = call.body.get("os:scheduler_hints") or call.body.get("OS-SCH-HNT:scheduler_hints") or {}
        zone, _, host = str(body.get("availability_zone") or "").partition(":")
        request = ServerRequest(
            name=str(body.get("name") or ""),
            flavor=flavor,
            image_id=str(image_ref) if image_ref else None,
            key_name=body.get("key_name"),
            user_data=_decoded(body.get("user_data")),
            metadata={str(key): str(value) for key, value in (body.get("metadata") or {}).items()},
            security_groups=[str(one.get("name")) for one in body.get("security_groups") or ()],
            availability_zone=zone or None,
            host=host or None,
            group_id=hints.get("group"),
            tags=list(body.get("tags") or ()),
            config_drive=bool(body.get("config_drive", False)),
        )
        if not request.name:
            raise bad_request("nova", "Invalid input for field/attribute name. Value: . '' is too short")
        self._connect(call, request, body.get("networks"))
        for one in body.get("block_device_mapping_v2") or ():
            _add_block_device(request, one)
        return request

    def _connect(self, call: Call, request: ServerRequest, networks: Any) -> None:
        if networks == "none":
            return
        if networks in (None, "auto"):
            mine = [n for n in self._neutron.networks.values() if n.project_id == call.project_id and not n.external]
            request.network_ids = [(mine[0].record_id, None)] if mine else []
            return
        for one in networks:
            if one.get("port"):
                request.port_ids.append(str(one["port"]))
                continue
            network = self._neutron.networks.get(str(one.get("uuid", "")))
            if network is None:
                raise bad_request("nova", f"Network {one.get('uuid')} could not be found.")
            request.network_ids.append((network.record_id, one.get("fixed_ip")))

    def _change_groups(self, server: Server, action: str, name: str) -> None:
        found = self._neutron.find(self._neutron.security_groups, name, server.project_id)
        if found is None:
            raise not_found("nova", "SecurityGroupNotFound", f"Security group {name} not found.")
        for port in self._nova.ports_of(server):
            groups = [one for one in port.security_groups if one != found.record_id]
            port.security_groups = [*groups, found.record_id] if action == "addSecurityGroup" else groups


def _add_block_device(request: ServerRequest, one: Json) -> None:
    goes = bool(one.get("delete_on_termination", False))
    source, device = one.get("source_type"), str(one.get("device_name") or "")
    if source == "volume":
        root = one.get("boot_index") in (0, "0")
        device = device or ("/dev/vda" if root else "")
        request.volumes.append(
            AttachedVolume(volume_id=str(one.get("uuid", "")), device=device, delete_on_termination=goes)
        )
    elif one.get("destination_type") == "volume":
        image = str(one["uuid"]) if source == "image" else None
        request.new_volumes.append((int(one.get("volume_size") or 1), image, goes))


def _decoded(user_data: Any) -> str:
    if not user_data:
        return ""
    try:
        return base64.b64decode(str(user_data), validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise bad_request("nova", "Invalid input for field/attribute user_data. It is not a 'base64'") from error


def _expect(server: Server, action: str, *states: str) -> None:
    if server.status not in states:
        raise conflict(
            "nova",
            "InstanceInvalidState",
            f"Cannot '{action}' instance {server.server_id} while it is in vm_state {server.vm_state}",
        )


def _constant_quotas(call: Call) -> dict[str, int]:
    return {**_FIXED_QUOTAS, **(_OLD_QUOTAS if _minor(call) < 57 else {})}


def _asked_name(call: Call) -> str:
    server = call.body.get("server")
    return str(server.get("name", "")) if isinstance(server, dict) else ""


def _attachment(server: Server, one: AttachedVolume, minor: int) -> Json:
    shown: Json = {
        "id": one.volume_id,
        "serverId": server.server_id,
        "volumeId": one.volume_id,
        "device": one.device,
    }
    if minor >= 70:
        shown["tag"] = None
    if minor >= 79:
        shown["delete_on_termination"] = one.delete_on_termination
    if minor >= 89:
        del shown["id"]
        shown["attachment_id"] = one.volume_id
        shown["bdm_uuid"] = one.volume_id
    return shown


def _interface(port: Any) -> Json:
    return {
        "net_id": port.network_id,
        "port_id": port.record_id,
        "mac_addr": port.mac,
        "port_state": "ACTIVE" if port.device_id else "DOWN",
        "fixed_ips": [{"subnet_id": ip.subnet_id, "ip_address": ip.address} for ip in port.fixed_ips],
    }


def _version(call: Call) -> Json:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": f"2.{NEWEST_MINOR}",
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{base_url(call.request)}/compute/v2.1/"}],
    }


def headers(request: web.Request, request_id: str) -> dict[str, str]:
    """Return the headers of every answer of Nova."""
    version = f"2.{_asked_minor(request)}"
    return {
        "OpenStack-API-Version": f"compute {version}",
        "X-OpenStack-Nova-API-Version": version,
        "Vary": "OpenStack-API-Version, X-OpenStack-Nova-API-Version",
        "X-Compute-Request-ID": request_id,
    }


def _minor(call: Call) -> int:
    return _asked_minor(call.request)


def _asked_minor(request: web.Request) -> int:
    """Return the second number of the micro-version that the client asked for."""
    text = request.headers.get("OpenStack-API-Version", "")
    kind, _, version = text.partition(" ")
    if kind != "compute":
        version = request.headers.get("X-OpenStack-Nova-API-Version", "2.1")
    if version == "latest":
        return NEWEST_MINOR
    minor = version.partition(".")[2]
    return min(int(minor), NEWEST_MINOR) if minor.isdigit() else 1
