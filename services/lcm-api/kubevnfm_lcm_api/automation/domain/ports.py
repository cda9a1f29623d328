"""The facts that automatic actions need from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class OpenAlarms(Protocol):
    """The list of alarms."""

    async def why_not(self, alarm_id: str) -> str | None:
        """Return why an alarm is no reason for a heal now, in one sentence; None if it is one."""
        ...


class TroubledVnfcs(Protocol):
    """The state of pods and virtual machines in their clusters."""

    async def in_trouble(self, instance_id: str) -> Sequence[str]:
        """Return the names of those of a VNF instance that do not work now. Raises OutsideUnavailable."""
        ...
