"""Both DocumentStore adapters, fresh for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_kit.ids import new_id
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.sqlite.store import SqliteStore
from servers.mongodb import mongodb_url, old_ferretdb, own_mongodb

__all__ = ["mongodb_url", "old_ferretdb", "own_mongodb"]


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        yield store


@pytest.fixture
async def mongo_store(mongodb_url: str) -> AsyncIterator[MongoStore]:
    async with MongoStore.connect(mongodb_url, f"test_{new_id().replace('-', '')[:12]}") as store:
        yield store
