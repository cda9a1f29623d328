"""A fault: something wrong with one object now, for one reason. An alarm is the record of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kubevnfm_sol.faults import EventType, FaultyResourceInfo, PerceivedSeverity

from kubevnfm_lcm_api.lifecycle.core.instance import VnfFacts

FaultType = Literal[
    "callbacks-failing",
    "code-not-run",
    "commands-parked",
    "credentials-expiring",
    "disk-low",
    "machine-lost",
    "operation-failed",
    "quorum-at-risk",
    "resources-drifted",
    "service-away",
    "vim-error",
    "vim-unreachable",
    "workload-troubled",
]
"""An alarm's ``faultType``: stable."""
ObjectKind = Literal["vnf", "vim", "subscription", "service"]
_NO_FACTS: Final = VnfFacts()


@dataclass(frozen=True)
class ManagedObject:
    """The object that faults are of; an alarm's ``managedObjectId``."""

    kind: ObjectKind
    id: str
    facts: VnfFacts = field(default=_NO_FACTS, compare=False)
    """The facts of a VNF that filters of subscriptions select by."""


@dataclass(frozen=True)
class Fault:
    """A fault that an object has now."""

    type: FaultType
    severity: PerceivedSeverity
    event_type: EventType
    cause: str
    """``probableCause``: a slug of the table of causes, or of this table where that knows none."""
    details: tuple[str, ...]
    """Sentences for a person."""
    since: str
    """When it began, as far as is known: RFC 3339."""
    part: str = ""
    """The part of the object that it is of; empty: the whole object."""
    resource: FaultyResourceInfo | None = None
    root: str | None = None
    """The id of the alarm whose fault has caused this one."""
    is_root: bool = False
    """Whether faults of other objects follow from it."""

    def key(self, object_id: str) -> str:
        """Return what no two alarms have at a time that are not cleared."""
        return f"{object_id}/{self.type}/{self.part}"


@dataclass(frozen=True)
class Findings:
    """All faults of an object at one moment."""

    about: ManagedObject
    faults: Sequence[Fault] = ()
    undecided: frozenset[FaultType] = frozenset()
    """Types of which the state says nothing now: their alarms stay as they are."""
