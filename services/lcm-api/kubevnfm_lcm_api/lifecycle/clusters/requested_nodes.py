"""Common to requests that change the nodes of a cluster: which machines the nodes are, and the fields of the draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_cluster.overrides import with_overrides
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters, Role
from kubevnfm_events.stacks import ServerFacts

from kubevnfm_lcm_api.lifecycle.machines.roles import ClusterFields
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

_NAME: Final = "node_name"
"""Attribute of vnfcResourceInfo.metadata: the node's name in Kubernetes."""


def servers_of(vnf: VnfUnderChange, parameters: ClusterParameters, role: Role) -> list[ServerFacts]:
    """Return the machines of a role."""
    choice = parameters.group(role).choice(role)
    return [server for server in vnf.resources.servers if choice.includes(server)]


def changed_cluster(vnf: VnfUnderChange, driver: str, given: Mapping[str, Any]) -> ClusterFields:
    """Return the fields of a cluster whose nodes come or go; ``given``: additionalParams of the request.

    Raises: InvalidInput, Unprocessable of `with_overrides`.
    """
    stored = vnf.record.internals.parameters
    info = vnf.info.vnfc_resource_info
    return {
        "driver": driver,
        "parameters": {**stored, **given, CLUSTER: stored[CLUSTER]},
        "cluster_parameters": with_overrides(stored, given),
        "node_names": {one.id: str(one.metadata[_NAME]) for one in info if one.metadata and one.metadata.get(_NAME)},
    }
