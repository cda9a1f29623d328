"""Quantities of resources as Kubernetes writes them. No I/O."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?")
_UNITS: Final = {
    **{unit: Decimal(1000) ** -power for power, unit in enumerate("mun", 1)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_MOST: Final = Decimal(2) ** 63


def number_of(quantity: object) -> Decimal:
    """Return a quantity of 0 or more as a number: of bytes, or of CPUs. Raises ValueError."""
    found = _FORM.fullmatch(quantity) if isinstance(quantity, str) else None
    if found is None:
        raise ValueError("a quantity such as 10Gi expected")
    number, unit, exponent = found.groups()
    value = Decimal(number) * (_UNITS[unit] if unit else Decimal(10) ** int(exponent or 0))
    if value >= _MOST:
        raise ValueError("a quantity below 8Ei expected")
    return value


def bytes_of(size: object) -> Decimal:
    """Return a quantity as a number of bytes. Raises ValueError if it is none that a volume can have."""
    value = number_of(size)
    if value < 1:
        raise ValueError("a quantity from 1 byte to 8Ei expected")
    return value
