"""Scaling of a cluster: its workers come and go, its masters do not (sequences.md 1.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft, changed_cluster, cluster_of, servers_of
from kubevnfm_lcm_api.lifecycle.clusters.kuryr import driver_of
from kubevnfm_lcm_api.lifecycle.clusters.nodes import storage_server
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


class ScaleClusterDraft(ScaleVmDraft, ClusterChangeDraft):
    """SCALE, SCALE_TO_LEVEL of the workers of a cluster."""

    grown: StackResources | None = None
    """The stack when it had more machines than before; a rollback takes these out of the cluster."""

    def with_resources(self, resources: StackResources | None) -> Self:
        draft = super().with_resources(resources)
        old = {server.vnfc_id for server in self.before.servers}
        if resources is None or all(server.vnfc_id in old for server in resources.servers):
            return draft
        return draft.model_copy(update={"grown": draft.resources})


def scaled_cluster(vnf: VnfUnderChange, plain: ScaleVmDraft, given: Mapping[str, Any], field: str) -> ScaleVmDraft:
    """Return the draft of a scaling by which workers come or go; ``plain`` if none does.

    ``given``: additionalParams of the request; ``field``: what the request chose the machines by.
    Raises: Unprocessable if masters or all workers are concerned; InvalidInput, Unprocessable of
    `cluster_of` and `with_overrides`.
    """
    internals, wanted = vnf.record.internals, plain.counts
    driver = driver_of(internals.phases, "scale_end")
    if driver is None or "instantiate_end" not in internals.phases:
        return plain
    present = cluster_of(internals)
    workers = {server.vdu_id for server in servers_of(vnf, present, "worker")}
    changed = {vdu_id for vdu_id, count in wanted.items() if vnf.counts.get(vdu_id, 0) != count}
    masters = sorted(changed.intersection(server.vdu_id for server in servers_of(vnf, present, "master")))
    if masters:
        have = f"{vnf.counts.get(masters[0], 0)} machines of {masters[0]} are masters of the cluster"
        raise Unprocessable(field, f"{have}: only workers can be scaled")
    if present.storage_server is not None:
        storage = storage_server(vnf.resources, present.storage_server).vdu_id
        if storage in changed:
            raise Unprocessable(field, f"{storage} is the storage server of the cluster: only workers can be scaled")
    if changed.isdisjoint(workers):
        return plain
    if not any(wanted.get(vdu_id, 0) for vdu_id in workers):
        raise Unprocessable(field, "no worker of the cluster would be left, and its pods need one")
    return changed_cluster(ScaleClusterDraft, plain, vnf, driver, given)
