"""Names for decoded JSON whose form only its reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A decoded JSON object; values are checked where they are read."""
JsonMapping: TypeAlias = Mapping[str, Any]
"""The same, read-only."""
