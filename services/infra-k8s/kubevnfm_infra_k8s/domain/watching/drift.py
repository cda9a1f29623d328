"""Compares the inventory of an instance with the objects that exist: which were deleted or changed by others (capi.md CR-121).

Objects are known by their metadata alone: no body of an object, and so no Secret, is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kubevnfm_events.common import DriftState
from kubevnfm_events.objects import DriftedObject, ObjectsDrift

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey, field_at, labels_of, uid_of
from kubevnfm_infra_k8s.domain.ownership import present_fields
from kubevnfm_infra_k8s.domain.release import Entry

Deviation = Literal["missing", "replaced", "changed"]

_MOST_NAMED: Final = 20
"""The objects that a mark names; others are counted."""
_MOST_IN_REASON: Final = 5
_SAID: Final[Mapping[Deviation, tuple[str, str]]] = {
    "missing": ("does not exist", "do not exist"),
    "replaced": ("is another one", "are other ones"),
    "changed": ("was changed by others", "were changed by others"),
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """The part of an object that is kept."""

    uid: str
    fields: Sequence[str]
    """`present_fields`."""
    instance: str
    """The VNF instance in its label."""
    is_going: bool
    """Whether its deletion has begun."""

    @classmethod
    def from_body(cls, body: Body) -> Sighting:
        """Return it for an object, of which the metadata are enough."""
        return cls(
            uid_of(body),
            present_fields(body),
            str(labels_of(body).get(INSTANCE_LABEL) or ""),
            bool(field_at(body, "metadata", "deletionTimestamp")),
        )


def is_compared(entry: Entry) -> bool:
    """Return whether the object is ours to compare: it was confirmed, and has not done its work, as a Job that has ended."""
    return bool(entry.uid) and not entry.is_complete


def judge(entry: Entry, seen: Sighting | None) -> Deviation | None:
    """Return what another party has done to an object; None if it is as we have left it.

    An object whose fields are not known (an earlier version has applied it) is judged by its existence.
    """
    if seen is None or (seen.is_going and seen.uid == entry.uid):
        return None if entry.may_be_gone else "missing"
    if seen.uid != entry.uid:
        return "replaced"
    return "changed" if entry.owned and entry.owned not in seen.fields else None


def drift_of(compared: Sequence[Entry], found: Mapping[ObjectKey, Deviation]) -> ObjectsDrift | None:
    """Return the drift; None if nothing was found. ``compared``: the entries that were judged."""
    if not found:
        return None
    counts = Counter(found.values())
    # Workloads of VDUs first: without them VNFCs are missing.
    ordered = sorted(
        (each for each in compared if each.key in found),
        key=lambda each: (each.vdu_id is None, found[each.key] == "changed"),
    )
    return ObjectsDrift(
        state=_state(counts, total=len(compared)),
        missing=counts["missing"],
        replaced=counts["replaced"],
        changed=counts["changed"],
        objects=tuple(_named(each.key, found[each.key]) for each in ordered[:_MOST_NAMED]),
    )


def _state(counts: Mapping[Deviation, int], *, total: int) -> DriftState:
    gone = counts["missing"] + counts["replaced"]
    if not gone:
        return "CHANGED"
    return "MISSING" if gone == total else "INCOMPLETE"


def _named(key: ObjectKey, what: Deviation) -> DriftedObject:
    return DriftedObject(kind=key.kind, namespace=key.namespace or None, name=key.name, what=what)


def reason_of(drift: ObjectsDrift | None) -> str:
    """Return one sentence for a person."""
    if drift is None:
        return "the objects exist as they were applied"
    counts: Mapping[Deviation, int] = {"missing": drift.missing, "replaced": drift.replaced, "changed": drift.changed}
    parts = [f"{count} {_SAID[what][count != 1]}" for what, count in counts.items() if count]
    named = [
        f"{each.kind} {f'{each.namespace}/' if each.namespace else ''}{each.name} ({each.what})"
        for each in drift.objects[:_MOST_IN_REASON]
    ]
    left = sum(counts.values()) - len(named)
    more = f" and {left} more" if left else ""
    return f"of the VNF's objects {', '.join(parts)}: {', '.join(named)}{more}"
