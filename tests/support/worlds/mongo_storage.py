"""The storage of a world in a database on a server of MongoDB's protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubevnfm_kit.ids import new_id
from kubevnfm_store.mongo.store import MongoStore
from pymongo import monitoring

from worlds.lcm_world import RING, Storage


def storage_on(url: str, *listeners: monitoring.CommandListener) -> Storage:
    """Return the storage in a new database on the server; ``listeners`` see its commands."""

    class Store:
        @staticmethod
        @asynccontextmanager
        async def open(_: Path) -> AsyncIterator[MongoStore]:
            database = f"test_{new_id().replace('-', '')[:12]}"
            async with MongoStore.connect(url, database, listeners=listeners) as store:
                yield store

    return Storage(RING, Store)  # type: ignore[arg-type]  # it opens a store too
