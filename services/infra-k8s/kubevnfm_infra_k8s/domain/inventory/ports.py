"""The interfaces that the inventory needs: its records, the regions that are watched, what instances have, and the lease of the leader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from kubevnfm_clients.multicloud.inventory import ExportHealth

from kubevnfm_infra_k8s.domain.inventory.record import Identity, InstanceFacts, ObjectRecord
from kubevnfm_infra_k8s.domain.inventory.seen_object import SeenObject

Kind = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True)
class Stale:
    """A watch does not work."""

    since: str
    reason: str


class LeaseLost(Exception):
    """Another process may lead by now."""


class Term(Protocol):
    """The time in which this process leads."""

    @property
    def number(self) -> int:
        """Larger than that of every earlier leader."""
        ...

    def check(self) -> None:
        """Raise LeaseLost if the lease may have ended."""
        ...


class Leadership(Protocol):
    """A lease that one process has at a time."""

    async def lead(self, work: Callable[[Term], Awaitable[None]]) -> None:
        """Do the work whenever this process has the lease, until cancelled; the work is cancelled when the lease is lost."""
        ...


@dataclass(frozen=True)
class Watched:
    """A region that is watched: a VIM in which instances have had objects."""

    vim_id: str
    cluster: str
    """The endpoint of its API server, as releases have it."""
    kinds: frozenset[Kind]
    """The kinds of all objects of releases."""
    namespaces: frozenset[str]
    """Where releases have objects: they are watched one by one if the credentials may not watch all."""
    revision: int
    term: int = 0
    """That of the leader which has listed the region last; 0: it was never listed."""
    is_stale: bool = False
    """Whether that leader could not watch all kinds."""
    since: str = ""
    """When the watches came to be so."""


class WatchedRegions(Protocol):
    """The stored regions; each release that is saved adds what it has."""

    async def all(self) -> Sequence[Watched]: ...

    async def news(self) -> Sequence[Watched]:
        """Return the regions that have changed and whose news was not cleared since."""
        ...

    async def await_news(self, *, look_s: float, longest_s: float) -> None:
        """Return when there may be news, at the latest after ``longest_s``; after ``look_s`` where writes of others are not seen."""
        ...

    async def clear_news(self, region: Watched) -> None:
        """Have a region that is watched be no news any more, unless it has changed since it was read."""
        ...

    async def mark(self, vim_id: str, term: int, stale: Mapping[Kind, Stale]) -> None:
        """Store that a region was listed, but for the kinds that cannot be watched; nothing if the region is gone."""
        ...

    async def is_used(self, region: Watched) -> bool:
        """Return whether an instance has objects in the cluster."""
        ...

    async def used_namespaces(self, region: Watched) -> frozenset[str]:
        """Return the namespaces in which releases have objects there."""
        ...

    async def keep_namespaces(self, region: Watched, namespaces: frozenset[str]) -> Watched | None:
        """Store other namespaces of a region; return it, or None if it has changed since it was read."""
        ...

    async def remove(self, region: Watched) -> bool:
        """Remove a region that has not changed since it was read; return whether it is gone."""
        ...

    async def stale(self, wanted: Collection[tuple[str, Kind]]) -> Mapping[tuple[str, Kind], Stale]:
        """Return those of the regions and kinds whose watches do not work."""
        ...

    async def watch_of(self, vim_id: str) -> tuple[str, Sequence[tuple[Kind, Stale]]] | None:
        """Return since when the watches of a region are as they are, and those that do not work; None: it is not watched."""
        ...

    async def stale_regions(
        self, *, vim_id: str | None, limit: int
    ) -> Sequence[tuple[str, Sequence[tuple[Kind, Stale]]]]:
        """Return the regions, or the one of this VIM, with the kinds that the leader cannot watch, if there are any."""
        ...

    async def unwatched_since(self) -> str:
        """Return since when no process watches; "" if one does, or none has yet."""
        ...

    async def is_watching(self) -> bool:
        """Return whether a process watches."""
        ...

    async def all_stale(self, *, limit: int) -> Sequence[tuple[str, Kind, Stale]]:
        """Return kinds of all regions that cannot be watched."""
        ...


class Exporting(Protocol):
    """The export of the records, if there is one."""

    async def run(self, term: Term) -> None:
        """Export until cancelled. Raises LeaseLost."""
        ...


class ExportState(Protocol):
    """The state of the export."""

    async def health(self) -> ExportHealth:
        """Return the state of the export."""
        ...

    async def resync(self) -> None:
        """Have everything exported again."""
        ...


class InventoryRecords(Protocol):
    """The stored records. Each write names the revision that it has read."""

    async def get(self, record_id: str) -> ObjectRecord | None: ...

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[ObjectRecord]:
        """Return up to ``limit`` records in the order of their ids, those after one id."""
        ...

    async def write(self, old: ObjectRecord | None, new: ObjectRecord) -> int:
        """Store a record in the place of the old one, and the event about it; return its revision. Raises RevisionConflict."""
        ...

    async def remove(self, old: ObjectRecord) -> None:
        """Remove a record, and store the event about it. Raises RevisionConflict."""
        ...

    async def remove_unread(self, record_id: str, revision: int) -> bool:
        """Remove a record without an event; return False if it has to be read first. Raises RevisionConflict."""
        ...


class Noticing(Protocol):
    """The outputs of instances, which are read when their objects change."""

    def notice(self, vim_id: str, identity: Identity) -> None:
        """Learn that an object has changed or is gone."""
        ...

    def notice_list(self, vim_id: str, group: str, kind: str) -> None:
        """Learn that objects of a kind may have changed before they were listed."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """Yield the time in which this process leads. Raises StoreUnavailable."""
        ...


class Instances(Protocol):
    """The places that the releases of instances give to their objects."""

    async def facts(self, seen: SeenObject, vim_id: str, cluster: str) -> InstanceFacts | None:
        """Return it for the instance of an object; None if that has no objects in this region."""
        ...


class FeatureRecords(Protocol):
    """The features of regions that were published."""

    async def last(self, vim_id: str) -> tuple[str, datetime | None]:
        """Return the digest of the features of a region and when it was stored; "" and None: it was not seen yet."""
        ...

    async def found(self, vim_id: str, digest: str) -> None:
        """Store a digest, and the event if it is another one. Raises RevisionConflict."""
        ...

    async def forget(self, vim_id: str) -> None:
        """Remove what is stored of a region."""
        ...
