"""What the parts of lcm-api share about the events that they publish.

Each event about a VNF instance, or about a VNF package, names the event before it, so that a subscriber gets them in
order.
"""

from __future__ import annotations

from typing import Final

from kubevnfm_sol.base import SolType

SOURCE: Final = "/kubevnfm/lcm-api"
"""The CloudEvents `source` of every message of lcm-api."""


class EventRef(SolType):
    """An event that was told, or is about to be."""

    id: str
    at: str
    """When it became true."""
