"""Helm charts of registries in the place of lcm-api's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kubevnfm_clients.charts import ChartWanted
from kubevnfm_clients.multicloud.errors import ChartNotFetched, ChartUnavailable


@dataclass
class GivenCharts:
    """`FetchedCharts`: charts that are there from the start."""

    places: dict[str, Path] = field(default_factory=dict)
    """By the digests of their manifests; a chart may be a folder."""
    failures: list[str] = field(default_factory=list)
    """Why the next calls fail, although a repeat may work."""
    asked: list[ChartWanted] = field(default_factory=list)

    async def archive(self, wanted: ChartWanted) -> Path:
        self.asked.append(wanted)
        if self.failures:
            raise ChartUnavailable(f"chart {wanted.oci}: {self.failures.pop(0)}")
        if wanted.digest not in self.places:
            raise ChartNotFetched(f"chart {wanted.oci}: the registry does not have this manifest")
        return self.places[wanted.digest]
