"""The ids of the events about one VNF instance. Each event names the one before it, so that subscribers get them in order.

An id is derived from facts that a repetition of the same move finds again. If a crash loses an event, the repeated move
publishes it with the same id.
"""

from __future__ import annotations

from kubevnfm_kit.ids import derived_id
from kubevnfm_sol.lcm import TERMINAL, VnfLcmOpOcc

from kubevnfm_lcm_api.event_chain import EventRef


def creation_event(instance_id: str, at: str) -> EventRef:
    """Return the event of an instance's creation."""
    return EventRef(id=derived_id("news", instance_id, "created"), at=at)


def state_event(occ: VnfLcmOpOcc) -> EventRef:
    """Return the event of the state that an occurrence is in."""
    # After a crash the end is computed again, at a later time; subscribers must see one event.
    what = "end" if occ.operation_state in TERMINAL else occ.state_entered_time
    return EventRef(id=derived_id("news", occ.id, what), at=occ.state_entered_time)
