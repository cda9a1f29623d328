"""The groups, VDUs and connection points of VNFD and Base HOT, to which the names in a request refer."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Final

from kubevnfm_cluster.parameters import ROOT, NodeGroup, Role
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.errors import InvalidInput, Unprocessable

PORT: Final = "OS::Neutron::Port"
FLOATING_IP: Final = "OS::Neutron::FloatingIP"
SERVER: Final = "OS::Nova::Server"
SUBNET: Final = "OS::Neutron::Subnet"
VOLUME: Final = "OS::Cinder::Volume"
ATTACHMENT: Final = "OS::Cinder::VolumeAttachment"


@dataclass(frozen=True)
class Group:
    """The machines of one role."""

    types: Mapping[str, str]
    """Resource type by name in the template that makes one machine."""
    where: str
    """That template, for errors."""
    is_top: bool
    """Whether the machine is in the top template, not in a nested one."""
    count: int
    """Machines at the instantiation level."""
    most: int
    """The most machines that levels and scaling allow."""


@dataclass(frozen=True)
class Places:
    """The flavour and its templates; without templates (TOSCA) the VNFD's connection points stand for ports."""

    flavour: Flavour
    hot: BaseHot | None
    level_id: str | None

    @property
    def top(self) -> Mapping[str, str]:
        """Resource type by name in the top template."""
        if self.hot is not None:
            return self.hot.top.resource_types
        return dict.fromkeys(self.flavour.cps, PORT)

    def group(self, nodes: NodeGroup, role: Role, *, needed: str | None) -> Group:
        """Return the group of a role's machines. Names are enough only if no attribute is ``needed``.

        Raises: InvalidInput, Unprocessable.
        """
        choice, field = nodes.choice(role), f"{ROOT}/{role}_node"
        if choice.by == "aspect_id":
            return self._by_aspect(f"{field}/aspect_id", choice.value)
        if choice.by == "vdu_id":
            return self._by_vdu(f"{field}/vdu_id", choice.value)
        if needed is not None:
            raise InvalidInput(f"{field}/{needed}", "missing: the scaling aspect or the VDU of these machines expected")
        return self._by_name(f"{field}/aspect_id", choice.value)

    def resource(self, group: Group, name: str) -> Mapping[str, Any]:
        """Return a resource of the group's template; empty without templates."""
        if self.hot is None:
            return {}
        templates = (self.hot.top, *self.hot.nested.values())
        return next(one for one in templates if one.path == group.where).resource(name)

    def servers_with(self, volume: str) -> Sequence[str]:
        """Return the servers of the top template that a volume of it is attached to."""
        if self.hot is None:
            return []
        top, found = self.hot.top, set()
        for name, kind in top.resource_types.items():
            properties = top.resource(name).get("properties") or {}
            if kind == SERVER and any(
                _refers(properties.get(one), volume) for one in ("block_device_mapping_v2", "block_device_mapping")
            ):
                found.add(name)
            if kind == ATTACHMENT and _refers(properties.get("volume_id"), volume):
                found.update(one for one in self.servers if _refers(properties.get("instance_uuid"), one))
        return sorted(found)

    @property
    def servers(self) -> Sequence[str]:
        """The servers of the top template."""
        return [name for name, kind in self.top.items() if kind == SERVER]

    def is_port_of(self, port: str, server: str) -> bool:
        """Return whether a server of the top template has the port."""
        assert self.hot is not None
        return _refers((self.hot.top.resource(server).get("properties") or {}).get("networks"), port)

    def _by_aspect(self, field: str, aspect_id: str) -> Group:
        flavour, hot = self.flavour, self.hot
        if aspect_id not in flavour.aspects and (flavour.aspects or flavour.vdus):
            raise Unprocessable(field, f"the VNFD has no scaling aspect {aspect_id}; it has {_list(flavour.aspects)}")
        member = hot.member(aspect_id) if hot is not None and hot.is_group(aspect_id) else None
        if hot is None or member is None:
            groups = [name for name in hot.top.resource_types if hot.is_group(name)] if hot is not None else []
            raise Unprocessable(
                field, f"the Base HOT has no group {aspect_id} of nested templates; it has {_list(groups)}"
            )
        servers = {name for name, kind in member.resource_types.items() if kind == SERVER}
        vdus = [vdu_id for vdu_id in flavour.vdus if vdu_id in servers] or list(flavour.scaled_vdus(aspect_id))
        count, most = self._counts(vdus) if vdus else _sizes(hot, aspect_id)
        return Group(member.resource_types, member.path, is_top=False, count=count, most=most)

    def _by_vdu(self, field: str, vdu_id: str) -> Group:
        if vdu_id not in self.flavour.vdus:
            raise Unprocessable(field, f"the VNFD has no VDU {vdu_id}; it has {_list(self.flavour.vdus)}")
        count, most = self._counts([vdu_id])
        if self.hot is None:
            types = {name: PORT for name, cp in self.flavour.cps.items() if cp.vdu_id == vdu_id}
            return Group(types, "the VNFD", is_top=True, count=count, most=most)
        top = self.hot.top
        if top.resource_types.get(vdu_id) == SERVER:
            return Group(top.resource_types, top.path, is_top=True, count=count, most=most)
        for name in [vdu_id, *top.resource_types]:
            member = self.hot.member(name)
            if member is not None and (name == vdu_id or member.resource_types.get(vdu_id) == SERVER):
                return Group(member.resource_types, member.path, is_top=False, count=count, most=most)
        raise Unprocessable(field, f"no template of the Base HOT has a server {vdu_id}")

    def _by_name(self, field: str, beginning: str) -> Group:
        """TOSCA: the names of VDUs begin with their role, and there is one machine of each (sequences.md 1.9)."""
        vdus = [vdu_id for vdu_id in self.flavour.vdus if vdu_id.startswith(beginning)]
        if not vdus:
            raise InvalidInput(
                field, f"missing: a scaling aspect, or a VDU whose name begins with {beginning}, expected"
            )
        count, most = self._counts(vdus)
        where = self.hot.top.path if self.hot is not None else "the VNFD"
        return Group(self.top, where, is_top=True, count=count, most=most)

    def _counts(self, vdus: list[str]) -> tuple[int, int]:
        initial = self.flavour.initial_counts(self.level_id)
        return sum(initial.get(vdu_id, 0) for vdu_id in vdus), sum(self.flavour.max_count(vdu_id) for vdu_id in vdus)

    def subnets(self, *, without: Collection[str] = ()) -> list[tuple[str, IPv4Network]]:
        """Return the networks that VNFD and templates create, if their ranges are written there.

        ``without``: resources of the template that are left out.
        """
        links = self.flavour.virtual_links.items()
        written = [(f"virtual link {name}", one.cidr) for name, link in links for one in link.subnets]
        if self.hot is not None:
            for name, kind in self.hot.top.resource_types.items():
                if name in without:
                    continue
                cidr = (self.hot.top.resource(name).get("properties") or {}).get("cidr") if kind == SUBNET else None
                written.append((f"subnet {name}", cidr))
        found = []
        for what, cidr in written:
            try:
                found.append((what, IPv4Network(cidr, strict=False)))
            except ValueError:
                continue  # IPv6, which cannot overlap, or a range that only Heat knows
        return found


def _refers(value: object, name: str) -> bool:
    """Return whether a part of a template refers to the resource."""
    if isinstance(value, list):
        return any(_refers(one, name) for one in value)
    if not isinstance(value, Mapping):
        return False
    own = (value.get("get_resource"), value.get("get_attr"))
    if own[0] == name or (isinstance(own[1], list) and own[1][:1] == [name]):
        return True
    return any(_refers(one, name) for one in value.values())


def connection_point(field: str, name: str, types: Mapping[str, str], *, where: str, kinds: tuple[str, ...]) -> None:
    """Refuse a name that is not a resource of one of the ``kinds``. Raises Unprocessable with the names that fit."""
    kind = types.get(name)
    if kind is None:
        fitting = [resource for resource, one in types.items() if one in kinds]
        raise Unprocessable(field, f"{posixpath.basename(where)} has no resource {name}; fitting: {_list(fitting)}")
    if kind not in kinds:
        raise Unprocessable(field, f"{name} is of type {kind}; {' or '.join(kinds)} expected")


def _sizes(hot: BaseHot, group: str) -> tuple[int, int]:
    """Return the sizes in a group's template; one machine if it has none (a VNFD without VDUs, Kuryr)."""
    properties = hot.top.resource(group).get("properties") or {}
    desired, most = properties.get("desired_capacity"), properties.get("max_size")
    count = desired if isinstance(desired, int) else 1
    return count, most if isinstance(most, int) else count


def _list(names: object) -> str:
    return ", ".join(names) if names and isinstance(names, list | dict) else "none"
