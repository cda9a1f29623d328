"""The classes behind the life cycle of VNF instances: the engine, the operations' requests, the progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import Vims
from kubevnfm_events.contract import replies
from kubevnfm_events.lcm import AdvanceOperation, RemoveRemains
from kubevnfm_store.query import Index
from kubevnfm_worker import CommandWorker, Outbox
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.granting.external import ExternalGrants
from kubevnfm_lcm_api.lifecycle import progress
from kubevnfm_lcm_api.lifecycle.domain import instance, occurrence
from kubevnfm_lcm_api.lifecycle.domain.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.engine import Engine
from kubevnfm_lcm_api.lifecycle.instances import Instances
from kubevnfm_lcm_api.lifecycle.progress import Progress
from kubevnfm_lcm_api.lifecycle.requests.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.requests.instantiate import Instantiate
from kubevnfm_lcm_api.lifecycle.requests.tasks import Tasks
from kubevnfm_lcm_api.lifecycle.requests.terminate import Terminate

INDEXES = {
    instance.COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId"]),
        Index(["vnfInstanceName"]),
        Index(["internal/vimIds"]),
        Index(["internal/dstVnfdId"]),
    ],
    occurrence.COLLECTION: [
        Index(["startTime"]),
        Index(["vnfInstanceId"]),
        Index(["operationState"]),
        Index(["internal/deadline"]),
    ],
    progress.COLLECTION: [Index(["operationId"])],
}
REPLIES: Final = [event.routing_key() for event in replies()]
"""Routing keys of the events that can answer a step. The engine ignores those that belong to no operation."""


@dataclass(frozen=True)
class LifecycleParts:
    """The parts of lcm-api that deal with VNF instances and their operations."""

    engine: Engine
    instances: Instances
    instantiate: Instantiate
    terminate: Terminate
    tasks: Tasks
    progress: Progress

    def handle(self, worker: CommandWorker) -> None:
        """Register the handlers of the engine's commands; before the worker starts."""
        worker.handle_direct(AdvanceOperation, self.engine.advance_operation)
        worker.handle(RemoveRemains, self.engine.remove_remains)

    async def start(self, bus: MessageBus) -> None:
        """Consume the steps' replies and the progress of their tasks."""
        await bus.consume_events("lcm-api.replies", REPLIES, self.engine.resume_operation)
        await bus.consume_events("lcm-api.progress", ["mgmt.task.progressed"], self.progress.store_event)


def lifecycle_parts(
    backends: Backends, *, outbox: Outbox, grants: ExternalGrants | None, packages: PackageCatalogue, vims: Vims
) -> LifecycleParts:
    """Return the parts. ``grants``: None if the local policy grants everything."""
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    engine = Engine(store=store, outbox=outbox, ring=ring, clock=clock, grants=grants)
    instances = Instances(store=store, outbox=outbox, engine=engine, packages=packages, ring=ring, clock=clock)
    acceptance = Acceptance(engine=engine, ring=ring, clock=clock)
    instantiate = Instantiate(instances=instances, engine=engine, packages=packages, vims=vims, acceptance=acceptance)
    return LifecycleParts(
        engine=engine,
        instances=instances,
        instantiate=instantiate,
        terminate=Terminate(instances=instances, engine=engine, packages=packages, acceptance=acceptance),
        tasks=Tasks.from_services(instances=instances, engine=engine, packages=packages, acceptance=acceptance),
        progress=Progress(store),
    )
