"""The roll-out of a workload cluster without a change: each Machine is replaced by one of the same specification (CR-103)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import structlog

from kubevnfm_infra_k8s.domain.capi.contract import Contract, contract_of
from kubevnfm_infra_k8s.domain.errors import ObjectMissing
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_wait import ClusterKinds

log = structlog.get_logger()


async def roll_out(cluster: Cluster, kinds: ClusterKinds, owners: Sequence[Body], *, after: str) -> Sequence[ObjectKey]:
    """Have the owners' Machines that were made before ``after`` replaced; return the owners. Raises ObjectMissing."""
    resources = {each.kind: each for each in kinds.all}
    keys: list[ObjectKey] = []
    for each in owners:
        resource = resources[str(each.get("kind"))]
        metadata = each["metadata"]
        key = ObjectKey(resource.api_version, resource.kind, metadata["namespace"], metadata["name"])
        keys.append(key)
        path = _field(resource)
        if field_at(each, *path) == after:
            continue
        if await cluster.patch(resource, key, _nested(path, after)) is None:
            raise ObjectMissing(key)
        log.info("roll_out_begun", object=str(key), after=after)
    return keys


def rolled_out(control_plane: Body | None, workers: Sequence[Body]) -> Iterator[Body]:
    """Yield the owners that roll out; the Machines of a MachinePool are the business of its infrastructure provider."""
    if control_plane is not None:
        yield control_plane
    yield from (each for each in workers if each.get("kind") == "MachineDeployment")


def _field(resource: Resource) -> tuple[str, ...]:
    is_old = contract_of(resource.api_version) is Contract.V1BETA1
    return ("spec", "rolloutAfter") if is_old else ("spec", "rollout", "after")


def _nested(path: Sequence[str], value: str) -> Body:
    if len(path) == 1:
        return {path[0]: value}
    return {path[0]: _nested(path[1:], value)}
