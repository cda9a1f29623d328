"""Both DocumentStore adapters, fresh for each test; MongoDB's in both forms of its queries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_kit.ids import new_id
from kubevnfm_store.mongo import MongoStore
from kubevnfm_store.sqlite import SqliteStore
from servers.ferretdb import ferretdb, ferretdb_url
from servers.memory_mongo import memory_mongo_url

__all__ = ["ferretdb", "ferretdb_url", "memory_mongo_url"]


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        yield store


@pytest.fixture
async def mongo_store(ferretdb_url: str) -> AsyncIterator[MongoStore]:
    async with MongoStore.connect(ferretdb_url, f"test_{new_id().replace('-', '')[:12]}") as store:
        yield store


@pytest.fixture
async def own_form_store(memory_mongo_url: str) -> AsyncIterator[MongoStore]:
    """The adapter in the form of its queries and writes for MongoDB itself, not for FerretDB."""
    async with MongoStore.connect(memory_mongo_url, f"test_{new_id().replace('-', '')[:12]}") as store:
        yield store
