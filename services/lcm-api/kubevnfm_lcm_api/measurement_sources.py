"""Which systems that measure do not answer: stored, as any gateway may be the one that raises the alarm about it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.metrics import Metrics
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Filter, Index, Op, by

COLLECTION: Final = "measurement_sources"
"""Those that do not answer, each until it does."""
FAILED_AT: Final = "failedAt"
"""When it last did not answer, to half a minute."""
INDEXES: Final = [Index(["source", FAILED_AT]), Index([FAILED_AT])]
SITE: Final = "site"
"""The address of the Prometheus of the settings."""
OF_CLUSTER: Final = "metrics.k8s.io/"
"""The addresses of clusters that measure their pods themselves: this, and the id of the VIM."""
AWAY_FOR: Final = timedelta(minutes=1)
"""So long one may not answer before that is a fault."""
UNASKED_AFTER: Final = timedelta(minutes=15)
"""One that has not been asked for so long has no jobs and no thresholds any more: each tries again within two minutes, or its period."""
_NOTED_EVERY: Final = timedelta(seconds=30)
_MOST_NOTED: Final = 1000
_REASON_BYTES: Final = 512
_MOST: Final = 10_000

Source = Literal["site", "named", "cluster"]
"""A Prometheus of the settings, or one that a request names; the metrics-server of a cluster."""


def source_id(address: str) -> str:
    """Return the id of the document about a source."""
    return SITE if address == SITE else derived_id("measurement-source", address)


def shown_address(address: str) -> str:
    """Return an address without its path: beside one Prometheus another one may be at the same host."""
    return urlsplit(address).netloc or address


def recently_asked(now: datetime) -> Filter:
    """Return what finds the sources that do not answer and are still asked."""
    return Compare(FAILED_AT, Op.GTE, [rfc3339(now - UNASKED_AFTER)])


@dataclass
class SourceStates:
    """Notes how the calls of this process end: each outcome at once if it is another one than before, else twice a minute."""

    store: DocumentStore
    clock: Clock
    _noted: dict[str, tuple[bool, datetime]] = field(default_factory=dict, init=False)
    """Whether a source has answered when it was noted last, and when that was: of the newest ones."""

    async def failed(self, address: str, reason: str) -> None:
        """Note that a source does not answer. Raises StoreUnavailable."""
        if not self._is_news(address, answers=False):
            return
        now = rfc3339(self.clock.now())
        source: Source = "site" if address == SITE else "cluster" if address.startswith(OF_CLUSTER) else "named"
        fields = {FAILED_AT: now, "reason": bounded(reason, _REASON_BYTES)}
        try:
            await self.store.insert(
                COLLECTION,
                source_id(address),
                {"address": shown_address(address), "source": source, "since": now, **fields},
            )
        except AlreadyExists:
            with suppress(RevisionConflict):  # it answers another gateway
                await self.store.update(COLLECTION, source_id(address), fields)

    async def answered(self, address: str) -> None:
        """Note that a source answers, also if it did not answer another gateway. Raises StoreUnavailable."""
        if not self._is_news(address, answers=True):
            return
        if await self.store.get(COLLECTION, source_id(address)) is not None:
            await self.store.delete(COLLECTION, source_id(address))

    async def remove_old(self) -> None:
        """Remove those that are not asked any more."""
        before = rfc3339(self.clock.now() - UNASKED_AFTER)
        await self.store.delete_many(COLLECTION, AllOf([Compare(FAILED_AT, Op.LT, [before])]))

    def _is_news(self, address: str, *, answers: bool) -> bool:
        now, (before, at) = self.clock.now(), self._noted.pop(address, (not answers, self.clock.now()))
        is_news = before is not answers or now - at >= _NOTED_EVERY
        if len(self._noted) >= _MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        self._noted[address] = answers, now if is_news else at
        return is_news


class SourceCounts:
    """The sources that do not answer."""

    def __init__(self, metrics: Metrics, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._away = metrics.gauge(
            "kubevnfm_measurement_sources_away", "Systems that measure VNFs and do not answer.", ["source"]
        )

    async def count(self) -> None:
        asked = recently_asked(self._clock.now())
        self._away.show(
            {
                (source,): await self._store.count(COLLECTION, AllOf([by(source=source), asked]), limit=_MOST)
                for source in get_args(Source)
            }
        )

    def clear(self) -> None:
        self._away.clear()
