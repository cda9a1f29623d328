"""Neutron's v2.0 API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.errors import bad_request, not_found
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.network.records import FloatingIp, Network, Port, Record, Router, SecurityGroup, Subnet
from kubevnfm_lab.openstack.network.trunks import Trunk, Trunks
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

_NOT_FILTERS: Final = frozenset({"limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse"})
_QUOTAS: Final = ("network", "subnet", "port", "router", "floatingip", "security_group")
_FREE_QUOTAS: Final = ("security_group_rule", "subnetpool", "rbac_policy")
_EXTENSIONS: Final = (
    "address-scope",
    "agent",
    "allowed-address-pairs",
    "availability_zone",
    "binding",
    "default-subnetpools",
    "dhcp_agent_scheduler",
    "dns-integration",
    "external-net",
    "extra_dhcp_opt",
    "extraroute",
    "floating-ip-port-forwarding",
    "l3_agent_scheduler",
    "net-mtu",
    "port-security",
    "project-id",
    "provider",
    "quota_details",
    "quotas",
    "revision-if-match",
    "router",
    "security-group",
    "service-type",
    "standard-attr-description",
    "standard-attr-revisions",
    "standard-attr-tag",
    "standard-attr-timestamp",
    "subnet_allocation",
    "trunk",
)


@dataclass(frozen=True)
class Kind:
    """One collection of the API: its names, its table, and its create, change and delete functions."""

    one: str
    many: str
    path: str
    label: str
    table: Callable[[], Mapping[str, Any]]
    create: Callable[[Call, Json], Record]
    change: Callable[[Any, Json], None]
    delete: Callable[[Any], None]


class NetworkApi:
    """The handlers of Neutron's routes."""

    def __init__(self, neutron: Neutron, trunks: Trunks, wire: Wire, *, quotas: Quotas) -> None:
        self._neutron, self._trunks, self._quotas = neutron, trunks, quotas
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v2.0", "/v2.0/"):
            wire.route("GET", path, "version", self.resources, open_to_all=True)
        root = "/v2.0"
        wire.route("GET", root + "/extensions", "extension_list", self.extensions)
        wire.route("GET", root + "/extensions/{alias}", "extension_show", self.extension)
        wire.route("GET", root + "/quotas/{project}", "quota_show", self.quota)
        wire.route("GET", root + "/quotas/{project}/default", "quota_show", self.quota)
        for path in ("/details.json", "/details"):
            wire.route("GET", root + "/quotas/{project}" + path, "quota_show", self.quota_details)
        router = root + "/routers/{id}"
        wire.route("PUT", router + "/add_router_interface", "router_interface_create", self.add_interface)
        wire.route("PUT", router + "/remove_router_interface", "router_interface_delete", self.remove_interface)
        wire.route("GET", root + "/security-group-rules", "security_group_rule_list", self.list_rules)
        wire.route("POST", root + "/security-group-rules", "security_group_rule_create", self.create_rule)
        wire.route("DELETE", root + "/security-group-rules/{id}", "security_group_rule_delete", self.delete_rule)
        trunk = root + "/trunks/{id}"
        wire.route("GET", trunk + "/get_subports", "trunk_subports", self.list_subports)
        wire.route("PUT", trunk + "/add_subports", "trunk_add_subports", self.add_subports)
        wire.route("PUT", trunk + "/remove_subports", "trunk_remove_subports", self.remove_subports)
        for kind in self._kinds():
            self._route(wire, kind)

    def _kinds(self) -> Iterable[Kind]:
        n = self._neutron
        return (
            Kind(
                "network", "networks", "networks", "Network", lambda: n.networks,
                self._create_network, _change_network, n.delete_network,
            ),
            Kind(
                "subnet", "subnets", "subnets", "Subnet", lambda: n.subnets,
                self._create_subnet, _change_subnet, n.delete_subnet,
            ),
            Kind("port", "ports", "ports", "Port", lambda: n.ports, self._create_port, self._change_port, n.delete_port),
            Kind(
                "router", "routers", "routers", "Router", lambda: n.routers,
                self._create_router, self._change_router, n.delete_router,
            ),
            Kind(
                "security_group", "security_groups", "security-groups", "SecurityGroup", self._security_groups,
                self._create_security_group, _change_security_group, n.delete_security_group,
            ),
            Kind(
                "floatingip", "floatingips", "floatingips", "FloatingIP", lambda: n.floating_ips,
                self._create_floating_ip, self._change_floating_ip, n.delete_floating_ip,
            ),
            Kind(
                "trunk", "trunks", "trunks", "Trunk", lambda: self._trunks.by_id,
                self._create_trunk, _change_trunk, self._trunks.delete,
            ),
        )  # fmt: skip

    def _route(self, wire: Wire, kind: Kind) -> None:
        root = f"/v2.0/{kind.path}"
        verbs: tuple[tuple[str, str, str, Callable[[Kind, Call], Awaitable[web.Response]]], ...] = (
            ("GET", "", "list", self.list_records),
            ("POST", "", "create", self.create),
            ("GET", "/{id}", "show", self.show),
            ("PUT", "/{id}", "update", self.update),
            ("DELETE", "/{id}", "delete", self.delete),
            ("PUT", "/{id}/tags", "tag", self.tag),
        )
        for method, path, verb, handler in verbs:
            for ending in ("", ".json") if path in ("", "/{id}") else ("",):
                # python-neutronclient appends .json to every path.
                wire.route(method, root + path + ending, f"{kind.one}_{verb}", partial(handler, kind))

    # -- the service

    async def versions(self, call: Call) -> web.Response:
        href = f"{base_url(call.request)}/network/v2.0/"
        version = {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
        return json_answer({"versions": [version]})

    async def resources(self, call: Call) -> web.Response:
        base = f"{base_url(call.request)}/network/v2.0"
        listed = [
            {"name": kind.one, "collection": kind.many, "links": [{"rel": "self", "href": f"{base}/{kind.path}"}]}
            for kind in self._kinds()
        ]
        return json_answer({"resources": listed})

    async def extensions(self, call: Call) -> web.Response:
        return json_answer({"extensions": [_extension(alias) for alias in _EXTENSIONS]})

    async def extension(self, call: Call) -> web.Response:
        if call.path("alias") not in _EXTENSIONS:
            message = f"Extension with alias {call.path('alias')} does not exist"
            raise not_found("neutron", "HTTPNotFound", message)
        return json_answer({"extension": _extension(call.path("alias"))})

    async def quota(self, call: Call) -> web.Response:
        shown = {name: self._quotas.limits[name] for name in _QUOTAS}
        return json_answer({"quota": {**shown, **dict.fromkeys(_FREE_QUOTAS, -1)}})

    async def quota_details(self, call: Call) -> web.Response:
        project = call.path("project")
        shown = {
            name: {"used": self._quotas.used(project, name), "limit": self._quotas.limits[name], "reserved": 0}
            for name in _QUOTAS
        }
        free = {name: {"used": 0, "limit": -1, "reserved": 0} for name in _FREE_QUOTAS}
        return json_answer({"quota": {**shown, **free}})

    # -- every kind

    async def list_records(self, kind: Kind, call: Call) -> web.Response:
        """Return what is visible to the project and passes the filters."""
        filters = {key: call.queries(key) for key in call.request.query if key not in _NOT_FILTERS}
        # Neutron creates the default group when a project first lists its groups.
        if kind.one == "security_group":
            self._neutron.default_group(call.project_id)
        records: Iterable[Any] = kind.table().values()
        # Ports of a large network are the most frequent list, so they have an index.
        if kind.one == "port" and len(filters.get("network_id", ())) == 1:
            records = self._neutron.ports_of_network(filters["network_id"][0])
        if "id" in filters:
            records = [table[one] for one in filters["id"] if one in (table := kind.table())]
        shown = [r.view() for r in records if _visible(r, call.project_id)]
        shown = [one for one in shown if all(_passes(one, key, values) for key, values in filters.items())]
        marker, limit = call.query("marker"), call.query("limit")
        if marker is not None:
            ids = [one["id"] for one in shown]
            shown = shown[ids.index(marker) + 1 :] if marker in ids else []
        if limit and limit.isdigit():
            shown = shown[: int(limit)]
        if fields := call.queries("fields"):
            shown = [{key: one[key] for key in fields if key in one} for one in shown]
        return json_answer({kind.many: shown})

    async def create(self, kind: Kind, call: Call) -> web.Response:
        # Neutron accepts several objects in one request; all handlers share this form.
        if isinstance(call.body.get(kind.many), list):
            made = [kind.create(call, one) for one in call.body[kind.many]]
            return json_answer({kind.many: [_view(one) for one in made]}, 201)
        return json_answer({kind.one: _view(kind.create(call, self._body(kind, call)))}, 201)

    async def show(self, kind: Kind, call: Call) -> web.Response:
        return json_answer({kind.one: _view(self._found(kind, call))})

    async def update(self, kind: Kind, call: Call) -> web.Response:
        record, body = self._found(kind, call), self._body(kind, call)
        kind.change(record, body)
        if "name" in body:
            record.name = str(body["name"])
        if "description" in body:
            record.description = str(body["description"] or "")
        record.touched()
        return json_answer({kind.one: _view(record)})

    async def delete(self, kind: Kind, call: Call) -> web.Response:
        kind.delete(self._found(kind, call))
        return no_content()

    async def tag(self, kind: Kind, call: Call) -> web.Response:
        record = self._found(kind, call)
        record.tags = [str(tag) for tag in call.body.get("tags") or ()]
        return json_answer({"tags": record.tags})

    def _found(self, kind: Kind, call: Call) -> Record:
        found = kind.table().get(call.path("id"))
        if found is None or not _visible(found, call.project_id):
            message = f"{kind.label} {call.path('id')} could not be found."
            raise not_found("neutron", f"{kind.label}NotFound", message)
        record: Record = found
        return record

    def _body(self, kind: Kind, call: Call) -> Json:
        body = call.body.get(kind.one)
        if not isinstance(body, dict):
            raise bad_request("neutron", f"Unable to find '{kind.one}' in request body", "HTTPBadRequest")
        return body

    # -- each kind

    def _create_network(self, call: Call, body: Json) -> Network:
        return self._neutron.create_network(
            call.project_id,
            name=str(body.get("name") or ""),
            description=str(body.get("description") or ""),
            admin_state_up=body.get("admin_state_up", True),
            shared=bool(body.get("shared", False)),
            external=bool(body.get("router:external", False)),
            port_security=body.get("port_security_enabled", True),
        )

    def _create_subnet(self, call: Call, body: Json) -> Subnet:
        return self._neutron.create_subnet(
            call.project_id,
            self._network(body.get("network_id"), call),
            cidr=str(body.get("cidr") or ""),
            name=str(body.get("name") or ""),
            gateway=body.get("gateway_ip", "auto"),
            pools=body.get("allocation_pools") or (),
            enable_dhcp=body.get("enable_dhcp", True),
            dns=list(body.get("dns_nameservers") or ()),
            host_routes=list(body.get("host_routes") or ()),
            description=str(body.get("description") or ""),
        )

    def _create_port(self, call: Call, body: Json) -> Port:
        facts: Json = {}
        if body.get("mac_address"):
            facts["mac"] = str(body["mac_address"])
        return self._neutron.create_port(
            call.project_id,
            self._network(body.get("network_id"), call),
            fixed_ips=body.get("fixed_ips"),
            security_groups=body.get("security_groups"),
            name=str(body.get("name") or ""),
            description=str(body.get("description") or ""),
            address_pairs=list(body.get("allowed_address_pairs") or ()),
            admin_state_up=body.get("admin_state_up", True),
            port_security=body.get("port_security_enabled", True),
            vnic_type=str(body.get("binding:vnic_type") or "normal"),
            device_id=str(body.get("device_id") or ""),
            device_owner=str(body.get("device_owner") or ""),
            **facts,
        )

    def _change_port(self, port: Port, body: Json) -> None:
        if body.get("fixed_ips") is not None:
            self._neutron.readdress_port(port, body["fixed_ips"])
        if "allowed_address_pairs" in body:
            port.address_pairs = [{"mac_address": port.mac, **pair} for pair in body["allowed_address_pairs"] or ()]
        if "security_groups" in body:
            port.security_groups = [str(one) for one in body["security_groups"] or ()]
        if "device_id" in body:
            port.device_id = str(body["device_id"] or "")
        if "device_owner" in body:
            port.device_owner = str(body["device_owner"] or "")
        port.admin_state_up = body.get("admin_state_up", port.admin_state_up)
        port.port_security = body.get("port_security_enabled", port.port_security)

    def _create_router(self, call: Call, body: Json) -> Router:
        gateway = body.get("external_gateway_info") or {}
        return self._neutron.create_router(
            call.project_id, name=str(body.get("name") or ""), external_network_id=gateway.get("network_id")
        )

    def _change_router(self, router: Router, body: Json) -> None:
        if "external_gateway_info" in body:
            router.external_network_id = (body["external_gateway_info"] or {}).get("network_id")

    def _security_groups(self) -> Mapping[str, SecurityGroup]:
        return self._neutron.security_groups

    def _create_security_group(self, call: Call, body: Json) -> SecurityGroup:
        return self._neutron.create_security_group(
            call.project_id, name=str(body.get("name") or ""), description=str(body.get("description") or "")
        )

    def _create_floating_ip(self, call: Call, body: Json) -> FloatingIp:
        return self._neutron.create_floating_ip(
            call.project_id,
            self._network(body.get("floating_network_id"), call),
            port=self._port(body.get("port_id")),
            fixed_address=body.get("fixed_ip_address"),
            description=str(body.get("description") or ""),
        )

    def _change_floating_ip(self, floating: FloatingIp, body: Json) -> None:
        if "port_id" in body:
            self._neutron.associate(floating, self._port(body["port_id"]), body.get("fixed_ip_address"))

    # -- routers' interfaces and groups' rules

    async def add_interface(self, call: Call) -> web.Response:
        router = self._router(call)
        if call.body.get("subnet_id"):
            port = self._neutron.add_router_interface(router, self._subnet(call))
        else:
            found = self._port(call.body.get("port_id"))
            if found is None:
                raise bad_request("neutron", "Either subnet_id or port_id must be specified", "BadRequest")
            port = found
            self._neutron.bind(port, device_id=router.record_id, owner="network:router_interface")
            router.interfaces[port.fixed_ips[0].subnet_id] = port.record_id
        return json_answer(_router_interface(router, port))

    async def remove_interface(self, call: Call) -> web.Response:
        router = self._router(call)
        subnet_id = call.body.get("subnet_id")
        if not subnet_id:
            by_port = {port: subnet for subnet, port in router.interfaces.items()}
            subnet_id = by_port.get(str(call.body.get("port_id")), "")
        port = self._neutron.remove_router_interface(router, str(subnet_id))
        return json_answer(_router_interface(router, port))

    async def list_rules(self, call: Call) -> web.Response:
        wanted = call.query("security_group_id")
        rules = [
            rule
            for group in self._neutron.security_groups.values()
            if group.project_id == call.project_id and wanted in (None, group.record_id)
            for rule in group.rules.values()
        ]
        return json_answer({"security_group_rules": rules})

    async def create_rule(self, call: Call) -> web.Response:
        body = call.body.get("security_group_rule")
        if not isinstance(body, dict):
            raise bad_request("neutron", "Unable to find 'security_group_rule' in request body", "HTTPBadRequest")
        group = self._neutron.security_groups.get(str(body.get("security_group_id")))
        if group is None:
            message = f"Security group {body.get('security_group_id')} does not exist"
            raise not_found("neutron", "SecurityGroupNotFound", message)
        facts = {key: value for key, value in body.items() if key not in ("direction", "security_group_id")}
        rule = self._neutron.add_rule(group, direction=str(body.get("direction") or "ingress"), **facts)
        return json_answer({"security_group_rule": rule}, 201)

    async def delete_rule(self, call: Call) -> web.Response:
        for group in self._neutron.security_groups.values():
            if group.rules.pop(call.path("id"), None) is not None:
                return no_content()
        message = f"Security group rule {call.path('id')} does not exist"
        raise not_found("neutron", "SecurityGroupRuleNotFound", message)

    # -- trunks

    def _create_trunk(self, call: Call, body: Json) -> Trunk:
        return self._trunks.create(
            call.project_id,
            str(body.get("port_id")),
            name=str(body.get("name") or ""),
            description=str(body.get("description") or ""),
            sub_ports=body.get("sub_ports") or (),
        )

    async def list_subports(self, call: Call) -> web.Response:
        return json_answer({"sub_ports": [one.view() for one in self._trunk(call).sub_ports.values()]})

    async def add_subports(self, call: Call) -> web.Response:
        trunk = self._trunk(call)
        self._trunks.add(trunk, call.body.get("sub_ports") or ())
        return json_answer(trunk.view())

    async def remove_subports(self, call: Call) -> web.Response:
        trunk = self._trunk(call)
        self._trunks.remove(trunk, [str(one.get("port_id")) for one in call.body.get("sub_ports") or ()])
        return json_answer(trunk.view())

    def _trunk(self, call: Call) -> Trunk:
        found = self._trunks.by_id.get(call.path("id"))
        if found is None:
            raise not_found("neutron", "TrunkNotFound", f"Trunk {call.path('id')} could not be found.")
        return found

    # -- finding

    def _network(self, network_id: Any, call: Call) -> Network:
        found = self._neutron.networks.get(str(network_id))
        if found is None or not _visible(found, call.project_id):
            raise not_found("neutron", "NetworkNotFound", f"Network {network_id} could not be found.")
        return found

    def _subnet(self, call: Call) -> Subnet:
        found = self._neutron.subnets.get(str(call.body.get("subnet_id")))
        if found is None:
            message = f"Subnet {call.body.get('subnet_id')} could not be found."
            raise not_found("neutron", "SubnetNotFound", message)
        return found

    def _router(self, call: Call) -> Router:
        found = self._neutron.routers.get(call.path("id"))
        if found is None:
            raise not_found("neutron", "RouterNotFound", f"Router {call.path('id')} could not be found")
        return found

    def _port(self, port_id: Any) -> Port | None:
        if not port_id:
            return None
        found = self._neutron.ports.get(str(port_id))
        if found is None:
            raise not_found("neutron", "PortNotFound", f"Port {port_id} could not be found.")
        return found


def _view(record: Any) -> Json:
    view: Json = record.view()
    return view


def _visible(record: Record, project_id: str) -> bool:
    return record.project_id == project_id or getattr(record, "external", False) or getattr(record, "shared", False)


def _passes(shown: Json, key: str, values: list[str]) -> bool:
    if key == "fixed_ips":
        wanted = dict(value.split("=", 1) for value in values if "=" in value)
        return any(all(ip.get(k) == v for k, v in wanted.items()) for ip in shown.get("fixed_ips", ()))
    if key == "tags":
        return set(values) <= set(shown.get("tags", ()))
    if key not in shown:
        return True
    value = shown[key]
    if isinstance(value, bool):
        return str(value).lower() in [one.lower() for one in values]
    return str(value) in values


def _change_network(network: Network, body: Json) -> None:
    network.admin_state_up = body.get("admin_state_up", network.admin_state_up)
    network.shared = body.get("shared", network.shared)


def _change_subnet(subnet: Subnet, body: Json) -> None:
    subnet.enable_dhcp = body.get("enable_dhcp", subnet.enable_dhcp)
    subnet.dns = list(body.get("dns_nameservers", subnet.dns) or ())
    subnet.gateway = body.get("gateway_ip", subnet.gateway)


def _change_trunk(trunk: Trunk, body: Json) -> None:
    trunk.admin_state_up = body.get("admin_state_up", trunk.admin_state_up)


def _change_security_group(group: SecurityGroup, body: Json) -> None:
    """Update name and description, the only changeable fields that every kind has."""


def _router_interface(router: Router, port: Port) -> Json:
    subnet_id = port.fixed_ips[0].subnet_id if port.fixed_ips else None
    return {
        "id": router.record_id,
        "tenant_id": router.project_id,
        "port_id": port.record_id,
        "network_id": port.network_id,
        "subnet_id": subnet_id,
        "subnet_ids": [subnet_id] if subnet_id else [],
    }


def _extension(alias: str) -> Json:
    return {"name": alias, "alias": alias, "description": alias, "updated": "2020-01-01T00:00:00-00:00", "links": []}
