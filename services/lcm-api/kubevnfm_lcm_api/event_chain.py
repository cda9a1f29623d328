"""The source and the order of lcm-api's events.

Each event about a VNF instance, or about a VNF package, names the event before it, so that a subscriber gets them in
order.
"""

from __future__ import annotations

from typing import Final

from kubevnfm_sol.base import SolType

SOURCE: Final = "/kubevnfm/lcm-api"
"""The CloudEvents `source` of every message of lcm-api."""


class EventRef(SolType):
    """An event that was published, or is about to be."""

    id: str
    at: str
    """When the fact that it reports became true."""
