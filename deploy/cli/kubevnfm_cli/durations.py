"""Durations as people write them."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.terminal import printable

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``10m``, ``1h30m``. Raises UsageFault."""
    total, number = 0.0, ""
    try:
        for one in text.strip():
            if one in _UNITS:
                total += float(number) * _UNITS[one]
                number = ""
            else:
                number += one
        total += float(number) if number else 0.0
    except ValueError:
        total = -1.0
    if not text.strip() or not 0 <= total < 1e9:
        raise UsageFault(f"{printable(text)}: a duration as 90s, 10m or 1h30m expected")
    return total
