"""The base of all OS::Neutron types."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from kubevnfm_lab.openstack.errors import not_found
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.network.records import Network, Record, Subnet
from kubevnfm_lab.openstack.orchestration.stack import Resource
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import ResourceType


class NeutronType(ResourceType):
    """The base of all Neutron types: their attributes are the fields of Neutron's answer."""

    @property
    def neutron(self) -> Neutron:
        """The networks of the cloud."""
        return self.services.neutron

    @abstractmethod
    def record(self, resource: Resource) -> Record | None:
        """Return Neutron's record of it."""

    def is_there(self, resource: Resource) -> bool:
        """Whether Neutron still has it."""
        return self.record(resource) is not None

    def show(self, resource: Resource) -> Json:
        """Return what Neutron shows of it."""
        record = self.record(resource)
        return record.view() if record is not None else {}  # type: ignore[attr-defined]  # every kept record has a view

    def network(self, name: Any, project_id: str) -> Network:
        """Return a network by name or id; raise Neutron's 404."""
        found = self.neutron.find_network(str(name), project_id)
        if found is None:
            raise not_found("neutron", "NetworkNotFound", f"Network {name} could not be found.")
        return found

    def subnet(self, name: Any, project_id: str) -> Subnet:
        """Return a subnet by name or id; raise Neutron's 404."""
        found = self.neutron.find(self.neutron.subnets, str(name), project_id)
        if found is None:
            raise not_found("neutron", "SubnetNotFound", f"Subnet {name} could not be found.")
        return found
