"""Identifiers: random ones, and ones that are derived from facts."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid4, uuid5


def new_id() -> str:
    """Return a random UUID (RFC 4122, version 4)."""
    return str(uuid4())


def derived_id(*facts: str) -> str:
    """Return the UUID (version 5) of these facts: the same facts, the same id."""
    return str(uuid5(NAMESPACE_URL, "kubevnfm:" + "|".join(facts)))
