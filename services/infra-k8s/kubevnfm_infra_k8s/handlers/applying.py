"""The handlers of infra-k8s, one method per command. Each reads the present state first, then creates what is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_clients.cloud_identity import credential_name
from kubevnfm_events.infra import (
    ApplyObjects,
    DeleteObjects,
    LeftObject,
    ObjectsDeleted,
    ObjectsUpdated,
    UpdateObjects,
)
from kubevnfm_kit.errors import InvalidInput, NotFound, VnfmError
from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.capi.contract import GROUPS as CAPI_GROUPS
from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.capi.topology import workload_cluster
from kubevnfm_infra_k8s.domain.changing.applying import awaited
from kubevnfm_infra_k8s.domain.changing.updating import UpdateRun, files_after
from kubevnfm_infra_k8s.domain.errors import (
    AccessRefused,
    AddressUnnamed,
    ClusterUnavailable,
    ObjectFailed,
    ObjectsNotReady,
)
from kubevnfm_infra_k8s.domain.object_facts import left_of
from kubevnfm_infra_k8s.domain.objects import ObjectKey, digest_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.instance_facts import facts_of
from kubevnfm_infra_k8s.domain.reading.manifests import FIELD
from kubevnfm_infra_k8s.domain.release import ADDONS, Release
from kubevnfm_infra_k8s.domain.removing.finalizers import Stripping
from kubevnfm_infra_k8s.domain.removing.terminating import Terminated, TerminationRun
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.workload_clusters.earlier_secrets import secrets_of_earlier
from kubevnfm_infra_k8s.domain.workload_clusters.references import check_references
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, ENDING_S, Handling, attempt_of, deadline_of

log = structlog.get_logger()

_STRIPPING_SHARE: Final = 0.25
"""The last part of a short time limit in which finalizers are removed, and the objects go."""


@dataclass(frozen=True)
class InfraK8sHandlers(Handling):
    """Applies and deletes the Kubernetes objects of VNFs."""

    async def apply_objects(self, command: ApplyObjects, context: StepContext) -> Outcome:
        """Apply the CNF's objects and wait until they are ready; a repeated call continues where the last one ended."""
        mine = command.vnf_instance_id
        async with self.connected(command.vim, command) as cluster:
            manifests = await self.manifests_of(command, cluster, context.operation_id)
            planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
            keys = [each.key for each in planned.objects]
            # Before anything is applied, as the name may be unclear.
            workload = workload_cluster(keys, command.cluster_name) if command.cluster_apart else None
            if command.cluster_apart and workload is None:
                raise InvalidInput("additionalParams.capi", "a Cluster expected in the files; they have none")
            release = await self.releases.get(mine) or Release(mine, cluster.endpoint)
            if planned.has_cluster and planned.all_served and release.applied_by != attempt_of(context):
                await check_references(cluster, planned.objects)
            wait_s = command.wait_timeout_s or (
                self.cluster_ready_timeout_s if planned.has_cluster else self.ready_timeout_s
            )
            wait = await self.readiness(cluster, context, mine, wait_s)
            if workload is not None and (left := await secrets_of_earlier(cluster, workload)):
                named = f"waits until those of an earlier Cluster are deleted: {', '.join(map(str, left))}"
                if wait.left_s() <= 0:
                    raise ObjectsNotReady(f"Cluster {workload.namespace}/{workload.name}: {named}")
                progress = Progress("apply", context.publish)
                await progress.on(f"Cluster {workload.name}", named, done=0, total=len(planned.objects))
                return NotYet(ENDING_S)
            applying = self.applying(wait, Progress("apply", context.publish), adopt=command.adopt)
            if release.applied_by != attempt_of(context):
                try:
                    if command.openstack_vim_id is not None:
                        release = replace(release, openstack_vim_id=command.openstack_vim_id)
                    planned, release = await self.with_cloud_secrets(planned, release, cluster, context)
                    release = await applying.apply(planned, release, applied_by=attempt_of(context))
                except RevisionConflict:
                    # A worker that lost this command has written the release meanwhile; the next call reads it.
                    return NotYet(AGAIN_S)
            progress = Progress("ready", context.publish)
            mine_to_await = awaited(planned, release)
            if command.cluster_apart:
                mine_to_await = [each for each in mine_to_await if each.key.group not in CAPI_GROUPS]
            try:
                is_ready = await self.until_ready(wait, planned, mine_to_await, progress)
            # The failed operation shows what exists, so that an operator can decide between retry and rollback.
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await facts_of(cluster, release)
                raise
            try:
                release = await self.with_seen(release, wait)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            if not is_ready:
                return NotYet(AGAIN_S)
            await progress.finished("all objects are ready", total=len(release.entries))
            return Done(await facts_of(cluster, release))

    async def update_objects(self, command: UpdateObjects, context: StepContext) -> Outcome:
        """Change the CNF's configuration and images, and wait for what restarts; a repeated call continues."""
        mine, operation_id = command.vnf_instance_id, context.operation_id
        files = await self._files_after(command, operation_id)
        manifests = await self.manifests(command, command.package, files, operation_id)
        release = await self.release_of(mine)
        async with self.connected(command.vim, command) as cluster:
            planned = await self.planned(command, manifests, cluster, context, vim=command.vim)
            wait = await self.readiness(cluster, context, mine, command.wait_timeout_s)
            progress = Progress("update", context.publish)
            # A rollback has another package or other files, so that what it restarts is restarted once more.
            change = digest_of({"operation": operation_id, "package": command.package.package_id, "files": list(files)})
            run = UpdateRun(wait, self.releases, progress, operation_id, change[:16])
            try:
                updated = await run.update(planned, release, images_of=command.images_of)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            if updated.is_ending:
                return NotYet(ENDING_S)
            awaited_ = [Awaited(each.key, each.resource) for each in updated.restarted]
            try:
                bodies = await wait.until_ready(awaited_, progress, within_s=self.wait_s)
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await self._updated(cluster, updated.release, files)
                raise
            if bodies is None:
                return NotYet(AGAIN_S)
            try:
                release = await self.with_seen(updated.release, wait)
            except RevisionConflict:
                return NotYet(AGAIN_S)
            await progress.finished("all restarted workloads are ready", total=len(awaited_))
            return Done(await self._updated(cluster, release, files))

    async def _files_after(self, command: UpdateObjects, operation_id: str) -> tuple[str, ...]:
        if not command.config_files:
            return command.def_files
        before = await self.manifests(command, command.before, command.def_files, operation_id)
        configs = await self.manifests(command, command.package, command.config_files, operation_id)
        by_file = {name: [each for each in configs if each.file == name] for name in command.config_files}
        if command.images_of:
            return files_after(command.def_files, before, by_file, field=FIELD)
        return files_after(command.def_files, before, by_file)

    async def delete_objects(self, command: DeleteObjects, context: StepContext) -> Outcome:
        """Delete the objects of the instance's inventory and wait until they are deleted."""
        mine = command.vnf_instance_id
        release = await self.releases.get(mine)
        if release is None:
            answer = await self.deletions.answered(context) or ObjectsDeleted()
        else:
            began, is_given_up = await self.start_times.started_at(context, mine), False
            try:
                ended = await self._delete(command, context, release, began)
            except (ClusterUnavailable, AccessRefused, NotFound) as error:
                if not command.force or isinstance(error, AddressUnnamed):
                    raise
                ended = Terminated(0, await self._give_up(release, error, context))
                is_given_up = bool(release.entries)
            except RevisionConflict:
                # A worker that lost this command has written the release meanwhile; the next call reads it.
                return NotYet(AGAIN_S)
            if ended is None:
                return NotYet(AGAIN_S)
            # As long as objects may exist, their controllers need the login to delete machines.
            login = await self._take_back(release, context, is_used=is_given_up, is_forced=command.force)
            answer = ObjectsDeleted(count=ended.count, left=(*(await self.release_of(mine)).left, *ended.left, *login))
            # Before the release goes, from which a repeat of this command could answer.
            await self.deletions.record(context, answer)
            await self.releases.delete(mine)
        # A worker that was killed may have got no further.
        await self._forget_addons(mine)
        await self.sources.forget(mine)
        await self.start_times.forget(mine)
        return Done(answer)

    async def _take_back(
        self, release: Release, context: StepContext, *, is_used: bool, is_forced: bool
    ) -> tuple[LeftObject, ...]:
        """Delete the application credential of the instance's cluster; return it if it is left (CR-049)."""
        vim_id, mine = release.openstack_vim_id, release.vnf_instance_id
        if not vim_id:
            return ()
        why = "the objects that may exist need it"
        if not is_used:
            try:
                await self.logins.take_back(vim_id, mine)
                return ()
            except VnfmError as error:
                # A VIM that is no longer registered does not come back under its id.
                if not is_forced and not isinstance(error, NotFound):
                    raise
                why = str(error)
        credential = LeftObject(
            api_version="identity/v3",
            kind="ApplicationCredential",
            name=credential_name(mine),
            uid="",
            cluster=vim_id,
        )
        log.warning("cloud_login_left", vim_id=vim_id, vnf_instance_id=mine, reason=why)
        message = f"{credential.kind} {credential.name} of OpenStack VIM {vim_id} may still exist: {why}"
        await Progress("login", context.publish).failed(message)
        return (credential,)

    async def _forget_addons(self, mine: str) -> None:
        """Forget the objects inside a workload cluster, which went with it."""
        addons = await self.releases.get(mine, ADDONS)
        if addons is not None:
            # Another cluster may get the address.
            await self._leave_shared(addons)
            await self.releases.delete(mine, ADDONS)

    async def _leave_shared(self, release: Release) -> None:
        """Have other instances not see the claims of this one."""
        for entry in release.entries:
            await self.shared.release(release.cluster, entry.key, release.vnf_instance_id)
            await self.shared.forget(release.cluster, entry.key)

    async def _give_up(self, release: Release, error: VnfmError, context: StepContext) -> tuple[LeftObject, ...]:
        """Forget the objects of a cluster that no longer matters to the operator; return what may still exist."""
        mine = release.vnf_instance_id
        log.warning("cluster_given_up", cluster=release.cluster, reason=str(error))
        left = left_of(release)
        names = ", ".join(_in_words(each) for each in left)
        addons = await self.releases.get(mine, ADDONS)
        if addons is not None:
            inside = left_of(addons)
            left += inside
            names += f", and at {addons.cluster} {', '.join(map(_in_words, inside))}"
        await Progress("give-up", context.publish).failed(f"{error}; these objects may still exist: {names}")
        await self._leave_shared(release)
        return left

    async def _delete(
        self, command: DeleteObjects, context: StepContext, release: Release, began: datetime
    ) -> Terminated | None:
        gone_s = self.gone_timeout_s
        # Its machines are deleted one after another.
        if any(is_cluster(entry.key) for entry in release.entries):
            gone_s = max(gone_s, self.cluster_ready_timeout_s)
        if command.cluster_gone_timeout_s is not None:
            gone_s = command.cluster_gone_timeout_s
        async with self.connected(command.vim) as cluster:
            progress = Progress("delete", context.publish)
            stripping = Stripping(
                cluster,
                self.releases,
                release.vnf_instance_id,
                progress,
                before=began - timedelta(seconds=self.finalizer_patience_s),
                margin_s=min(self.finalizer_patience_s, gone_s * _STRIPPING_SHARE),
            )
            run = TerminationRun(
                cluster=cluster,
                releases=self.releases,
                shared=self.shared,
                progress=progress,
                clock=self.clock,
                deadline=deadline_of(context, began, gone_s + (command.grace_period_s or 0.0)),
                grace_period_s=None if command.grace_period_s is None else int(command.grace_period_s),
                stripping=stripping if command.force_remove_finalizers else None,
            )
            return await run.terminate(release, within_s=self.wait_s)

    async def _updated(self, cluster: Cluster, release: Release, files: tuple[str, ...]) -> ObjectsUpdated:
        return ObjectsUpdated(**dict(await facts_of(cluster, release)), def_files=files)


def _in_words(left: LeftObject) -> str:
    return str(ObjectKey(left.api_version, left.kind, left.namespace or "", left.name))
