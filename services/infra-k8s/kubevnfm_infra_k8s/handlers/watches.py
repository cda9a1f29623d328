"""The handler that watches workload clusters between operations: their Machines (capi.md CR-119, CR-120), and the Secrets
with their kubeconfigs (CR-062).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self, TypeVar

import structlog
from kubevnfm_bus.port import Ack, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import Envelope, Event, Message, VimConnection
from kubevnfm_events.capi import (
    ExpectedKubeconfig,
    ExpectedMachines,
    KubeconfigFinding,
    KubeconfigsChanged,
    MachineFacts,
    MachinesChanged,
    MachinesFinding,
    WatchKubeconfigs,
    WatchMachines,
)
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_infra_k8s.domain.capi.contract import NAME_LABEL
from kubevnfm_infra_k8s.domain.capi.machines import machine_facts
from kubevnfm_infra_k8s.domain.errors import Forbidden, UnknownKinds
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Clusters
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterView, ClusterWatches, MetadataOf

log = structlog.get_logger()

F = TypeVar("F", MachinesFinding, KubeconfigFinding)

SOURCE: Final = "/kubevnfm/infra-k8s"
_PAUSE_S: Final = 1.0
"""Between two comparisons: where many clusters are built, one of their objects changes all the time."""


@dataclass(frozen=True)
class WatchHandler:
    """Answers WatchMachines and WatchKubeconfigs. It stores nothing: lcm-api asks again after a while, so an answer that is
    lost is repeated.

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
        """Begin to watch Machines until the deadline; what differs from what is expected is published once."""
        command = delivery.envelope.data
        assert isinstance(command, WatchMachines)
        return self._begin(delivery, command.vim, lambda deadline: self._machines(command, deadline))

    async def watch_kubeconfigs(self, delivery: Delivery) -> Verdict:
        """Begin to watch kubeconfig Secrets until the deadline; those that were written since they were read are published once."""
        command = delivery.envelope.data
        assert isinstance(command, WatchKubeconfigs)
        return self._begin(delivery, command.vim, lambda deadline: self._kubeconfigs(command, deadline))

    def _begin(
        self, delivery: Delivery, vim: VimConnection, look: Callable[[datetime | None], Awaitable[Event | None]]
    ) -> Verdict:
        """Take the command at once.

        In one process its publisher waits for that: lcm-api's rounds, whose pause grows with their length, would otherwise
        stand still for many times the length of the watch.
        """
        deadline = delivery.envelope.deadline
        if deadline is None or deadline > self.clock.now():
            task = asyncio.create_task(
                self._watch(delivery.envelope, vim, look(deadline)), name=f"watch-{delivery.envelope.type}"
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return Ack()

    async def _watch(self, envelope: Envelope[Message], vim: VimConnection, look: Awaitable[Event | None]) -> None:
        """Publish what is found, once."""
        try:
            found = await look
            if found is not None:
                log.info("cluster_changed", type=found.type, vim_id=vim.vim_id)
                await self.bus.publish(envelope.follow_up(found, source=SOURCE))
        except VnfmError as error:
            # The VIM's own status shows that it does not answer.
            unless_said(error).info("cluster_not_watched", type=envelope.type, vim_id=vim.vim_id, reason=str(error))

    async def _machines(self, command: WatchMachines, deadline: datetime | None) -> MachinesChanged | None:
        """Return what differs from what is expected; None if nothing does until the deadline."""
        vim = await self.vims.connection(command.vim)
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
        async with self.watches.viewing(vim, endpoint, list(machines.values()), namespace="", name="") as first:
            views = [
                (
                    one,
                    machines[one.cluster.api_version],
                    first.beside(namespace=one.cluster.namespace, name=one.cluster.name),
                )
                for one in command.expected
            ]
            findings = await self._news(first, lambda: _differences(views), deadline)
        return MachinesChanged(findings=findings) if findings else None

    async def _kubeconfigs(self, command: WatchKubeconfigs, deadline: datetime | None) -> KubeconfigsChanged | None:
        """Return which Secrets were written; None if none was until the deadline."""
        vim, expected = await self.vims.connection(command.vim), command.expected
        async with self.clusters.cluster(vim) as cluster:
            secrets = await cluster.resource("v1", "Secret")
            endpoint = cluster.endpoint
        if secrets is None:
            raise UnknownKinds(["Secret in v1"])
        # The keys of a cluster's authorities have the label too, so the content of none is read.
        labelled = MetadataOf(secrets, NAME_LABEL)
        try:
            async with self.watches.viewing(vim, endpoint, [labelled], namespace="", name="") as first:
                views = [first.beside(namespace=one.cluster.namespace, name=one.cluster.name) for one in expected]

                def written() -> tuple[KubeconfigFinding, ...]:
                    bodies = [
                        view.named(labelled, _secret_of(one).name) for one, view in zip(expected, views, strict=True)
                    ]
                    return _written(expected, bodies)

                findings = await self._news(first, written, deadline)
        except Forbidden:
            # A token that may read single Secrets only: one look in each round.
            async with self.clusters.cluster(vim) as cluster:
                findings = _written(
                    expected, [await cluster.get_metadata(secrets, _secret_of(one)) for one in expected]
                )
        return KubeconfigsChanged(findings=findings) if findings else None

    async def _news(
        self, view: ClusterView, look: Callable[[], tuple[F, ...]], deadline: datetime | None
    ) -> tuple[F, ...]:
        """Return what ``look`` finds after a change of what the view shows; nothing at the deadline."""
        while not (found := look()):
            left_s = (deadline - self.clock.now()).total_seconds() if deadline is not None else 0.0
            if left_s <= 0:
                break
            if await view.change(within_s=left_s):
                await asyncio.sleep(min(_PAUSE_S, left_s))
        return found


def _written(expected: Sequence[ExpectedKubeconfig], secrets: Sequence[Body | None]) -> tuple[KubeconfigFinding, ...]:
    return tuple(
        KubeconfigFinding(vnf_instance_id=one.vnf_instance_id, revision=one.revision, resource_version=version)
        for one, secret in zip(expected, secrets, strict=True)
        # One that is gone has no credentials to send; Cluster API makes it again.
        if (version := str(field_at(secret, "metadata", "resourceVersion") or "")) not in ("", one.resource_version)
    )


def _secret_of(expected: ExpectedKubeconfig) -> ObjectKey:
    return ObjectKey("v1", "Secret", expected.cluster.namespace, f"{expected.cluster.name}-kubeconfig")


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
