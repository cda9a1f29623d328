"""The workload clusters on whose instances no operation runs: what is watched between operations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, TypeVar

from kubevnfm_events import VimConnection
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Exists, Stored

from kubevnfm_lcm_api.lifecycle.core.idle_instances import ByVim, idle_instances
from kubevnfm_lcm_api.lifecycle.core.instance import OF_WORKLOAD_CLUSTER, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals

_PAGE: Final = 100
_MOST_IN_COMMAND: Final = 200
"""Clusters in one command: about 400 kB with five Machines each."""
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
    # By a sparse index: of many instances few are workload clusters.
    async for stored in idle_instances(store, Exists(OF_WORKLOAD_CLUSTER), page_size=_PAGE):
        record = InstanceRecord.from_document(stored.body)
        management, workload = management_of(record), record.internals.workload
        if management is not None and workload is not None:
            yield IdleCluster(stored, record, workload, management)


def management_of(record: InstanceRecord) -> VimConnection | None:
    """Return the connection of the management cluster; None if the instance has none."""
    held = record.release
    info = record.vnf.vim_connection_info.get(held.vim_key) if held is not None else None
    if info is None:
        return None
    return VimConnection(**vars(info))


def by_management() -> ByVim[E]:
    """Return a collection of expectations about clusters, by management cluster."""
    return ByVim(_MOST_IN_COMMAND)
