"""Refuses a request for objects whose names others have already in the namespace of the VNF (multicloud.md MC-039)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from kubevnfm_clients.multicloud.dry_runs import DryRuns, PlacedOrder
from kubevnfm_clients.multicloud.errors import PlaceTaken
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import VnfmError

log = structlog.get_logger()

PlaceCheck = Callable[[str, ObjectsOrder], Awaitable[None]]
"""Raises Conflict if objects of others have the names of those of an instance."""


def place_check(dry_runs: DryRuns) -> PlaceCheck:
    """Return the check of the places of a VNF's objects, which raises PlaceTaken.

    It locks nothing, and it lets a request pass if the region cannot be asked: the step that applies the objects checks again.
    """

    async def check(vnf_instance_id: str, order: ObjectsOrder) -> None:
        facts = {name: getattr(order, name) for name in ObjectsOrder.model_fields}
        try:
            # Checked already, and it may have megabytes.
            placed = PlacedOrder.model_construct(**facts, vnf_instance_id=vnf_instance_id)
            taken = await dry_runs.taken_places(placed)
        except VnfmError as error:
            log.info("taken_places_unknown", vnf_instance_id=vnf_instance_id, reason=str(error))
            return
        if taken.count:
            more = f" and {taken.count - len(taken.objects)} more" if taken.count > len(taken.objects) else ""
            way_out = "delete or rename them, or name another namespace"
            raise PlaceTaken(
                f"existing objects do not belong to this VNF: {', '.join(taken.objects)}{more} ({way_out})"
            )

    return check
