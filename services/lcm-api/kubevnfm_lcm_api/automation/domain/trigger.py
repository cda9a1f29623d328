"""The fact that asks for an automatic operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

TriggerKind = Literal["alarm", "threshold", "auto-healing", "auto-scaling", "server-notification"]
REPEATED: Final[frozenset[TriggerKind]] = frozenset({"auto-healing", "auto-scaling", "server-notification"})
"""The kinds whose senders repeat a fact as long as it lasts. The others are reported once."""


@dataclass(frozen=True)
class Trigger:
    """The fact that asks for an automatic operation."""

    kind: TriggerKind
    id: str
    """The id of the fact, for example of the alarm: a trigger with the same kind and id is the same one, until its action has ended and
    the cool-down has passed."""
    text: str
    """One sentence for a person, without secrets."""
