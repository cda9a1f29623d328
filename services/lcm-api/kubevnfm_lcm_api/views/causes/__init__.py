"""Why an operation waits, failed or is slow, in one sentence; and what one can do about it."""

from __future__ import annotations

from kubevnfm_lcm_api.views.causes.finding import cause_of
from kubevnfm_lcm_api.views.causes.models import Cause, CauseObject, Next
from kubevnfm_lcm_api.views.causes.next_tasks import next_of
from kubevnfm_lcm_api.views.causes.situation import Situation

__all__ = ["Cause", "CauseObject", "Next", "Situation", "cause_of", "next_of"]
