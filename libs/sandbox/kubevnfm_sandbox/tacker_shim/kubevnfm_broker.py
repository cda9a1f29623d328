"""Answers what a driver class asks of Tacker, from the facts that came with its call: those of its own instance, and no secrets of a VIM.

No call leaves the process. What the facts do not have, another stack or another package, is refused by name.
"""

import uuid

from tacker.common import exceptions
from tacker.objects.fields import Record


class Refused(exceptions.TackerException):
    """The driver asks for something that is not its instance's, or that this VNFM does not have for drivers."""


_KUBERNETES = ("kubernetes", "ETSINFV.KUBERNETES.V_1")
_CREATING = ("instantiate_end", "heal_end")
_DELETING = ("instantiate_end", "heal_start", "heal_end", "terminate_start", "terminate_end")
_facts = {}
_created = {}
"""The VIM that the driver has created, as it gave it. The VNFM judges it and registers it."""
_deleted = set()


def begin(given):
    """Take the facts: what the driver got as a whole."""
    _facts.update(given)
    _created.clear()
    _deleted.clear()


def refused(what):
    return Refused("%s is not available to management drivers of packages" % what)


def package_folder(vnfd_id):
    known = _facts["vnf_instance"].get("vnfdId")
    if vnfd_id != known:
        raise Refused("VNFD %s is not that of the instance, %s" % (vnfd_id, known))
    return _facts["tmp_csar_dir"]


def vim(entries):
    """Return the VIM of the first entry that is the instance's."""
    known = _facts["vnf_instance"].get("vimConnectionInfo") or {}
    ids = {one.get("vimId"): key for key, one in known.items()}
    for entry in entries or ():
        if entry.id in known or entry.vim_id in ids:
            return {**entry._fields(), "vim_name": entry.vim_id}
    raise Refused("the instance has no such VIM")


class Vim(Record):
    """A row of the table of VIMs, without secrets."""

    def __getitem__(self, name):
        return getattr(self, name)

    def get(self, name, default=None):
        return self._fields().get(name, default)


def vim_by_name(name):
    return next((one for one in _vims() if one.name == name), None)


def vim_by_id(vim_id):
    """Return the VIM as the plugin gives it. VIMs of others do not exist for the driver."""
    for one in _vims():
        if one.id == vim_id:
            return {part: value for part, value in one._fields().items() if part not in ("vim_auth", "is_own")}
    raise Refused("the instance has no VIM %s" % vim_id)


def create_vim(body):
    """Keep what the VNFM is to register, and return the VIM as it will be."""
    _check_phase("create_vim", _CREATING)
    wanted = dict(body.get("vim") or body)
    if wanted.get("type") not in _KUBERNETES:
        raise Refused("create_vim: type kubernetes expected, not %s" % wanted.get("type"))
    if _created and _created["name"] != wanted.get("name"):
        raise Refused("create_vim: a driver creates one VIM, and it has created %s" % _created["name"])
    credentials = wanted.get("auth_cred") or {}
    _created.update(
        name=wanted.get("name"), auth_url=wanted.get("auth_url"), bearer_token=credentials.get("bearer_token"),
        ssl_ca_cert=credentials.get("ssl_ca_cert"),
    )
    return vim_by_id(_created_id())


def delete_vim(vim_id):
    """Forget the VIM that this driver, or the instance's instantiation, has created. The VNFM keeps it until the instance ends."""
    _check_phase("delete_vim", _DELETING)
    found = next((one for one in _vims() if one.id == vim_id), None)
    if found is None or not found.is_own:
        raise Refused("delete_vim: VIM %s was not created for this instance" % vim_id)
    if _created and vim_id == _created_id():
        _created.clear()
    else:
        _deleted.add(vim_id)
    return vim_id


def created_vim():
    """Return what the VNFM is to register; None: nothing."""
    return dict(_created) or None


def _check_phase(call, phases):
    if _facts["operation"] not in phases:
        raise Refused("%s is not available at %s, only at %s" % (call, _facts["operation"], " and ".join(phases)))


def _created_id():
    # As the VNFM derives it: the driver puts the id into the instance before the VIM is registered.
    facts = "kubevnfm:driver-vim|%s|%s" % (_facts["vnf_instance"]["id"], _created["name"])
    return str(uuid.uuid5(uuid.NAMESPACE_URL, facts))


def _vims():
    """Return the VIMs of the instance, those that its request names, and the one that the driver has created."""
    instance, request = _facts["vnf_instance"], _facts.get("request") or {}
    entries = {**(request.get("vimConnectionInfo") or {}), **(instance.get("vimConnectionInfo") or {})}
    found = []
    for key, one in entries.items():
        extra, interface, access = (one.get(name) or {} for name in ("extra", "interfaceInfo", "accessInfo"))
        is_own = extra.get("created_by") == instance["id"]
        url = interface.get("endpoint") or access.get("auth_url") or access.get("authUrl")
        kind = "kubernetes" if one.get("vimType") in _KUBERNETES else "openstack"
        found.append(_vim(one.get("vimId") or key, key, kind, url, is_own=is_own, extra=dict(extra)))
    if _created:
        found.append(_vim(_created_id(), _created["name"], "kubernetes", _created["auth_url"], is_own=True, extra={}))
    return [one for one in found if one.id not in _deleted]


def _vim(vim_id, name, kind, url, *, is_own, extra):
    return Vim(
        id=vim_id, name=name, type=kind, auth_url=url, auth_cred={}, vim_project={"name": ""}, tenant_id="",
        description="", is_default=False, status="ACTIVE", placement_attr={"regions": []}, extra=extra,
        vim_auth=Record(auth_url=url, auth_cred={}), is_own=is_own,
    )


def stack(stack_id):
    """Return the facts of a stack of the instance."""
    found = _stacks()
    if stack_id not in found:
        raise Refused("stack %s is not one of this VNF" % stack_id)
    top = _facts["stack"]
    return Record(id=stack_id, stack_name=top["stack_name"] if stack_id == top["stack_id"] else stack_id)


def resource(stack_id, name):
    for one in resources(stack_id):
        if name in (one.resource_name, one.physical_resource_id):
            return one
    raise Refused("stack %s has no resource %s" % (stack_id, name))


def resources(stack_id, nested_depth=0):
    """Return the resources of a stack of the instance, and of those nested in it down to that depth."""
    found = _stacks()
    if stack_id not in found:
        raise Refused("stack %s is not one of this VNF" % stack_id)
    listed = []
    for one in found[stack_id]:
        listed.append(one)
        if nested_depth and one.physical_resource_id in found:
            inner = resources(one.physical_resource_id, int(nested_depth) - 1)
            for each in inner:
                each.parent_resource = each.parent_resource or one.resource_name
            listed += inner
    return listed


def members(stack_ids):
    """Return the names of members of scaling groups by the ids of their stacks."""
    servers = (_facts.get("stack") or {}).get("servers", ())
    return [one["member"] or one["group"] or one["name"] for one in servers if one["stack_id"] in stack_ids]


def _stacks():
    """Return the resources by stack: servers, ports, floating IPs, volumes, networks, and the groups and members between."""
    top = _facts.get("stack")
    if not top:
        return {}
    found = {top["stack_id"]: {}}

    def add(stack_id, name, kind, physical_id, attributes=None):
        one = Record(
            resource_name=name, logical_resource_id=name, physical_resource_id=physical_id, resource_type=kind,
            resource_status="CREATE_COMPLETE", attributes=attributes or {},
        )
        found.setdefault(stack_id, {}).setdefault(name, one)

    for server in top.get("servers", ()):
        inner = server["stack_id"]
        if server.get("group") and server.get("member"):
            group = "%s/%s" % (top["stack_id"], server["group"])
            add(top["stack_id"], server["group"], "OS::Heat::AutoScalingGroup", group)
            add(group, server["member"], "file", inner)
        elif inner != top["stack_id"]:
            add(top["stack_id"], server.get("group") or server["name"], "file", inner)
        add(
            inner, server["name"], "OS::Nova::Server", server["server_id"],
            {"name": server.get("server_name"), "id": server["server_id"], "OS-EXT-SRV-ATTR:host": server.get("host")},
        )
        for port in server.get("ports", ()):
            _add_port(add, inner, port)
    for port in top.get("ports", ()):
        _add_port(add, top["stack_id"], port)
    for volume in top.get("volumes", ()):
        attached = [{"server_id": volume["server_id"]}] if volume.get("server_id") else []
        add(top["stack_id"], volume["name"], "OS::Cinder::Volume", volume["resource_id"], {"attachments": attached})
    for network in top.get("networks", ()):
        add(top["stack_id"], network["name"], "OS::Neutron::Net", network["resource_id"])
    return {stack_id: list(by_name.values()) for stack_id, by_name in found.items()}


def _add_port(add, stack_id, port):
    if not port["name"]:
        return
    subnets = list(port.get("subnet_ids") or ())
    fixed = [
        {"ip_address": address, "subnet_id": subnets[index] if index < len(subnets) else None}
        for index, address in enumerate(port.get("addresses") or ())
    ]
    floating = {"floating_ip_address": port["floating_address"]} if port.get("floating_address") else {}
    add(
        stack_id, port["name"], port["resource_type"], port["resource_id"],
        {"fixed_ips": fixed, "mac_address": port.get("mac"), "network_id": port.get("network_id"), **floating},
    )
