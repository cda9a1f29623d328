"""The handler of updates of workload clusters. Each part reads the present state first, then does what is missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog
from kubevnfm_events.capi import ClusterUpdated, UpdateCluster
from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.changing.dry_run import rehearse
from kubevnfm_infra_k8s.domain.errors import ObjectsNotGone, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.instance_facts import facts_of
from kubevnfm_infra_k8s.domain.release import Release
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
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, Handling, attempt_of

log = structlog.get_logger()


@dataclass(frozen=True)
class UpdateHandlers(Handling):
    """Brings workload clusters to the manifests of another package."""

    async def update_cluster(self, command: UpdateCluster, context: StepContext) -> Outcome:
        """Do one part of the update; a repeated call continues."""
        mine = command.vnf_instance_id
        manifests = await self.manifests(command, command.package, command.def_files, context.operation_id)
        release = await self.release_of(mine)
        async with self.connected(command.vim, command) as cluster:
            planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
            # The files may have the Secret of the cloud now, or name no longer any.
            secrets = cloud_secrets(planned.objects) if release.openstack_vim_id else {}
            if command.part == "check":
                there = await present(cluster, planned.objects)
                check_update(planned.objects, there, command.cluster)
                await check_references(cluster, planned.objects)
            planned = replace(planned, objects=await with_templates(cluster, planned.objects, release))
            there = await present(cluster, planned.objects)
            step = version_step(planned.objects, there)
            try:
                if command.part == "check":
                    await rehearse_changes(cluster, planned.objects, there)
                    await rehearse(cluster, [each for each in planned.objects if each.key not in there])
                    message = "possible" if step is None else f"possible; to Kubernetes {step}, so without a rollback"
                    await Progress("check", context.publish).finished(message, total=len(planned.objects))
                elif command.part == "prune":
                    pruned = await self._prune(planned, secrets, release, cluster, context)
                    if pruned is None:
                        return NotYet(AGAIN_S)
                    release = pruned
                else:
                    held = workers_of_a_version_step(planned.objects, there) if command.part == "control_plane" else ()
                    objects = [each for each in planned.objects if each.key not in held]
                    release = await self._apply(replace(planned, objects=objects), release, cluster, context)
            except RevisionConflict:
                # A worker that lost this command has written the release meanwhile; the next call reads it.
                return NotYet(AGAIN_S)
            except (ObjectsNotReady, ObjectsNotGone) as error:
                error.remains = await facts_of(cluster, release)
                raise
            facts = await facts_of(cluster, release)
        log.info("cluster_updated", cluster=command.cluster.name, part=command.part, version=step)
        return Done(ClusterUpdated(**dict(facts), version_step=step))

    async def _apply(self, planned: Plan, release: Release, cluster: Cluster, context: StepContext) -> Release:
        if release.applied_by == attempt_of(context):
            return release
        planned, release = await self.with_cloud_secrets(planned, release, cluster, context)
        wait = await self.readiness(cluster, context, release.vnf_instance_id, None)
        applying = self.applying(wait, Progress("apply", context.publish))
        return await applying.apply(planned, release, applied_by=attempt_of(context))

    async def _prune(
        self,
        planned: Plan,
        secrets: Collection[ObjectKey],
        release: Release,
        cluster: Cluster,
        context: StepContext,
    ) -> Release | None:
        # Owners of Machines may be among what goes, and take a while.
        wait = await self.readiness(cluster, context, release.vnf_instance_id, self.cluster_ready_timeout_s)
        wanted = {*secrets, *(each.key for each in planned.objects)}
        before, in_use = None, await referred_templates(cluster, release)
        # A deleted object may have been the last one that refers to a template.
        while in_use != before:
            pruning = ClusterPruneRun(**vars(self.pruning(wait, context)), in_use=in_use)
            pruned = await pruning.prune(release, wanted, within_s=self.wait_s)
            if pruned is None:
                return None
            release, before, in_use = pruned, in_use, await referred_templates(cluster, release)
        return release
