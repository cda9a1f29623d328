"""Counts the virtual links of each region (multicloud.md MC-136)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final, Protocol

from kubevnfm_kit.metrics import Metrics

_EVERY_S: Final = 15.0
"""Each count reads the state of each link."""


class Links(Protocol):
    """The part of the stored links that is counted."""

    def states(self) -> AsyncIterator[tuple[str, str]]:
        """Yield VIM and status of each link."""
        ...


def count_links(metrics: Metrics, links: Links) -> None:
    """Have the metrics show the links; the same in all processes."""
    shown = metrics.gauge("kubevnfm_region_virtual_links", "Virtual links by status.", ["vim_id", "status"])

    async def read() -> None:
        shown.show(Counter([state async for state in links.states()]))

    metrics.before_reading(read, every_s=_EVERY_S)
