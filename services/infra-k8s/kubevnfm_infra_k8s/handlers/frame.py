"""The common part of the handlers of infra-k8s: their ports and limits, and what several commands need of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.infra import HelmChart, Variables
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import NotFound
from kubevnfm_worker import StepContext, nothing_made

from kubevnfm_infra_k8s.domain.changing.applying import ApplyRun
from kubevnfm_infra_k8s.domain.charts import ChartTarget
from kubevnfm_infra_k8s.domain.errors import AccessRefused
from kubevnfm_infra_k8s.domain.planning.plan import Described, Plan, plan
from kubevnfm_infra_k8s.domain.ports import (
    CloudLogins,
    Cluster,
    Clusters,
    Deletions,
    Releases,
    SharedObjects,
    Sources,
    StartTimes,
)
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.claims import save_claims
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest, check_hooks, read_manifests
from kubevnfm_infra_k8s.domain.release import ADDONS, Release, release_id
from kubevnfm_infra_k8s.domain.removing.pruning import PruneRun
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import CloudSecretRun, cloud_secrets
from kubevnfm_infra_k8s.domain.workload_clusters.probing import probe_of
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate

AGAIN_S: Final = 0.2
"""Pause after a full wait. Meanwhile other commands get a worker; the next call starts its watches from a new list."""
ENDING_S: Final = 1.0
"""Pause while pods end, which takes their grace period."""
_REPORT_S: Final = 5.0
"""The wait ends this long before the command's deadline, so that the failure names the objects it waited for."""


class HasVariables(Protocol):
    """A command with the values of placeholders in manifests."""

    @property
    def vnf_instance_id(self) -> str: ...

    @property
    def variables(self) -> Variables | None: ...


class Describes(HasVariables, Protocol):
    """A command that says what a CNF consists of."""

    @property
    def package(self) -> PackageRef: ...

    @property
    def def_files(self) -> tuple[str, ...]: ...

    @property
    def chart(self) -> HelmChart | None: ...

    @property
    def namespace(self) -> str | None: ...


@dataclass(frozen=True)
class Handling:
    """The ports of the handlers, and the limits of their waits."""

    clusters: Clusters
    vims: VimDirectory
    logins: CloudLogins
    sources: Sources
    releases: Releases
    shared: SharedObjects
    start_times: StartTimes
    deletions: Deletions
    policy: PolicyGate
    clock: Clock
    wait_s: float = 20.0
    settle_s: float = 5.0
    ready_timeout_s: float = 500.0
    cluster_ready_timeout_s: float = 1800.0
    gone_timeout_s: float = 500.0
    finalizer_patience_s: float = 30.0
    """A deletion that was asked for so long before an attempt is one of an earlier attempt; clocks may differ by less."""

    @asynccontextmanager
    async def connected(self, vim: VimConnection, filled: HasVariables | None = None) -> AsyncIterator[Cluster]:
        """Yield the cluster of a VIM; ``filled``: the command whose values no message of it may show."""
        try:
            async with self.clusters.cluster(await self.vims.connection(vim)) as cluster:
                yield cluster.hiding(self.secrets_in(filled)) if filled is not None else cluster
        except AccessRefused:
            # An operator changes the access data now, and may retry at once.
            self.vims.forget(vim)
            raise

    def secrets_in(self, command: HasVariables) -> Sequence[str]:
        """Return the values of a command that are in its manifests and that no message may show."""
        return self.sources.secrets_in(command.variables, getattr(command, "chart", None))

    async def release_of(self, vnf_instance_id: str) -> Release:
        """Return the instance's inventory. Raises NotFound."""
        release = await self.releases.get(vnf_instance_id)
        if release is None:
            raise NotFound(f"VNF instance {vnf_instance_id} has no Kubernetes objects")
        return release

    async def manifests(
        self, command: HasVariables, package: PackageRef, names: Sequence[str], operation_id: str
    ) -> Sequence[Manifest]:
        """Return the manifests of a package's files and of URLs, filled in with the variables of the command."""
        files = await self.sources.read(
            package,
            names,
            vnf_instance_id=command.vnf_instance_id,
            operation_id=operation_id,
            variables=command.variables,
        )
        # In a thread, because large YAML files take longer than other commands should wait.
        return await asyncio.to_thread(read_manifests, files, is_filled_in=command.variables is not None)

    async def manifests_of(self, command: Describes, cluster: Cluster, operation_id: str) -> Sequence[Manifest]:
        """Return the manifests of a command: those of its files, or what its chart makes for the cluster.

        Raises: InvalidInput, ChartRefused, HelmMissing.
        """
        mine = command.vnf_instance_id
        if command.chart is None:
            return await self.manifests(command, command.package, command.def_files, operation_id)
        version, api_versions = await asyncio.gather(cluster.version(), cluster.api_versions())
        target = ChartTarget(command.namespace or "default", version, api_versions)
        texts = await self.sources.rendered(
            command.package, command.chart, target, vnf_instance_id=mine, operation_id=operation_id
        )
        manifests = await asyncio.to_thread(read_manifests, texts)
        check_hooks(manifests)
        return manifests

    async def with_seen(self, release: Release, wait: ReadinessWait) -> Release:
        """Return the release with the Jobs that a wait has seen complete, and with the claims of StatefulSets.

        Raises RevisionConflict.
        """
        if not wait.complete <= release.complete:
            release = await self.releases.save(release.completing(wait.complete))
        return await save_claims(wait.cluster, self.releases, release)

    async def with_cloud_secrets(
        self, planned: Plan, release: Release, cluster: Cluster, context: StepContext
    ) -> tuple[Plan, Release]:
        """Return the plan with the Secrets of the cloud, if the instance has a login of a registered OpenStack (CR-049).

        The release is stored first: then a termination takes back what a worker that is killed has got, and a worker that has
        lost the command sends no login that the next one has replaced. Raises as `CloudSecretRun.with_secrets`, and RevisionConflict.
        """
        if not release.openstack_vim_id:
            return planned, release
        cloud_secrets(planned.objects)
        release = await self.releases.save(release)
        run = self.cloud_secret_run(release, cluster, context)
        return await run.with_secrets(planned, release), release

    def cloud_secret_run(self, release: Release, cluster: Cluster, context: StepContext) -> CloudSecretRun:
        """Return what makes the Secrets of the cloud for an instance in a step."""
        return CloudSecretRun(
            cluster,
            self.logins,
            Progress("login", context.publish),
            release.vnf_instance_id,
            context.operation_id,
        )

    async def readiness(
        self, cluster: Cluster, context: StepContext, vnf_instance_id: str, wait_s: float | None
    ) -> ReadinessWait:
        """Return the wait of a step; ``wait_s``: its limit, None for the default one."""
        began = await self.start_times.started_at(context, vnf_instance_id)
        deadline = deadline_of(context, began, wait_s or self.ready_timeout_s)
        return ReadinessWait(cluster, vnf_instance_id, self.clock, deadline, self.settle_s)

    async def until_ready(
        self, wait: ReadinessWait, planned: Plan, awaited: Sequence[Awaited], progress: Progress
    ) -> bool:
        """Return whether all objects are ready, and the webhook of Cluster API works if they have one; False: call again.

        Raises ObjectFailed, ObjectsNotReady.
        """
        if await wait.until_ready(awaited, progress, within_s=self.wait_s) is None:
            return False
        probe = probe_of(planned.objects, wait, progress)
        return probe is None or await probe.until_denied(within_s=self.wait_s)

    async def planned(
        self,
        command: Described,
        manifests: Sequence[Manifest],
        cluster: Cluster,
        context: StepContext,
        *,
        vim: VimConnection,
        part: str = "",
    ) -> Plan:
        """Return the plan of the objects, which the policy for CNFs allows. Raises as `planning.plan`, and PolicyViolated.

        Each command that applies manifests gets its objects here. ``part``: as in `Release`; ``vim``: the VIM of the command.
        """
        planned = await plan(command, manifests, cluster, operation_id=context.operation_id)
        release = release_id(command.vnf_instance_id, part)
        with nothing_made():
            await self.policy.judge(
                planned.objects, vim, cluster, context, release_id=release, is_own_cluster=part == ADDONS
            )
        return planned

    def applying(
        self, wait: ReadinessWait, progress: Progress, *, adopt: bool = False, rehearses: bool = False
    ) -> ApplyRun:
        """Return the application of a step's objects; see `ApplyRun` for the flags."""
        return ApplyRun(wait, self.releases, self.shared, progress, adopt=adopt, rehearses=rehearses)

    def pruning(self, wait: ReadinessWait, context: StepContext) -> PruneRun:
        """Return the pruning of what a step's objects lack, within the time of its wait."""
        return PruneRun(
            cluster=wait.cluster,
            releases=self.releases,
            shared=self.shared,
            progress=Progress("prune", context.publish),
            clock=self.clock,
            deadline=wait.deadline,
            grace_period_s=None,
        )


def deadline_of(context: StepContext, began: datetime, wait_s: float) -> datetime:
    """Return the end of the wait: ``wait_s`` after it began, but always before the command's own deadline."""
    wanted = began + timedelta(seconds=wait_s)
    if context.deadline is None:
        return wanted
    return min(wanted, context.deadline - timedelta(seconds=_REPORT_S))


def attempt_of(context: StepContext) -> str:
    """Return the identity of a step's attempt."""
    return f"{context.operation_id}/{context.step_id}/{context.attempt}"
