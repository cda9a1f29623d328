"""The handlers of heal of workload clusters: which Machines to replace, and the replacement of one (capi.md chapter 15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_events.capi import CheckMachines, MachineReplaced, MachinesChecked, ReplaceMachine
from kubevnfm_kit.clock import machine_now
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_infra_k8s.domain.capi.clusters import cluster_key
from kubevnfm_infra_k8s.domain.capi.contract import is_paused
from kubevnfm_infra_k8s.domain.capi.machines import facts_of, machine_facts
from kubevnfm_infra_k8s.domain.errors import ClusterLost, ClusterNotReady
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import PAUSED
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_wait import kinds_of, objects_now
from kubevnfm_infra_k8s.domain.workload_clusters.replacing import Replacement, machines_to_replace
from kubevnfm_infra_k8s.handlers.clusters import CapiHandlers
from kubevnfm_infra_k8s.handlers.frame import AGAIN_S, ENDING_S

_PAUSED_S: Final = 300.0
"""How long a paused cluster, whose Machines say nothing about their health, is awaited."""


@dataclass(frozen=True)
class MachineHandlers(CapiHandlers):
    """Replaces Machines of workload clusters."""

    async def check_machines(self, command: CheckMachines, context: StepContext) -> Outcome:
        """Find the Machines to replace, and check that the cluster can lose them."""
        workload = command.cluster
        progress = Progress("check_machines", context.publish)
        began = await self.start_times.beginning(context, command.vnf_instance_id)
        async with self.noting_silence(context), self.connected(command.vim) as cluster:
            kinds = await kinds_of(cluster, workload, await self.releases.get(command.vnf_instance_id))
            # A watch may lag behind, and what is chosen here is deleted.
            objects = await objects_now(cluster, kinds, workload)
        key = cluster_key(workload)
        if objects.cluster is None:
            raise ClusterLost([key])
        now = self.clock.now()
        if is_paused(objects.cluster):
            if now >= began.deadline(context.deadline, _PAUSED_S):
                raise ClusterNotReady(f"{key}: {PAUSED}")
            await progress.on(f"Cluster {workload.name}", PAUSED, done=0, total=len(objects.machines))
            return NotYet(ENDING_S)
        chosen = machines_to_replace(objects, command, Observation(now=machine_now(self.clock)))
        names = ", ".join(str(each["metadata"]["name"]) for each in chosen)
        said = f"to replace: {names}" if chosen else "all Machines are healthy, there is nothing to do"
        await progress.finished(f"Cluster {workload.name}: {said}", total=len(objects.machines))
        return Done(
            MachinesChecked(
                machines=machine_facts(objects.machines, command.vdus),
                chosen=tuple(facts_of(each, command.vdus) for each in chosen),
            )
        )

    async def replace_machine(self, command: ReplaceMachine, context: StepContext) -> Outcome:
        """Have a Machine replaced, and wait until the new one is ready; a repeated call only waits."""
        mine, machine = command.vnf_instance_id, command.machine
        began = await self.start_times.beginning(context, mine)
        progress = Progress("replace_machine", context.publish)
        async with (
            self.noting_silence(context),
            self.connected(command.vim) as cluster,
            self.viewed(command) as (view, kinds),
        ):
            run = Replacement(
                cluster=cluster,
                view=view,
                kinds=kinds,
                workload=command.cluster,
                machine=machine,
                known=frozenset(command.known),
                clock=self.clock,
                deadline=began.deadline(context.deadline, command.wait_timeout_s),
                progress=progress,
            )
            await run.begin(is_forced=command.is_forced)
            objects = await run.done(within_s=self.wait_s)
        if objects is None:
            return NotYet(AGAIN_S)
        await progress.finished(f"Machine {machine.namespace}/{machine.name} is replaced", total=1)
        return Done(MachineReplaced(machines=machine_facts(objects.machines, command.vdus)))
