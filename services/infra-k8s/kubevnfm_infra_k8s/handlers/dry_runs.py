"""Answers what an order would make of the objects of an instance, without making it (multicloud.md MC-033, MC-039)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog
from kubevnfm_clients.multicloud.dry_runs import DryRunOrder, DryRunReport, PlacedOrder, TakenPlaces
from kubevnfm_csar.hooks import Occasion
from kubevnfm_events import Event
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.changing.dry_runs import DryRun, in_order
from kubevnfm_infra_k8s.domain.changing.foreign import taken_in
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.planning.plan import plan
from kubevnfm_infra_k8s.domain.reading.existing import find
from kubevnfm_infra_k8s.handlers.frame import Handling, Step

log = structlog.get_logger()

_NAME: Final = "dry_run"
_MOST_NAMED: Final = 20


@dataclass(frozen=True)
class DryRunHandlers(Handling):
    """`kubevnfm_clients.multicloud.dry_runs.DryRuns`."""

    taken_places_s: float = 10.0
    """How long a request may wait for the region to say which places are taken."""

    async def run(self, order: DryRunOrder) -> DryRunReport:
        """Render the objects, and have the API server judge them. Nothing is stored, here or there."""
        mine = order.vnf_instance_id
        async with self._reading().step(order, _context(mine), await self.releases.get(mine)) as step:
            planned = await step.planned(order)
            planned = replace(planned, objects=in_order(planned.objects))
            return await DryRun(step.cluster, planned, step.release, Occasion(order.occasion)).report(order.mode)

    async def taken_places(self, order: PlacedOrder) -> TakenPlaces:
        """Read what is in the places of the objects. This reserves nothing: the step that applies them checks again.

        Whatever keeps this from an answer is left to that step, which has the time and says it.
        """
        mine = order.vnf_instance_id
        try:
            async with (
                asyncio.timeout(self.taken_places_s),
                self._reading().step(order, _context(mine), await self.releases.get(mine)) as step,
            ):
                found = await _taken(step, order)
        except (VnfmError, TimeoutError) as error:
            log.info("taken_places_unknown", vnf_instance_id=mine, reason=type(error).__name__)
            return TakenPlaces()
        return TakenPlaces(objects=tuple(str(key) for key in found[:_MOST_NAMED]), count=len(found))

    def _reading(self) -> DryRunHandlers:
        return replace(self, sources=self.sources.of_dry_runs())


async def _taken(step: Step, order: PlacedOrder) -> Sequence[ObjectKey]:
    """Return the objects of others in the namespace of an order. Those of charts are known when the operation renders them."""
    namespace = order.namespace
    if namespace is None or order.order_artifact is None:
        return ()
    try:
        if await find(step.cluster, ObjectKey("v1", "Namespace", "", namespace)) is None:
            return ()
    except Forbidden:
        log.debug("namespace_unreadable", namespace=namespace)
    manifests = await step.ordered(order, with_charts=False)
    # Their places do not depend on VDUs, which may be workloads of a chart, and on links.
    placed = order.model_copy(update={"vdus": (), "networks": ()})
    mine, operation_id = step.release.vnf_instance_id, step.context.operation_id
    planned = await plan(placed, manifests, step.cluster, vnf_instance_id=mine, operation_id=operation_id)
    return await taken_in(step.cluster, step.handling.releases, planned.objects, step.release, namespace)


def _context(vnf_instance_id: str) -> StepContext:
    return StepContext(new_id(), _NAME, _NAME, 1, vnf_instance_id, None, 0, _published)


async def _published(event: Event) -> None:
    """Publish no progress: no operation is under way."""
