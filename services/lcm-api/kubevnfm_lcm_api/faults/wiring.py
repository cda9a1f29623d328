"""The classes behind alarms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from aiohttp import web
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.multicloud.inventory import Inventory
from kubevnfm_clients.ports import Vims
from kubevnfm_events import queues
from kubevnfm_kit.run import background, repeat
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.alarm_marks import EXTERNAL_OBJECT
from kubevnfm_lcm_api.faults import alarms
from kubevnfm_lcm_api.faults.alarms import Alarms
from kubevnfm_lcm_api.faults.external import ExternalAlarms
from kubevnfm_lcm_api.faults.http.alarms import add_to
from kubevnfm_lcm_api.faults.settings import FaultSettings
from kubevnfm_lcm_api.faults.watch import FaultWatch, SeenServices

OUTBOXES = (alarms.COLLECTION,)
"""Collections whose documents carry messages to send."""
INDEXES = {
    alarms.COLLECTION: [
        Index(["alarmRaisedTime"]),
        Index(["managedObjectId", alarms.STATE]),
        Index(["alarmClearedTime"]),
        Index([alarms.OPEN], unique=True),
        Index([alarms.ROOT], sparse=True),
        Index([alarms.HEARD]),
        Index([EXTERNAL_OBJECT]),
        Index([alarms.STATE, "alarmRaisedTime"]),
        Index([alarms.STATE, "perceivedSeverity", "alarmRaisedTime"]),
    ]
}
_FIRST_ROUND_AFTER_S: Final = 10.0
"""The other services have started then, too."""
_REMOVE_OLD_EVERY_S: Final = 3600.0


@dataclass(frozen=True)
class FaultParts:
    """The part of lcm-api that has the list of alarms."""

    alarms: Alarms
    watch: FaultWatch
    external: ExternalAlarms

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        add_to(app, self.alarms)

    async def start(self, bus: MessageBus) -> None:
        """Consume the events after which alarms are raised or cleared."""
        await bus.consume_events(queues.FAULTS.name, queues.FAULTS.patterns, self.watch.follow)


@asynccontextmanager
async def fault_parts(
    settings: FaultSettings,
    backends: Backends,
    *,
    outbox: Outbox,
    vims: Vims,
    inventory: Inventory,
    services: SeenServices,
) -> AsyncIterator[FaultParts]:
    """Yield the parts; leaving the block ends the background work."""
    store, clock = backends.store, backends.clock
    listed = Alarms(store=store, outbox=outbox, clock=clock)
    lost_after = timedelta(seconds=settings.external_alarm_lost_after_s) or None
    external = ExternalAlarms(store=store, alarms=listed, clock=clock, lost_after=lost_after)
    watch = FaultWatch(store=store, alarms=listed, vims=vims, inventory=inventory, services=services, clock=clock)
    rounds = backends.rounds("faults", settings.faults_every_s)

    async def look() -> None:
        await asyncio.sleep(min(_FIRST_ROUND_AFTER_S, settings.faults_every_s))
        await rounds.repeat(watch.look)

    old = partial(listed.remove_old, timedelta(days=settings.cleared_alarms_days))
    async with background(
        faults=look(),
        # After a restart, monitoring systems have the same time to repeat what they report.
        lost_alarms=repeat(
            external.clear_lost, every_s=settings.faults_every_s, after_s=settings.external_alarm_lost_after_s
        ),
        cleared_alarms=repeat(old, every_s=_REMOVE_OLD_EVERY_S),
    ):
        yield FaultParts(listed, watch, external)
