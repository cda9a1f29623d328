"""How the internal operation that removes a FAILED one's remains is found."""

from __future__ import annotations

from kubevnfm_kit.ids import derived_id


def clean_up_occurrence_id(occurrence_id: str) -> str:
    """Return the id of the clean-up of this FAILED occurrence."""
    return derived_id("clean-up", occurrence_id)
