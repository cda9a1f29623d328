"""Whether a cluster has the real Cluster API with machines in memory."""

from __future__ import annotations

from typing import Final

from real.real_cluster import RealCluster

ABSENT: Final = "the given cluster has no Cluster API with machines in memory: `make cluster-api` installs it"
_DEFINITION: Final = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/devclusters.infrastructure.cluster.x-k8s.io"
)


async def is_there(cluster: RealCluster) -> bool:
    """Return whether the kinds of the in-memory provider are defined."""
    return await cluster.get(_DEFINITION) is not None
