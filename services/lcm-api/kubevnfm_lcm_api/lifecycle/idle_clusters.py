"""The workload clusters on whose instances no operation runs: what is watched between operations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kubevnfm_events import VimConnection
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.vim import VimConnectionInfo
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, Stored

from kubevnfm_lcm_api.lifecycle.domain.instance import COLLECTION, OF_WORKLOAD_CLUSTER, InstanceRecord
from kubevnfm_lcm_api.lifecycle.domain.workload import WorkloadInternals

_PAGE: Final = 100
_MOST_IN_COMMAND: Final = 200
"""Clusters in one command: about 400 kB with five Machines each."""
_IDLE_CLUSTERS: Final = AllOf(
    [
        # By a sparse index: of many instances few are workload clusters.
        Exists(OF_WORKLOAD_CLUSTER),
        Compare("instantiationState", Op.EQ, [InstantiationState.INSTANTIATED]),
        Exists("internal/currentOperation", exists=False),
    ]
)

E = TypeVar("E")


@dataclass(frozen=True)
class IdleCluster:
    """An instance, its cluster, and the management cluster."""

    stored: Stored
    record: InstanceRecord
    workload: WorkloadInternals
    management: VimConnection


async def idle_clusters(store: DocumentStore) -> AsyncIterator[IdleCluster]:
    """Yield them, page by page. Raises StoreUnavailable."""
    after: tuple[None, str] | None = None
    while True:
        page = await store.find(COLLECTION, Query(_IDLE_CLUSTERS, after=after, limit=_PAGE))
        for stored in page:
            record = InstanceRecord.from_document(stored.body)
            management, workload = management_of(record), record.internals.workload
            if management is not None and workload is not None:
                yield IdleCluster(stored, record, workload, management)
        if len(page) < _PAGE:
            return
        after = (None, page[-1].id)


def management_of(record: InstanceRecord) -> VimConnection | None:
    """Return the connection of the management cluster; None if the instance has none."""
    held = record.release
    info = record.vnf.vim_connection_info.get(held.vim_key) if held is not None else None
    if info is None:
        return None
    return VimConnection(**{name: getattr(info, name) for name in VimConnectionInfo.model_fields})


@dataclass
class ByManagement(Generic[E]):
    """The expectations about clusters, by management cluster."""

    _expected: dict[str, list[E]] = field(default_factory=dict)
    _connections: dict[str, VimConnection] = field(default_factory=dict)

    def add(self, management: VimConnection, expected: E) -> None:
        """Add a cluster."""
        place = json.dumps([management.vim_id, management.interface_info], sort_keys=True, default=str)
        self._connections.setdefault(place, management)
        self._expected.setdefault(place, []).append(expected)

    def questions(self) -> Iterator[tuple[VimConnection, tuple[E, ...]]]:
        """Yield the clusters of each management cluster, as many as one command has at most."""
        for place, clusters in self._expected.items():
            for start in range(0, len(clusters), _MOST_IN_COMMAND):
                yield self._connections[place], tuple(clusters[start : start + _MOST_IN_COMMAND])
