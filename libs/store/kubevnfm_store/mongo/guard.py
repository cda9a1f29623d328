"""One writer at a time for a document, for servers whose find-and-modify is not atomic (FerretDB).

MongoDB does not need it. FerretDB 1.x reads, changes and writes back in separate statements, but an insert of an
existing ``_id`` always fails. So a lock is a document with the lock's name as its ``_id``. After ``_HELD_S`` the lock
of a dead holder is removed by the caller that succeeds to insert the single ticket for that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Final
from weakref import WeakValueDictionary

from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from pymongo.errors import DuplicateKeyError

_HELD_S: Final = 3.0
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.1

Guard = Callable[[str, str], AbstractAsyncContextManager[None]]
"""Takes a collection and a document id; within the block there is no other writer of the document."""


def no_guard(collection: str, id: str) -> AbstractAsyncContextManager[None]:
    """Return a block without a lock: the server's writes are atomic."""
    return nullcontext()


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

    async def _take(self, name: str, token: str) -> None:
        pause_s = _FIRST_PAUSE_S
        while not await self._insert({"_id": name, "token": token, "until": time.time() + _HELD_S}):
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
