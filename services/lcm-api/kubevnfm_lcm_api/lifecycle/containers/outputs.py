"""Outputs of a CNF whose package has an order (multicloud.md MC-138): those of a request, over those of the order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.outputs import MOST_OUTPUTS, OUTPUTS, merged_outputs, output_faults, read_output
from kubevnfm_events.outputs import WantedOutput
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_pointer import escaped

from kubevnfm_lcm_api.lifecycle.core import request_parameters

_MOST_FAULTS: Final = 100
_TOO_MANY: Final = f"at most {MOST_OUTPUTS} outputs expected, with those of the order"


async def wanted_outputs(
    artifacts: ArtifactOrder, parameters: Mapping[str, Any], bodies: Sequence[object], *, namespace: str
) -> tuple[WantedOutput, ...]:
    """Return the outputs of additionalParams and of the order. Raises Unprocessable naming all wrong places.

    ``bodies``: the objects of the artifacts; ``namespace``: that of the CNF.
    """
    given = _requested(parameters.get(request_parameters.OUTPUTS, {}))
    if not given and not artifacts.outputs:
        return ()
    found = merged_outputs(artifacts, given)
    if len(found) > MOST_OUTPUTS:
        raise Unprocessable(OUTPUTS, _TOO_MANY)
    if artifacts.charts:
        # The objects of charts are known to infra-k8s alone, which checks before it applies anything.
        return found

    def check() -> None:
        faults = list(output_faults(bodies, artifacts, given, namespace=namespace))
        if faults:
            raise Unprocessable(*faults[0], *faults[1:_MOST_FAULTS])

    # In a thread: a set may have very many objects.
    await asyncio.to_thread(check)
    return found


def _requested(given: object) -> Mapping[str, WantedOutput]:
    if not isinstance(given, Mapping):
        raise Unprocessable(OUTPUTS, "an object expected")
    if len(given) > MOST_OUTPUTS:
        raise Unprocessable(OUTPUTS, _TOO_MANY)
    found: dict[str, WantedOutput] = {}
    wrong: list[tuple[str, str]] = []
    for name, each in given.items():
        wanted, faults = read_output(name, each)
        wrong += [(f"{OUTPUTS}/{escaped(str(name))}{path}", reason) for path, reason in faults]
        if wanted is not None:
            found[name] = wanted
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:_MOST_FAULTS])
    return found
