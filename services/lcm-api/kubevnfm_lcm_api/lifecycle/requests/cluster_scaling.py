"""Effects of a scaling on a cluster: its workers come and go, its masters do not (sequences.md 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict

from kubevnfm_cluster import CLUSTER, ClusterParameters, NodeChoice, Role, read_cluster_parameters, with_overrides
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import SecretParams

from kubevnfm_lcm_api.lifecycle.requests.vnf_under_change import VnfUnderChange

_NAME: Final = "node_name"
"""Attribute of vnfcResourceInfo.metadata: the node's name in Kubernetes."""


class ClusterFields(TypedDict, total=False):
    """The fields of `ScaleVmDraft` that a VNF of plain machines does not have."""

    driver: str
    parameters: SecretParams
    cluster_parameters: ClusterParameters
    node_names: dict[str, str]


def cluster_fields(
    vnf: VnfUnderChange, wanted: Mapping[str, int], given: Mapping[str, Any], field: str
) -> ClusterFields:
    """Return the fields of a cluster whose workers come or go; none for any other VNF.

    ``wanted``: machines by VDU; ``given``: additionalParams of the request; ``field``: what the request chose the machines
    by. Raises: Unprocessable if masters or all workers are concerned; InvalidInput, Unprocessable of `with_overrides`.
    """
    internals = vnf.record.internals
    driver = internals.phases.get("scale_end")
    if driver is None or "instantiate_end" not in internals.phases:
        return {}
    stored = internals.parameters
    present = read_cluster_parameters(stored)
    masters, workers = (_vdus(vnf, present, role) for role in ("master", "worker"))
    for vdu_id in sorted(masters):
        if wanted.get(vdu_id, 0) != vnf.counts.get(vdu_id, 0):
            raise Unprocessable(
                field,
                f"{vnf.counts.get(vdu_id, 0)} machines of {vdu_id} are masters of the cluster: only workers can be scaled",
            )
    if all(wanted.get(vdu_id, 0) == vnf.counts.get(vdu_id, 0) for vdu_id in workers):
        return {}
    if not any(wanted.get(vdu_id, 0) for vdu_id in workers):
        raise Unprocessable(field, "no worker of the cluster would be left, and its pods need one")
    parameters = with_overrides(stored, given)
    info = vnf.info.vnfc_resource_info
    return {
        "driver": driver,
        "parameters": {**stored, **given, CLUSTER: stored[CLUSTER]},
        "cluster_parameters": parameters,
        "node_names": {one.id: str(one.metadata[_NAME]) for one in info if one.metadata and one.metadata.get(_NAME)},
    }


def _vdus(vnf: VnfUnderChange, parameters: ClusterParameters, role: Role) -> frozenset[str]:
    choice: NodeChoice = parameters.group(role).choice(role)
    return frozenset(server.vdu_id for server in vnf.resources.servers if choice.includes(server))
