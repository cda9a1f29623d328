"""Reads, each with a connection of its own: in WAL mode readers and the writer do not wait for each other.

Most reads are of few documents and are done at once, in the event loop: 10 us of processor time, where a thread takes 50, most of them to
wake it and the loop. A read that turns out to be longer is given up and done again in a thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.sqlite.jobs import Job, Operation, deliver, job_of

T = TypeVar("T")
_THREADS: Final = 4
_STATEMENTS_KEPT: Final = 512
_STEPS: Final = 1000
"""Instructions of SQLite between two looks at a read in the loop: fewer than 0.1 ms."""
_LOOKS: Final = 2
"""A read in the loop is given up at this look. SQLite counts on from the statement's last run, so the first may come early."""
_IN_A_ROW: Final = 16
"""One read of so many is done in a thread in any case: a task that only reads lets others go on then."""


class Readers:
    """A small pool beside the connection of the loop's thread, which makes it; the connections cannot write.

    A thread is started when all others are busy: each prepares statements for itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop_thread = threading.get_ident()
        self._in_loop: sqlite3.Connection | None = None
        self._looks = self._reads = 0
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._unfinished = 0

    async def do(self, read: Operation[T]) -> T:
        """Run the reading function, which may run twice. Raises StoreUnavailable."""
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        self._reads += 1
        if self._reads % _IN_A_ROW and threading.get_ident() == self._loop_thread:
            # Given up, or an error, which the thread has too unless it is gone.
            with suppress(sqlite3.Error):
                self._looks = 0
                return read(self._connection_of_loop())
        self._count_in()
        try:
            job = job_of(read)
            self._queue.put(job)
            found: T = await job.answer
            return found
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database file cannot be read: {error}") from error

    async def close(self) -> None:
        """Finish the queued operations, then close."""
        self._is_closed = True
        if self._in_loop is not None:
            self._in_loop.close()
        for _ in self._threads:
            self._queue.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _count_in(self) -> None:
        with self._lock:
            if self._unfinished >= len(self._threads) < _THREADS:
                thread = threading.Thread(target=self._run, name=f"sqlite-reader-{len(self._threads)}", daemon=True)
                thread.start()
                self._threads.append(thread)
            self._unfinished += 1

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
            with self._lock:
                self._unfinished -= 1
            deliver([job])
        if connection is not None:
            connection.close()

    def _connection_of_loop(self) -> sqlite3.Connection:
        if self._in_loop is None:
            # It waits for no lock.
            self._in_loop = self._connected(timeout_s=0.0)
            self._in_loop.set_progress_handler(self._is_long, _STEPS)
        return self._in_loop

    def _is_long(self) -> bool:
        self._looks += 1
        return self._looks >= _LOOKS

    def _connected(self, *, timeout_s: float = 5.0) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=timeout_s, isolation_level=None, cached_statements=_STATEMENTS_KEPT
        )
        connection.execute("PRAGMA query_only = ON")
        return connection
