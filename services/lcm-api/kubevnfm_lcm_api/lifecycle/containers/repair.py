"""``additionalParams.repair`` of a heal: what others have deleted or changed is applied again (capi.md CR-121)."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import HealVnfRequest

from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, REPAIR, flag

FORCE: Final = "force"
_PLACE: Final = f"additionalParams/{REPAIR}"


def asks_for_repair(request: HealVnfRequest) -> bool:
    """Return whether the request asks for a repair. Raises InvalidInput; Unprocessable for what contradicts it."""
    given = request.additional_params
    if not flag(given, REPAIR):
        return False
    if request.vnfc_instance_id:
        raise Unprocessable(_PLACE, "true repairs the whole VNF: leave it or vnfcInstanceId out")
    for name in (ALL, FORCE):
        if flag(given, name):
            raise Unprocessable(_PLACE, f"true replaces nothing, and {name} is true: leave one of them out")
    return True
