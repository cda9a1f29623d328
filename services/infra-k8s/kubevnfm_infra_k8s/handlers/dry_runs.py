"""Answers what an order would make of the objects of an instance, without making it (multicloud.md MC-033)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubevnfm_clients.multicloud.dry_runs import DryRunOrder, DryRunReport
from kubevnfm_csar.hooks import Occasion
from kubevnfm_events import Event
from kubevnfm_kit.ids import new_id
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.changing.dry_runs import DryRun, in_order
from kubevnfm_infra_k8s.handlers.frame import Handling

_NAME = "dry_run"


@dataclass(frozen=True)
class DryRunHandlers(Handling):
    """`kubevnfm_clients.multicloud.dry_runs.DryRuns`."""

    async def run(self, order: DryRunOrder) -> DryRunReport:
        """Render the objects, and have the API server judge them. Nothing is stored, here or there."""
        mine = order.vnf_instance_id
        context = StepContext(new_id(), _NAME, _NAME, 1, mine, None, 0, _published)
        handling = replace(self, sources=self.sources.of_dry_runs())
        async with handling.step(order, context, await self.releases.get(mine)) as step:
            planned = await step.planned(order)
            planned = replace(planned, objects=in_order(planned.objects))
            return await DryRun(step.cluster, planned, step.release, Occasion(order.occasion)).report(order.mode)


async def _published(event: Event) -> None:
    """Publish no progress: no operation is under way."""
