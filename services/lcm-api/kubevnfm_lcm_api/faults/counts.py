"""A gauge of open alarms."""

from __future__ import annotations

from typing import Final, get_args

from kubevnfm_kit.metrics import Metrics
from kubevnfm_sol.faults import PerceivedSeverity
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import by

from kubevnfm_lcm_api.faults.alarms import COLLECTION, STATE

_MOST: Final = 1_000_000


class AlarmCounts:
    """The alarms that are not cleared, by severity."""

    def __init__(self, metrics: Metrics, store: DocumentStore) -> None:
        self._store = store
        self._open = metrics.gauge("kubevnfm_alarms_open", "Alarms that are not cleared, by severity.", ["severity"])

    async def count(self) -> None:
        self._open.show(
            {
                (severity,): await self._store.count(
                    COLLECTION, by(**{STATE: "OPEN", "perceivedSeverity": severity}), limit=_MOST
                )
                for severity in get_args(PerceivedSeverity)
            }
        )

    def clear(self) -> None:
        self._open.clear()
