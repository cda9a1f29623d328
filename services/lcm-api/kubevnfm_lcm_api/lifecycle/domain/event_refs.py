"""The chain of what is told about one VNF instance, or one VNF package: each event names the one before it, so that order
can be kept.

The ids of an instance's are made of facts that a repetition of the same move finds again: the event that a crash lost is the same one
when it is told after all.
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
    # The end may be computed twice, at different times; it is one event.
    what = "end" if occ.operation_state in TERMINAL else occ.state_entered_time
    return EventRef(id=derived_id("news", occ.id, what), at=occ.state_entered_time)
