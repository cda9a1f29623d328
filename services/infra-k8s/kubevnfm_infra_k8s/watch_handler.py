"""The handler that watches the Machines of workload clusters between operations (capi.md CR-119, CR-120)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

import structlog
from kubevnfm_bus.port import Ack, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import Envelope, Message
from kubevnfm_events.capi import ExpectedMachines, MachineFacts, MachinesChanged, MachinesFinding, WatchMachines
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.capi.machines import machine_facts
from kubevnfm_infra_k8s.domain.capi.watching import ClusterView, ClusterWatches
from kubevnfm_infra_k8s.domain.errors import UnknownKinds
from kubevnfm_infra_k8s.domain.objects import Resource
from kubevnfm_infra_k8s.domain.ports import Clusters

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/infra-k8s"
_PAUSE_S: Final = 1.0
"""Between two comparisons: where many clusters are built, one of their objects changes all the time."""


@dataclass(frozen=True)
class WatchHandler:
    """Answers WatchMachines. It stores nothing: lcm-api asks again after a while, so an answer that is lost is repeated.

    All commands and waits share one watch for each kind and management cluster, so that a comparison costs no request.
    """

    clusters: Clusters
    vims: VimDirectory
    watches: ClusterWatches
    bus: MessageBus
    clock: Clock
    _running: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Self]:
        """Yield the handler; leaving ends all watches."""
        try:
            yield self
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def is_watching(self) -> bool:
        """Whether a watch has not come to its end."""
        return bool(self._running)

    async def watch_machines(self, delivery: Delivery) -> Verdict:
        """Begin to watch until the deadline.

        The command is taken at once. In one process its publisher waits for that: lcm-api's rounds, whose pause grows with
        their length, would otherwise stand still for many times the length of the watch.
        """
        command, deadline = delivery.envelope.data, delivery.envelope.deadline
        assert isinstance(command, WatchMachines)
        if deadline is None or deadline > self.clock.now():
            task = asyncio.create_task(self._watch(delivery.envelope, command, deadline), name="watch-machines")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return Ack()

    async def _watch(self, envelope: Envelope[Message], command: WatchMachines, deadline: datetime | None) -> None:
        """Publish what differs from what is expected, once; end at the deadline without."""
        try:
            findings = await self._findings(command, deadline)
            if findings:
                log.info("machines_changed", vim_id=command.vim.vim_id, clusters=len(findings))
                await self.bus.publish(envelope.follow_up(MachinesChanged(findings=findings), source=SOURCE))
        except VnfmError as error:
            # The VIM's own status shows that it does not answer.
            log.info("machines_not_watched", vim_id=command.vim.vim_id, reason=str(error))

    async def _findings(self, command: WatchMachines, deadline: datetime | None) -> tuple[MachinesFinding, ...]:
        vim = await self.vims.connection(command.vim)
        async with AsyncExitStack() as stack:
            async with self.clusters.cluster(vim) as cluster:
                kinds = {
                    version: await cluster.resource(version, "Machine")
                    for version in sorted({each.cluster.api_version for each in command.expected})
                }
                endpoint = cluster.endpoint
            machines: dict[str, Resource] = {}
            for version, found in kinds.items():
                if found is None:
                    raise UnknownKinds([f"Machine in {version}"])
                machines[version] = found
            first = await stack.enter_async_context(
                self.watches.viewing(vim, endpoint, list(machines.values()), namespace="", name="")
            )
            views = [
                (
                    one,
                    machines[one.cluster.api_version],
                    first.beside(namespace=one.cluster.namespace, name=one.cluster.name),
                )
                for one in command.expected
            ]
            while not (findings := _differences(views)):
                left_s = (deadline - self.clock.now()).total_seconds() if deadline is not None else 0.0
                if left_s <= 0:
                    break
                if await first.change(within_s=left_s):
                    await asyncio.sleep(min(_PAUSE_S, left_s))
            return findings


def _differences(views: Sequence[tuple[ExpectedMachines, Resource, ClusterView]]) -> tuple[MachinesFinding, ...]:
    present = [(one, machine_facts(view.objects(machines), one.vdus)) for one, machines, view in views]
    return tuple(_finding(one, found) for one, found in present if found != one.machines)


def _finding(expected: ExpectedMachines, present: tuple[MachineFacts, ...]) -> MachinesFinding:
    before, after = ({each.uid: each.name for each in machines} for machines in (expected.machines, present))
    return MachinesFinding(
        vnf_instance_id=expected.vnf_instance_id,
        revision=expected.revision,
        machines=present,
        added=tuple(name for uid, name in after.items() if uid not in before),
        removed=tuple(name for uid, name in before.items() if uid not in after),
    )
