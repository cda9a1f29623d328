"""The fact that asks for an automatic operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TriggerKind = Literal["alarm", "threshold", "auto-healing", "auto-scaling", "server-notification"]


@dataclass(frozen=True)
class Trigger:
    """The fact that asks for an automatic operation."""

    kind: TriggerKind
    id: str
    """The id of the fact, for example of the alarm: a trigger with the same kind and id is the same one."""
    text: str
    """One sentence for a person, without secrets."""
