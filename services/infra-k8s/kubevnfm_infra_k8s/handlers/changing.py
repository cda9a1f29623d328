"""The handlers that change the objects of an instance: update, scale and heal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from kubevnfm_events.objects import (
    HealObjects,
    ObjectsHealed,
    ObjectsScaled,
    ObjectsUpdated,
    ScaleObjects,
    UpdateObjects,
)
from kubevnfm_worker.outcome import Done, NotYet, Outcome, nothing_made

from kubevnfm_infra_k8s.domain.changing.healing import HealRun
from kubevnfm_infra_k8s.domain.changing.scaling import Scaled, ScaleRun
from kubevnfm_infra_k8s.domain.changing.updating import UpdateRun, files_after
from kubevnfm_infra_k8s.domain.errors import ObjectMissing
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Wanted, digest_of
from kubevnfm_infra_k8s.domain.ownership import with_scaled_fields
from kubevnfm_infra_k8s.domain.reading.manifests import FIELD
from kubevnfm_infra_k8s.domain.reading.vdus import is_own_workload, resource_of
from kubevnfm_infra_k8s.domain.release import Written
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, ENDING_S, Handling, Step
from kubevnfm_infra_k8s.handlers.repeating import in_cluster


@dataclass(frozen=True)
class ChangeHandlers(Handling):
    """Updates, scales and heals the Kubernetes objects of VNFs."""

    @in_cluster
    async def update_objects(self, command: UpdateObjects, step: Step) -> Outcome:
        """Change the CNF's configuration and images, and wait for what restarts."""
        operation_id = step.context.operation_id
        files = await self._files_after(command, step)
        planned = await step.planned(command.model_copy(update={"def_files": files}))
        wait, progress = await step.wait(command.wait_timeout_s), step.progress("update")
        # A rollback has another package or other files, so that what it restarts is restarted once more.
        change = digest_of({"operation": operation_id, "package": command.package.package_id, "files": list(files)})
        run = UpdateRun(wait, self.releases, progress, operation_id, change[:16])
        updated = await run.update(planned, step.release, images_of=command.images_of)
        if updated.is_ending:
            return NotYet(ENDING_S)
        step.release = updated.release

        async def facts() -> ObjectsUpdated:
            return ObjectsUpdated(**dict(await step.facts()), def_files=files)

        awaited = [Awaited(each.key, each.resource) for each in updated.restarted]
        async with step.showing_remains(facts):
            if await wait.until_ready(awaited, progress, within_s=self.wait_s) is None:
                return NotYet(AGAIN_S)
        await step.store_seen(wait)
        await progress.finished("all restarted workloads are ready", total=len(awaited))
        return Done(await facts())

    @staticmethod
    async def _files_after(command: UpdateObjects, step: Step) -> tuple[str, ...]:
        if not command.config_files:
            return command.def_files
        before = await step.manifests(command.model_copy(update={"package": command.before}))
        configs = await step.manifests(command.model_copy(update={"def_files": command.config_files}))
        by_file = {name: [each for each in configs if each.file == name] for name in command.config_files}
        if command.images_of:
            return files_after(command.def_files, before, by_file, field=FIELD)
        return files_after(command.def_files, before, by_file)

    @in_cluster
    async def scale_objects(self, command: ScaleObjects, step: Step) -> Outcome:
        """Set the objects' numbers of replicas, and wait until they are reached; a repeated call only waits."""
        wait, progress = await step.wait(command.wait_timeout_s), step.progress("scale")
        run = ScaleRun(wait, progress, is_undo=command.is_undo)
        # An earlier call may have set numbers before an autoscaler came, or an object went.
        with nullcontext() if step.is_applied else nothing_made():
            objects = await run.find(command.objects, step.release)
        async with step.showing_remains():
            # Before pods leave, which may be all that connects a claim with its StatefulSet.
            await step.store_seen(wait)
            await step.begin()
            if not await run.scale(objects, within_s=self.wait_s, leaving=command.leaving):
                return NotYet(ENDING_S)
            await step.store_seen(wait)
            await _store_scaled(step, objects)
        await progress.finished("all counts are reached", total=len(objects))
        return Done(ObjectsScaled(**dict(await step.facts())))

    @in_cluster
    async def heal_objects(self, command: HealObjects, step: Step) -> Outcome:
        """Replace pods and machines, and wait for as many new ready ones; a repeated call replaces those that are left."""
        wait, progress = await step.wait(command.wait_timeout_s), step.progress("heal")
        run = HealRun(wait, self.releases, progress, command.pods)
        # Read before a pod is deleted, because a pod whose manifest is gone could not be created again.
        bare = await _own_workloads(command, step)
        if not step.is_applied:
            with nothing_made():
                await run.check(step.release)
        async with step.showing_remains():
            await step.begin()
            if not await run.end():
                return NotYet(ENDING_S)
            step.release = await run.create_bare(bare, step.release)
            if not await run.is_whole(step.release, within_s=self.wait_s):
                return NotYet(ENDING_S)
            await step.store_seen(wait)
        await progress.finished("all VNFCs are replaced", total=len(command.pods))
        return Done(ObjectsHealed(**dict(await step.facts())))


async def _store_scaled(step: Step, objects: Sequence[Scaled]) -> None:
    """Store the numbers of replicas as ours, also where the manifest has none."""
    entries = {entry.key: entry for entry in step.release.entries if entry.owned}
    found: dict[ObjectKey, Written] = {}
    for each in objects:
        entry = entries.get(each.key)
        body = await step.cluster.get_metadata(each.resource, each.key) if entry is not None else None
        if entry is not None and body is not None:
            found[each.key] = Written(entry.uid, with_scaled_fields(entry.owned, body))
    after = step.release.written(found)
    if after != step.release:
        step.release = await step.handling.releases.save(after)


async def _own_workloads(command: HealObjects, step: Step) -> dict[ObjectKey, Wanted]:
    """Return the manifests of VNFCs that are workloads themselves. Raises ObjectMissing for one that they do not have."""
    bare = [
        ObjectKey(*resource_of(pod).api_kind, pod.namespace, pod.name) for pod in command.pods if is_own_workload(pod)
    ]
    if not bare:
        return {}
    planned = await step.planned(command)
    found = {each.key.identity: each for each in planned.objects}
    if missing := [key for key in bare if key.identity not in found]:
        raise ObjectMissing(missing[0])
    return {found[key.identity].key: found[key.identity] for key in bare}
