"""What the receiver needs of the outside."""

from __future__ import annotations

from typing import Protocol


class Instances(Protocol):
    """Asked of lcm-api."""

    async def exists(self, vnf_instance_id: str) -> bool:
        """Tell whether there is such a VNF instance. Raises OutsideUnavailable."""
        ...
