"""A fault: something wrong with one object now, for one reason. An alarm is the record of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from kubevnfm_sol.faults import EventType, FaultyResourceInfo, PerceivedSeverity

from kubevnfm_lcm_api.lifecycle.core.instance import VnfFacts

FaultType = Literal[
    "callbacks-failing",
    "certificate-expiring",
    "code-not-run",
    "commands-parked",
    "credentials-expiring",
    "disk-low",
    "machine-lost",
    "measurement-source-away",
    "node-not-ready",
    "operation-failed",
    "quorum-at-risk",
    "resources-drifted",
    "service-away",
    "vim-error",
    "vim-unreachable",
    "watch-stale",
    "workload-troubled",
]
"""An alarm's ``faultType``: stable."""
ObjectKind = Literal["vnf", "vim", "subscription", "service", "source"]
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

    type: str
    """A `FaultType`; of a fault that a monitoring system has reported: its text."""
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
    vnfc_ids: tuple[str, ...] = ()
    """The VNFCs (vnfcInfo) that it concerns, as far as a monitoring system has named them."""
    fingerprint: str | None = None
    """The alert of a monitoring system that reports it; None: the state of the object shows it."""

    def key(self, object_id: str) -> str:
        """Return what no two alarms have at a time that are not cleared."""
        if self.fingerprint is not None:
            return external_key(object_id, self.fingerprint)
        return f"{object_id}/{self.type}/{self.part}"


def external_key(object_id: str, fingerprint: str) -> str:
    """Return the key of the alarm that an alert of a monitoring system has raised; no `FaultType` is in it."""
    return f"{object_id}/external/{fingerprint}"


@dataclass(frozen=True)
class Findings:
    """All faults of an object at one moment."""

    about: ManagedObject
    faults: Sequence[Fault] = ()
    undecided: frozenset[FaultType] = frozenset()
    """Types of which the state says nothing now: their alarms stay as they are."""
    is_gone: bool = False
    """Whether the object does not exist any more: then alarms of monitoring systems about it are cleared, too."""
    undecided_until: datetime | None = None
    """If given, such alarms stay only if their fault has begun since."""
