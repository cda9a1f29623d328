"""OS::Neutron::Trunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.network.trunks import Trunk
from kubevnfm_lab.openstack.orchestration.stack import Resource
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType, UpdateReplace
from kubevnfm_lab.openstack.orchestration.types.neutron import NeutronType


class TrunkType(NeutronType):
    """OS::Neutron::Trunk."""

    name = "OS::Neutron::Trunk"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "port": Property(required=True, constraint="neutron.port"),
        "sub_ports": Property("list", default=[], updatable=True),
        "description": Property(updatable=True),
        "admin_state_up": Property("boolean", updatable=True),
    }
    attributes = frozenset({"port_id"})

    async def create(self, resource: Resource) -> None:
        """Create the trunk on its port, which no server may have yet."""
        props, project_id = resource.props, resource.stack.project_id
        await self.services.enter("neutron", "trunk_create")
        parent = self.neutron.find(self.neutron.ports, str(props["port"]), project_id)
        made = self.services.trunks.create(
            project_id,
            parent.record_id if parent is not None else str(props["port"]),
            name=props["name"] or resource.physical_name,
            description=props["description"] or "",
            sub_ports=[self._sub_port(one, project_id) for one in props["sub_ports"] or ()],
        )
        resource.physical_id = made.record_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename it, or exchange the subports of the template; those that others added stay."""
        trunk, project_id = self.record(resource), resource.stack.project_id
        if trunk is None:
            raise UpdateReplace
        await self.services.enter("neutron", "trunk_update")
        trunk.name = resource.props["name"] or resource.physical_name
        old = [self._sub_port(one, project_id) for one in before.get("sub_ports") or ()]
        new = [self._sub_port(one, project_id) for one in resource.props["sub_ports"] or ()]
        self.services.trunks.remove(trunk, [one["port_id"] for one in old if one not in new])
        self.services.trunks.add(trunk, [one for one in new if one not in old])

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        trunk = self.record(resource)
        if trunk is not None:
            await self.services.enter("neutron", "trunk_delete")
            self.services.trunks.delete(trunk)

    def record(self, resource: Resource) -> Trunk | None:
        """Return the trunk."""
        return self.services.trunks.by_id.get(resource.physical_id or "")

    def _sub_port(self, given: Mapping[str, Any], project_id: str) -> Json:
        port = self.neutron.find(self.neutron.ports, str(given.get("port")), project_id)
        rest = {name: value for name, value in given.items() if name != "port"}
        return {**rest, "port_id": port.record_id if port is not None else str(given.get("port"))}


TRUNK_TYPES: Final[Sequence[type[ResourceType]]] = (TrunkType,)
