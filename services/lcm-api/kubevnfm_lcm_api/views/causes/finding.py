"""The cause of an operation's state."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.evidence import Evidence, reports
from kubevnfm_lcm_api.views.causes.models import Cause
from kubevnfm_lcm_api.views.causes.situation import Situation
from kubevnfm_lcm_api.views.causes.wording import sentence

_UNNAMED: Final = "waits"
"""The slug of a wait for something that no rule knows."""


def cause_of(situation: Situation) -> Cause | None:
    """Return why the operation waits, has failed or is slow; None if it goes on well, or has ended so."""
    found = next(reports(situation), None)
    return None if found is None else _as_reported(found)


def _as_reported(found: Evidence) -> Cause:
    """Return the report itself as the cause: its code is in the tables of errors."""
    code = found.code or _UNNAMED
    return Cause(
        code=code,
        text=sentence(found.text),
        since=found.since,
        step=found.step.id if found.step is not None else None,
        node=found.node,
        isWait=found.is_wait,
        page=f"errors.md#{code}",
    )
