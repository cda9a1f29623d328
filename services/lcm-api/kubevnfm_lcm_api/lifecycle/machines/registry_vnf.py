"""A VNF of one machine that a management driver makes a private registry (sequences.md 1.6, B4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kubevnfm_cluster.registries import place_of
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF, read_registry
from kubevnfm_events.mgmt import REGISTRY_DRIVERS
from kubevnfm_events.stacks import StackResources
from kubevnfm_secrets import SecretParams
from pydantic import BaseModel, ConfigDict


class RegistryVnf(BaseModel):
    """The driver of the phase that makes the registry, and its parameters."""

    model_config = ConfigDict(frozen=True)

    driver: str
    parameters: SecretParams
    """``private_registry_installation_param`` of the instantiate request's additionalParams."""

    @classmethod
    def from_phases(cls, phases: Mapping[str, str], phase: str, additional_params: Mapping[str, Any]) -> Self | None:
        """Return the registry that a phase makes; None if the VNFD maps the phase to no driver of registries."""
        driver = phases.get(phase)
        if driver not in REGISTRY_DRIVERS or driver is None:
            return None
        return cls(driver=driver, parameters={REGISTRY_VNF: additional_params.get(REGISTRY_VNF)})

    def places(self, resources: StackResources) -> tuple[str, ...]:
        """Return where the registry answers: ``address:port`` for each address, fixed or floating, of its machine."""
        port = read_registry(self.parameters).port_no
        # The VNF has one machine, so each of its ports belongs to that.
        ports = (*(port for server in resources.servers for port in server.ports), *resources.ports)
        addresses = [address for each in ports for address in (*each.addresses, each.floating_address) if address]
        return tuple(dict.fromkeys(place_of(address, port) for address in addresses))
