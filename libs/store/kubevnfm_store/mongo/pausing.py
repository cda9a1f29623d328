"""A short pause of all writes to a database, for a backup that reads it: asked for by a document, and over by itself.

MongoDB has snapshots of several collections on a replica set only, and `fsyncLock` needs an administrator. So each process looks
for the document and holds its writes while it is there. A pause never outlasts its length, whatever became of the backup: each
process counts that from its own first sight of the document, by the monotonic clock. Whether all have held their writes is not
taken for granted: the backup compares what it has read with what is there (`reading.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog
from kubevnfm_kit.json_types import JsonMapping
from pymongo.errors import PyMongoError

log = structlog.get_logger()

PAUSES: Final = "kubevnfm_pauses"
"""The collection; a backup leaves it out."""
BACKUP: Final = "backup"
"""The id of its one document: ``pause`` is the id of the pause, ``lengthS`` its longest length."""
LOOK_EVERY_S: Final = 1.0
LONGEST_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.1
"""During a pause, which ends as soon as the document is gone."""


class WritePause:
    """Holds the writes of one process."""

    def __init__(self, documents: Any) -> None:
        """``documents``: the collection `PAUSES` of the database."""
        self._documents = documents
        self._open = asyncio.Event()
        self._open.set()
        self._present = self._over = ""
        """The ids of the pause that holds, and of the last one that is over."""
        self._until = 0.0

    async def passed(self) -> None:
        """Return when writes may go on."""
        if not self._open.is_set():
            await self._open.wait()

    @asynccontextmanager
    async def heeded(self) -> AsyncIterator[None]:
        """Look for pauses while the block lasts."""
        watch = asyncio.create_task(self._watch(), name="write-pauses")
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            self._open.set()

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except PyMongoError as error:
                log.debug("pauses_not_read", reason=type(error).__name__)
            if self._present and asyncio.get_running_loop().time() >= self._until:
                self._end()  # also if the database does not answer
            await asyncio.sleep(_LOOK_AGAIN_S if self._present else LOOK_EVERY_S)

    async def look(self) -> None:
        """Begin or end a pause, as the database says."""
        found: JsonMapping | None = await self._documents.find_one({"_id": BACKUP})
        pause = "" if found is None else str(found.get("pause", ""))
        if found is None or pause != self._present:
            self._end()
        if not pause:
            return
        if pause == self._over:
            # A backup that was killed has left it. A process that starts now would pause for it once more.
            await self._documents.delete_one({"_id": BACKUP, "pause": pause})
        elif not self._present:
            self._begin(pause, length_of(found or {}))

    def _begin(self, pause: str, length_s: float) -> None:
        self._present, self._until = pause, asyncio.get_running_loop().time() + length_s
        self._open.clear()
        log.info("writes_paused", pause=pause, longest_s=length_s)

    def _end(self) -> None:
        if self._present:
            log.info("writes_resumed", pause=self._present)
            self._present, self._over = "", self._present
            self._open.set()


def length_of(document: JsonMapping) -> float:
    """Return how long a pause may last at most."""
    length = document.get("lengthS")
    return min(max(float(length), 0.0), LONGEST_S) if isinstance(length, int | float) else LONGEST_S
