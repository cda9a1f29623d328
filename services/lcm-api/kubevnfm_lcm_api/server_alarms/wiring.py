"""The classes behind registrations of servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import Vims
from kubevnfm_events import queues
from kubevnfm_kit.run import background
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.due import DUE, DueWork
from kubevnfm_lcm_api.server_alarms.notifier import Notifier
from kubevnfm_lcm_api.server_alarms.record import COLLECTION
from kubevnfm_lcm_api.server_alarms.work import ServerAlarms, notifier_of

INDEXES = {COLLECTION: [Index([DUE])]}


@dataclass(frozen=True)
class ServerAlarmParts:
    """The part of lcm-api that registers servers."""

    alarms: ServerAlarms

    async def start(self, bus: MessageBus) -> None:
        """Consume the events after which servers may have changed."""
        await bus.consume_events(queues.SERVER_ALARMS.name, queues.SERVER_ALARMS.patterns, self.alarms.follow)


@asynccontextmanager
async def server_alarm_parts(
    backends: Backends, *, vims: Vims, session: aiohttp.ClientSession, root: str
) -> AsyncIterator[ServerAlarmParts]:
    """Yield the parts; leaving the block ends the work. ``session``: for addresses that requests name."""
    woken = asyncio.Event()
    alarms = ServerAlarms(
        store=backends.store,
        vims=vims,
        notifier=Notifier(session),
        ring=backends.key_ring,
        clock=backends.clock,
        root=root,
        wake=woken.set,
    )
    work = DueWork(backends.store, backends.clock, COLLECTION, alarms.bring, woken, notifier_of)
    async with background(server_alarms=work.run()):
        yield ServerAlarmParts(alarms)
