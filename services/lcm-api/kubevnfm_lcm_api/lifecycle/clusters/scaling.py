"""Effects of a scaling on a cluster: its workers come and go, its masters do not (sequences.md 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.kuryr import driver_of
from kubevnfm_lcm_api.lifecycle.clusters.nodes import storage_server
from kubevnfm_lcm_api.lifecycle.clusters.requested_nodes import changed_cluster, servers_of
from kubevnfm_lcm_api.lifecycle.machines.roles import ClusterFields
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


def cluster_fields(
    vnf: VnfUnderChange, wanted: Mapping[str, int], given: Mapping[str, Any], field: str
) -> ClusterFields:
    """Return the fields of a cluster whose workers come or go; none for any other VNF.

    ``wanted``: machines by VDU; ``given``: additionalParams of the request; ``field``: what the request chose the machines
    by. Raises: Unprocessable if masters or all workers are concerned; InvalidInput, Unprocessable of `with_overrides`.
    """
    internals = vnf.record.internals
    driver = driver_of(internals.phases, "scale_end")
    if driver is None or "instantiate_end" not in internals.phases:
        return {}
    present = read_cluster_parameters(internals.parameters)
    masters = {server.vdu_id for server in servers_of(vnf, present, "master")}
    workers = {server.vdu_id for server in servers_of(vnf, present, "worker")}
    for vdu_id in sorted(masters):
        if wanted.get(vdu_id, 0) != vnf.counts.get(vdu_id, 0):
            raise Unprocessable(
                field,
                f"{vnf.counts.get(vdu_id, 0)} machines of {vdu_id} are masters of the cluster: only workers can be scaled",
            )
    if present.storage_server is not None:
        storage = storage_server(vnf.resources, present.storage_server).vdu_id
        if wanted.get(storage, 0) != vnf.counts.get(storage, 0):
            raise Unprocessable(field, f"{storage} is the storage server of the cluster: only workers can be scaled")
    if all(wanted.get(vdu_id, 0) == vnf.counts.get(vdu_id, 0) for vdu_id in workers):
        return {}
    if not any(wanted.get(vdu_id, 0) for vdu_id in workers):
        raise Unprocessable(field, "no worker of the cluster would be left, and its pods need one")
    return changed_cluster(vnf, driver, given)
