"""Nova's API of servers: their life, their metadata, interfaces and volumes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.compute.microversion import minor_of
from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.records import AttachedVolume, Server, ServerRequest
from kubevnfm_lab.openstack.compute.views import (
    ServerViews,
    links,
)
from kubevnfm_lab.openstack.errors import bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_z
from kubevnfm_lab.openstack.image.glance import Glance
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

ConsoleLog = Callable[[str], str]

_POWER: Final[Mapping[str, tuple[Callable[[Nova, Server], Awaitable[None]], tuple[str, ...], str]]] = {
    "os-stop": (Nova.stop, ("ACTIVE", "ERROR"), "powering-off"),
    "os-start": (Nova.start, ("SHUTOFF",), "powering-on"),
    "pause": (Nova.pause, ("ACTIVE",), "pausing"),
    "unpause": (Nova.unpause, ("PAUSED",), "unpausing"),
    "suspend": (Nova.suspend, ("ACTIVE",), "suspending"),
    "resume": (Nova.resume, ("SUSPENDED",), "resuming"),
}
"""The method of an action, the states that permit it, and the task state meanwhile."""


class ServersApi:
    """The handlers of the routes under /servers."""

    def __init__(
        self,
        nova: Nova,
        wire: Wire,
        *,
        views: ServerViews,
        neutron: Neutron,
        glance: Glance,
        console_log: ConsoleLog,
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self._nova, self._views, self._neutron, self._glance = nova, views, neutron, glance
        self._console_log, self._spawn = console_log, spawn
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

    async def list_servers(self, call: Call) -> web.Response:
        base = base_url(call.request)
        listed = [{"id": s.server_id, "name": s.name, "links": links(s, base)} for s in self._listed(call)]
        return json_answer({"servers": listed})

    async def list_servers_detail(self, call: Call) -> web.Response:
        base, minor = base_url(call.request), minor_of(call)
        return json_answer({"servers": [self._views.detail(s, base, minor) for s in self._listed(call)]})

    async def show(self, call: Call) -> web.Response:
        return json_answer({"server": self._views.show(self._server(call), base_url(call.request), minor_of(call))})

    async def create(self, call: Call) -> web.Response:
        """Register the server; it is built after the answer."""
        body = call.part_of_body("nova", "server")
        request = self._request(call, body)
        server = self._nova.begin(request, project_id=call.project_id, user_id=call.token.user.user_id)
        # Nova answers before the server is built; clients poll its status.
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
        return json_answer({"server": self._views.show(server, base_url(call.request), minor_of(call))})

    async def delete(self, call: Call) -> web.Response:
        """Start the deletion of the server."""
        server = self._server(call)
        server.task_state = "deleting"
        self._spawn(self._nova.destroy(server))
        return no_content()

    async def action(self, call: Call) -> web.Response:
        """Run the action that the body's only key names."""
        server = self._server(call)
        if len(call.body) != 1:
            # Nova's actions are named by the only key of the body.
            raise bad_request("nova", "There is no such action: exactly one is expected in the body")
        ((name, argument),) = call.body.items()
        argument = argument if isinstance(argument, dict) else {}
        if name in _POWER:
            do, before, task_state = _POWER[name]
            _expect(server, name.removeprefix("os-"), *before)
            server.task_state = task_state
            self._spawn(do(self._nova, server))
        elif name == "reboot":
            server.task_state = "rebooting"
            self._spawn(self._nova.reboot(server))
        elif name == "rebuild":
            image = self._glance.find(str(argument.get("imageRef", "")))
            _expect(server, name, "ACTIVE", "SHUTOFF", "ERROR")
            if image is not None and image.status != "active":
                raise bad_request("nova", f"Image {image.image_id} is not active.")
            metadata = argument.get("metadata")
            self._nova.begin_rebuild(server, image.image_id if image else None, metadata)
            # A rebuild answers with the server, unlike the other actions.
            self._spawn(self._nova.rebuild(server))
            return json_answer({"server": self._views.show(server, base_url(call.request), minor_of(call))}, 202)
        elif name == "createImage":
            return self._create_image(call, server, argument)
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

    def _create_image(self, call: Call, server: Server, argument: Json) -> web.Response:
        """Register an image of the server's disk; its bits come after the answer."""
        _expect(server, "createImage", "ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED")
        if server.task_state is not None:
            message = f"Cannot 'createImage' instance {server.server_id} while it is in task_state {server.task_state}"
            raise conflict("nova", "InstanceInvalidState", message)
        given = {str(key): str(value) for key, value in (argument.get("metadata") or {}).items()}
        base = self._glance.find(server.image_id or "")
        image = self._glance.create(
            server.project_id,
            {
                # All properties of the image that the server was made of are those of its own images too.
                **(base.properties if base is not None else {}),
                "name": str(argument.get("name", "")),
                "visibility": "private",
                "disk_format": "raw",
                "container_format": "bare",
                "min_disk": server.flavor.disk_gib,
                "instance_uuid": server.server_id,
                "base_image_ref": server.image_id or "",
                "image_type": "snapshot",
                **given,
            },
        )
        server.task_state = "image_snapshot_pending"
        self._spawn(self._nova.make_image(server, image, self._glance))
        location = f"{base_url(call.request)}/image/images/{image.image_id}"
        return no_content(202, {"Location": location})

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
        # Rules are shown by Neutron only.
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
        return json_answer({"volumeAttachments": [_attachment(server, one, minor_of(call)) for one in server.volumes]})

    async def attachment(self, call: Call) -> web.Response:
        server = self._server(call)
        for one in server.volumes:
            if one.volume_id == call.path("volume"):
                return json_answer({"volumeAttachment": _attachment(server, one, minor_of(call))})
        raise not_found("nova", "VolumeNotFound", f"volume_id not found: {call.path('volume')}")

    async def attach(self, call: Call) -> web.Response:
        server, body = self._server(call), call.part_of_body("nova", "volumeAttachment")
        one = await self._nova.attach_volume(server, str(body.get("volumeId", "")), str(body.get("device") or ""))
        return json_answer({"volumeAttachment": _attachment(server, one, minor_of(call))})

    async def detach(self, call: Call) -> web.Response:
        self._nova.detach_volume(self._server(call), call.path("volume"))
        return no_content(202)

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

    def _listed(self, call: Call) -> list[Server]:
        name, status, limit, marker = (call.query(key) for key in ("name", "status", "limit", "marker"))
        found = [
            server
            for server in reversed(self._nova.servers.values())
            # Nova's name filter is a regular expression; clients pass plain names, for which "in" is the same.
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
        # Clients use both spellings of scheduler hints.
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
        # "auto" uses the project's network; with several, Nova would answer 409, the lab takes the first.
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
    goes_with_server = bool(one.get("delete_on_termination", False))
    source, device = one.get("source_type"), str(one.get("device_name") or "")
    if source == "volume":
        root = one.get("boot_index") in (0, "0")
        device = device or ("/dev/vda" if root else "")
        request.volumes.append(
            AttachedVolume(
                volume_id=str(one.get("uuid", "")), device=device, delete_on_termination=goes_with_server, boots=root
            )
        )
    elif one.get("destination_type") == "volume":
        # Image and blank sources become new volumes, which Nova creates.
        image = str(one["uuid"]) if source == "image" else None
        request.new_volumes.append((int(one.get("volume_size") or 1), image, goes_with_server))


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
    # Since 2.89 an attachment is identified by its own id rather than by the volume's.
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
