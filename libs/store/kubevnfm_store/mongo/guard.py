"""One writer at a time for a document, for servers whose find-and-modify is not atomic (FerretDB).

MongoDB does not need it. FerretDB 1.x reads, changes and writes back in separate statements, but an insert of an
existing ``_id`` always fails. So a lock is a document with the lock's name as its ``_id``. The lock of a dead holder is
removed by the caller that succeeds to insert the single ticket for that.

No clock distinguishes a dead holder from one whose write the server has not finished yet. So a caller that waits must have
seen the same lock for `DEAD_AFTER_S`, and only the time in which the server answers it counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from pymongo.errors import BulkWriteError, DuplicateKeyError

T = TypeVar("T")

DEAD_AFTER_S: Final = 3.0
"""How long a caller must have waited for the same lock before it takes its holder for dead."""
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.1
_COUNTED_ANSWER_S: Final = 0.1
"""How much of one round of calls counts as waited, however late the server answers."""
_DUPLICATE: Final = 11000


class Guard(Protocol):
    """Keeps other writers of a document away during a write."""

    async def alone(self, collection: str, id: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write one document when there is no other writer."""
        ...

    def free(self, collection: str, ids: Sequence[str]) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a block for those of the documents, which it yields, that no other writer holds now."""
        ...


class NoGuard:
    """Writes without a lock: the server's writes are atomic."""

    async def alone(self, collection: str, id: str, write: Callable[[], Awaitable[T]]) -> T:
        return await write()

    def free(self, collection: str, ids: Sequence[str]) -> AbstractAsyncContextManager[Sequence[str]]:
        return nullcontext(ids)


class LockDocuments:
    """Locks as documents; callers of the same process queue before they ask the server."""

    def __init__(self, locks: Any) -> None:
        self._locks = locks
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._writing: set[asyncio.Task[Any]] = set()

    async def alone(self, collection: str, id: str, write: Callable[[], Awaitable[T]]) -> T:
        """A cancelled caller does not end the write.

        The driver cannot take a command back: the server may carry it out after the lock is free, beside the next writer.
        """
        task = asyncio.ensure_future(self._locked(f"{collection}/{id}", write))
        self._writing.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: its caller may have been cancelled

    async def _locked(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        queue = self._queues.setdefault(name, asyncio.Lock())
        # Without it every waiting task of this process would poll the server for the lock.
        async with queue:
            token = new_id()
            await self._take(name, token)
            try:
                return await write()
            finally:
                # The token protects the lock of a caller that took over.
                await self._locks.delete_one({"_id": name, "token": token})

    @asynccontextmanager
    async def free(self, collection: str, ids: Sequence[str]) -> AsyncIterator[Sequence[str]]:
        """Lock those of the documents that no other writer holds, by one call; yield their ids."""
        token = new_id()
        id_by_name = {f"{collection}/{each}": each for each in ids}
        try:
            await self._locks.insert_many([{"_id": name, "token": token} for name in id_by_name], ordered=False)
        except BulkWriteError as error:
            if any(each["code"] != _DUPLICATE for each in error.details["writeErrors"]):
                raise
            # It waits for none of them: two callers that hold some and wait for others could wait for ever.
            for each in error.details["writeErrors"]:
                del id_by_name[each["op"]["_id"]]
        try:
            yield [*id_by_name.values()]
        finally:
            # Shielded: a cancelled caller would leave the locks behind.
            await asyncio.shield(self._locks.delete_many({"token": token}))

    async def _take(self, name: str, token: str) -> None:
        pause_s, seen, waited_s = _FIRST_PAUSE_S, "", 0.0
        asked_at = time.monotonic()
        while not await self._insert({"_id": name, "token": token}):
            held = await self._locks.find_one({"_id": name})
            now = time.monotonic()
            holder = "" if held is None else str(held["token"])
            waited_s = waited_s + min(now - asked_at, _COUNTED_ANSWER_S + pause_s) if holder == seen else 0.0
            seen, asked_at = holder, now
            if holder and waited_s >= DEAD_AFTER_S:
                # The ticket's id holds the dead holder's token, so exactly one caller removes exactly that lock.
                # The ticket stays: a slow caller may have read the same dead lock and must not remove its successor.
                if await self._insert({"_id": f"{name}!{holder}"}):
                    await self._locks.delete_one({"_id": name, "token": holder})
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _insert(self, document: JsonObject) -> bool:
        try:
            await self._locks.insert_one(document)
        except DuplicateKeyError:
            return False
        return True
