"""Health checks of VNFs: the owner in infra-k8s on a store, and a stand-in for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from kubevnfm_clients.multicloud.health_checks import CheckStatus, HealthCheck, HookResult
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.adapters.expressions import CelExpressions
from kubevnfm_infra_k8s.adapters.stored_checks import INDEXES, StoredChecks
from kubevnfm_infra_k8s.adapters.stored_hooks import StoredHooks
from kubevnfm_infra_k8s.adapters.turns import StoredTurns
from kubevnfm_infra_k8s.domain.health_checks.owner import HealthCheckOwner
from kubevnfm_infra_k8s.domain.health_checks.passes import HealthCheckPasses
from kubevnfm_infra_k8s.domain.health_checks.record import StoredCheck
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore

from worlds.link_world import GivenRegions, OneVim


@asynccontextmanager
async def health_check_owner(
    store: SqliteStore, ring: KeyRing, clusters: KubernetesClusters, vims: Mapping[str, VimConnection]
) -> AsyncIterator[HealthCheckOwner]:
    """Yield an owner whose work runs while the block lasts."""
    for collection, indexes in INDEXES.items():
        await store.ensure_indexes(collection, indexes)
    clock, records, releases, hooks = (
        SystemClock(),
        StoredChecks(store),
        StoredReleases(store),
        StoredHooks(store, ring),
    )
    expressions = CelExpressions()

    def on_checks(cluster: Cluster) -> HealthCheckPasses:
        return HealthCheckPasses(records, releases, hooks, expressions, cluster, clock, 0.1, 20.0, work.wake)

    work = ReconcilingWork[StoredCheck](
        "health-check",
        records,
        StoredTurns(store, clock, Owners()),
        GivenRegions({}),
        OneVim(dict(vims)),
        clusters,
        on_checks,
        clock,
    )
    async with work.running():
        yield HealthCheckOwner(records, releases, hooks, work, clock, 20.0)


class TwinHealthChecks:
    """`kubevnfm_clients.multicloud.health_checks.HealthChecks`: a check has one test, and ends when a test of ours says so."""

    def __init__(self) -> None:
        self.checks: dict[str, HealthCheck] = {}

    def end(self, check_id: str, status: CheckStatus, reason: str = "") -> None:
        """End a check."""
        check, at = self.checks[check_id], "2030-01-01T00:00:09Z"
        ended = {"status": status, "completed_at": at}
        result = check.results[0].model_copy(update={**ended, "reason": reason})
        self.checks[check_id] = check.model_copy(update={**ended, "results": (result,)})

    async def create(self, vnf_instance_id: str) -> HealthCheck:
        if any(each.status == "Running" for each in await self.find(vnf_instance_id)):
            raise Conflict("a health check of the instance runs: one runs at a time")
        at = "2030-01-01T00:00:00Z"
        result = HookResult(
            api_version="v1", kind="Pod", namespace="ns1", name="web-test", status="Running", started_at=at
        )
        check_id = f"check-{len(self.checks)}"
        made = HealthCheck(
            id=check_id, vnf_instance_id=vnf_instance_id, status="Running", started_at=at, results=(result,)
        )
        self.checks[check_id] = made
        return made

    async def find(self, vnf_instance_id: str) -> Sequence[HealthCheck]:
        return [each for each in self.checks.values() if each.vnf_instance_id == vnf_instance_id]

    async def get(self, vnf_instance_id: str, check_id: str) -> HealthCheck:
        found = [each for each in await self.find(vnf_instance_id) if each.id == check_id]
        if not found:
            raise NotFound(f"VNF instance {vnf_instance_id} has no health check {check_id}")
        return found[0]

    async def delete(self, vnf_instance_id: str, check_id: str) -> None:
        await self.get(vnf_instance_id, check_id)
        del self.checks[check_id]
