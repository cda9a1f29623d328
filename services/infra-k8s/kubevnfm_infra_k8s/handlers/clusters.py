"""The handlers of infra-k8s for workload clusters of Cluster API; each may be called again at any time."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog
from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_events import VimConnection
from kubevnfm_events.capi import (
    AddonsApplied,
    ApplyAddons,
    AwaitCluster,
    ClusterReached,
    RollOutBegun,
    RollOutMachines,
)
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.clock import machine_now
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.capi.clusters import cluster_key
from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL
from kubevnfm_infra_k8s.domain.capi.machines import machine_facts
from kubevnfm_infra_k8s.domain.capi.readiness import endpoint_of
from kubevnfm_infra_k8s.domain.errors import ClusterFailed, ClusterLost, ClusterUnavailable, KubeconfigInvalid
from kubevnfm_infra_k8s.domain.objects import NAMESPACES, SECRETS, ObjectKey, field_at, labels_of, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest
from kubevnfm_infra_k8s.domain.release import ADDONS, Release
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import Assessment, ClusterObjects, Goal, Phase, assess
from kubevnfm_infra_k8s.domain.workload_clusters.classes import earlier_class
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_wait import ClusterKinds, ClusterWait, kinds_of, objects_now
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterView, ClusterWatches
from kubevnfm_infra_k8s.domain.workload_clusters.rolling_out import roll_out, rolled_out
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, Handling, OfInstance, Step
from kubevnfm_infra_k8s.handlers.repeating import in_cluster, repeatable

log = structlog.get_logger()

_ANSWER_S: Final = 120.0
"""How long the API server of a workload cluster may take to answer (capi.md CR-060)."""
_PAUSE_S: Final = 1.0
_KUBECONFIG_KIND: Final = "cluster.x-k8s.io/secret"


class OfCluster(OfInstance, Protocol):
    """A command about a workload cluster; its VIM is the management cluster."""

    @property
    def cluster(self) -> WorkloadCluster: ...


@dataclass(frozen=True)
class CapiHandlers(Handling):
    """Waits for workload clusters, and applies addons inside them."""

    watches: ClusterWatches = field(kw_only=True, repr=False)

    @asynccontextmanager
    async def viewed(self, command: OfCluster) -> AsyncIterator[tuple[ClusterView, ClusterKinds]]:
        """Yield the objects of a command's workload cluster, as the shared watches see them, and their kinds."""
        vim = await self.vims.connection(command.vim)
        async with self.clusters.cluster(vim) as cluster:
            kinds = await kinds_of(cluster, command.cluster, await self.releases.get(command.vnf_instance_id))
            endpoint = cluster.endpoint
        workload = command.cluster
        async with self.watches.viewing(
            vim, endpoint, kinds.all, namespace=workload.namespace, name=workload.name
        ) as view:
            yield view, kinds

    async def await_cluster(self, command: AwaitCluster, context: StepContext) -> Outcome:
        """Wait until the workload cluster has come as far as the command asks for."""
        mine = command.vnf_instance_id

        async def began(phase: Phase) -> datetime:
            return await self.start_times.started_at(replace(context, step_id=f"{context.step_id}/{phase}"), mine)

        async def of_class(objects: ClusterObjects) -> str:
            async with self.connected(command.vim) as cluster:
                return await earlier_class(cluster, objects)

        workload = command.cluster
        made_after = datetime.fromisoformat(command.made_after) if command.made_after is not None else None
        goal = Goal(command.stage, command.is_settled, made_after, command.uid)
        async with self.viewed(command) as (view, kinds):
            wait = ClusterWait(view, kinds, workload, self.clock, command.timeouts, began, of_class, context.deadline)
            progress = Progress(f"await/{command.stage}", context.publish)
            try:
                objects = await wait.until(goal, progress, within_s=self.wait_s)
            except ClusterFailed:
                if (await self._now(command, kinds, goal))[1].failure:
                    raise
                return NotYet(AGAIN_S)
        if objects is None:
            return NotYet(AGAIN_S)
        if command.is_settled:
            objects, now = await self._now(command, kinds, goal)
            if not now.is_done:
                return NotYet(AGAIN_S)
        assert objects.cluster is not None
        machines = machine_facts(objects.machines, command.vdus)
        await progress.finished(f"Cluster {workload.name} is {command.stage}", total=len(machines))
        return Done(
            ClusterReached(
                cluster=workload,
                uid=uid_of(objects.cluster),
                endpoint=f"https://{endpoint_of(objects.cluster)}",
                stage=command.stage,
                machines=machines,
            )
        )

    async def _now(self, command: AwaitCluster, kinds: ClusterKinds, goal: Goal) -> tuple[ClusterObjects, Assessment]:
        """Return the cluster as the API server has it now: the watch may show the time before the step before."""
        async with self.connected(command.vim) as cluster:
            objects = await objects_now(cluster, kinds, command.cluster)
        return objects, assess(objects, goal, Observation(now=machine_now(self.clock)))

    @in_cluster
    async def roll_out_machines(self, command: RollOutMachines, step: Step) -> Outcome:
        """Have every Machine replaced that was made before the command's time; a later step waits for that."""
        workload = command.cluster
        kinds = await kinds_of(step.cluster, workload, step.release)
        objects = await objects_now(step.cluster, kinds, workload)
        if objects.cluster is None:
            raise ClusterLost([cluster_key(workload)])
        owners = list(rolled_out(objects.control_plane, objects.workers))
        keys = await roll_out(step.cluster, kinds, owners, after=command.roll_out_after)
        await step.progress("roll-out").finished(f"Cluster {workload.name} rolls out", total=len(keys))
        return Done(RollOutBegun(owners=tuple(f"{key.kind} {key.name}" for key in keys)))

    @repeatable
    async def apply_addons(self, command: ApplyAddons, context: StepContext) -> Outcome:
        """Apply the addons inside the workload cluster, or delete those of earlier manifests.

        The workers that they need are not awaited here. A repeated call continues.
        """
        mine = command.vnf_instance_id
        # Each object is in the namespace that its manifest names.
        order = ObjectsOrder(
            package=command.package,
            vim=command.vim,
            def_files=command.def_files,
            multi_namespace=True,
            variables=command.variables,
        )
        manifests: Sequence[Manifest] = ()
        if command.def_files:  # otherwise another package has no addons any more
            manifests = await self.manifests(order, mine, context.operation_id)
        began = await self.start_times.started_at(context, mine)
        async with self.connected(command.vim) as management:
            connection = await _connection(management, command.cluster)
        async with self.clusters.cluster(connection) as inner:
            cluster = inner.hiding(self.sources.secrets_in(order))
            try:
                await cluster.list(NAMESPACES)
            except ClusterUnavailable as error:
                if (self.clock.now() - began).total_seconds() >= _ANSWER_S:
                    raise
                progress = Progress("addons", context.publish)
                await progress.on(f"Cluster {command.cluster.name}", f"does not answer yet: {error}", done=0, total=1)
                return NotYet(_PAUSE_S)
            release = await self.releases.get(mine, ADDONS) or Release(mine, cluster.endpoint, part=ADDONS)
            step = Step(self, context, command.vim, cluster, release)
            planned, wait = await step.planned(order, manifests), await step.wait()
            if command.part != "prune":
                # Adopted: kubeadm and providers have made some objects of such manifests already (RBAC, kube-proxy).
                await step.apply(planned, step.applying(wait, step.progress("addons"), adopt=True))
            wanted = {each.key for each in planned.objects}
            if command.part != "apply" and not await step.prune(step.pruning(wait), wanted):
                return NotYet(AGAIN_S)
        log.info("addons_applied", cluster=command.cluster.name, objects=len(planned.objects), part=command.part)
        return Done(AddonsApplied(count=len(planned.objects)))


async def _connection(management: Cluster, workload: WorkloadCluster) -> VimConnection:
    """Return the admin's access to the workload cluster, which stays in memory (capi.md CR-059, CR-063, CR-064).

    Raises: KubeconfigInvalid for a Secret that is not as Cluster API writes it; ClusterUnavailable if it is not there.
    """
    key = ObjectKey("v1", "Secret", workload.namespace, f"{workload.name}-kubeconfig")
    secret = await management.get(SECRETS, key)
    if secret is None:
        raise ClusterUnavailable(f"{key}: does not exist yet")
    if secret.get("type") != _KUBECONFIG_KIND or labels_of(secret).get(NAME_LABEL) != workload.name:
        raise KubeconfigInvalid(f"{key}: type {_KUBECONFIG_KIND} and label {NAME_LABEL}: {workload.name} expected")
    try:
        text = base64.b64decode(str(field_at(secret, "data", "value") or ""), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise KubeconfigInvalid(f"{key}: data.value: base64 of a kubeconfig expected") from error
    try:
        # In a thread, because reading a large one takes seconds.
        connection = await asyncio.to_thread(kubeconfig_connection, text, field="data.value")
    except InvalidInput as error:
        raise KubeconfigInvalid(f"{key}: {error}") from error
    expected = f"https://{endpoint_of(await find(management, cluster_key(workload)) or {})}"
    # Otherwise a Secret of another origin could lead our requests, and later credentials, to another server.
    if connection.interface_info.get("endpoint") != expected:
        raise KubeconfigInvalid(f"{key}: the server {expected} of the Cluster expected")
    return connection
