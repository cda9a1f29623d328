"""The handler for management clusters of Cluster API: whether their providers can be deleted (capi.md CR-043)."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from kubevnfm_events.capi import CheckClusters, ClustersChecked
from kubevnfm_kit.errors import NotFound
from kubevnfm_worker.outcome import Done, Outcome, StepContext

from kubevnfm_infra_k8s.domain.capi.clusters import clusters_in, orphans
from kubevnfm_infra_k8s.domain.errors import (
    AccessRefused,
    AddressUnnamed,
    ClustersExist,
    ClusterUnavailable,
    WebhookUnavailable,
)
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.handlers.frame import Handling

log = structlog.get_logger()


@dataclass(frozen=True)
class ManagementHandlers(Handling):
    """Checks management clusters."""

    async def check_clusters(self, command: CheckClusters, context: StepContext) -> Outcome:
        """Find the Clusters that need the instance's providers; those of its own inventory go with it."""
        release = await self.releases.get(command.vnf_instance_id)
        own = {entry.key.identity for entry in release.entries} if release is not None else set()
        progress = Progress("check_clusters", context.publish)
        try:
            async with self.connected(command.vim) as cluster:
                present = await clusters_in(cluster)
                found = {key: present[key] for key in sorted(present) if key.identity not in own}
                if found and not command.force:
                    raise ClustersExist(list(found))
                left = await orphans(cluster, found)
        except (ClusterUnavailable, WebhookUnavailable, AccessRefused, NotFound) as error:
            if not command.force or isinstance(error, AddressUnnamed):
                raise
            log.warning("clusters_not_checked", reason=str(error))
            await progress.failed(f"{error}; its Clusters are not known")
            return Done(ClustersChecked())
        names = ", ".join(f"{key.namespace}/{key.name}" for key in found)
        said = f"these Clusters lose their controllers: {names}" if found else "no Cluster needs the providers"
        await progress.finished(said, total=len(found))
        return Done(ClustersChecked(clusters=left))
