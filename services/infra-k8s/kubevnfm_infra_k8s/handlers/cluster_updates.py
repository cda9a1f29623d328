"""The handler of updates of workload clusters. Each part reads the present state first, then does what is missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog
from kubevnfm_events.capi import ClusterUpdated, UpdateCluster
from kubevnfm_worker.outcome import Done, NotYet, Outcome

from kubevnfm_infra_k8s.domain.changing.dry_run import rehearse
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import cloud_secrets
from kubevnfm_infra_k8s.domain.workload_clusters.references import check_references
from kubevnfm_infra_k8s.domain.workload_clusters.templates import ClusterPruneRun, referred_templates, with_templates
from kubevnfm_infra_k8s.domain.workload_clusters.updating import (
    check_update,
    present,
    rehearse_changes,
    version_step,
    workers_of_a_version_step,
)
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, Handling, Step
from kubevnfm_infra_k8s.handlers.repeating import in_cluster

log = structlog.get_logger()


@dataclass(frozen=True)
class ClusterUpdateHandlers(Handling):
    """Brings workload clusters to the manifests of another package."""

    @in_cluster
    async def update_cluster(self, command: UpdateCluster, step: Step) -> Outcome:
        """Do one part of the update."""
        planned, cluster = await step.planned(command), step.cluster
        # The files may have the Secret of the cloud now, or name no longer any.
        secrets = cloud_secrets(planned.objects) if step.release.openstack_vim_id else {}
        if command.part == "check":
            check_update(planned.objects, await present(cluster, planned.objects), command.cluster)
            await check_references(cluster, planned.objects)
        planned = replace(planned, objects=await with_templates(cluster, planned.objects, step.release))
        there = await present(cluster, planned.objects)
        version = version_step(planned.objects, there)
        async with step.showing_remains():
            if command.part == "check":
                await rehearse_changes(cluster, planned.objects, there)
                await rehearse(cluster, [each for each in planned.objects if each.key not in there], {})
                message = "possible" if version is None else f"possible; to Kubernetes {version}, so without a rollback"
                await step.progress("check").finished(message, total=len(planned.objects))
            elif command.part == "prune":
                if not await self._prune({*secrets, *(each.key for each in planned.objects)}, step):
                    return NotYet(AGAIN_S)
            elif not step.is_applied:
                held = workers_of_a_version_step(planned.objects, there) if command.part == "control_plane" else ()
                objects = [each for each in planned.objects if each.key not in held]
                planned = await step.with_cloud_secrets(replace(planned, objects=objects))
                await step.apply(planned, step.applying(await step.wait(), step.progress("apply")))
        log.info("cluster_updated", cluster=command.cluster.name, part=command.part, version=version)
        return Done(ClusterUpdated(**dict(await step.facts()), version_step=version))

    async def _prune(self, wanted: Collection[ObjectKey], step: Step) -> bool:
        # Owners of Machines may be among what goes, and take a while.
        wait = await step.wait(self.cluster_ready_timeout_s)
        before, in_use = None, await referred_templates(step.cluster, step.release)
        # A deleted object may have been the last one that refers to a template.
        while in_use != before:
            if not await step.prune(ClusterPruneRun(**vars(step.pruning(wait)), in_use=in_use), wanted):
                return False
            before, in_use = in_use, await referred_templates(step.cluster, step.release)
        return True
