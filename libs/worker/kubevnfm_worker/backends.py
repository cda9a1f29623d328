"""The base of every service as one value: a wiring receives it and adds its own classes."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from aiohttp import web
from kubevnfm_bus.port import MessageBus
from kubevnfm_events.services import ServiceReported
from kubevnfm_kit.clock import Clock, SteadyClock
from kubevnfm_kit.health import add_health
from kubevnfm_kit.http import serving
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.metrics import Metrics, add_metrics
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.request_metrics import RequestMetrics
from kubevnfm_kit.tls import ServerTls
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Index

from kubevnfm_worker.certificates import certificates_part
from kubevnfm_worker.health import Health
from kubevnfm_worker.part_metrics import show_parts
from kubevnfm_worker.parts import broker_part, disk_part, parked_part, sandbox_part, store_part
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.reports import Process
from kubevnfm_worker.round_metrics import COUNT_EVERY_S, RoundMetrics, StoredCounts, count_stored
from kubevnfm_worker.rounds import Rounds
from kubevnfm_worker.suspects import Suspects
from kubevnfm_worker.worker import CommandWorker

_PARKED: Final = "parkedCommands"


@dataclass(frozen=True)
class Backends:
    """The bus, the database, the key ring and the clock of a service."""

    bus: MessageBus
    store: DocumentStore
    key_ring: KeyRing
    clock: Clock = field(default_factory=SteadyClock)
    owners: Owners = field(default_factory=Owners)
    """Names the owners of the leases that this process takes."""
    states: dict[str, object] = field(default_factory=dict)
    """Further states for ``/health/ready``, by name; they do not make the service unready."""
    suspects: Suspects = field(default_factory=Suspects)
    """Shared by all workers of the process: a command of one service ends all of them."""
    _parked: dict[str, Sequence[JsonObject]] = field(default_factory=dict)
    """By service."""

    sockets: Mapping[tuple[str, int], socket.socket] = field(default_factory=dict)
    """Sockets that have their address already, by host and port; the listener of that address takes over its socket."""
    metrics: Metrics = field(default_factory=Metrics)
    """The registry of the process."""
    shows_metrics: bool = True
    """Whether each listener has ``/metrics``: not in one process, whose gateway shows them."""
    process: Process = field(default_factory=Process)
    """The process that all of this belongs to."""

    @cached_property
    def _rounds(self) -> RoundMetrics:
        return RoundMetrics(self.metrics)

    @cached_property
    def health(self) -> Health:
        """The parts of this process: what ``/health/ready`` and its reports show."""
        parts = (
            store_part(self.store),
            broker_part(self.bus),
            disk_part(self.process.folders),
            sandbox_part(self.states),
            parked_part(self._parked.values),
            certificates_part(self.process.certificates, self.clock),
        )
        return Health(self.clock, parts)

    async def report(self, *, has_ended: bool = False) -> ServiceReported:
        """Return the state of this process for the other processes: what it lacks, and whether it can work without that."""
        if has_ended:
            return self.process.report((), has_ended=True)  # at once, also without a database
        return self.process.report(await self.health.troubles(), has_ended=False)

    async def ensure_indexes(self, indexes: Mapping[str, Sequence[Index]]) -> None:
        """Create the indexes of each collection that are missing. Raises StoreUnavailable."""
        for collection, wanted in indexes.items():
            await self.store.ensure_indexes(collection, wanted)

    def worker(self, service: str, *, lease_s: float, concurrency: int = 64, layer: str = "") -> CommandWorker:
        """Return a worker for the service's commands; not started. The arguments are those of CommandWorker."""
        return CommandWorker(
            service=service,
            bus=self.bus,
            store=self.store,
            key_ring=self.key_ring,
            lease_s=lease_s,
            concurrency=concurrency,
            layer=layer,
            clock=self.clock,
            suspects=self.suspects,
            owners=self.owners,
            show_parked=self._show_parked,
            metrics=self.metrics,
        )

    def relay(self, collections: Sequence[str]) -> OutboxRelay:
        """Return the relay of these collections' outboxes; entering it starts it."""
        return OutboxRelay(
            self.store,
            self.bus,
            collections=collections,
            clock=self.clock,
            owners=self.owners,
            metrics=self.metrics,
        )

    def rounds(self, name: str, every_s: float) -> Rounds:
        """Return the rounds of a kind of work, of which each is done by one of the processes."""
        return Rounds(self.store, self.clock, name, every_s, self.owners, self._rounds.ended)

    def count_stored(self, name: str, counted: Sequence[StoredCounts]) -> None:
        """Have one of the processes show gauges of what is stored; ``name`` is stored, as that of rounds."""
        count_stored(self.metrics, Rounds(self.store, self.clock, name, COUNT_EVERY_S, self.owners), counted)

    def _show_parked(self, service: str, parked: Sequence[JsonObject]) -> None:
        """Show at ``/health/ready`` which commands are not handled any more. The service is ready all the same."""
        self._parked[service] = parked
        shown = [{"service": name, **one} for name, found in self._parked.items() for one in found]
        if shown:
            self.states[_PARKED] = shown
        else:
            self.states.pop(_PARKED, None)

    @asynccontextmanager
    async def serving(
        self, app: web.Application, service: str, *, host: str, port: int, tls: ServerTls | None
    ) -> AsyncIterator[int]:
        """Serve the application of the service with the health endpoints and ``/metrics`` added, and count its requests.

        Yield the port; leaving closes it.
        """
        add_health(app, self.health.parts, self.states)
        if self.shows_metrics:
            show_parts(self.metrics, self.health.parts)
            add_metrics(app, self.metrics)
        RequestMetrics(self.metrics, service).add_to(app)
        async with serving(app, host=host, port=port, bound=self.sockets.get((host, port)), tls=tls) as listening:
            yield listening
