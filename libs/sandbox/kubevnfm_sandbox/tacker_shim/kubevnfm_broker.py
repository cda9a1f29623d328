"""Answers what a driver class asks of Tacker, from the facts that came with its call: those of its own instance, and no secrets of a VIM.

No call leaves the process. What the facts do not have, another stack or another package, is refused by name.
"""

from tacker.common import exceptions
from tacker.objects.fields import Record


class Refused(exceptions.TackerException):
    """The driver asks for something that is not its instance's, or that this VNFM does not have for drivers."""


_facts = {}


def begin(given):
    """Take the facts: what the driver got as a whole."""
    _facts.update(given)


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
