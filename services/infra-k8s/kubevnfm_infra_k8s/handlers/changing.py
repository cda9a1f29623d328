"""The handlers of scale, heal, repair and change of package. Each reads the present state first, then does what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubevnfm_csar.capi_providers import contract_losses, providers_of
from kubevnfm_events.infra import (
    HealObjects,
    ObjectsHealed,
    ObjectsRepaired,
    ObjectsReplaced,
    ObjectsScaled,
    RepairObjects,
    ReplaceObjects,
    ScaleObjects,
)
from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_k8s.domain.capi.contract import GROUPS as CAPI_GROUPS
from kubevnfm_infra_k8s.domain.changing.applying import awaited
from kubevnfm_infra_k8s.domain.changing.healing import BARE, HealRun
from kubevnfm_infra_k8s.domain.changing.repairing import RepairRun
from kubevnfm_infra_k8s.domain.changing.scaling import Scaled, ScaleRun
from kubevnfm_infra_k8s.domain.errors import (
    ContractGoesBack,
    ObjectFailed,
    ObjectMissing,
    ObjectsNotGone,
    ObjectsNotReady,
)
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Wanted
from kubevnfm_infra_k8s.domain.ownership import with_scaled_fields
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.instance_facts import facts_of, providers_in
from kubevnfm_infra_k8s.domain.release import Release, Written
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, ENDING_S, Handling, attempt_of


@dataclass(frozen=True)
class ChangeHandlers(Handling):
    """Scales, heals, replaces and repairs the Kubernetes objects of VNFs."""

    async def scale_objects(self, command: ScaleObjects, context: StepContext) -> Outcome:
        """Set the objects' numbers of replicas, and wait until they are reached; a repeated call only waits."""
        mine = command.vnf_instance_id
        release = await self.release_of(mine)
        async with self.connected(command.vim) as cluster:
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("scale", context.publish)
            run = ScaleRun(wait, progress)
            objects = await run.find(command.objects, release)
            try:
                # Before pods leave, which may be all that connects a claim with its StatefulSet.
                release = await self.with_seen(release, wait)
                is_done = await run.scale(objects, within_s=self.wait_s, leaving=command.leaving)
                if is_done:
                    release = await self._with_scaled(await self.with_seen(release, wait), objects, cluster)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await facts_of(cluster, release)
                raise
            if not is_done:
                return NotYet(ENDING_S)
            await progress.finished("all counts are reached", total=len(objects))
            return Done(ObjectsScaled(**dict(await facts_of(cluster, release))))

    async def _with_scaled(self, release: Release, objects: Sequence[Scaled], cluster: Cluster) -> Release:
        """Return the release with the numbers of replicas as ours, also where the manifest has none."""
        entries = {entry.key: entry for entry in release.entries if entry.owned}
        found: dict[ObjectKey, Written] = {}
        for each in objects:
            entry = entries.get(each.key)
            body = await cluster.get_metadata(each.resource, each.key) if entry is not None else None
            if entry is not None and body is not None:
                found[each.key] = Written(entry.uid, with_scaled_fields(entry.owned, body))
        after = release.written(found)
        return release if after == release else await self.releases.save(after)

    async def heal_objects(self, command: HealObjects, context: StepContext) -> Outcome:
        """Replace pods, and wait for as many new ready ones; a repeated call replaces those that are left."""
        mine = command.vnf_instance_id
        release = await self.release_of(mine)
        async with self.connected(command.vim, command) as cluster:
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("heal", context.publish)
            run = HealRun(wait, self.releases, progress, command.pods)
            # Read before a pod is deleted, because a pod whose manifest is gone could not be created again.
            bare = await self._bare(command, cluster, context)
            try:
                if not await run.end():
                    return NotYet(ENDING_S)
                release = await run.create_bare(bare, release)
                if not await run.is_whole(release, within_s=self.wait_s):
                    return NotYet(ENDING_S)
                release = await self.with_seen(release, wait)
            except RevisionConflict:
                # A worker that lost this command has written the release meanwhile; the next call reads it.
                return NotYet(AGAIN_S)
            except (ObjectFailed, ObjectsNotReady, ObjectMissing) as error:
                error.remains = await facts_of(cluster, release)
                raise
            await progress.finished("all pods are replaced", total=len(command.pods))
            return Done(ObjectsHealed(**dict(await facts_of(cluster, release))))

    async def _bare(self, command: HealObjects, cluster: Cluster, context: StepContext) -> dict[ObjectKey, Wanted]:
        """Return the pods of the manifests. Raises ObjectMissing for a bare pod that they do not have."""
        if not any(pod.owner_kind == BARE for pod in command.pods):
            return {}
        manifests = await self.manifests_of(command, cluster, context.operation_id)
        planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
        found = {each.key: each for each in planned.objects if each.key.kind == BARE}
        for pod in command.pods:
            key = ObjectKey("v1", BARE, pod.namespace, pod.name)
            if pod.owner_kind == BARE and key not in found:
                raise ObjectMissing(key)
        return found

    async def replace_objects(self, command: ReplaceObjects, context: StepContext) -> Outcome:
        """Apply other manifests, and delete what they lack once all is ready; a repeated call continues."""
        mine = command.vnf_instance_id
        manifests = await self.manifests(command, command.package, command.def_files, context.operation_id)
        release = await self.release_of(mine)
        async with self.connected(command.vim, command) as cluster:
            planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("apply", context.publish)
            applying = self.applying(wait, progress, rehearses=True)
            try:
                if release.applied_by != attempt_of(context):
                    await _check_contracts(cluster, release, planned)
                    release = await applying.apply(planned, release, applied_by=attempt_of(context))
                is_ready = await self.until_ready(wait, planned, awaited(planned, release), progress)
                release = await self.with_seen(release, wait)
                if not is_ready:
                    return NotYet(AGAIN_S)
                # Only now: until the new objects are ready, the old ones serve.
                wanted = {each.key for each in planned.objects}
                pruned = await self.pruning(wait, context).prune(release, wanted, within_s=self.wait_s)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            except (ObjectFailed, ObjectsNotReady, ObjectsNotGone) as error:
                error.remains = await facts_of(cluster, release)
                raise
            if pruned is None:
                return NotYet(AGAIN_S)
            await progress.finished("all objects are ready, and others are gone", total=len(pruned.entries))
            return Done(ObjectsReplaced(**dict(await facts_of(cluster, pruned))))

    async def repair_objects(self, command: RepairObjects, context: StepContext) -> Outcome:
        """Apply what others have deleted or changed, and wait until all is ready; a repeated call continues."""
        mine, operation_id = command.vnf_instance_id, context.operation_id
        release = await self.release_of(mine)
        async with self.connected(command.vim, command) as cluster:
            manifests = await self.manifests_of(command, cluster, operation_id)
            planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("repair", context.publish)
            secrets = self.cloud_secret_run(release, cluster, context) if release.openstack_vim_id else None
            if secrets is not None:
                planned = secrets.with_empty_secrets(planned)
            applying = self.applying(wait, progress, rehearses=True)
            run = RepairRun(applying, operation_id, attempt_of(context), command.cluster_apart, secrets)
            try:
                repair = await run.repair(planned, release)
                release = repair.release
                if repair.is_ending:
                    return NotYet(ENDING_S)
                if not release.repaired:
                    await progress.finished("no object was deleted or changed: there is nothing to do", total=0)
                    return Done(ObjectsRepaired(**dict(await facts_of(cluster, release))))
                mine_to_await = awaited(repair.plan, release)
                if command.cluster_apart:
                    mine_to_await = [each for each in mine_to_await if each.key.group not in CAPI_GROUPS]
                is_ready = await self.until_ready(wait, repair.plan, mine_to_await, progress)
                release = await self.with_seen(release, wait)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await facts_of(cluster, release)
                raise
            if not is_ready:
                return NotYet(AGAIN_S)
            await progress.finished("all objects exist and are ready", total=release.repaired)
            facts = await facts_of(cluster, release)
            return Done(ObjectsRepaired(**dict(facts), repaired=release.repaired))


async def _check_contracts(cluster: Cluster, release: Release, planned: Plan) -> None:
    """Raise ContractGoesBack if a provider of Cluster API would go back, before anything is sent (capi.md CR-046)."""
    after = providers_of(each.body for each in planned.objects)
    if after is None:
        return
    with nothing_made():
        losses = contract_losses(await providers_in(cluster, release), after)
        if losses:
            raise ContractGoesBack(losses)
