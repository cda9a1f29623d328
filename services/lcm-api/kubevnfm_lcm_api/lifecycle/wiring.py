"""The classes behind the life cycle of VNF instances: the engine, the operations' requests, the progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from kubevnfm_bus.port import Delivery, MessageBus, Verdict
from kubevnfm_clients.charts import ChartPrograms, ChartRepositories
from kubevnfm_clients.multicloud.inventory import Inventory
from kubevnfm_clients.multicloud.links import VirtualLinks
from kubevnfm_clients.multicloud.regions import CloudRegions
from kubevnfm_clients.multicloud.volumes import PersistentVolumes
from kubevnfm_clients.playbooks import PlaybookPrograms
from kubevnfm_clients.ports import NodeLogs, Vims
from kubevnfm_events import queues
from kubevnfm_events.lcm import AdvanceOperation, MarkOrphans, RemoveRemains
from kubevnfm_events.snapshots import ForgetSnapshot, RecordSnapshot
from kubevnfm_kit.run import background, repeat
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.worker import CommandWorker

from kubevnfm_lcm_api import site_entries
from kubevnfm_lcm_api.lifecycle.containers import trouble_marks
from kubevnfm_lcm_api.lifecycle.containers.followed_vnfcs import FollowedVnfcs
from kubevnfm_lcm_api.lifecycle.containers.package_variables import PackageVariables
from kubevnfm_lcm_api.lifecycle.containers.trouble_marks import TroubleMarks
from kubevnfm_lcm_api.lifecycle.core import (
    cloud_place,
    dependencies,
    drift,
    instance,
    occurrence,
    progress,
    revision,
    snapshot,
)
from kubevnfm_lcm_api.lifecycle.core.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.core.after_restore import AfterRestore
from kubevnfm_lcm_api.lifecycle.core.dependencies import IS_WITHDRAWING
from kubevnfm_lcm_api.lifecycle.core.drift_watch import DriftWatch
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.operation_metrics import CauseOf, LifecycleCounts, OperationMetrics
from kubevnfm_lcm_api.lifecycle.core.orphan_marks import OrphanMarks
from kubevnfm_lcm_api.lifecycle.core.output_updates import OutputUpdates
from kubevnfm_lcm_api.lifecycle.core.ports import Grants, PackageCatalogue, PackageFetches
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import ProtectedNamespaces
from kubevnfm_lcm_api.lifecycle.core.snapshots import Snapshots
from kubevnfm_lcm_api.lifecycle.core.suspension import RegionSuspensions, Suspensions
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.http import routes
from kubevnfm_lcm_api.lifecycle.http.context import LifecycleServices
from kubevnfm_lcm_api.lifecycle.kinds import KindServices, kinds_on
from kubevnfm_lcm_api.lifecycle.requests.revisions import Revisions
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.workloads.awaited_callbacks import AwaitedCallbacks
from kubevnfm_lcm_api.lifecycle.workloads.machine_watch import MachineWatch
from kubevnfm_lcm_api.lifecycle.workloads.rotations import STEP as ROTATION_STEP
from kubevnfm_lcm_api.lifecycle.workloads.rotations import Rotations

OUTBOXES = (instance.COLLECTION, occurrence.COLLECTION, snapshot.COLLECTION, trouble_marks.COLLECTION)
"""Collections whose documents carry messages to send."""
INDEXES = {
    instance.COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId", "createdAt"]),
        Index(["instantiationState", "createdAt"]),
        Index(["vnfInstanceName"]),
        Index(["vnfPkgId"]),
        Index(["internal/vimIds"]),
        Index(["internal/registries"]),
        Index(["internal/managementVimIds"]),
        Index([IS_WITHDRAWING], sparse=True),
        Index([instance.DST_VNFD_ID], sparse=True),
        Index([instance.ON_UNREGISTERED_VIM], sparse=True),
        Index([instance.OF_WORKLOAD_CLUSTER], sparse=True),
        Index([instance.REMAINS_OF], sparse=True),
        Index([drift.PATH], sparse=True),
        Index([dependencies.PATH], sparse=True),
        Index([f"metadata/{SITE_MARK}/name", "createdAt"]),
        site_entries.INDEX,
        Index([cloud_place.REGION], sparse=True),
        Index([cloud_place.NAMESPACE], sparse=True),
        Index([cloud_place.GROUP], sparse=True),
        Index([cloud_place.ONAP_NAME], unique=True),
        Index([cloud_place.ONAP_NAME], sparse=True),
    ],
    occurrence.COLLECTION: [
        Index(["startTime"]),
        Index(["vnfInstanceId", "operationState", "startTime"]),
        # For the views, which list the newest first: each filter that they have, and the last runs of a plan.
        Index(["operationState", "startTime"]),
        Index(["operation", "operationState", "startTime"]),
        Index(["vnfInstanceId", "startTime"]),
        Index(["internal/plan", "operationState", "startTime"]),
        Index(["internal/deadline"]),
        Index(["internal/traceDue"]),
        Index(["internal/draft/vim/vim_id", "operationState"]),
        Index(["vnfInstanceId", revision.NUMBER], sparse=True),
    ],
    progress.COLLECTION: [Index(["operationId", "state"])],
    trouble_marks.COLLECTION: [Index(["id"])],
    snapshot.COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfSnapshot/vnfInstanceId"], sparse=True),
        Index([snapshot.VIM]),
    ],
}
_DEADLINES_EVERY_S: Final = 30.0
_PLACEMENTS_AT_ONCE: Final = 512
"""Events of a burst wait for one another."""
_QUESTION_S: Final = 60.0
"""How long a question about VNFCs holds."""


@dataclass(frozen=True)
class LifecycleParts:
    """The part of lcm-api that manages VNF instances and their operations."""

    services: LifecycleServices
    drift: DriftWatch
    machines: MachineWatch
    rotations: Rotations
    marks: OrphanMarks
    outputs: OutputUpdates
    vnfcs: FollowedVnfcs
    troubles: TroubleMarks
    package_variables: PackageVariables
    counts: LifecycleCounts

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        routes.add_to(app, self.services)

    def handle(self, worker: CommandWorker) -> None:
        """Register the handlers of the engine's commands; before the worker starts."""
        worker.handle_direct(AdvanceOperation, self.services.engine.advance_operation)
        worker.handle(RemoveRemains, self.services.engine.remove_remains)
        worker.handle(MarkOrphans, self.marks.mark_orphans)
        snapshots = self.services.requests.snapshots
        worker.handle(RecordSnapshot, snapshots.record_snapshot)
        worker.handle(ForgetSnapshot, snapshots.forget_snapshot)

    async def start(self, bus: MessageBus) -> None:
        """Consume the steps' replies and the progress of their tasks."""
        await bus.consume_events(queues.REPLIES.name, queues.REPLIES.patterns, self._take_reply)
        await bus.consume_events(queues.DRIFT.name, queues.DRIFT.patterns, self.drift.record_findings)
        await bus.consume_events(queues.MACHINES.name, queues.MACHINES.patterns, self.machines.record_findings)
        await bus.consume_events(queues.KUBECONFIGS.name, queues.KUBECONFIGS.patterns, self.rotations.begin_found)
        await bus.consume_events(queues.OUTPUTS.name, queues.OUTPUTS.patterns, self.outputs.record_reading)
        await bus.consume_events(
            queues.VNFCS.name, queues.VNFCS.patterns, self.vnfcs.follow, concurrency=_PLACEMENTS_AT_ONCE
        )
        await bus.consume_events(queues.TROUBLES.name, queues.TROUBLES.patterns, self.troubles.follow)
        await bus.consume_events(queues.PROGRESS.name, queues.PROGRESS.patterns, self.services.progress.store_event)

    async def _take_reply(self, delivery: Delivery) -> Verdict:
        if delivery.envelope.stepid == ROTATION_STEP:
            return await self.rotations.record_reply(delivery)
        return await self.services.engine.resume_operation(delivery)


@asynccontextmanager
async def lifecycle_parts(
    backends: Backends,
    *,
    outbox: Outbox,
    grants: Grants | None,
    packages: PackageCatalogue,
    fetches: PackageFetches,
    vims: Vims,
    links: VirtualLinks,
    volumes: PersistentVolumes,
    inventory: Inventory,
    charts: ChartPrograms,
    repositories: ChartRepositories,
    regions: CloudRegions,
    node_logs: NodeLogs,
    playbooks: PlaybookPrograms,
    drift_every_s: float,
    most_revisions: int,
    has_vnf_networks: bool,
    cause_of: CauseOf,
) -> AsyncIterator[LifecycleParts]:
    """Yield the parts; leaving the block ends the background work.

    ``grants``: None if everything is granted; ``most_revisions``: of a VNF of multi-cloud; ``drift_every_s``: 0 if no changes by others are looked for;
    ``has_vnf_networks``: whether an operator has named networks of VNFs.
    """
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    engine = Engine(
        store=store, outbox=outbox, ring=ring, clock=clock, grants=grants,
        counts=OperationMetrics(backends.metrics, cause_of),
    )  # fmt: skip
    instances = Instances(store=store, outbox=outbox, engine=engine, packages=packages, ring=ring, clock=clock)
    of_regions = RegionSuspensions(regions)
    suspensions = Suspensions(store=store, outbox=outbox, engine=engine, regions=of_regions, ring=ring, clock=clock)
    acceptance = Acceptance(
        engine=engine, ring=ring, clock=clock, has_vnf_networks=has_vnf_networks, suspensions=suspensions
    )
    protected = ProtectedNamespaces(regions)
    given = packages, vims, links, volumes, charts, repositories, playbooks, protected, ring, clock
    kinds = kinds_on(KindServices(*given, is_granted_outside=grants is not None))
    services = LifecycleServices(
        engine=engine,
        instances=instances,
        requests=RequestServices(
            instances,
            engine,
            packages,
            VimEntries(vims),
            acceptance,
            kinds,
            suspensions,
            Revisions(store, most_revisions),
            protected,
            fetches,
            Snapshots(store=store, outbox=outbox, ring=ring, clock=clock),
            ring,
            is_granted_outside=grants is not None,
        ),
        progress=Progress(store),
        node_logs=node_logs,
        awaited_callbacks=AwaitedCallbacks(store, clock),
    )
    questions = Questions(backends.bus, clock, drift_every_s)
    drift = DriftWatch(
        store=store, outbox=outbox, questions=questions, vims=vims, suspensions=of_regions, ring=ring, clock=clock
    )
    machines = MachineWatch(store=store, questions=questions, ring=ring, clock=clock)
    rotations = Rotations(store=store, outbox=outbox, questions=questions, vims=vims, ring=ring, clock=clock)
    about_vnfcs = Questions(backends.bus, clock, _QUESTION_S)
    vnfcs = FollowedVnfcs(store=store, outbox=outbox, questions=about_vnfcs, ring=ring, clock=clock)
    troubles = TroubleMarks(store=store, outbox=outbox, inventory=inventory, clock=clock)
    rounds = _rounds(backends, drift_every_s, drift=drift, machines=machines, kubeconfigs=rotations, troubles=troubles)
    async with background(**_watches(backends, engine, vnfcs, troubles), **rounds):
        marks = OrphanMarks(store=store, outbox=outbox, ring=ring, clock=clock)
        outputs = OutputUpdates(store=store, outbox=outbox, ring=ring, clock=clock)
        variables = PackageVariables(packages)
        yield LifecycleParts(
            services, drift, machines, rotations, marks, outputs, vnfcs, troubles, variables,
            LifecycleCounts(backends.metrics, store, clock),
        )  # fmt: skip


def _watches(
    backends: Backends, engine: Engine, vnfcs: FollowedVnfcs, troubles: TroubleMarks
) -> Mapping[str, Coroutine[Any, Any, None]]:
    """Return the work that each process does by itself."""
    restored = AfterRestore(backends.store, backends.bus, backends.key_ring, backends.clock)
    return {
        "after_restore": restored.complete(),
        "deadlines": repeat(engine.fail_overdue, every_s=_DEADLINES_EVERY_S, after_s=_DEADLINES_EVERY_S),
        "vnfcs": vnfcs.watch_kept(),
        "troubles_due": troubles.watch_due(),
    }


def _rounds(
    backends: Backends, every_s: float, **looks: DriftWatch | MachineWatch | Rotations | TroubleMarks
) -> Mapping[str, Coroutine[Any, Any, None]]:
    """Return the work of the rounds by name; there is none if ``every_s`` is 0."""
    if not every_s:
        return {}
    return {name: backends.rounds(name, every_s).repeat(each.look) for name, each in looks.items()}
