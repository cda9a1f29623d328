"""The parts of other subjects that webhooks need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from kubevnfm_lcm_api.faults.domain.external import ExternalAlert

Outcome = Literal["accepted", "refused", "failed"]
Count = Callable[[str, Outcome, int], None]
"""Counts so many alerts of a path."""


class Alarms(Protocol):
    """The list of alarms."""

    async def follow(self, alert: ExternalAlert) -> None:
        """Have the list agree with an alert; the same twice changes nothing. Raises NotFound, StoreUnavailable."""
        ...
