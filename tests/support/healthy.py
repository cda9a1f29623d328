"""The health of an application that lacks nothing."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.health import PartState


async def healthy() -> Sequence[PartState]:
    """Return no part."""
    return ()
