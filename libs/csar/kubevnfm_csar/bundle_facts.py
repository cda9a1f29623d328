"""The names in a package that is made of a resource bundle (`bundles`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CHART: Final = "Artifacts/chart.tgz"
"""The path of the chart in a package of a bundle."""


@dataclass(frozen=True)
class BundleFacts:
    """The VNFD of a bundle's package."""

    vnfd_id: str
    product: str
    version: str
