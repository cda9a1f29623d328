"""A threshold as it is stored."""

from __future__ import annotations

from typing import Final

COLLECTION: Final = "pm_thresholds"
SIDES: Final = "internal/sides"
"""The path of the list of objects whose values were on a side of the threshold: ``part`` (absent: the instance), ``side``, ``at``."""
