"""The handlers that apply the objects of manifests: for the first time, those of another package, and those that others changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubevnfm_csar.capi_providers import contract_losses, providers_of
from kubevnfm_csar.hooks import Occasion
from kubevnfm_events.objects import ApplyObjects, ObjectsRepaired, ObjectsReplaced, RepairObjects, ReplaceObjects
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_k8s.domain.capi.topology import workload_cluster
from kubevnfm_infra_k8s.domain.changing.repairing import RepairRun
from kubevnfm_infra_k8s.domain.changing.taking_back import autoscalers_in, freed
from kubevnfm_infra_k8s.domain.changing.unchangeable import Replacing
from kubevnfm_infra_k8s.domain.errors import ContractGoesBack, ObjectsNotReady
from kubevnfm_infra_k8s.domain.planning.networks import check_networks
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.planning.priorities import longest_wait_s
from kubevnfm_infra_k8s.domain.reading.instance_facts import providers_in
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.workload_clusters.earlier_secrets import secrets_of_earlier
from kubevnfm_infra_k8s.domain.workload_clusters.references import check_references
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, ENDING_S, Handling, Step
from kubevnfm_infra_k8s.handlers.hooks import ApplyHooks, hooks_wait_s
from kubevnfm_infra_k8s.handlers.repeating import in_cluster, repeatable


@dataclass(frozen=True)
class ApplyHandlers(Handling):
    """Applies the Kubernetes objects of VNFs."""

    @repeatable
    async def apply_objects(self, command: ApplyObjects, context: StepContext) -> Outcome:
        """Apply the CNF's objects and wait until they are ready."""
        async with self.step(command, context, await self.releases.get(command.vnf_instance_id)) as step:
            return await self._apply(command, step)

    async def _apply(self, command: ApplyObjects, step: Step) -> Outcome:
        planned = await step.planned(command)
        await step.want_outputs(command, planned)
        keys = [each.key for each in planned.objects]
        # Before anything is applied, as the name may be unclear.
        workload = workload_cluster(keys, command.cluster_name) if command.cluster_apart else None
        if command.cluster_apart and workload is None:
            raise InvalidInput("additionalParams.capi", "a Cluster expected in the files; they have none")
        if planned.has_cluster and planned.all_served and not step.is_applied:
            await check_references(step.cluster, planned.objects)
        usual_s = self.cluster_ready_timeout_s if planned.has_cluster else self.ready_timeout_s
        longest_s = longest_wait_s(planned.objects, usual_s) + hooks_wait_s(planned, self.ready_timeout_s)
        wait, progress = await step.wait(command.wait_timeout_s or longest_s), step.progress("apply")
        if workload is not None and (left := await secrets_of_earlier(step.cluster, workload)):
            named = f"waits until those of an earlier Cluster are deleted: {', '.join(map(str, left))}"
            if wait.left_s() <= 0:
                raise ObjectsNotReady(f"Cluster {workload.namespace}/{workload.name}: {named}")
            await progress.on(f"Cluster {workload.name}", named, done=0, total=len(planned.objects))
            return NotYet(ENDING_S)
        hooks = ApplyHooks(step, command, planned, Occasion.CREATE, wait)
        async with step.showing_remains():
            return await hooks.guarded(lambda: self._applied(command, step, planned, wait, hooks))

    async def _applied(
        self, command: ApplyObjects, step: Step, planned: Plan, wait: ReadinessWait, hooks: ApplyHooks
    ) -> Outcome:
        """Return the outcome of the application of a plan, with the hooks before and after it."""
        progress = step.progress("apply")
        applying = step.applying(
            wait,
            progress,
            command,
            adopt=command.adopt,
            rehearses=bool(planned.attachments or command.volumes or planned.hook_objects),
        )
        if not await step.has_what_it_holds(command, planned, wait, progress, applying):
            return NotYet(AGAIN_S)
        await hooks.store()
        await hooks.before(applying)
        if not step.is_applied:
            if command.openstack_vim_id is not None:
                step.release = replace(step.release, openstack_vim_id=command.openstack_vim_id)
            planned = await step.with_cloud_secrets(planned)
            async with step.showing_remains():
                await step.apply(planned, applying)
        progress = step.progress("ready")
        async with step.showing_remains():
            is_ready = await step.until_ready(wait, planned, progress, cluster_apart=command.cluster_apart)
        if not is_ready or not await step.keeps_its_volumes(command, wait):
            return NotYet(AGAIN_S)
        await hooks.after()
        await progress.finished("all objects are ready", total=len(step.release.entries))
        return Done(await step.facts())

    @in_cluster
    async def replace_objects(self, command: ReplaceObjects, step: Step) -> Outcome:
        """Apply other manifests, and delete what they lack once all is ready."""
        manifests = await step.manifests(command)
        with nothing_made():
            check_networks([each.written_body for each in manifests], command)
        planned = await step.planned(command, manifests)
        await step.want_outputs(command, planned)
        longest_s = longest_wait_s(planned.objects, self.ready_timeout_s) + hooks_wait_s(planned, self.ready_timeout_s)
        wait = await step.wait(command.wait_timeout_s or longest_s)
        occasion = Occasion.ROLLBACK if command.is_rollback else Occasion.UPDATE
        hooks = ApplyHooks(step, command, planned, occasion, wait)
        async with step.showing_remains():
            return await hooks.guarded(lambda: self._replaced(command, step, planned, wait, hooks))

    async def _replaced(
        self, command: ReplaceObjects, step: Step, planned: Plan, wait: ReadinessWait, hooks: ApplyHooks
    ) -> Outcome:
        """Return the outcome of the application of other objects, with the hooks before and after it."""
        progress = step.progress("apply")
        applying = replace(
            step.applying(wait, progress, command, rehearses=True, is_undo=command.is_undo),
            replacing=Replacing(command.vnf_instance_id, command.replace_kinds, command.is_undo),
        )
        if not await step.has_what_it_holds(command, planned, wait, progress, applying):
            return NotYet(AGAIN_S)
        if not step.is_applied:
            await _check_contracts(step, planned)
            await hooks.before(applying)
            await step.apply(planned, applying)
        # Until the new objects are ready, the old ones serve.
        read_only = {each.key for each in planned.objects if each.is_read_only}
        wanted = {each.key for each in planned.objects} - read_only
        before = autoscalers_in(step.release)
        if not await step.until_ready(wait, planned, progress) or not await step.keeps_its_volumes(command, wait):
            return NotYet(AGAIN_S)
        if not await step.prune(step.pruning(wait, read_only), wanted):
            return NotYet(AGAIN_S)
        # An autoscaler owns the numbers until it is gone; what is planned then has ours.
        if autoscalers_in(step.release) != before:
            return NotYet(AGAIN_S)
        if ours := await freed(step.cluster, planned.objects):
            run = replace(step.applying(wait, progress, command), only=ours)
            step.release = await run.apply(planned, step.release, applied_by=step.attempt)
            return NotYet(AGAIN_S)
        await hooks.after()
        await hooks.store()
        await progress.finished("all objects are ready, and others are gone", total=len(step.release.entries))
        return Done(ObjectsReplaced(**dict(await step.facts())))

    @in_cluster
    async def repair_objects(self, command: RepairObjects, step: Step) -> Outcome:
        """Apply what others have deleted or changed, and wait until all is ready."""
        planned = await step.planned(command)
        longest_s = longest_wait_s(planned.objects, self.ready_timeout_s)
        wait, progress = await step.wait(command.wait_timeout_s or longest_s), step.progress("repair")
        secrets = step.cloud_secret_run() if step.release.openstack_vim_id else None
        if secrets is not None:
            planned = secrets.with_empty_secrets(planned)
        applying = step.applying(wait, progress, command, rehearses=True)
        run = RepairRun(applying, step.context.operation_id, step.attempt, command.cluster_apart, secrets)
        async with step.showing_remains():
            repair = await run.repair(planned, step.release)
            step.release = repair.release
            if repair.is_ending:
                return NotYet(ENDING_S)
            if not await step.has_its_claims(command, planned, wait, progress):
                return NotYet(AGAIN_S)
            if not step.release.repaired:
                await progress.finished("no object was deleted or changed: there is nothing to do", total=0)
                return Done(ObjectsRepaired(**dict(await step.facts())))
            is_ready = await step.until_ready(wait, repair.plan, progress, cluster_apart=command.cluster_apart)
            if not is_ready or not await step.keeps_its_volumes(command, wait):
                return NotYet(AGAIN_S)
        await progress.finished("all objects exist and are ready", total=step.release.repaired)
        return Done(ObjectsRepaired(**dict(await step.facts()), repaired=step.release.repaired))


async def _check_contracts(step: Step, planned: Plan) -> None:
    """Raise ContractGoesBack if a provider of Cluster API would go back, before anything is sent (capi.md CR-046)."""
    after = providers_of(each.body for each in planned.objects)
    if after is None:
        return
    with nothing_made():
        losses = contract_losses(await providers_in(step.cluster, step.release), after)
        if losses:
            raise ContractGoesBack(losses)
