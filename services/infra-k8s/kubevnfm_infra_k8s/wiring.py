"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from kubevnfm_clients.charts import FetchedCharts
from kubevnfm_clients.ports import CloudIdentities, Packages, VimDirectory
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events.capi import (
    ApplyAddons,
    AwaitCluster,
    CheckClusters,
    CheckMachines,
    ReplaceMachine,
    RollOutMachines,
    UpdateCluster,
    WatchKubeconfigs,
    WatchMachines,
)
from kubevnfm_events.objects import (
    ApplyObjects,
    CompareObjects,
    DeleteObjects,
    HealObjects,
    HoldLinks,
    HoldVolumes,
    ReleaseLinks,
    ReleaseVolumes,
    RepairObjects,
    ReplaceObjects,
    ScaleObjects,
    UpdateObjects,
)
from kubevnfm_events.vnfcs import ReadVnfcs
from kubevnfm_kit.run import background
from kubevnfm_kit.tls import ClientTls, client_context
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.parts import PACKAGE_CODE
from kubevnfm_worker.worker import CommandWorker

from kubevnfm_infra_k8s.adapters import (
    documents,
    sources,
    stored_checks,
    stored_exports,
    stored_features,
    stored_hooks,
    stored_inventory,
    stored_links,
    stored_outputs,
    stored_volumes,
    turns,
)
from kubevnfm_infra_k8s.adapters.aai import AaiGraph
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics
from kubevnfm_infra_k8s.adapters.expressions import CelExpressions
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.adapters.http import internal_api
from kubevnfm_infra_k8s.adapters.leases import StoredLeadership
from kubevnfm_infra_k8s.adapters.link_metrics import count_links
from kubevnfm_infra_k8s.adapters.regions import ExportedRegions, LabelsOfRegions, RegionDirectory, RegisteredRegions
from kubevnfm_infra_k8s.adapters.stored_exports import NoExport, StoredExports
from kubevnfm_infra_k8s.domain.exporting.exporter import Exporter
from kubevnfm_infra_k8s.domain.health_checks.owner import HealthCheckOwner
from kubevnfm_infra_k8s.domain.health_checks.passes import HealthCheckPasses
from kubevnfm_infra_k8s.domain.health_checks.record import StoredCheck
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory
from kubevnfm_infra_k8s.domain.inventory.watcher import InventoryWatcher
from kubevnfm_infra_k8s.domain.links.bringing import Bringing
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.links.uses import InstanceLinks
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.domain.outputs.watch import OutputWatch
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.live_verdicts import LiveVerdicts
from kubevnfm_infra_k8s.domain.reading.pod_usages import ClusterPodUsages
from kubevnfm_infra_k8s.domain.reconciling.ports import D
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes
from kubevnfm_infra_k8s.domain.volumes.passes import VolumePasses
from kubevnfm_infra_k8s.domain.volumes.record import Volume
from kubevnfm_infra_k8s.domain.volumes.uses import InstanceVolumes
from kubevnfm_infra_k8s.domain.watching.object_watches import ObjectWatches
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterWatches
from kubevnfm_infra_k8s.handlers.comparison import ComparisonHandler
from kubevnfm_infra_k8s.handlers.dry_runs import DryRunHandlers
from kubevnfm_infra_k8s.handlers.machines import MachineHandlers
from kubevnfm_infra_k8s.handlers.objects import ObjectHandlers
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate
from kubevnfm_infra_k8s.handlers.vnfcs import VnfcHandler
from kubevnfm_infra_k8s.handlers.watches import WatchHandler
from kubevnfm_infra_k8s.policy_settings import policies_of
from kubevnfm_infra_k8s.settings import Settings

SERVICE = "infra-k8s"
LAYER = "Kubernetes"
_INDEXES = {
    **documents.INDEXES,
    sources.FETCHED: sources.INDEXES,
    stored_hooks.HOOKS: stored_hooks.INDEXES,
    **stored_checks.INDEXES,
    **stored_inventory.INDEXES,
    **stored_links.INDEXES,
    **stored_outputs.INDEXES,
    **stored_volumes.INDEXES,
    **turns.INDEXES,
}


@dataclass(frozen=True)
class InfraK8s:
    """The running service."""

    port: int
    """The port on which the internal API listens."""
    links: VirtualLinks
    """Implements the port of the same name for callers in the same process."""
    volumes: PersistentVolumes
    """Implements the port of the same name for callers in the same process."""


@asynccontextmanager
async def infra_k8s(
    settings: Settings,
    backends: Backends,
    *,
    packages: Packages,
    charts: FetchedCharts,
    vims: VimDirectory,
    identities: CloudIdentities,
    regions: RegionDirectory,
    networks: VnfNetworks,
) -> AsyncIterator[InfraK8s]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    await _ensure_indexes(settings, backends)
    store, key_ring, clock = backends.store, backends.key_ring, backends.clock
    releases, helm = documents.StoredReleases(store), HelmProgram(settings.helm, key_ring, settings.chart_limits)
    backends.states[PACKAGE_CODE] = await helm.state()
    async with (
        KubernetesClusters.open(
            key_ring,
            networks,
            per_s=settings.region_requests_per_s,
            burst=settings.region_burst,
            metrics=backends.metrics,
        ) as clusters,
        client_context(ClientTls(settings.outbound_ca_file)) as trusted,
        Downloads.open(settings.address_rules, tls=trusted) as downloads,
        ClusterWatches.open(clusters) as watches,
        ObjectWatches.open(clusters) as object_watches,
        _reconciled(settings, backends, clusters, vims, regions) as (links, volumes),
        _health_checks(settings, backends, clusters, vims, regions) as checks,
        _outputs(backends) as outputs,
        _inventory(settings, backends, clusters, vims, regions, outputs) as inventory,
    ):
        handlers = ObjectHandlers(
            clusters=clusters,
            vims=vims,
            identities=identities,
            key_ring=key_ring,
            sources=sources.PackageSources(packages, downloads, charts, helm, store, key_ring),
            releases=releases,
            shared=documents.StoredSharedObjects(store),
            start_times=documents.StoredStartTimes(store, clock),
            deletions=documents.StoredDeletions(store, clock),
            policy=PolicyGate(policies_of(settings.cnf_policy), releases),
            expressions=CelExpressions(),
            links=InstanceLinks(links),
            volumes=InstanceVolumes(volumes),
            outputs=outputs,
            hooks=stored_hooks.StoredHooks(store, key_ring),
            checks=checks,
            region_labels=LabelsOfRegions(regions),
            clock=clock,
            wait_s=settings.wait_s,
            settle_s=settings.settle_s,
            ready_timeout_s=settings.ready_timeout_s,
            cluster_ready_timeout_s=settings.cluster_ready_timeout_s,
            gone_timeout_s=settings.gone_timeout_s,
        )
        watching = WatchHandler(clusters, vims, watches, backends.bus, clock)
        comparison = _comparison(handlers, clusters, object_watches, backends)
        worker = backends.worker(SERVICE, layer=LAYER, lease_s=settings.lease_s, concurrency=settings.concurrency)
        _handle_objects(worker, handlers)
        _handle_machines(worker, MachineHandlers(**vars(handlers), watches=watches))
        _handle_watches(worker, watching, comparison, VnfcHandler(clusters, vims, releases, backends.bus, clock))
        app = internal_api(
            links, volumes, inventory, DryRunHandlers(**vars(handlers)),
            LiveVerdicts(handlers.releases, clock, handlers.settle_s), helm, checks, ClusterPodUsages(clusters, vims),
            token=settings.internal_token.get_secret_value(),
        )  # fmt: skip
        count_links(backends.metrics, stored_links.StoredLinkStates(store))
        async with (
            watching.watching(),
            worker,
            backends.serving(app, SERVICE, host=settings.host, port=settings.port, tls=settings.server_tls) as port,
        ):
            await worker.start()
            yield InfraK8s(port, links, volumes)


def _comparison(
    handlers: ObjectHandlers, clusters: KubernetesClusters, watches: ObjectWatches, backends: Backends
) -> ComparisonHandler:
    """Return the handler that looks for drift."""
    return ComparisonHandler(
        clusters=clusters,
        vims=handlers.vims,
        releases=handlers.releases,
        shared=handlers.shared,
        watches=watches,
        bus=backends.bus,
        clock=backends.clock,
    )


async def _ensure_indexes(settings: Settings, backends: Backends) -> None:
    await backends.ensure_indexes(_INDEXES)
    if settings.aai_url is not None:
        await backends.ensure_indexes(stored_exports.INDEXES)


def _handle_machines(worker: CommandWorker, handlers: MachineHandlers) -> None:
    """Register the handlers of the commands about workload clusters."""
    worker.handle(AwaitCluster, handlers.await_cluster)
    worker.handle(ApplyAddons, handlers.apply_addons)
    worker.handle(RollOutMachines, handlers.roll_out_machines)
    worker.handle(CheckMachines, handlers.check_machines)
    worker.handle(ReplaceMachine, handlers.replace_machine)


def _handle_watches(
    worker: CommandWorker, watching: WatchHandler, comparison: ComparisonHandler, vnfcs: VnfcHandler
) -> None:
    """Register the handlers of the questions about machines, objects, kubeconfigs and VNFCs."""
    worker.handle_direct(ReadVnfcs, vnfcs.read_vnfcs)
    worker.handle_direct(WatchMachines, watching.watch_machines)
    worker.handle_direct(CompareObjects, comparison.compare_objects)
    worker.handle_direct(WatchKubeconfigs, watching.watch_kubeconfigs)


def _handle_objects(worker: CommandWorker, handlers: ObjectHandlers) -> None:
    """Register the handlers of the commands about objects, links and volumes."""
    worker.handle(ApplyObjects, handlers.apply_objects)
    worker.handle(UpdateObjects, handlers.update_objects)
    worker.handle(DeleteObjects, handlers.delete_objects)
    worker.handle(ScaleObjects, handlers.scale_objects)
    worker.handle(HealObjects, handlers.heal_objects)
    worker.handle(CheckClusters, handlers.check_clusters)
    worker.handle(UpdateCluster, handlers.update_cluster)
    worker.handle(ReplaceObjects, handlers.replace_objects)
    worker.handle(RepairObjects, handlers.repair_objects)
    worker.handle(HoldLinks, handlers.hold_links)
    worker.handle(ReleaseLinks, handlers.release_links)
    worker.handle(HoldVolumes, handlers.hold_volumes)
    worker.handle(ReleaseVolumes, handlers.release_volumes)


@asynccontextmanager
async def _reconciled(
    settings: Settings,
    backends: Backends,
    clusters: KubernetesClusters,
    vims: VimDirectory,
    regions: RegionDirectory,
) -> AsyncIterator[tuple[VirtualLinks, PersistentVolumes]]:
    """Yield the owners of virtual links and volumes, with the work on them running."""
    store, clock, policies = backends.store, backends.clock, policies_of(settings.cnf_policy)
    turning, known = turns.StoredTurns(store, clock, backends.owners), RegisteredRegions(regions, vims)
    marks = _marks(settings, backends)
    async with backends.relay([stored_links.LINKS, stored_volumes.VOLUMES]) as relay:
        outbox = Outbox(store, relay, backends.key_ring)
        link_records, volume_records = (
            stored_links.StoredLinks(store, outbox, marks),
            stored_volumes.StoredVolumes(store, outbox),
        )

        def on_links(cluster: Cluster) -> Bringing:
            return Bringing(link_records, turning, cluster, clock, settings.link_timeout_s)

        def on_volumes(cluster: Cluster) -> VolumePasses:
            return VolumePasses(volume_records, cluster, clock, settings.volume_timeout_s)

        on_all_links = ReconcilingWork[Link]("link", link_records, turning, known, vims, clusters, on_links, clock)
        on_all_volumes = ReconcilingWork[Volume](
            "volume", volume_records, turning, known, vims, clusters, on_volumes, clock
        )
        links = VirtualLinks(link_records, turning, known, vims, clusters, on_all_links, clock)
        volumes = PersistentVolumes(volume_records, known, vims, clusters, on_all_volumes, clock, policies)
        async with (
            on_all_links.running(),
            on_all_volumes.running(),
            _rounds(settings, backends, "virtual_links", on_all_links),
            _rounds(settings, backends, "persistent_volumes", on_all_volumes),
        ):
            yield links, volumes


@asynccontextmanager
async def _health_checks(
    settings: Settings,
    backends: Backends,
    clusters: KubernetesClusters,
    vims: VimDirectory,
    regions: RegionDirectory,
) -> AsyncIterator[HealthCheckOwner]:
    """Yield the owner of health checks, with the work on them running."""
    store, clock, records = backends.store, backends.clock, stored_checks.StoredChecks(backends.store)
    releases, hooks = documents.StoredReleases(store), stored_hooks.StoredHooks(store, backends.key_ring)
    expressions, waits = CelExpressions(), (settings.settle_s, settings.ready_timeout_s)

    def on_checks(cluster: Cluster) -> HealthCheckPasses:
        return HealthCheckPasses(records, releases, hooks, expressions, cluster, clock, *waits, on_all.wake)

    turning, known = turns.StoredTurns(store, clock, backends.owners), RegisteredRegions(regions, vims)
    on_all = ReconcilingWork[StoredCheck]("health-check", records, turning, known, vims, clusters, on_checks, clock)
    rounds = backends.rounds("health_checks", settings.reconcile_rounds_s)
    async with on_all.running(), background(health_checks=rounds.repeat(on_all.bring_all, is_due=on_all.has_work)):
        yield HealthCheckOwner(records, releases, hooks, on_all, clock, settings.ready_timeout_s)


@asynccontextmanager
async def _outputs(backends: Backends) -> AsyncIterator[Outputs]:
    """Yield the outputs of instances; the events about them are published while the block lasts."""
    store = backends.store
    async with backends.relay([stored_outputs.OUTPUTS]) as relay:
        records = stored_outputs.StoredOutputs(store, Outbox(store, relay, backends.key_ring))
        yield Outputs(records, backends.clock)


@asynccontextmanager
async def _inventory(
    settings: Settings,
    backends: Backends,
    clusters: KubernetesClusters,
    vims: VimDirectory,
    regions: RegionDirectory,
    outputs: Outputs,
) -> AsyncIterator[StoredInventory]:
    """Yield the inventory, with the watches that write it running whenever this process has the lease."""
    store, clock, marks = backends.store, backends.clock, _marks(settings, backends)
    async with (
        backends.relay([stored_inventory.OBJECTS, stored_features.FEATURES]) as relay,
        _export(settings, backends, clusters.metrics.export, regions, marks) as (exporter, state),
    ):
        outbox = Outbox(store, relay, backends.key_ring)
        objects = stored_inventory.StoredObjects(store, outbox, marks)
        features = stored_features.StoredFeatures(store, outbox, clock, marks)
        watched = stored_inventory.StoredRegions(store, clock)
        instances = stored_inventory.StoredInstances(store, clock)
        leadership = StoredLeadership(store, clock, lease_s=settings.lease_s, owners=backends.owners)
        of_outputs = OutputWatch(outputs, vims, clusters)
        watcher = InventoryWatcher(
            objects, watched, instances, vims, clusters, clock, leadership, of_outputs, features, exporter
        )
        async with background(inventory=watcher.run()):
            yield StoredInventory(objects, watched, RegisteredRegions(regions, vims), clock, state)


def _marks(settings: Settings, backends: Backends) -> ExportMarks | None:
    """Return what marks changes for the export, if there is one."""
    return None if settings.aai_url is None else ExportMarks(backends.store, backends.clock)


@asynccontextmanager
async def _export(
    settings: Settings, backends: Backends, metrics: ExportMetrics, regions: RegionDirectory, marks: ExportMarks | None
) -> AsyncIterator[tuple[Exporter | NoExport, StoredExports | None]]:
    """Yield the export to A&AI, and its state if A&AI is set."""
    if settings.aai_url is None or marks is None:
        yield NoExport(backends.store), None
        return
    state = metrics.waiting = StoredExports(backends.store, backends.clock, marks, settings.aai_url)
    async with AaiGraph.open(
        settings.aai_url,
        f"v{settings.aai_version}",
        metrics,
        tls=settings.aai_tls,
        user=settings.aai_user,
        password=settings.aai_password.get_secret_value(),
        parallel=settings.aai_parallel,
    ) as graph:
        of_vims = ExportedRegions(regions)
        yield Exporter(state, graph, of_vims, settings.aai_parallel, settings.aai_batch), state


def _rounds(
    settings: Settings, backends: Backends, name: str, work: ReconcilingWork[D]
) -> AbstractAsyncContextManager[None]:
    """Look at all documents in rounds while the block lasts, one process in each: more often at those with work."""
    often = backends.rounds(name, settings.reconcile_rounds_s)
    drift = backends.rounds(f"{name}_drift", settings.reconcile_drift_rounds_s)
    bringing = often.repeat(work.bring_all, is_due=work.has_work)
    return background(**{name: bringing, f"{name}_drift": drift.repeat(work.look_at_all)})
