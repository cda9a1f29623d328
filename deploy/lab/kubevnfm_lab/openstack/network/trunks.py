"""Neutron's trunks: a server's port that also carries the traffic of other ports, each with its own VLAN tag.

Source: the Networking API v2.0, "Trunk networking".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.network.records import Json, Port, Record

SUBPORT_OWNER: Final = "trunk:subport"
LAST_VLAN: Final = 4094


@dataclass(kw_only=True, slots=True)
class SubPort:
    """A port on a trunk, and its tag."""

    port_id: str
    kind: str
    vlan: int

    def view(self) -> Json:
        """Return it as the API shows it."""
        return {"port_id": self.port_id, "segmentation_type": self.kind, "segmentation_id": self.vlan}


@dataclass(kw_only=True, slots=True)
class Trunk(Record):
    """A parent port and its subports."""

    parent: Port
    admin_state_up: bool = True
    sub_ports: dict[str, SubPort] = field(default_factory=dict)
    """By port id."""

    def view(self) -> Json:
        """Return it as the API shows it. It is ACTIVE once a server has its parent port."""
        return {
            **self._common(),
            "admin_state_up": self.admin_state_up,
            "port_id": self.parent.record_id,
            "status": "ACTIVE" if self.parent.device_id else "DOWN",
            "sub_ports": [one.view() for one in self.sub_ports.values()],
        }


class Trunks:
    """All trunks of the cloud."""

    def __init__(self, neutron: Neutron) -> None:
        self._neutron = neutron
        neutron.port_guards.append(self.refuse_if_used)
        self.by_id: dict[str, Trunk] = {}

    def create(
        self,
        project_id: str,
        port_id: str,
        *,
        name: str = "",
        sub_ports: Sequence[Mapping[str, Any]] = (),
        **facts: Any,
    ) -> Trunk:
        """Create a trunk on a port. Raises ServiceError if the port does not exist or has another use."""
        parent = self._port(port_id)
        self.refuse_if_used(parent)
        if parent.device_id:
            # Open vSwitch, the usual back end: it plugs a port with the trunk or without it, and never changes that.
            message = f"Port {port_id} is currently in use and is not eligible for use as a parent port."
            raise conflict("neutron", "ParentPortInUse", message)
        made = Trunk(project_id=project_id, name=name, parent=parent, **facts)
        self.by_id[made.record_id] = made
        try:
            self.add(made, sub_ports)
        except ServiceError:
            del self.by_id[made.record_id]
            raise
        return made

    def delete(self, trunk: Trunk) -> None:
        """Delete a trunk; its ports stay."""
        self.remove(trunk, list(trunk.sub_ports))
        del self.by_id[trunk.record_id]

    def add(self, trunk: Trunk, given: Sequence[Mapping[str, Any]]) -> None:
        """Add subports, all or none."""
        added: dict[str, SubPort] = {}
        for one in given:
            port = self._port(str(one.get("port_id")))
            self.refuse_if_used(port)
            kind, vlan = str(one.get("segmentation_type")), one.get("segmentation_id")
            if kind != "vlan" or not isinstance(vlan, int) or not 0 < vlan <= LAST_VLAN:
                message = f"Invalid input for operation: Invalid segmentation type or id: {kind}, {vlan}."
                raise bad_request("neutron", message, "InvalidInput")
            if any(other.vlan == vlan for other in (*trunk.sub_ports.values(), *added.values())):
                message = (
                    f"segmentation_type {kind} and segmentation_id {vlan} already in use on trunk {trunk.record_id}."
                )
                raise conflict("neutron", "DuplicateSubPort", message)
            if port.device_id:
                raise conflict("neutron", "PortInUse", f"Port {port.record_id} is currently in use.")
            added[port.record_id] = SubPort(port_id=port.record_id, kind=kind, vlan=vlan)
        for port_id in added:
            self._neutron.bind(self._port(port_id), device_id=trunk.record_id, owner=SUBPORT_OWNER)
        trunk.sub_ports |= added
        trunk.touched()

    def remove(self, trunk: Trunk, port_ids: Sequence[str]) -> None:
        """Take subports off the trunk; the ports stay."""
        for port_id in port_ids:
            if port_id not in trunk.sub_ports:
                message = f"SubPort on trunk {trunk.record_id} with parent port {port_id} could not be found."
                raise not_found("neutron", "SubPortNotFound", message)
        for port_id in port_ids:
            del trunk.sub_ports[port_id]
            if (port := self._neutron.ports.get(port_id)) is not None:
                self._neutron.unbind(port)
        trunk.touched()

    def of_parent(self, port_id: str) -> Trunk | None:
        """Return the trunk whose parent port this is."""
        return next((one for one in self.by_id.values() if one.parent.record_id == port_id), None)

    def refuse_if_used(self, port: Port) -> None:
        """Raise Neutron's 409 for a port that belongs to a trunk: it cannot be deleted."""
        for trunk in self.by_id.values():
            if trunk.parent is port:
                message = f"Port {port.record_id} is currently a parent port for trunk {trunk.record_id}."
                raise conflict("neutron", "PortInUseAsTrunkParent", message)
            if port.record_id in trunk.sub_ports:
                message = f"Port {port.record_id} is currently a subport for trunk {trunk.record_id}."
                raise conflict("neutron", "PortInUseAsSubPort", message)

    def _port(self, port_id: str) -> Port:
        found = self._neutron.ports.get(port_id)
        if found is None:
            raise not_found("neutron", "PortNotFound", f"Port {port_id} could not be found.")
        return found
