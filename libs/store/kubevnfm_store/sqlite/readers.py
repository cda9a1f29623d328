"""Threads that read, each with a connection of its own: in WAL mode they wait for no writer, and no writer for them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from kubevnfm_store.port import StoreUnavailable

T = TypeVar("T")
_THREADS: Final = 4
_STATEMENTS_KEPT: Final = 512


class Readers:
    """A small pool; its connections cannot write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="sqlite-reader", initializer=self._connect)

    async def do(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run the reading function in one of the threads. Raises StoreUnavailable."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)
        except (sqlite3.Error, RuntimeError) as error:
            raise StoreUnavailable(f"the database file cannot be read: {error}") from error

    def close(self) -> None:
        """Finish what is being read, then close; blocks."""
        self._pool.shutdown()
        for connection in self._open:
            connection.close()

    def _connect(self) -> None:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, cached_statements=_STATEMENTS_KEPT
        )
        connection.execute("PRAGMA query_only = ON")
        self._local.connection = connection
        self._open.append(connection)

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return read(self._local.connection)
