"""Makes StackResources, the facts that the other services use, from the answers of Heat, Nova and Neutron.

A server's VDU is found by the server's resource name, then by the names above it in the nesting (the v2 clone
``<vdu>-<idx>``, the member, the group), then by the server's name. A name matches if it is a VDU's id or its
``properties.name``, also with the suffix ``-<idx>`` or ``_group``. A server that matches no VDU is its own VDU.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kubevnfm_csar.vnfd.clones import node_of
from kubevnfm_csar.vnfd.model import Cp
from kubevnfm_events.stacks import (
    CreateResources,
    NetworkFacts,
    PortFacts,
    ServerFacts,
    StackCommand,
    StackResources,
    StorageFacts,
)
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import hidden_names, hide

from kubevnfm_infra_openstack.domain.groups import TOP
from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    FLOATING_IP,
    NETWORK,
    PORT,
    RESOURCE_GROUP,
    SERVER,
    VOLUME,
)
from kubevnfm_infra_openstack.domain.stack import HeatResource, NeutronPort, NovaServer, Stack, StackContents

_GROUP_TYPES = frozenset({AUTO_SCALING_GROUP, RESOURCE_GROUP})


@dataclass(frozen=True)
class Nesting:
    """The nesting of a stack's resources."""

    top_id: str
    holder: Mapping[str, HeatResource]
    """The resource that stands for a nested stack, by the id of that stack."""
    held: Mapping[str, Sequence[HeatResource]]
    """The resources of a (nested) stack, by the id of that stack."""

    def above(self, resource: HeatResource) -> Sequence[HeatResource]:
        """Return the resources in which a resource is nested, innermost first."""
        path: list[HeatResource] = []
        holder = self.holder.get(resource.stack_id)
        # The limit on the length ends a loop in the links, should Heat ever return one.
        while holder is not None and len(path) <= len(self.holder):
            path.append(holder)
            holder = self.holder.get(holder.stack_id)
        return path


def nesting(stack: Stack, resources: Sequence[HeatResource]) -> Nesting:
    """Return the nesting of a stack's resources."""
    held: dict[str, list[HeatResource]] = {}
    for resource in resources:
        held.setdefault(resource.stack_id, []).append(resource)
    return Nesting(top_id=stack.id, holder={r.nested_id: r for r in resources if r.nested_id}, held=held)


def known_secrets(command: CreateResources | StackCommand) -> frozenset[str]:
    """Return the names of the attributes that are secret in what the command carries, for `stack_resources`.

    The request may list names that do not show it (``x_secret_names``), and the package may mark some. The instance has those
    of earlier requests.
    """
    return hidden_names([command.request, command.grant, command.instance])


def stack_resources(
    stack: Stack,
    contents: StackContents,
    vdus: Mapping[str, str],
    images: Sequence[str] = (),
    cps: Collection[Cp] = (),
    secret_names: Collection[str] = (),
    storages: Collection[str] = (),
) -> StackResources:
    """Return the facts. ``vdus``: the VNFD's names (``properties.name``) by VDU id; ``cps``: its connection points.

    ``storages``: its storages.

    ``secret_names``: attributes of the stack's parameters that are secret, in addition to those that their names show.
    Servers are sorted by VDU, then oldest first.
    """
    tree = nesting(stack, contents.resources)
    made = [r for r in contents.resources if r.physical_id]
    server_by_volume = {v: s.id for s in contents.server_by_id.values() for v in s.volume_ids}
    network_by_link = {r.name: r.physical_id for r in made if r.type == NETWORK}
    servers = [
        _with_named_ports(_server(r, tree, contents, vdus), cps, network_by_link) for r in made if r.type == SERVER
    ]
    facts = StackResources(
        stack_id=stack.id,
        stack_name=stack.name,
        servers=tuple(sorted(servers, key=_order)),
        ports=_ports(tree.held.get(stack.id, ()), contents),
        networks=tuple(NetworkFacts(name=r.name, resource_id=r.physical_id) for r in made if r.type == NETWORK),
        volumes=tuple(
            StorageFacts(
                name=r.name,
                resource_id=r.physical_id,
                server_id=server_by_volume.get(r.physical_id),
            )
            for r in made
            if r.type == VOLUME
        ),
        images=tuple(images),
        # Packages may put passwords there; the facts are stored and shown.
        nfv=hide(contents.nfv, secret_names),
    )
    return _with_nodes(facts, {cp.cp_id for cp in cps}, storages)


def members(stack: Stack, resources: Sequence[HeatResource], server_ids: Collection[str]) -> Sequence[HeatResource]:
    """Return the members of auto-scaling groups that contain those servers."""
    # Heat removes unhealthy members first when a group shrinks, so marking these decides which servers go.
    tree = nesting(stack, resources)
    found: dict[tuple[str, str], HeatResource] = {}
    for resource in resources:
        if resource.type != SERVER or resource.physical_id not in server_ids:
            continue
        path = [resource, *tree.above(resource)]
        for member, holder in pairwise(path):
            if holder.type == AUTO_SCALING_GROUP:
                found[member.stack_id, member.name] = member
                break
    return list(found.values())


def unfinished_groups(stack: Stack, resources: Sequence[HeatResource]) -> Mapping[str, Collection[str]]:
    """Return the names of the auto-scaling groups whose last change did not succeed, by the file of their template."""
    tree = nesting(stack, resources)
    found: dict[str, set[str]] = {}
    for group in resources:
        if group.type == AUTO_SCALING_GROUP and group.nested_id and not group.status.endswith("_COMPLETE"):
            above = tree.above(group)
            found.setdefault(above[0].type if above else TOP, set()).add(group.name)
    return found


def existing(contents: StackContents) -> StackContents:
    """Return the contents of a failed stack: what exists in the cloud, with the servers whose replacements failed."""
    # Heat keeps the physical id of a resource that it could not finish. So for servers, ports and addresses the answer
    # of their own service decides; for other types there is only Heat's status.
    asked = {SERVER: contents.server_by_id, PORT: contents.port_by_id, FLOATING_IP: contents.floating_by_id}

    def is_there(resource: HeatResource) -> bool:
        if resource.type in asked:
            return resource.physical_id in asked[resource.type]
        return resource.status != "DELETE_COMPLETE"

    # Not the parameters: Heat keeps those of a change that failed.
    found = [r for r in (*contents.resources, *contents.replaced) if is_there(r)]
    return replace(contents, resources=found, nfv={})


def _order(server: ServerFacts) -> tuple[str, str, str, str]:
    age = server.created_at.isoformat() if server.created_at else ""
    return (server.vdu_id, age, server.group or "", server.server_id)


def _server(resource: HeatResource, tree: Nesting, contents: StackContents, vdus: Mapping[str, str]) -> ServerFacts:
    # Nova may have lost a server that Heat still lists; then the facts contain what Heat knows.
    nova = contents.server_by_id.get(resource.physical_id) or NovaServer(resource.physical_id, "")
    above = tree.above(resource)
    group = above[-1] if above else None
    member = above[-2] if group is not None and group.type in _GROUP_TYPES and len(above) > 1 else None
    return ServerFacts(
        vnfc_id=derived_id("vnfc", resource.stack_id, resource.name, resource.physical_id),
        name=resource.name,
        vdu_id=_vdu([resource.name, *(r.name for r in above), nova.name], vdus),
        server_id=resource.physical_id,
        server_name=nova.name,
        host=nova.host,
        zone=nova.zone,
        stack_id=resource.stack_id,
        group=group.name if group is not None else None,
        member=member.name if member is not None else None,
        created_at=nova.created_at,
        ports=_server_ports(resource, tree, contents),
        image_id=nova.image_id,
        is_reverted=nova.is_reverted,
        flavor=nova.flavor,
    )


def _with_named_ports(server: ServerFacts, cps: Collection[Cp], network_by_link: Mapping[str, str]) -> ServerFacts:
    """Name ports outside of the template by the VDU's connection points, where only one is possible.

    A connection point of an internal virtual link has its port in that network; of the others, one may be left over.
    """
    known = {node_of(port.name, {cp.cp_id for cp in cps}) for port in server.ports}
    cp_by_port = dict[str, str]()
    free = [cp for cp in cps if cp.vdu_id == server.vdu_id and cp.cp_id not in known]
    for cp in free:
        network_id = network_by_link.get(cp.virtual_link or "")
        fitting = [port for port in server.ports if not port.name and network_id and port.network_id == network_id]
        if len(fitting) == 1 and len([one for one in free if one.virtual_link == cp.virtual_link]) == 1:
            cp_by_port[fitting[0].resource_id] = cp.cp_id
    left = [cp.cp_id for cp in free if cp.cp_id not in cp_by_port.values()]
    unnamed = [port.resource_id for port in server.ports if not port.name and port.resource_id not in cp_by_port]
    if len(left) == len(unnamed) == 1:
        cp_by_port[unnamed[0]] = left[0]
    ports = tuple(
        port.model_copy(update={"name": cp_by_port[port.resource_id]}) if port.resource_id in cp_by_port else port
        for port in server.ports
    )
    return server.model_copy(update={"ports": ports})


def _with_nodes(facts: StackResources, cps: Collection[str], storages: Collection[str]) -> StackResources:
    """Return the facts in which each port and volume with a numbered name has the node of the VNFD that it stands for."""

    def ports(found: Sequence[PortFacts]) -> tuple[PortFacts, ...]:
        return tuple(port.model_copy(update={"clone_of": _clone_of(port.name, cps)}) for port in found)

    return facts.model_copy(
        update={
            "servers": tuple(one.model_copy(update={"ports": ports(one.ports)}) for one in facts.servers),
            "ports": ports(facts.ports),
            "volumes": tuple(
                one.model_copy(update={"clone_of": _clone_of(one.name, storages)}) for one in facts.volumes
            ),
        }
    )


def _clone_of(name: str, nodes: Collection[str]) -> str:
    node = node_of(name, nodes)
    return node if node is not None and node != name else ""


def _vdu(names: Sequence[str], vdus: Mapping[str, str]) -> str:
    id_by_name = {**{name: vdu for vdu, name in vdus.items()}, **{vdu: vdu for vdu in vdus}}
    for name in names:
        for form in (name, name.removesuffix("_group")):
            if (node := node_of(form, id_by_name)) is not None:
                return id_by_name[node]
    return names[0]


def _server_ports(server: HeatResource, tree: Nesting, contents: StackContents) -> tuple[PortFacts, ...]:
    """Return the ports that Neutron has bound to the server, in the template's order; then their floating IPs.

    A floating IP that no port has belongs to the servers of its nested stack.
    """
    declared = {r.physical_id: r.name for r in contents.resources if r.type == PORT and r.physical_id}
    bound = {port.id: port for port in contents.port_by_id.values() if port.device_id == server.physical_id}
    inside = [(name, bound[port_id]) for port_id, name in declared.items() if port_id in bound]
    outside = [("", port) for port_id, port in bound.items() if port_id not in declared]
    floating = [
        resource
        for resource in contents.resources
        if resource.type == FLOATING_IP and resource.physical_id and _is_beside(resource, server, tree, contents, bound)
    ]
    return (
        *(_port(name, port, contents) for name, port in (*inside, *outside)),
        *(_floating(resource, contents) for resource in floating),
    )


def _is_beside(
    floating: HeatResource,
    server: HeatResource,
    tree: Nesting,
    contents: StackContents,
    bound: Collection[str],
) -> bool:
    found = contents.floating_by_id.get(floating.physical_id)
    if found is not None and found.port_id:
        return found.port_id in bound
    return floating.stack_id == server.stack_id != tree.top_id


def _ports(resources: Sequence[HeatResource], contents: StackContents) -> tuple[PortFacts, ...]:
    return tuple(
        _port(
            resource.name, contents.port_by_id.get(resource.physical_id) or NeutronPort(resource.physical_id), contents
        )
        if resource.type == PORT
        else _floating(resource, contents)
        for resource in resources
        if resource.type in {PORT, FLOATING_IP} and resource.physical_id
    )


def _port(name: str, port: NeutronPort, contents: StackContents) -> PortFacts:
    return PortFacts(
        name=name,
        resource_id=port.id,
        addresses=port.addresses,
        floating_address=port.floating_address,
        mac=port.mac,
        network_id=port.network_id,
        subnet_ids=port.subnet_ids,
        subnet_cidrs=tuple(contents.cidr_by_subnet_id.get(one, "") for one in port.subnet_ids),
    )


def _floating(resource: HeatResource, contents: StackContents) -> PortFacts:
    floating = contents.floating_by_id.get(resource.physical_id)
    return PortFacts(
        name=resource.name,
        resource_id=resource.physical_id,
        resource_type=FLOATING_IP,
        floating_address=floating.address if floating else None,
        network_id=floating.network_id if floating else None,
    )
