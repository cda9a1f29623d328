"""Common to the operations by which nodes of a cluster leave or join: their drafts, and which machines the nodes are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from kubevnfm_cluster.overrides import with_overrides
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters, Role
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events.stacks import ServerFacts
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceInternals
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

_NAME: Final = "node_name"
"""Attribute of vnfcResourceInfo.metadata: the node's name in Kubernetes."""


class ClusterChangeDraft(ChangeVmDraft):
    """A change of the nodes of a cluster."""

    driver: str | None = None
    """The management driver of the cluster; None: scripts of the package have built it."""
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams of the instantiate request, overlaid by those of this one."""

    @classmethod
    def has_stored(cls, document: Mapping[str, Any]) -> bool:
        """Return whether nodes come or go, and not plain machines alone."""
        return document.get("driver") is not None


D = TypeVar("D", bound=ClusterChangeDraft)


def cluster_of(internals: InstanceInternals) -> ClusterParameters:
    """Return the cluster of the instance.

    Raises: InvalidInput, Unprocessable for parameters that an earlier version has accepted and this one does not.
    """
    return internals.cluster or read_cluster_parameters(internals.parameters)


def changed_cluster(
    kind: type[D], plain: ChangeVmDraft, vnf: VnfUnderChange, driver: str, given: Mapping[str, Any]
) -> D:
    """Return the draft of a change of nodes; ``plain``: that of their machines; ``given``: additionalParams of the request.

    Raises: InvalidInput, Unprocessable of `with_overrides`.
    """
    stored = vnf.record.internals.parameters
    info = vnf.info.vnfc_resource_info
    return kind(
        **{
            **vars(plain),
            "driver": driver,
            "parameters": {**stored, **given, CLUSTER: stored[CLUSTER]},
            "cluster_parameters": with_overrides(cluster_of(vnf.record.internals), stored, given),
            "node_names": {
                one.id: str(one.metadata[_NAME]) for one in info if one.metadata and one.metadata.get(_NAME)
            },
        }
    )


def servers_of(vnf: VnfUnderChange, parameters: ClusterParameters, role: Role) -> list[ServerFacts]:
    """Return the machines of a role."""
    choice = parameters.group(role).choice(role)
    return [server for server in vnf.resources.servers if choice.includes(server)]
