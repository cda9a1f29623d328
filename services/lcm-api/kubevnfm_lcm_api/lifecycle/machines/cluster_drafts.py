"""The common part of the drafts of changes that nodes of a cluster leave or join."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.granting import granted_zones
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName


class ClusterChangeDraft(ChangeVmDraft):
    """A change of a VNF of machines, which may be the nodes of a cluster."""

    driver: str | None = None
    """The management driver of a cluster whose nodes come or go; None: a VNF of plain machines, or no node does."""
    parameters: SecretParams = Field(default_factory=dict)
    """A cluster: additionalParams of the instantiate request, overlaid by those of this one."""
    cluster_parameters: ClusterParameters | None = None
    node_names: dict[str, str] = Field(default_factory=dict)
    """Kubernetes node by VNFC id: as the instance has them, then as the driver has reported them."""

    @property
    def changed_cluster(self) -> ClusterParameters | None:
        """The parameters of the cluster whose nodes come or go; None: no node does."""
        return self.cluster_parameters if self.driver is not None else None

    @property
    def role_name(self) -> RoleName | None:
        """The role of the machines that come or go."""
        cluster = self.changed_cluster
        return None if cluster is None else "cluster" if cluster.kuryr_param is None else "kuryr"

    @property
    def granted_zones(self) -> Mapping[str, tuple[str, ...]]:
        """By VDU, in the order of the GrantRequest's resources."""
        return granted_zones(self.grant, self.grant_request)

    def with_node_names(self, names: Mapping[str, str]) -> Self:
        """Return the draft with the names that the driver has reported."""
        return self.model_copy(update={"node_names": dict(names)}) if names else self

    def _node_names(self) -> Mapping[str, str]:
        return self.node_names
