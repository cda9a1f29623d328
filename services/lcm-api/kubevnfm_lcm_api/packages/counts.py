"""A gauge of stored packages."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.metrics import Metrics
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Op

from kubevnfm_lcm_api.packages.usable import COLLECTION

_STATES: Final = ("CREATED", "UPLOADING", "PROCESSING", "ONBOARDED", "ERROR")
_MOST: Final = 1_000_000


class PackageCounts:
    """The packages by how far they are onboarded."""

    def __init__(self, metrics: Metrics, store: DocumentStore) -> None:
        self._store = store
        self._packages = metrics.gauge("kubevnfm_vnf_packages", "VNF packages by onboarding state.", ["state"])

    async def count(self) -> None:
        self._packages.show(
            {
                (state,): await self._store.count(COLLECTION, Compare("onboardingState", Op.EQ, [state]), limit=_MOST)
                for state in _STATES
            }
        )

    def clear(self) -> None:
        self._packages.clear()
