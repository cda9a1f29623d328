"""The credentials of a workload cluster that are sent again between operations (capi.md CR-062)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kubevnfm_kit.back_off import BackOff
from kubevnfm_sol.base import SolType

FIELD: Final = "internal/rotation"
"""Where an instance's document has it."""
_BACK_OFF: Final = BackOff(60.0, 3600.0)


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
        return now >= datetime.fromisoformat(self.until) + timedelta(seconds=_BACK_OFF.after(self.tries))
