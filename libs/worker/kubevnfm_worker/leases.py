"""Leases in documents: their ends, and the condition under which another process may take one over."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubevnfm_kit.clock import rfc3339
from kubevnfm_store.query import AnyOf, Compare, Op


def lease_end(now: datetime, length_s: float) -> str:
    """Return the stored form of the end of a lease that begins now."""
    return rfc3339(now + timedelta(seconds=length_s))


def lease_is_over(path: str, now: datetime, length_s: float) -> AnyOf:
    """Return the condition on the stored end at ``path`` under which nothing is left of a lease, as `lease_left_s` says."""
    # RFC 3339 texts in UTC with equal precision sort as their moments do.
    return AnyOf([Compare(path, Op.LTE, [rfc3339(now)]), Compare(path, Op.GT, [lease_end(now, 2 * length_s)])])
