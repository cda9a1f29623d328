"""The credentials of a workload cluster that are sent again between operations (capi.md CR-062)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kubevnfm_sol.base import SolType

FIELD: Final = "internal/rotation"
"""Where an instance's document has it."""
_FIRST_PAUSE_S: Final = 60.0
_LONGEST_PAUSE_S: Final = 3600.0
_MOST_DOUBLINGS: Final = 10
"""Further ones exceed the longest pause anyway."""


class Rotation(SolType):
    """One that runs, or that has failed and is repeated. It is stored in the instance before its command is sent."""

    id: str
    """The same for each try to send what is new in one version of the Secret, so that the receiver recognises a repeat."""
    until: str
    """RFC 3339: the command is not carried out later. After a failure: when that was known."""
    tries: int = 1
    is_refused: bool = False
    """Whether it began because the cluster refuses the credentials that its VIM has."""
    problem: str | None = None
    """Why it failed; None while it runs."""

    def seconds_left(self, now: datetime) -> float:
        """Return for how long it may still run; 0.0: it does not run."""
        if self.problem is not None:
            return 0.0
        return max((datetime.fromisoformat(self.until) - now).total_seconds(), 0.0)

    def may_begin_again(self, now: datetime) -> bool:
        """Return whether the next try is due; the pause doubles with each."""
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(self.tries - 1, _MOST_DOUBLINGS), _LONGEST_PAUSE_S)
        return now >= datetime.fromisoformat(self.until) + timedelta(seconds=pause_s)
