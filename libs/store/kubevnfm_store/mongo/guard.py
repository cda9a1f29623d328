"""One writer at a time for a document, for servers whose find-and-modify is not atomic (FerretDB).

MongoDB does not need it. FerretDB 1.x reads, changes and writes back in separate statements, but an insert of an
existing ``_id`` always fails. So a lock is a document with the lock's name as its ``_id``. After ``HELD_S`` the lock
of a dead holder is removed by the caller that succeeds to insert the single ticket for that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from pymongo.errors import BulkWriteError, DuplicateKeyError

HELD_S: Final = 3.0
"""How long a lock lasts whose holder does not release it."""
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.1
_DUPLICATE: Final = 11000


class Guard(Protocol):
    """Keeps other writers of a document away within a block."""

    def __call__(self, collection: str, id: str) -> AbstractAsyncContextManager[None]:
        """Return a block for one document; entering it waits until there is no other writer."""
        ...

    def free(self, collection: str, ids: Sequence[str]) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a block for those of the documents, which it yields, that no other writer holds now."""
        ...


class NoGuard:
    """Blocks without a lock: the server's writes are atomic."""

    def __call__(self, collection: str, id: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def free(self, collection: str, ids: Sequence[str]) -> AbstractAsyncContextManager[Sequence[str]]:
        return nullcontext(ids)


class LockDocuments:
    """Locks as documents; callers of the same process queue before they ask the server."""

    def __init__(self, locks: Any) -> None:
        self._locks = locks
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def __call__(self, collection: str, id: str) -> AsyncIterator[None]:
        name = f"{collection}/{id}"
        queue = self._queues.setdefault(name, asyncio.Lock())
        # Without it every waiting task of this process would poll the server for the lock.
        async with queue:
            token = new_id()
            await self._take(name, token)
            try:
                yield
            finally:
                # Shielded: a cancelled caller would leave the lock behind, and every other writer would wait until it
                # expires. The token protects the lock of a caller that took over after this one was too slow.
                await asyncio.shield(self._locks.delete_one({"_id": name, "token": token}))

    @asynccontextmanager
    async def free(self, collection: str, ids: Sequence[str]) -> AsyncIterator[Sequence[str]]:
        """Lock those of the documents that no other writer holds, by one call; yield their ids."""
        token, until = new_id(), time.time() + HELD_S
        id_by_name = {f"{collection}/{each}": each for each in ids}
        try:
            await self._locks.insert_many(
                [{"_id": name, "token": token, "until": until} for name in id_by_name], ordered=False
            )
        except BulkWriteError as error:
            if any(each["code"] != _DUPLICATE for each in error.details["writeErrors"]):
                raise
            # It waits for none of them: two callers that hold some and wait for others could wait for ever.
            for each in error.details["writeErrors"]:
                del id_by_name[each["op"]["_id"]]
        try:
            yield [*id_by_name.values()]
        finally:
            await asyncio.shield(self._locks.delete_many({"token": token}))

    async def _take(self, name: str, token: str) -> None:
        pause_s = _FIRST_PAUSE_S
        while not await self._insert({"_id": name, "token": token, "until": time.time() + HELD_S}):
            held = await self._locks.find_one({"_id": name})
            if held is not None and held["until"] < time.time():
                # The ticket's id holds the dead holder's token, so exactly one caller removes exactly that lock.
                # The ticket stays: a slow caller may have read the same dead lock and must not remove its successor.
                if await self._insert({"_id": f"{name}!{held['token']}"}):
                    await self._locks.delete_one({"_id": name})
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _insert(self, document: JsonObject) -> bool:
        try:
            await self._locks.insert_one(document)
        except DuplicateKeyError:
            return False
        return True
