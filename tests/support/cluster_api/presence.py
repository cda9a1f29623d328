"""Whether a cluster has the real Cluster API with machines in memory."""

from __future__ import annotations

from typing import Final

from real_cluster import RealCluster

ABSENT: Final = "the given cluster has no Cluster API with machines in memory: `make cluster-api` installs it"
_COLLECTION: Final = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/devclusters"


async def is_there(cluster: RealCluster) -> bool:
    """Return whether the kinds of the in-memory provider are served."""
    return await cluster.get(_COLLECTION) is not None
