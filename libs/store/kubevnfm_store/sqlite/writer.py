"""The one thread that writes: it drains a queue and commits many operations in one transaction.

A commit waits for the disk; meanwhile callers queue up, and the next transaction includes them all. So a single
write costs one sync, and a thousand concurrent writes cost a few.
"""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TextIO, TypeVar

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import Outage

from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.sqlite.catalogue import Catalogue
from kubevnfm_store.sqlite.jobs import Job, Operation, deliver, job_of

T = TypeVar("T")
_MOST_PER_COMMIT: Final = 1000
_LONGEST_WAIT_S: Final = 0.05
"""A commit takes half a millisecond of processor time, with the wake-ups of two threads; what is not awaited shares that of others."""


class FileInUse(VnfmError, code="store-file-in-use", title="Database file in use", status=500):
    """Another process (or another store of this one) has the database file open."""


class Writer:
    """Owns the file: holds its lock and the connection that writes."""

    def __init__(self, path: Path) -> None:
        """Open the file; create it if it is missing. Raises FileInUse, StoreUnavailable."""
        self._lock = locked(path)
        try:
            # Without isolation_level=None the module begins transactions by itself, in the middle of a batch.
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode NORMAL syncs at checkpoints only: a power failure would lose writes that callers have seen
            # succeed.
            self._connection.execute("PRAGMA synchronous = FULL")
            self.catalogue = Catalogue(self._connection)
        except sqlite3.Error as error:
            self._lock.close()
            raise StoreUnavailable(f"{path}: {error}") from error
        self._queue: SimpleQueue[Sequence[Job] | None] = SimpleQueue()
        self._waiting: list[Job] = []
        """They go with the next operation that may not wait, or when the timer ends."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._outage = Outage("database")
        self.is_refused = False
        """Whether the last transaction could not be stored: the disk is full, for example."""
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    async def do(self, operation: Operation[T], then: Callable[[], None] | None = None, *, may_wait: bool = False) -> T:
        """Run the operation as if in its own transaction; return once it is on the disk.

        An operation that raises changes nothing. A caller that is cancelled may still have written. ``then`` is called
        after each that has written. ``may_wait``: for other operations, to share their commit.
        """
        if self._is_closed or not self._thread.is_alive():
            raise StoreUnavailable("the store is closed")
        job = job_of(operation, then)
        self._waiting.append(job)
        if not may_wait:
            self._send()
        elif self._timer is None:
            self._timer = job.loop.call_later(_LONGEST_WAIT_S, self._send)
        result: T = await job.answer
        return result

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            jobs, self._waiting = self._waiting, []
            self._queue.put(jobs)

    async def close(self) -> None:
        """Finish the queued operations, then close the file."""
        self._is_closed = True
        self._send()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()
        self._lock.close()

    def _run(self) -> None:
        is_open = True
        while is_open:
            found = [self._queue.get()]
            with suppress(Empty):
                while len(found) < _MOST_PER_COMMIT:
                    found.append(self._queue.get_nowait())
            is_open = None not in found
            self._commit([job for jobs in found if jobs is not None for job in jobs])

    def _commit(self, jobs: list[Job]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._perform(job)
            self._connection.execute("COMMIT")
            # Only after COMMIT: readers have connections of their own and do not see a new table earlier.
            self.catalogue.publish()
            self.is_refused = False
            self._outage.answered()
        except sqlite3.Error as error:  # the disk is full, for example: nothing of this transaction was stored
            self.is_refused = True
            self._outage.failed(error)
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._connection.execute("ROLLBACK")
            with suppress(sqlite3.Error):
                self.catalogue.reread(self._connection)
            for job in jobs:
                job.error = StoreUnavailable(f"the database file cannot be written: {error}")
        deliver(jobs)

    def _perform(self, job: Job) -> None:
        # A savepoint for each operation: a refused one must not undo the others of its batch.
        self._connection.execute("SAVEPOINT operation")
        try:
            job.result = job.operation(self._connection)
        # After such an error (disk full, I/O error) SQLite may have rolled the whole transaction back by itself, so the
        # batch fails as one.
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of the thread: every error goes to the caller
            job.error = error
            self._connection.execute("ROLLBACK TO operation")
            self.catalogue.reread(self._connection)
        self._connection.execute("RELEASE operation")


def locked(path: Path) -> TextIO:
    """Take the lock file beside the database; the system releases it when the process ends, in whatever way."""
    # Not the database file itself: closing any descriptor of it drops the POSIX locks that SQLite holds on it.
    lock = Path(f"{path}.lock").open("w")  # noqa: SIM115 - it stays open as long as the store
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise FileInUse(f"{path} is open in another process; one process at a time may use it") from error
    return lock
