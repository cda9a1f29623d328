"""The parts of a process in its metrics, so that alerts can be raised on them (docs/health.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_kit.health import Parts, State
from kubevnfm_kit.metrics import Metrics

_VALUES: Final[Mapping[State, float]] = {"ready": 1.0, "degraded": 0.5, "failed": 0.0, "unknown": 0.0}


def show_parts(metrics: Metrics, parts: Parts) -> None:
    """Have the metrics show each part as ``/health/ready`` does."""
    ready = metrics.gauge(
        "kubevnfm_part_ready", "1: the part is ready, 0.5: it is degraded, 0: it failed or is unknown.", ["part"]
    )

    async def read() -> None:
        ready.show({(each.part,): _VALUES[each.state] for each in await parts()})

    metrics.before_reading(read)
