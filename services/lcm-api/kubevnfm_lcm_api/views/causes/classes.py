"""The cause of a failed operation as a class of which there are few: for metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.views.causes.finding import cause_of
from kubevnfm_lcm_api.views.causes.rules import TABLE
from kubevnfm_lcm_api.views.causes.situation import Situation

_KNOWN: Final = frozenset(rule.slug for rule in TABLE)
_OTHER: Final = "other"


def cause_class(record: OccurrenceRecord, now: datetime) -> str:
    """Return the code of a row of the table of causes; ``other`` if none fits what the operation itself reports."""
    cause = cause_of(Situation(record, (), now))
    return cause.code if cause is not None and cause.code in _KNOWN else _OTHER
