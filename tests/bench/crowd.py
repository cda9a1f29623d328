"""Fills a store with many instances: copies of one that the gateway made, written through the store's port."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from kubevnfm_kit.clock import rfc3339
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Query

_AT_ONCE = 500


async def crowd(opened: AbstractAsyncContextManager[DocumentStore], count: int) -> None:
    """Add ``count`` instances. No other process may have an SQLite file open meanwhile."""
    async with opened as store:
        model = next(iter(await store.find("vnf_instances", Query(limit=1))))
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for first in range(0, count, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, count))
            await asyncio.gather(*(_insert(store, dict(model.body), n, start) for n in numbers))


async def _insert(store: DocumentStore, body: dict[str, Any], number: int, start: datetime) -> None:
    body["id"] = str(uuid4())
    body["vnfInstanceName"] = f"crowd-{number}"
    body["createdAt"] = rfc3339(start + timedelta(seconds=number))
    await store.insert("vnf_instances", body["id"], body)
