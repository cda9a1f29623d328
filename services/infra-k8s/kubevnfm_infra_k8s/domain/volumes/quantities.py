"""Quantities of storage as Kubernetes writes them. No I/O."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(?:([KMGTPE]i|[mkMGTPE])|[eE]([+-]?[0-9]{1,2}))?")
_UNITS: Final = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_MOST: Final = Decimal(2) ** 63


def bytes_of(size: object) -> Decimal:
    """Return a quantity as a number of bytes. Raises ValueError if it is none that a volume can have."""
    found = _FORM.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        raise ValueError("a quantity such as 10Gi expected")
    number, unit, exponent = found.groups()
    value = Decimal(number) * (_UNITS[unit] if unit else Decimal(10) ** int(exponent or 0))
    if not 1 <= value < _MOST:
        raise ValueError("a quantity from 1 byte to 8Ei expected")
    return value
