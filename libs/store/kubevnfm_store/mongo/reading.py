"""Reads whole databases for a backup, at one moment of all of them, and writes them back.

All is read once while the services work. Then their writes pause (`pausing.py`), and what has changed meanwhile is read again, until
a pass over all databases finds nothing changed: the documents are then as they were together at the beginning of that pass.
Every write of `MongoStore` gives its document a new token, so an unchanged token is an unchanged document. The pause makes that
happen soon. That it has happened is seen, not assumed: a process that has not paused makes the passes differ, and the backup fails.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import bson
from bson.raw_bson import RawBSONDocument
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

from kubevnfm_store.mongo.documents import messages, stored
from kubevnfm_store.mongo.pausing import BACKUP, LOOK_EVERY_S, PAUSES
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.restoring import shifted

T = TypeVar("T")
_TOKEN: Final = {"_id": 1, "revision": 1, "write": 1, "deleted": 1, "pending": 1, "outbox.id": 1}
_AT_ONCE: Final = 100
_INSERTED_BYTES: Final = 8 * 1024 * 1024
_CLIENT: Final[Mapping[str, Any]] = {
    "serverSelectionTimeoutMS": 3000,
    "connectTimeoutMS": 3000,
    "socketTimeoutMS": 60_000,
}
_MARGIN_S: Final = 2.0
"""A pass must have ended so long before the pause may end."""


class NeverStill(VnfmError, code="backup-not-consistent", title="No consistent backup", status=503):
    """The documents changed although writes should have paused."""


class Place:
    """One database."""

    def __init__(self, url: str, database: str) -> None:
        """Raises StoreUnavailable if the server does not answer."""
        with _asking():
            self._client: MongoClient[RawBSONDocument] = MongoClient(url, document_class=RawBSONDocument, **_CLIENT)
        self._database = self._client.get_database(database, write_concern=WriteConcern(w="majority", j=True))
        _asked(lambda: self._client.admin.command("ping"))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def collections(self) -> list[str]:
        """Return the names of the collections that a backup has."""
        found = _asked(self._database.list_collection_names)
        return sorted(name for name in found if name != PAUSES and not name.startswith("system."))

    def has_documents(self) -> bool:
        """Return whether any of them has a document."""
        return any(_asked(partial(self._first, name)) is not None for name in self.collections())

    def _first(self, name: str) -> RawBSONDocument | None:
        return self._database[name].find_one({}, {"_id": 1})

    def tokens(self, collection: str) -> Iterator[tuple[str, bytes]]:
        """Yield id and token of each document."""
        for each in self._database[collection].find({}, _TOKEN, batch_size=1000):
            yield str(each["_id"]), token_of(each)

    def documents(self, collection: str, ids: Sequence[str]) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield id, token and BSON of those documents that there are."""
        for each in self._database[collection].find({"_id": {"$in": list(ids)}}):
            yield str(each["_id"]), token_of(each), bytes(each.raw)

    def pause(self, pause: str, length_s: float) -> None:
        """Ask the processes on the database to hold their writes."""
        asked = {"pause": pause, "lengthS": length_s, "time": datetime.now(UTC).isoformat()}
        _asked(lambda: self._database[PAUSES].replace_one({"_id": BACKUP}, {"_id": BACKUP, **asked}, upsert=True))

    def resume(self, pause: str) -> None:
        """Take that back."""
        _asked(lambda: self._database[PAUSES].delete_one({"_id": BACKUP, "pause": pause}))

    def empty(self) -> None:
        """Remove all collections."""
        for name in [*self.collections(), PAUSES]:
            _asked(partial(self._database.drop_collection, name))

    def insert(self, collection: str, documents: Iterator[bytes], *, later_s: float) -> int:
        """Insert documents, their waiting messages due ``later_s`` later; return how many they were."""
        count, batch, size = 0, list[RawBSONDocument](), 0

        def send() -> None:
            nonlocal batch, size
            if batch:
                _asked(lambda: self._database[collection].insert_many(batch, ordered=False))
            batch, size = [], 0

        for raw in documents:
            batch.append(_due_later(RawBSONDocument(raw), later_s))
            count, size = count + 1, size + len(raw)
            if size >= _INSERTED_BYTES or len(batch) >= _AT_ONCE:
                send()
        send()
        return count


class Copy:
    """The documents that were read, in a file: they may be more than fit in memory. A context manager."""

    def __init__(self, path: Path, places: Sequence[Place]) -> None:
        self._places = places
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(
            "CREATE TABLE documents (place INTEGER, collection TEXT, id TEXT, token BLOB, pass INTEGER, content BLOB,"
            " PRIMARY KEY (place, collection, id))"
        )
        self._passes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read_all(self, *, longest_s: float, show: Callable[[str], None]) -> datetime:
        """Read all; return the moment that the documents are of. Raises NeverStill, StoreUnavailable.

        ``longest_s``: how long the services may be held up.
        """
        show("reading while the services work")
        self._read()
        pause = new_id()
        with ExitStack() as paused:
            for place in self._places:
                paused.callback(place.resume, pause)
                place.pause(pause, longest_s)
            begun_at = time.monotonic()
            time.sleep(LOOK_EVERY_S + 0.2)
            while True:
                moment = datetime.now(UTC)
                changed = self._read()
                held_s = time.monotonic() - begun_at
                if held_s > longest_s - _MARGIN_S:
                    raise NeverStill(
                        f"the documents were not still within {longest_s:.0f} s: give --longest-pause more,"
                        " or look whether each service runs this version"
                    )
                if not changed:
                    break
        show(f"writes were held for {held_s:.1f} s")
        return moment

    def collections(self, place: int) -> Mapping[str, tuple[int, int]]:
        """Return the number and the bytes of the documents of each collection."""
        rows = self._file.execute(
            "SELECT collection, count(*), sum(length(content)) FROM documents WHERE place = ? GROUP BY collection",
            (place,),
        )
        return {name: (count, size) for name, count, size in rows}

    def contents(self, place: int, collection: str) -> Iterator[bytes]:
        """Yield the documents."""
        rows = self._file.execute(
            "SELECT content FROM documents WHERE place = ? AND collection = ? ORDER BY id", (place, collection)
        )
        return (bytes(content) for (content,) in rows)

    def bodies(self, place: int, collection: str) -> Iterator[tuple[str, JsonMapping]]:
        """Yield id and body of each document of a small collection."""
        for raw in self.contents(place, collection):
            found: dict[str, Any] = bson.decode(raw)
            if "deleted" not in found:
                read = stored(found)
                yield read.id, read.body

    def _read(self) -> int:
        """Read what has changed since the last pass; return how many changes there were."""
        self._passes += 1
        changed = 0
        with _asking():
            for number, place in enumerate(self._places):
                for collection in place.collections():
                    changed += self._read_collection(number, place, collection)
        self._file.execute("BEGIN")
        gone = self._file.execute("DELETE FROM documents WHERE pass < ?", (self._passes,)).rowcount
        self._file.execute("COMMIT")
        return changed + gone

    def _read_collection(self, number: int, place: Place, collection: str) -> int:
        self._file.execute("BEGIN")
        changed, batch = 0, list[str]()
        for document_id, token in place.tokens(collection):
            same = self._file.execute(
                "UPDATE documents SET pass = ? WHERE place = ? AND collection = ? AND id = ? AND token = ?",
                (self._passes, number, collection, document_id, token),
            ).rowcount
            if not same:
                changed += 1
                batch.append(document_id)
            if len(batch) >= _AT_ONCE:
                self._store(number, place, collection, batch)
                batch = []
        self._store(number, place, collection, batch)
        self._file.execute("COMMIT")
        return changed

    def _store(self, number: int, place: Place, collection: str, ids: Sequence[str]) -> None:
        if ids:
            self._file.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (number, collection, document_id, token, self._passes, content)
                    for document_id, token, content in place.documents(collection, ids)
                ),
            )


def token_of(document: Mapping[str, Any]) -> bytes:
    """Return what is another after each write of the document."""
    outbox = [str(each["id"]) for each in document.get("outbox") or ()]
    facts = [document.get("revision"), document.get("write"), document.get("deleted"), document.get("pending"), outbox]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).digest()


def check_document(raw: bytes) -> None:
    """Raise ValueError unless that is a document of the store."""
    try:
        found = bson.decode(raw)
    except bson.errors.BSONError as error:
        raise ValueError("not BSON") from error
    if not isinstance(found.get("_id"), str) or not isinstance(found.get("revision"), int):
        raise ValueError("not a document of the store")


def _due_later(document: RawBSONDocument, later_s: float) -> RawBSONDocument:
    """Return the document with the deadlines of its waiting messages moved."""
    if not document.get("outbox"):
        return document
    plain: dict[str, Any] = bson.decode(document.raw)
    moved = [
        {"id": each.id, "content": json.dumps(shifted(each.document, later_s), ensure_ascii=False)}
        for each in messages(plain)
    ]
    return RawBSONDocument(bson.encode(plain | {"outbox": moved}))


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except PyMongoError as error:
        # Not the error's own text: it may quote documents, or the URL.
        raise StoreUnavailable(f"MongoDB does not answer, or refuses: {type(error).__name__}") from error


def _asked(call: Callable[[], T]) -> T:
    with _asking():
        return call()
