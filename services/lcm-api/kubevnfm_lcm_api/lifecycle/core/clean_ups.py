"""The id of the internal operation that removes the remains of a FAILED one."""

from __future__ import annotations

from kubevnfm_kit.ids import derived_id


def clean_up_occurrence_id(occurrence_id: str) -> str:
    """Return the id of the clean-up of this FAILED occurrence: derived, so that it is found and never started twice."""
    return derived_id("clean-up", occurrence_id)
