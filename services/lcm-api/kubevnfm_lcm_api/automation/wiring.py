"""The classes behind automatic actions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from aiohttp import web
from kubevnfm_bus.port import Delivery, MessageBus, Verdict
from kubevnfm_clients.multicloud.inventory import Inventory
from kubevnfm_events import queues
from kubevnfm_events.faults import AlarmChanged
from kubevnfm_kit.run import background, repeat
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.automation import stored_actions
from kubevnfm_lcm_api.automation.alarms import AlarmHeals
from kubevnfm_lcm_api.automation.crossings import CrossedThresholds
from kubevnfm_lcm_api.automation.decisions import AutomaticOperations
from kubevnfm_lcm_api.automation.domain.action import COLLECTION
from kubevnfm_lcm_api.automation.domain.ports import OpenAlarms
from kubevnfm_lcm_api.automation.http.actions import add_to
from kubevnfm_lcm_api.automation.settings import AutomationSettings
from kubevnfm_lcm_api.automation.stored_actions import StoredActions
from kubevnfm_lcm_api.automation.troubled import InventoryTroubles
from kubevnfm_lcm_api.automation.work import ActionWork
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

OUTBOXES: Final = (COLLECTION,)
"""Collections whose documents carry messages to send."""
INDEXES: Final = stored_actions.INDEXES
_REMOVE_OLD_EVERY_S: Final = 3600.0


@dataclass(frozen=True)
class AutomationParts:
    """The part of lcm-api that heals and scales VNF instances automatically."""

    automatic: AutomaticOperations
    work: ActionWork
    actions: StoredActions
    alarms: AlarmHeals
    crossings: CrossedThresholds

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        add_to(app, self.automatic)

    async def start(self, bus: MessageBus) -> None:
        """Consume the events after which actions may continue."""
        await bus.consume_events(queues.AUTOMATION.name, queues.AUTOMATION.patterns, self._follow)

    async def _follow(self, delivery: Delivery) -> Verdict:
        if isinstance(delivery.envelope.data, AlarmChanged):
            return await self.alarms.follow(delivery)
        return await self.work.follow(delivery)


@asynccontextmanager
async def automation_parts(
    settings: AutomationSettings,
    backends: Backends,
    *,
    outbox: Outbox,
    on: RequestServices,
    alarms: OpenAlarms,
    inventory: Inventory,
) -> AsyncIterator[AutomationParts]:
    """Yield the parts; leaving the block ends the background work."""
    store, clock = backends.store, backends.clock
    actions = StoredActions(store, outbox, clock)
    work = ActionWork(
        on=on,
        actions=actions,
        store=store,
        alarms=alarms,
        troubled=InventoryTroubles(inventory, clock),
        rules=settings,
        clock=clock,
        is_alone=backends.owners.is_alone,
    )
    automatic = AutomaticOperations(on=on, actions=actions, work=work, rules=settings, clock=clock)
    old = partial(actions.remove_old, timedelta(days=settings.automatic_actions_days))
    async with background(automatic=work.run(), automatic_actions=repeat(old, every_s=_REMOVE_OLD_EVERY_S)):
        yield AutomationParts(automatic, work, actions, AlarmHeals(automatic, alarms), CrossedThresholds(automatic))
