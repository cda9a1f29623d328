"""Has a VNF instance scaled or healed because a threshold was crossed, if the metadata of the threshold ask for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.nearest import no_such

from kubevnfm_lcm_api.automation.decisions import AutomaticOperations
from kubevnfm_lcm_api.automation.domain.ports import CrossedThreshold
from kubevnfm_lcm_api.automation.domain.trigger import Trigger

KEY: Final = "automation"
_PLACE: Final = f"metadata/{KEY}"
_ACTIONS: Final = ("SCALE_OUT", "SCALE_IN", "HEAL")
_BY_DIRECTION: Final = {"UP": "onUp", "DOWN": "onDown"}
_ASPECT: Final = "aspectId"


@dataclass(frozen=True)
class _Wanted:
    """The request in the metadata of a threshold."""

    by_direction: Mapping[str, Literal["SCALE_OUT", "SCALE_IN", "HEAL"]]
    aspect_id: str


class CrossedThresholds:
    """Acts on crossings. The same one twice is one trigger."""

    def __init__(self, automatic: AutomaticOperations) -> None:
        self._automatic = automatic

    async def check(self, instance_id: str, metadata: Mapping[str, Any], *, is_of_vnfcs: bool) -> None:
        """Check what the metadata of a threshold ask for; ``is_of_vnfcs``: whether its values are those of VNFCs.

        Raises InvalidInput that names what can never be done, NotFound.
        """
        wanted = _read(metadata, is_of_vnfcs=is_of_vnfcs)
        if wanted is not None and wanted.aspect_id:
            await self._automatic.check_aspect(instance_id, wanted.aspect_id, f"{_PLACE}/{_ASPECT}")

    async def act(self, crossing: CrossedThreshold) -> None:
        """Store what the metadata of the threshold ask for. Raises as `AutomaticOperations`; InvalidInput for malformed metadata."""
        vnfc_id = crossing.sub_object_instance_id
        wanted = _read(crossing.metadata, is_of_vnfcs=vnfc_id is not None)
        action = None if wanted is None else wanted.by_direction.get(crossing.direction)
        if wanted is None or action is None:
            return
        text = f"{crossing.metric} is {crossing.value:g}: the threshold {crossing.threshold_id} was crossed {crossing.direction}."
        trigger = Trigger("threshold", crossing.id, text)
        instance_id = crossing.object_instance_id
        if action != "HEAL":
            await self._automatic.scale(instance_id, wanted.aspect_id, action, trigger)
        elif vnfc_id is not None:
            await self._automatic.heal(instance_id, [vnfc_id], trigger)


def _read(metadata: Mapping[str, Any], *, is_of_vnfcs: bool) -> _Wanted | None:
    """Return what metadata ask for; None: nothing. Raises InvalidInput."""
    if KEY not in metadata:
        return None
    given, known = metadata[KEY], (_ASPECT, *_BY_DIRECTION.values())
    if not isinstance(given, Mapping) or all(given.get(name) is None for name in _BY_DIRECTION.values()):
        raise InvalidInput(_PLACE, "an object with onUp or onDown, and aspectId, expected")
    for name in given:
        if name not in known:
            raise InvalidInput(f"{_PLACE}/{name[:100]}", no_such(name, known))
    by_direction = {}
    for direction, name in _BY_DIRECTION.items():
        if (action := given.get(name)) is None:
            continue
        if action not in _ACTIONS:
            raise InvalidInput(f"{_PLACE}/{name}", f"{', '.join(_ACTIONS)} expected")
        if action == "HEAL" and not is_of_vnfcs:
            raise InvalidInput(
                f"{_PLACE}/{name}", "HEAL expects a threshold about VNFCs: the one that was measured is healed"
            )
        by_direction[direction] = action
    aspect_id = given.get(_ASPECT, "")
    needs_aspect = any(action != "HEAL" for action in by_direction.values())
    if not isinstance(aspect_id, str) or (needs_aspect and not aspect_id):
        raise InvalidInput(f"{_PLACE}/{_ASPECT}", "a text expected")
    return _Wanted(by_direction, aspect_id)
