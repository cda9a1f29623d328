"""The facts that automatic actions need from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from kubevnfm_kit.json_types import JsonMapping


class OpenAlarms(Protocol):
    """The list of alarms."""

    async def is_own(self, alarm_id: str) -> bool:
        """Return whether kubevnfm itself has raised the alarm, and has not cleared it."""
        ...

    async def why_not(self, alarm_id: str) -> str | None:
        """Return why an alarm is no reason for a heal any more, in one sentence; None if it is one.

        Raises OutsideUnavailable if a heal cannot help now.
        """
        ...


class TroubledVnfcs(Protocol):
    """The state of pods and virtual machines in their clusters."""

    async def in_trouble(self, instance_id: str) -> Sequence[str]:
        """Return the names of those of a VNF instance that do not work now. Raises OutsideUnavailable."""
        ...


class CrossedThreshold(Protocol):
    """A crossing of a threshold about a VNF instance."""

    @property
    def id(self) -> str:
        """The same each time that this crossing is reported."""
        ...

    @property
    def threshold_id(self) -> str: ...

    @property
    def direction(self) -> Literal["UP", "DOWN"]: ...

    @property
    def metric(self) -> str: ...

    @property
    def value(self) -> float: ...

    @property
    def object_instance_id(self) -> str: ...

    @property
    def sub_object_instance_id(self) -> str | None: ...

    @property
    def metadata(self) -> JsonMapping: ...
