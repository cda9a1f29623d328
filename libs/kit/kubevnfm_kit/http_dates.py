"""Dates in headers of HTTP (RFC 9110 5.6.7), which the other side writes."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def read_http_date(text: str) -> datetime | None:
    """Return the moment in UTC; None for a text that is no date, or one that no calendar has."""
    try:
        moment = parsedate_to_datetime(text)
        # Without a zone (``-0000``) it is UTC (RFC 5322 3.3). The years 1 and 9999 have moments that are none in UTC.
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    # OverflowError: a year or zone with more digits than a C int has.
    except (ValueError, OverflowError):
        return None
