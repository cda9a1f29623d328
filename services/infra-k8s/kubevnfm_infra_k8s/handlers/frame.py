"""The frame of the handlers: their ports and limits, and the step in a cluster that each command becomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from kubevnfm_clients.ports import CloudIdentities, VimDirectory
from kubevnfm_csar.claimed_volumes import check_claims
from kubevnfm_csar.ordered_manifests import chart_values
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ChartOrder, HelmChart, ObjectsApplied, ObjectsOrder
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import NotFound
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.outcome import StepContext, nothing_made

from kubevnfm_infra_k8s.domain.capi.contract import GROUPS as CAPI_GROUPS
from kubevnfm_infra_k8s.domain.changing.applying import ApplyRun, awaited
from kubevnfm_infra_k8s.domain.charts import ChartTarget, release_name
from kubevnfm_infra_k8s.domain.errors import (
    AccessRefused,
    ClusterUnavailable,
    LinkNotReady,
    VolumeNotReady,
    WithRemains,
)
from kubevnfm_infra_k8s.domain.links.uses import link_uses
from kubevnfm_infra_k8s.domain.objects import CLAIMS, ObjectKey, field_at
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.domain.outputs.record import outputs_of
from kubevnfm_infra_k8s.domain.outputs.values import LARGEST_BYTES
from kubevnfm_infra_k8s.domain.planning.made_namespaces import MadeNamespaces
from kubevnfm_infra_k8s.domain.planning.plan import Plan, plan, with_namespace
from kubevnfm_infra_k8s.domain.planning.profiles import with_profiles
from kubevnfm_infra_k8s.domain.ports import (
    Cluster,
    Clusters,
    Deletions,
    Expressions,
    InstanceChecks,
    LaterHooks,
    LinkUses,
    RegionLabels,
    Releases,
    SharedObjects,
    Sources,
    StartTimes,
    VolumeUses,
)
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.claims import save_claims
from kubevnfm_infra_k8s.domain.reading.instance_facts import facts_of
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest, read_charts, read_manifests, read_ordered
from kubevnfm_infra_k8s.domain.release import ADDONS, Release
from kubevnfm_infra_k8s.domain.removing.pruning import PruneRun
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import CloudSecretRun, cloud_secrets
from kubevnfm_infra_k8s.domain.workload_clusters.probing import probe_of
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate
from kubevnfm_infra_k8s.handlers.warned_steps import WarnedSteps

AGAIN_S: Final = 0.2
"""Pause after a full wait. Meanwhile other commands get a worker; the next call starts its watches from a new list."""
ENDING_S: Final = 1.0
"""Pause while pods end, which takes their grace period."""


class OfInstance(Protocol):
    """A command about an instance in a cluster."""

    @property
    def vnf_instance_id(self) -> str: ...

    @property
    def vim(self) -> VimConnection: ...


@dataclass(frozen=True)
class Handling:
    """The ports of the handlers, and the limits of their waits."""

    clusters: Clusters
    vims: VimDirectory
    identities: CloudIdentities
    key_ring: KeyRing
    sources: Sources
    releases: Releases
    shared: SharedObjects
    start_times: StartTimes
    deletions: Deletions
    policy: PolicyGate
    expressions: Expressions
    links: LinkUses
    volumes: VolumeUses
    outputs: Outputs
    hooks: LaterHooks
    checks: InstanceChecks
    region_labels: RegionLabels
    clock: Clock
    wait_s: float = 20.0
    settle_s: float = 5.0
    ready_timeout_s: float = 500.0
    cluster_ready_timeout_s: float = 1800.0
    gone_timeout_s: float = 500.0
    warned: WarnedSteps = field(default_factory=WarnedSteps, repr=False)
    finalizer_patience_s: float = 30.0
    """A deletion that was asked for so long before an attempt is one of an earlier attempt; clocks may differ by less."""

    @asynccontextmanager
    async def connected(self, vim: VimConnection) -> AsyncIterator[Cluster]:
        """Yield the cluster of a VIM."""
        try:
            async with self.clusters.cluster(await self.vims.connection(vim)) as cluster:
                yield cluster
        except AccessRefused:
            # An operator changes the access data now, and may retry at once.
            self.vims.forget(vim)
            raise

    @asynccontextmanager
    async def step(self, command: OfInstance, context: StepContext, release: Release | None) -> AsyncIterator[Step]:
        """Yield the step of a command; ``release``: the instance's inventory, None if it has none yet."""
        async with self.connected(command.vim) as inner:
            cluster = inner.hiding(self.sources.secrets_in(command)) if isinstance(command, ObjectsOrder) else inner
            present = release or Release(command.vnf_instance_id, cluster.endpoint)
            # Access data of the request may lead to another cluster than that of the VIM whose id they have.
            vim_id = command.vim.vim_id if command.vim.is_reference else None
            async with self.noting_silence(context), self.warned.publishing(context):
                yield Step(self, context, command.vim, cluster, replace(present, vim_id=vim_id or ""))

    @asynccontextmanager
    async def noting_silence(self, context: StepContext) -> AsyncIterator[None]:
        """Have the time from now on left out of the limits of the step if its cluster does not answer."""
        since = self.clock.now()
        try:
            yield
        except ClusterUnavailable:
            await self.start_times.note_silence(context, since)
            raise

    async def release_of(self, vnf_instance_id: str) -> Release:
        """Return the instance's inventory. Raises NotFound."""
        release = await self.releases.get(vnf_instance_id)
        if release is None:
            raise NotFound(f"VNF instance {vnf_instance_id} has no Kubernetes objects")
        return release

    async def manifests(self, order: ObjectsOrder, vnf_instance_id: str, operation_id: str) -> Sequence[Manifest]:
        """Return the manifests of files and URLs, filled in with the variables of an order."""
        files = await self.sources.read(order, vnf_instance_id=vnf_instance_id, operation_id=operation_id)
        # In a thread, because large YAML files take longer than other commands should wait.
        return await asyncio.to_thread(read_manifests, files, is_filled_in=order.variables is not None)


@dataclass
class Step:
    """One call for a step: a command in the cluster of its VIM. A repeated call continues where the last one ended."""

    handling: Handling
    context: StepContext
    vim: VimConnection
    cluster: Cluster
    release: Release
    """The inventory as it is stored."""
    _are_volumes_kept: bool = False
    """Whether all claims of persistent volumes were known as bound in this call."""

    @property
    def attempt(self) -> str:
        """The identity of the step's attempt."""
        return f"{self.context.operation_id}/{self.context.step_id}/{self.context.attempt}"

    @property
    def is_applied(self) -> bool:
        """Whether an earlier call of this attempt has applied the objects, or has begun to scale them."""
        return self.release.applied_by == self.attempt

    def progress(self, task: str) -> Progress:
        """Return what publishes the progress of a task."""
        return Progress(task, self.context.publish)

    async def facts(self) -> ObjectsApplied:
        """Return the objects of the inventory, the pods that run VDUs, and the values of the instance's outputs."""
        found = await facts_of(self.cluster, self.release)
        # The addons are in another cluster than the objects of the outputs.
        reading = None
        if self.release.part != ADDONS:
            reading = await self.handling.outputs.refresh(self.cluster, self.release.vnf_instance_id)
        if reading is None:
            return found
        if reading.refused:
            reason = (
                f"shown as null, since more than {LARGEST_BYTES} bytes of JSON, too deep, or a number beyond 64 bits"
            )
            total = len(reading.read.values)
            await self.progress("outputs").on(
                ", ".join(reading.refused), reason, done=total - len(reading.refused), total=total
            )
        return found.model_copy(update={"outputs": reading.read})

    async def want_outputs(self, order: ObjectsOrder, planned: Plan) -> None:
        """Have the outputs of the order read from now on. Raises Unprocessable before anything is made; RevisionConflict."""
        if order.order_artifact is None and not order.outputs:
            return
        with nothing_made():
            outputs = outputs_of(order.outputs, planned.objects, namespace=planned.namespace)
        await self.handling.outputs.want(self.release.vnf_instance_id, self.release.vim_id, outputs)

    @asynccontextmanager
    async def showing_remains(
        self, facts: Callable[[], Awaitable[ObjectsApplied]] | None = None
    ) -> AsyncIterator[None]:
        """Have errors of the block show what exists, so that an operator can decide between retry and rollback."""
        try:
            yield
        except WithRemains as error:
            error.remains = await (facts or self.facts)()
            raise

    async def manifests(self, order: ObjectsOrder) -> Sequence[Manifest]:
        """Return the manifests of an order: those of its files, or what its chart makes for the cluster.

        Raises: InvalidInput, ChartRefused, HelmMissing, ChartNotFetched, OutsideUnavailable.
        """
        charts = order.charts if isinstance(order, ChartOrder) else ()
        if charts:
            rendered = [(each.release_name, await self._rendered(order, each, each.digest)) for each in charts]
            return await asyncio.to_thread(read_charts, rendered)
        if order.order_artifact is not None:
            return await self.ordered(order)
        return await self.handling.manifests(order, self.release.vnf_instance_id, self.context.operation_id)

    async def ordered(self, order: ObjectsOrder, *, with_charts: bool = True) -> Sequence[Manifest]:
        """Return the manifests of the files that an order artifact lists, and what its charts make."""
        mine, sources = self.release.vnf_instance_id, self.handling.sources
        artifacts, values = await sources.ordering(order)
        files: Sequence[tuple[str, str]] = ()
        if order.def_files:
            files = await sources.read(order, vnf_instance_id=mine, operation_id=self.context.operation_id)
        charts, name = {}, order.release_name or release_name(mine)
        for each in artifacts.artifacts if with_charts else ():
            if each.is_chart:
                given = chart_values(artifacts, order.values)
                chart = HelmChart(path=each.file, release_name=name, values=given)
                charts[each.file] = await self._rendered(order, chart, each.chart_digest)
        assert order.namespace is not None
        return await asyncio.to_thread(read_ordered, artifacts, files, values, namespace=order.namespace, charts=charts)

    async def _rendered(self, order: ObjectsOrder, chart: HelmChart, digest: str = "") -> Sequence[tuple[str, str]]:
        """Return the templates of a chart as it makes them for the cluster."""
        note = partial(self.progress("charts").on, chart.path, done=1, total=1)
        version, api_versions = await asyncio.gather(self.cluster.version(), self.cluster.api_versions())
        target = ChartTarget(order.namespace or "default", order.kubernetes_version or version, api_versions)
        mine, operation_id = self.release.vnf_instance_id, self.context.operation_id
        return await self.handling.sources.rendered(
            order.package, chart, target, digest=digest, vnf_instance_id=mine, operation_id=operation_id, note=note
        )

    async def planned(self, order: ObjectsOrder, manifests: Sequence[Manifest] | None = None) -> Plan:
        """Return the plan of the objects, which the policy for CNFs allows; ``manifests``: those of the order, if they are read.

        Each command that applies manifests gets its objects here. Raises as `manifests` and `plan`, and PolicyViolated.
        """
        if manifests is None:
            manifests = await self.manifests(order)
        with nothing_made():
            check_claims([each.body for each in manifests], order)
            manifests = with_profiles(order, manifests)
        planned = await plan(
            order,
            manifests,
            self.cluster,
            vnf_instance_id=self.release.vnf_instance_id,
            operation_id=self.context.operation_id,
        )
        with nothing_made():
            await self.handling.policy.judge(
                [*planned.objects, *planned.hook_objects],
                self.vim,
                self.cluster,
                self.context,
                release_id=self.release.id,
                is_own_cluster=self.release.part == ADDONS,
            )
        if order.order_artifact is None:
            return planned
        made, operation_id = MadeNamespaces(self.handling.releases, self.handling.shared), self.context.operation_id
        region_labels = partial(self.handling.region_labels.labels, self.vim)
        return await with_namespace(planned, self.cluster, made, self.release, operation_id, region_labels)

    async def wait(self, wait_s: float | None = None) -> ReadinessWait:
        """Return the wait of the step; ``wait_s``: its limit, None for the default one."""
        handling, mine = self.handling, self.release.vnf_instance_id
        began = await handling.start_times.beginning(self.context, mine)
        deadline = began.deadline(self.context.deadline, wait_s or handling.ready_timeout_s)
        return ReadinessWait(
            self.cluster, mine, handling.clock, deadline, handling.settle_s, handling.expressions, began.silence_since
        )

    def applying(
        self,
        wait: ReadinessWait,
        progress: Progress,
        order: ObjectsOrder | None = None,
        *,
        adopt: bool = False,
        rehearses: bool = False,
        is_undo: bool = False,
    ) -> ApplyRun:
        """Return the application of the step's objects, of which an ``order`` may use volumes; see `ApplyRun` for the flags."""
        handling = self.handling
        return ApplyRun(
            wait, handling.releases, handling.shared, progress, adopt=adopt, rehearses=rehearses, is_undo=is_undo,
            stage_timeout_s=handling.ready_timeout_s, within_s=handling.wait_s,
            keeps_data=None if order is None else partial(self.keeps_its_volumes, order, wait),
        )  # fmt: skip

    async def apply(self, planned: Plan, run: ApplyRun) -> None:
        """Apply the objects, unless that was done. Raises as `ApplyRun.apply`, and RevisionConflict."""
        if self.is_applied:
            return
        try:
            self.release = await run.apply(planned, self.release, applied_by=self.attempt)
        except WithRemains:
            # The inventory in the store has what was sent before the failure.
            self.release = (
                await self.handling.releases.get(self.release.vnf_instance_id, self.release.part) or self.release
            )
            raise

    async def has_what_it_holds(
        self, order: ObjectsOrder, planned: Plan, wait: ReadinessWait, progress: Progress, run: ApplyRun
    ) -> bool:
        """Return whether the virtual links and volumes of the objects are ready, after a wait for them; False: call again.

        The namespaces of their workloads are applied first, since links and claims are there. Raises LinkNotReady, VolumeNotReady.
        """
        has_begun = self.is_applied or self.release.stages.attempt == self.attempt
        if has_begun or not (planned.attachments or order.volumes):
            return True
        await self._apply_namespaces(order, planned, run)
        mine, links, within_s = self.release.vnf_instance_id, link_uses(planned.attachments), self.handling.wait_s
        waits = await self.handling.links.waited_for(mine, links, within_s=within_s) if links else ""
        if waits:
            if wait.left_s() <= 0:
                raise LinkNotReady(waits)
            await progress.on("virtual links", f"waits for {waits}", done=0, total=len(links))
            return False
        return await self._on_its_volumes(order, planned, wait, progress)

    async def has_its_claims(self, order: ObjectsOrder, planned: Plan, wait: ReadinessWait, progress: Progress) -> bool:
        """Return whether the claims of persistent volumes exist, which others may have deleted; False: call again.

        Raises VolumeNotReady.
        """
        # No object of the plan is a claim of these: they are checked in the region, and made again.
        await self.handling.volumes.hold(self.release.vnf_instance_id, order.volumes, planned.namespace)
        return await self._on_its_volumes(order, planned, wait, progress)

    async def _on_its_volumes(
        self, order: ObjectsOrder, planned: Plan, wait: ReadinessWait, progress: Progress
    ) -> bool:
        if not order.volumes:
            return True
        mine, within_s = self.release.vnf_instance_id, self.handling.wait_s
        waits = await self.handling.volumes.waited_for(mine, order.volumes, planned.namespace, within_s=within_s)
        if not waits:
            return True
        if wait.left_s() <= 0:
            raise VolumeNotReady(waits)
        await progress.on("persistent volumes", f"waits for {waits}", done=0, total=len(order.volumes))
        return False

    async def keeps_its_volumes(self, order: ObjectsOrder, wait: ReadinessWait) -> bool:
        """Return whether each claim that its first pod has got a volume for is known as bound, so that the data are kept.

        False, after a wait: call again. Raises VolumeNotReady at the end of the wait.
        """
        mine, volumes = self.release.vnf_instance_id, self.handling.volumes
        if not order.volumes or self._are_volumes_kept:
            return True
        unbound = await volumes.unbound(mine)
        for key in unbound:
            claim = await self.cluster.get(CLAIMS, key)
            if field_at(claim, "status", "phase") != "Bound":
                continue
            if wait.left_s() <= 0:
                raise VolumeNotReady(f"claim {key.namespace}/{key.name} is bound, and its volume is not kept yet")
            await volumes.hold(mine, order.volumes, key.namespace)
            await volumes.waited_for(mine, order.volumes, key.namespace, within_s=self.handling.wait_s)
            return await self.keeps_its_volumes(order, wait) if key not in await volumes.unbound(mine) else False
        self._are_volumes_kept = not unbound
        return True

    async def _apply_namespaces(self, order: ObjectsOrder, planned: Plan, run: ApplyRun) -> None:
        """Have the namespaces in which links and claims of the instance are."""
        places = {key.namespace for key in planned.attachments}
        if order.volumes:
            places.add(planned.namespace)
        known = {entry.key for entry in self.release.entries if entry.uid}
        namespaces = [
            each
            for each in planned.objects
            if each.key.kind == "Namespace" and not each.key.is_custom and each.key.name in places
        ]
        mine, uses = self.release.vnf_instance_id, link_uses(planned.attachments)
        if any(each.key not in known for each in namespaces):
            first = replace(planned, objects=namespaces, without_workload=())
            self.release = await run.apply(first, self.release, applied_by=self.release.applied_by)
            # A link or claim that has waited for its namespace begins again.
            if uses:
                await self.handling.links.hold(mine, uses)
            await self.handling.volumes.hold(mine, order.volumes, planned.namespace)

    async def begin(self) -> None:
        """Store that this attempt changes objects from now on, for a call that fails later. Raises RevisionConflict."""
        if not self.is_applied:
            self.release = await self.handling.releases.save(replace(self.release, applied_by=self.attempt))

    async def until_ready(
        self, wait: ReadinessWait, planned: Plan, progress: Progress, *, cluster_apart: bool = False
    ) -> bool:
        """Return whether all objects are ready, and the webhook of Cluster API works if they have one; False: call again.

        ``cluster_apart``: another step waits for the workload cluster. Raises ObjectFailed, ObjectsNotReady, RevisionConflict.
        """
        mine = awaited(planned, self.release)
        if cluster_apart:
            mine = [each for each in mine if each.key.group not in CAPI_GROUPS]
        within_s = self.handling.wait_s
        is_ready = await wait.until_all_ready(mine, progress, within_s=within_s)
        if is_ready and (probe := probe_of(planned.objects, wait, progress)) is not None:
            is_ready = await probe.until_denied(within_s=within_s)
        await self.store_seen(wait)
        if is_ready and (after := self.release.brought_up()) is not self.release:
            self.release = await self.handling.releases.save(after)
        return is_ready

    async def store_seen(self, wait: ReadinessWait) -> None:
        """Store the Jobs that a wait has seen complete, and the claims of StatefulSets. Raises RevisionConflict."""
        if not wait.complete <= self.release.complete:
            self.release = await self.handling.releases.save(self.release.completing(wait.complete))
        self.release = await save_claims(self.cluster, self.handling.releases, self.release)

    def pruning(self, wait: ReadinessWait, read_only: Collection[ObjectKey] = ()) -> PruneRun:
        """Return the pruning of what the step's objects lack, within the time of its wait."""
        return PruneRun(
            cluster=self.cluster,
            releases=self.handling.releases,
            shared=self.handling.shared,
            progress=self.progress("prune"),
            clock=self.handling.clock,
            deadline=wait.deadline,
            grace_period_s=None,
            read_only=read_only,
        )

    async def prune(self, run: PruneRun, wanted: Collection[ObjectKey]) -> bool:
        """Delete the objects that are not wanted; False: call again. Raises ObjectsNotGone, RevisionConflict."""
        pruned = await run.prune(self.release, wanted, within_s=self.handling.wait_s)
        self.release = pruned or self.release
        return pruned is not None

    def cloud_secret_run(self) -> CloudSecretRun:
        """Return what makes the Secrets of the cloud for the instance."""
        return CloudSecretRun(
            self.cluster,
            self.handling.identities,
            self.handling.key_ring,
            self.progress("login"),
            self.release.vnf_instance_id,
            self.context.operation_id,
        )

    async def with_cloud_secrets(self, planned: Plan) -> Plan:
        """Return the plan with the Secrets of the cloud, if the instance has a login of a registered OpenStack (CR-049).

        The release is stored first: then a termination takes back what a worker that is killed has got, and a worker that has
        lost the command sends no login that the next one has replaced. Raises as `CloudSecretRun.with_secrets`, and RevisionConflict.
        """
        if not self.release.openstack_vim_id:
            return planned
        cloud_secrets(planned.objects)
        self.release = await self.handling.releases.save(self.release)
        return await self.cloud_secret_run().with_secrets(planned, self.release)
