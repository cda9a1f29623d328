"""Has a VNF instance scaled or healed because a threshold was crossed, if the metadata of the threshold ask for that."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.automation.decisions import AutomaticOperations
from kubevnfm_lcm_api.automation.domain.ports import CrossedThreshold
from kubevnfm_lcm_api.automation.domain.trigger import Trigger

KEY: Final = "automation"
_PLACE: Final = f"metadata/{KEY}"
_ACTIONS: Final = ("SCALE_OUT", "SCALE_IN", "HEAL")
_BY_DIRECTION: Final = {"UP": "onUp", "DOWN": "onDown"}


class CrossedThresholds:
    """Acts on crossings. The same one twice is one trigger."""

    def __init__(self, automatic: AutomaticOperations) -> None:
        self._automatic = automatic

    async def act(self, crossing: CrossedThreshold) -> None:
        """Store what the metadata of the threshold ask for. Raises as `AutomaticOperations`; InvalidInput for malformed metadata."""
        wanted = crossing.metadata.get(KEY)
        if wanted is None:
            return
        if not isinstance(wanted, dict):
            raise InvalidInput(_PLACE, "an object with aspectId, onUp, onDown expected")
        action = wanted.get(name := _BY_DIRECTION[crossing.direction])
        if action is None:
            return
        if action not in _ACTIONS:
            raise InvalidInput(f"{_PLACE}/{name}", f"{', '.join(_ACTIONS)} expected")
        text = f"{crossing.metric} is {crossing.value:g}: the threshold {crossing.threshold_id} was crossed {crossing.direction}."
        trigger = Trigger("threshold", crossing.id, text)
        instance_id = crossing.object_instance_id
        if action == "HEAL":
            if crossing.sub_object_instance_id is None:
                raise InvalidInput(f"{_PLACE}/{name}", "HEAL expects a threshold about sub-objects: the VNFC is healed")
            await self._automatic.heal(instance_id, [crossing.sub_object_instance_id], trigger)
            return
        await self._automatic.scale(
            instance_id, _aspect(wanted), "SCALE_OUT" if action == "SCALE_OUT" else "SCALE_IN", trigger
        )


def _aspect(wanted: JsonMapping) -> str:
    aspect_id = wanted.get("aspectId")
    if not isinstance(aspect_id, str):
        raise InvalidInput(f"{_PLACE}/aspectId", "a text expected")
    return aspect_id
