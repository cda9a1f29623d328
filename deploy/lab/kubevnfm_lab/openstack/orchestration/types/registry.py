"""The table from the name of a resource type to its class."""

from __future__ import annotations

from typing import Final

from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.orchestration.failures import validation_failed
from kubevnfm_lab.openstack.orchestration.stack import Stack
from kubevnfm_lab.openstack.orchestration.types.balancers import BALANCER_TYPES
from kubevnfm_lab.openstack.orchestration.types.base import ResourceType, Services, StackRunner
from kubevnfm_lab.openstack.orchestration.types.compute import COMPUTE_TYPES
from kubevnfm_lab.openstack.orchestration.types.nested import (
    AutoScalingGroupType,
    NestedType,
    ResourceGroupType,
    ScalingPolicyType,
    TemplateType,
)
from kubevnfm_lab.openstack.orchestration.types.networks import NETWORK_TYPES
from kubevnfm_lab.openstack.orchestration.types.plain import PLAIN_TYPES
from kubevnfm_lab.openstack.orchestration.types.ports import PORT_TYPES
from kubevnfm_lab.openstack.orchestration.types.storage import STORAGE_TYPES
from kubevnfm_lab.openstack.orchestration.types.trunks import TRUNK_TYPES

_NESTED: Final[tuple[type[NestedType], ...]] = (AutoScalingGroupType, ResourceGroupType)
_TEMPLATE_ENDINGS: Final = (".yaml", ".yml", ".template", ".json")


class Types:
    """All types of the lab's Heat."""

    def __init__(self, services: Services, runner: StackRunner) -> None:
        simple: tuple[type[ResourceType], ...] = (
            *COMPUTE_TYPES,
            *NETWORK_TYPES,
            *PORT_TYPES,
            *TRUNK_TYPES,
            *BALANCER_TYPES,
            *STORAGE_TYPES,
            *PLAIN_TYPES,
            ScalingPolicyType,
        )
        self._types: dict[str, ResourceType] = {kind.name: kind(services) for kind in simple}
        self._types.update({kind.name: kind(services, runner) for kind in _NESTED})
        self._template = TemplateType(services, runner)

    def names(self) -> list[str]:
        """Return the names of all built-in types."""
        return sorted(self._types)

    def find(self, stack: Stack, resource_type: str, resource_name: str) -> tuple[str, ResourceType]:
        """Return a resource's type after the environment's registry, and the object that serves it.

        Raises: ServiceError (400) when there is none.
        """
        mapped = stack.environment.mapped_type(resource_type, resource_name)
        found = self._types.get(mapped)
        if found is not None:
            return mapped, found
        if mapped in stack.files or mapped.endswith(_TEMPLATE_ENDINGS):
            if mapped not in stack.files:
                raise validation_failed(f'Could not fetch remote template "{mapped}": Invalid URL scheme ')
            return mapped, self._template
        message = f"The Resource Type ({resource_type}) could not be found."
        raise ServiceError("heat", 400, "StackValidationFailed", message)
