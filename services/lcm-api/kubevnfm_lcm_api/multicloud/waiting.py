"""Waits for the end of an operation (multicloud.md MC-004)."""

from __future__ import annotations

import asyncio
from typing import Final

from kubevnfm_kit.back_off import BackOff
from kubevnfm_sol.lcm import TERMINAL, OperationState
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences

_FIRST_S: Final = 0.05
_LONGEST_S: Final = 1.0
_RESTING: Final = frozenset({*TERMINAL, OperationState.FAILED_TEMP})


async def ended(store: DocumentStore, occurrence_id: str, wait_s: float) -> OperationState | None:
    """Return the state in which an operation has ended or rests; None if it runs after this time.

    Other processes run operations too, so the store is asked: less and less often.
    """
    loop, looks = asyncio.get_running_loop(), 0
    until, pauses = loop.time() + wait_s, BackOff(_FIRST_S, _LONGEST_S)
    while (left_s := until - loop.time()) > 0:
        stored = await store.get(occurrences.COLLECTION, occurrence_id)
        state = None if stored is None else OperationState(stored.body["operationState"])
        if state in _RESTING:
            return state
        looks += 1
        await asyncio.sleep(min(pauses.after(looks), left_s))
    return None
