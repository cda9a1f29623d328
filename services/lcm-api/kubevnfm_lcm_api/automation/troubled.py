"""The pods and virtual machines of a VNF instance that do not work, from the inventory of the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_clients.multicloud.inventory import Inventory
from kubevnfm_clients.multicloud.object_health import health_of
from kubevnfm_kit.clock import Clock

_PAGE: Final = 500


class InventoryTroubles:
    """Reads them from the inventory."""

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory, self._clock = inventory, clock

    async def in_trouble(self, instance_id: str) -> Sequence[str]:
        """Return the names of the first ones that have a problem. Raises OutsideUnavailable."""
        page = await self._inventory.find({"vnf_id": instance_id, "ill": "true"}, limit=_PAGE)
        now = self._clock.now()
        return [each.name for each in page.items if health_of(each, now)[0] == "problem"]
