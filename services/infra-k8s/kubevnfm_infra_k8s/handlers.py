"""The handlers of infra-k8s, one method per command. Each reads the present state first, then creates what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import PackageRef, ServiceFacts
from kubevnfm_events.infra import (
    ApplyObjects,
    DeleteObjects,
    ObjectFacts,
    ObjectsApplied,
    ObjectsDeleted,
    ObjectsUpdated,
    UpdateObjects,
)
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import NotFound
from kubevnfm_store.port import RevisionConflict
from kubevnfm_worker import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.applying import ApplyRun, awaited
from kubevnfm_infra_k8s.domain.deleting import DeletionRun
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable, ObjectFailed, ObjectsNotReady
from kubevnfm_infra_k8s.domain.manifests import Manifest, read_manifests
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Resource, digest_of
from kubevnfm_infra_k8s.domain.planning import plan
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, Releases, SharedObjects, Sources, StartTimes
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.ready_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.together import each_of
from kubevnfm_infra_k8s.domain.updating import UpdateRun, files_after
from kubevnfm_infra_k8s.domain.vdus import pods_of_vdus
from kubevnfm_infra_k8s.domain.waiting import Awaited

log = structlog.get_logger()

_AGAIN_S: Final = 0.2
"""Pause after a full wait. Meanwhile other commands get a worker; the next call starts its watches from a new list."""
_ENDING_S: Final = 1.0
"""Pause while pods end, which takes their grace period."""
_REPORT_S: Final = 5.0
"""The wait ends this long before the command's deadline, so that the failure names the objects it waited for."""
_PODS: Final = Resource("v1", "Pod", "pods", namespaced=True)
_SERVICES: Final = Resource("v1", "Service", "services", namespaced=True)
_REPLICA_SETS: Final = Resource("apps/v1", "ReplicaSet", "replicasets", namespaced=True)


@dataclass(frozen=True)
class InfraK8sHandlers:
    """Applies and deletes the Kubernetes objects of VNFs."""

    clusters: Clusters
    vims: VimDirectory
    sources: Sources
    releases: Releases
    shared: SharedObjects
    start_times: StartTimes
    clock: Clock
    wait_s: float = 20.0
    settle_s: float = 5.0
    ready_timeout_s: float = 500.0
    cluster_ready_timeout_s: float = 1800.0
    gone_timeout_s: float = 500.0

    async def apply_objects(self, command: ApplyObjects, context: StepContext) -> Outcome:
        """Apply the CNF's objects and wait until they are ready; a repeated call continues where the last one ended."""
        mine, operation_id = command.vnf_instance_id, context.operation_id
        manifests = await self._manifests(command.package, command.def_files, mine, operation_id)
        began = await self.start_times.started_at(context, mine)
        async with self.clusters.cluster(await self.vims.connection(command.vim)) as cluster:
            planned = await plan(command, manifests, cluster, operation_id=operation_id)
            release = await self.releases.get(mine) or Release(mine, cluster.endpoint)
            wait_s = command.wait_timeout_s or (
                self.cluster_ready_timeout_s if planned.has_cluster else self.ready_timeout_s
            )
            wait = ReadinessWait(cluster, mine, self.clock, _deadline(context, began, wait_s), self.settle_s)
            applying = ApplyRun(wait, self.releases, self.shared, Progress("apply", context.publish), command.adopt)
            if release.applied_by != _attempt(context):
                try:
                    release = await applying.apply(planned, release, applied_by=_attempt(context))
                except RevisionConflict:
                    # A worker that lost this command has written the release meanwhile; the next call reads it.
                    return NotYet(_AGAIN_S)
            progress = Progress("ready", context.publish)
            try:
                bodies = await wait.until_ready(awaited(planned, release), progress, within_s=self.wait_s)
            # The failed operation shows what exists, so that an operator can decide between retry and rollback.
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await self._applied(cluster, release)
                raise
            if bodies is None:
                return NotYet(_AGAIN_S)
            await progress.finished("all objects are ready", total=len(release.entries))
            return Done(await self._applied(cluster, release))

    async def update_objects(self, command: UpdateObjects, context: StepContext) -> Outcome:
        """Change the CNF's configuration and images, and wait for what restarts; a repeated call continues."""
        mine, operation_id = command.vnf_instance_id, context.operation_id
        files = await self._files_after(command, operation_id)
        manifests = await self._manifests(command.package, files, mine, operation_id)
        began = await self.start_times.started_at(context, mine)
        release = await self.releases.get(mine)
        if release is None:
            raise NotFound(f"VNF instance {mine} has no Kubernetes objects")
        async with self.clusters.cluster(await self.vims.connection(command.vim)) as cluster:
            planned = await plan(command, manifests, cluster, operation_id=operation_id)
            deadline = _deadline(context, began, command.wait_timeout_s or self.ready_timeout_s)
            wait = ReadinessWait(cluster, mine, self.clock, deadline, self.settle_s)
            progress = Progress("update", context.publish)
            # A rollback has another package or other files, so that what it restarts is restarted once more.
            change = digest_of({"operation": operation_id, "package": command.package.package_id, "files": list(files)})
            run = UpdateRun(wait, self.releases, progress, operation_id, change[:16])
            try:
                updated = await run.update(planned, release)
            except RevisionConflict:
                return NotYet(_AGAIN_S)
            if updated.is_ending:
                return NotYet(_ENDING_S)
            awaited_ = [Awaited(each.key, each.resource) for each in updated.restarted]
            try:
                bodies = await wait.until_ready(awaited_, progress, within_s=self.wait_s)
            except (ObjectFailed, ObjectsNotReady) as error:
                error.remains = await self._updated(cluster, updated.release, files)
                raise
            if bodies is None:
                return NotYet(_AGAIN_S)
            await progress.finished("all restarted workloads are ready", total=len(awaited_))
            return Done(await self._updated(cluster, updated.release, files))

    async def _files_after(self, command: UpdateObjects, operation_id: str) -> tuple[str, ...]:
        if not command.config_files:
            return command.def_files
        mine = command.vnf_instance_id
        before = await self._manifests(command.before, command.def_files, mine, operation_id)
        configs = await self._manifests(command.package, command.config_files, mine, operation_id)
        by_file = {name: [each for each in configs if each.file == name] for name in command.config_files}
        return files_after(command.def_files, before, by_file)

    async def _manifests(
        self, package: PackageRef, names: Sequence[str], vnf_instance_id: str, operation_id: str
    ) -> Sequence[Manifest]:
        files = await self.sources.read(package, names, vnf_instance_id=vnf_instance_id, operation_id=operation_id)
        # In a thread, because large YAML files take longer than other commands should wait.
        return await asyncio.to_thread(read_manifests, files)

    async def delete_objects(self, command: DeleteObjects, context: StepContext) -> Outcome:
        """Delete the objects of the instance's inventory and wait until they are deleted."""
        mine = command.vnf_instance_id
        release = await self.releases.get(mine)
        count = 0
        if release is not None:
            began = await self.start_times.started_at(context, mine)
            try:
                deleted = await self._delete(command, context, release, began)
            except (ClusterUnavailable, AccessRefused, NotFound) as error:
                if not command.force:
                    raise
                log.warning("cluster_given_up", cluster=release.cluster, reason=str(error))
                # The operator said that the cluster no longer matters, but other instances must not see our claims.
                deleted = 0
                for entry in release.entries:
                    await self.shared.release(release.cluster, entry.key, mine)
                    await self.shared.forget(release.cluster, entry.key)
            if deleted is None:
                return NotYet(_AGAIN_S)
            count = deleted
            await self.releases.delete(mine)
        await self.sources.forget(mine)
        await self.start_times.forget(mine)
        return Done(ObjectsDeleted(count=count))

    async def _delete(
        self, command: DeleteObjects, context: StepContext, release: Release, began: datetime
    ) -> int | None:
        async with self.clusters.cluster(await self.vims.connection(command.vim)) as cluster:
            deleting = DeletionRun(
                cluster=cluster,
                releases=self.releases,
                shared=self.shared,
                progress=Progress("delete", context.publish),
                clock=self.clock,
                deadline=_deadline(context, began, self.gone_timeout_s + (command.grace_period_s or 0.0)),
                grace_period_s=None if command.grace_period_s is None else int(command.grace_period_s),
            )
            return await deleting.delete(release, within_s=self.wait_s)

    async def _updated(self, cluster: Cluster, release: Release, files: tuple[str, ...]) -> ObjectsUpdated:
        applied = await self._applied(cluster, release)
        return ObjectsUpdated(
            namespace=applied.namespace,
            objects=applied.objects,
            pods=applied.pods,
            services=applied.services,
            def_files=files,
        )

    async def _applied(self, cluster: Cluster, release: Release) -> ObjectsApplied:
        """Return the event with the objects of the inventory and the pods that run VDUs."""
        workloads = {entry.key: (entry.vdu_id, entry.uid) for entry in release.entries if entry.vdu_id is not None}
        selector = f"{INSTANCE_LABEL}={release.vnf_instance_id}"
        pods, replica_sets = [], []
        for namespace in sorted({key.namespace for key in workloads}):
            pods += list(await cluster.list(_PODS, namespace=namespace, labels=selector))
            # A Deployment's pods belong to its ReplicaSets, and only those name the Deployment.
            if any(key.kind == "Deployment" for key in workloads):
                replica_sets += list(await cluster.list(_REPLICA_SETS, namespace=namespace, labels=selector))
        return ObjectsApplied(
            namespace=release.namespace,
            objects=tuple(
                ObjectFacts(
                    api_version=entry.key.api_version,
                    kind=entry.key.kind,
                    namespace=entry.key.namespace or None,
                    name=entry.key.name,
                    uid=entry.uid,
                    vdu_id=entry.vdu_id,
                )
                for entry in release.entries
            ),
            pods=tuple(pods_of_vdus(workloads, pods=pods, replica_sets=replica_sets)),
            services=await _node_ports(cluster, release),
        )


async def _node_ports(cluster: Cluster, release: Release) -> tuple[ServiceFacts, ...]:
    """Return the node ports of the release's Services, those that the cluster has chosen included."""
    keys = [entry.key for entry in release.entries if (entry.key.api_version, entry.key.kind) == ("v1", "Service")]
    bodies = await each_of(keys, lambda key: cluster.get(_SERVICES, key))
    found: list[ServiceFacts] = []
    for key, body in zip(keys, bodies, strict=True):
        spec = (body or {}).get("spec") or {}
        if spec.get("type") == "NodePort":
            ports = tuple(int(port["nodePort"]) for port in spec.get("ports") or [] if port.get("nodePort"))
            found.append(ServiceFacts(namespace=key.namespace, name=key.name, node_ports=ports))
    return tuple(found)


def _deadline(context: StepContext, began: datetime, wait_s: float) -> datetime:
    """Return the end of the wait: ``wait_s`` after it began, but always before the command's own deadline."""
    wanted = began + timedelta(seconds=wait_s)
    if context.deadline is None:
        return wanted
    return min(wanted, context.deadline - timedelta(seconds=_REPORT_S))


def _attempt(context: StepContext) -> str:
    return f"{context.operation_id}/{context.step_id}/{context.attempt}"
