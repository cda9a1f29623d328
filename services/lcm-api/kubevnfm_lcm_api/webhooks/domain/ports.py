"""The parts of other subjects that webhooks need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.faults.domain.external import ExternalAlert

Outcome = Literal["accepted", "refused", "failed"]
Count = Callable[[str, Outcome, int], None]
"""Counts so many alerts of a path."""


class Alarms(Protocol):
    """The list of alarms."""

    async def follow(self, alert: ExternalAlert) -> None:
        """Have the list agree with an alert; the same twice changes nothing. Raises NotFound, StoreUnavailable."""
        ...


class Measured(Protocol):
    """PM jobs and thresholds."""

    async def report(
        self,
        *,
        job_id: str,
        metric: str,
        object_instance_id: str,
        sub_object_instance_id: str | None,
        value: float | str,
        at: datetime,
    ) -> None:
        """Store a value for the present report of a job. Raises NotFound, InvalidInput, Conflict, StoreUnavailable."""
        ...

    async def crossing(
        self,
        *,
        threshold_id: str,
        metric: str,
        object_instance_id: str,
        sub_object_instance_id: str | None,
        value: float | str,
        at: datetime,
    ) -> None:
        """Compare a value with a threshold. Raises NotFound, InvalidInput, StoreUnavailable."""
        ...


class Automatic(Protocol):
    """Operations without a request of a caller. The same trigger twice has one."""

    async def heal(self, instance_id: str, vnfc_ids: Sequence[str], trigger: Trigger) -> None:
        """Store that VNFCs (vnfcInfo) are to be healed. Raises NotFound, Conflict, InvalidInput, StoreUnavailable."""
        ...

    async def scale(
        self, instance_id: str, aspect_id: str, direction: Literal["SCALE_OUT", "SCALE_IN"], trigger: Trigger
    ) -> None:
        """Store that an aspect is to be scaled by a step. Raises NotFound, Conflict, InvalidInput, StoreUnavailable."""
        ...
