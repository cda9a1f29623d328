"""Threads that read, each with its own connection: in WAL mode readers and the writer do not wait for each other."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.sqlite.jobs import Job, Operation, ask, deliver

T = TypeVar("T")
_THREADS: Final = 4
_STATEMENTS_KEPT: Final = 512


class Readers:
    """A small pool; its connections cannot write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"sqlite-reader-{number}", daemon=True)
            for number in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def do(self, read: Operation[T]) -> T:
        """Run the reading function in one of the threads. Raises StoreUnavailable."""
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        try:
            return await ask(self._queue, read)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database file cannot be read: {error}") from error

    async def close(self) -> None:
        """Finish the queued operations, then close."""
        self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while (job := self._queue.get()) is not None:
            try:
                # Opened here and not at the start: sqlite3 binds a connection to its thread, and an error reaches the
                # caller.
                if connection is None:
                    connection = self._connected()
                job.result = job.operation(connection)
            except Exception as error:  # noqa: BLE001 - the edge of the thread: every error goes to the caller
                job.error = error
            deliver([job])
        if connection is not None:
            connection.close()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, cached_statements=_STATEMENTS_KEPT)
        connection.execute("PRAGMA query_only = ON")
        return connection
