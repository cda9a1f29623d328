"""The handler that watches the Machines of workload clusters between operations (capi.md CR-119, CR-120)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.capi import ExpectedMachines, MachineFacts, MachinesChanged, MachinesFinding, WatchMachines
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.capi.machines import machine_facts
from kubevnfm_infra_k8s.domain.capi.watching import ClusterWatches
from kubevnfm_infra_k8s.domain.errors import UnknownKinds
from kubevnfm_infra_k8s.domain.ports import Clusters

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/infra-k8s"
_LOOK_EVERY_S: Final = 2.0
"""Between two looks at what the watches have seen; they continue meanwhile, and no worker is occupied."""


@dataclass(frozen=True)
class WatchHandler:
    """Answers WatchMachines. It stores nothing: lcm-api asks again after a while, so an answer that is lost is repeated.

    All commands and waits share one watch for each kind and management cluster, so that a look costs no request.
    """

    clusters: Clusters
    vims: VimDirectory
    watches: ClusterWatches
    bus: MessageBus
    clock: Clock

    async def watch_machines(self, delivery: Delivery) -> Verdict:
        """Publish what differs from what is expected; look again later if nothing does and there is time."""
        command = delivery.envelope.data
        assert isinstance(command, WatchMachines)
        deadline = delivery.envelope.deadline
        if deadline is not None and deadline <= self.clock.now():
            return Ack()
        try:
            findings = await self._findings(command)
        except VnfmError as error:
            # The VIM's own status shows that it does not answer.
            log.info("machines_not_watched", vim_id=command.vim.vim_id, reason=str(error))
            return Ack()
        if not findings:
            return Again(_LOOK_EVERY_S)
        log.info("machines_changed", vim_id=command.vim.vim_id, clusters=len(findings))
        await self.bus.publish(delivery.envelope.follow_up(MachinesChanged(findings=findings), source=SOURCE))
        return Ack()

    async def _findings(self, command: WatchMachines) -> tuple[MachinesFinding, ...]:
        vim = await self.vims.connection(command.vim)
        found: list[MachinesFinding] = []
        async with self.clusters.cluster(vim) as cluster:
            for one in command.expected:
                workload = one.cluster
                machines = await cluster.resource(workload.api_version, "Machine")
                if machines is None:
                    raise UnknownKinds([f"Machine in {workload.api_version}"])
                async with self.watches.viewing(
                    vim, cluster.endpoint, [machines], namespace=workload.namespace, name=workload.name
                ) as view:
                    present = machine_facts(view.objects(machines), one.vdus)
                if present != one.machines:
                    found.append(_finding(one, present))
        return tuple(found)


def _finding(expected: ExpectedMachines, present: tuple[MachineFacts, ...]) -> MachinesFinding:
    before, after = ({each.uid: each.name for each in machines} for machines in (expected.machines, present))
    return MachinesFinding(
        vnf_instance_id=expected.vnf_instance_id,
        revision=expected.revision,
        machines=present,
        added=tuple(name for uid, name in after.items() if uid not in before),
        removed=tuple(name for uid, name in before.items() if uid not in after),
    )
