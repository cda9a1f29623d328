"""The facts that the cause of an operation's state is found from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord


@dataclass(frozen=True)
class Situation:
    """All that a rule may read about one operation; pure data."""

    record: OccurrenceRecord
    tasks: Sequence[JsonObject]
    """As `Progress.operation_tasks` returns them, the least recently changed first."""
    now: datetime
    instance: InstanceRecord | None = None
    usual_s: Mapping[str, float] = field(default_factory=dict)
    """By the id of a step: how long its earlier runs took; none where that is not known."""
    vim_names: Mapping[str, str] = field(default_factory=dict)
    """By id, as far as they are known."""
    is_broker_away: bool = False
    """Whether this gateway has no connection to the message broker now."""
