"""The DocumentStore port on one SQLite file."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, Self
from weakref import WeakSet

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.changes import change, check_apart, without
from kubevnfm_store.port import AlreadyExists, Outgoing, PendingOutbox, RevisionConflict, StoreUnavailable, Writes
from kubevnfm_store.query import AllOf, Filter, Index, Query, Stored
from kubevnfm_store.sqlite.filters import where as condition
from kubevnfm_store.sqlite.queries import counting, selects, table_of
from kubevnfm_store.sqlite.readers import Readers
from kubevnfm_store.sqlite.text import dumped, loaded
from kubevnfm_store.sqlite.writer import Writer

# The catalogue has checked the names of tables; every value is a bound parameter.
# ruff: noqa: S608


class _Written(Stored):
    """A document as it was written. It is read again only when someone asks for its body: hardly any writer does."""

    def __init__(self, id: str, revision: int, text: str) -> None:
        self.__dict__.update(id=id, revision=revision, _text=text)

    def __getattr__(self, name: str) -> Any:
        if name != "body":
            raise AttributeError(name)
        body = self.__dict__["body"] = loaded(self.__dict__["_text"])
        return body

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        return (self.id, self.revision, self.body) == (other.id, other.revision, other.body)

    __hash__ = None  # type: ignore[assignment]  # as the body has none


class SqliteStore:
    """Documents in one file, durable on return, for one process."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer, self._readers, self._catalogue = writer, readers, writer.catalogue
        self._following: defaultdict[str, _Followers] = defaultdict(_Followers)

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[Self]:
        """Yield the store in ``path``, which is created if it is missing. Raises FileInUse, StoreUnavailable."""
        writer = await asyncio.to_thread(Writer, path)
        readers = Readers(path)
        try:
            yield cls(writer, readers)
        finally:
            # The writer's connection closes last: the last one merges the WAL into the database file.
            await readers.close()
            await writer.close()

    async def get(self, collection: str, id: str) -> Stored | None:
        found = await self.get_many(collection, [id])
        return found[0] if found else None

    async def get_many(self, collection: str, ids: Sequence[str]) -> Sequence[Stored]:
        if self._catalogue.published(collection) is None:
            return []
        query = f"SELECT id, revision, body FROM {table_of(collection)} WHERE id "
        if len(ids) == 1:
            return await self._rows(query + "= ?", (ids[0],))
        # One parameter for any number of ids: SQLite limits the parameters of a statement, and one text is prepared
        # once.
        return await self._rows(query + "IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))

    async def insert(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        outbox: Sequence[Outgoing] = (),
        may_wait: bool = False,
    ) -> Stored:
        text, messages = dumped(body), _contents(outbox)

        def write(connection: sqlite3.Connection) -> Stored:
            self._catalogue.add(connection, collection)
            # In the same transaction as the body: a filter that trusts the index must not miss an array stored a moment
            # before.
            self._catalogue.index_elements(connection, collection, id, body, is_new=True)
            try:
                connection.execute(f"INSERT INTO {table_of(collection)} VALUES (?, 1, ?)", (id, text))
            except sqlite3.IntegrityError as error:
                _refuse(collection, id, error)
            self._catalogue.fill(collection)
            _post(connection, collection, id, messages)
            return _Written(id, 1, text)

        return await self._writer.do(write, self._following[collection], may_wait=may_wait)

    async def replace(
        self, collection: str, id: str, body: JsonMapping, *, if_revision: int, outbox: Sequence[Outgoing] = ()
    ) -> Stored:
        text, messages = dumped(body), _contents(outbox)

        def write(connection: sqlite3.Connection) -> Stored:
            self._catalogue.add(connection, collection)
            self._catalogue.index_elements(connection, collection, id, body)
            self._write(connection, collection, id, text, if_revision)
            _post(connection, collection, id, messages)
            return _Written(id, if_revision + 1, text)

        return await self._writer.do(write, self._following[collection])

    async def update(
        self,
        collection: str,
        id: str,
        fields: JsonMapping,
        *,
        unset: Sequence[str] = (),
        if_revision: int | None = None,
        where: Filter | None = None,
        outbox: Sequence[Outgoing] = (),
    ) -> Stored:
        check_apart([*fields, *unset])
        changes, messages = loaded(dumped(fields)), _contents(outbox)

        def write(connection: sqlite3.Connection) -> Stored:
            fits = condition(where or AllOf(), self._catalogue.add(connection, collection))
            # Reading and writing need no lock: only this thread writes, and it runs one operation at a time.
            row = connection.execute(
                f"SELECT revision, body FROM {table_of(collection)} WHERE id = ? AND revision = coalesce(?, revision)"
                f" AND ({fits.text})",
                (id, if_revision, *fits.params),
            ).fetchone()
            if row is None:
                raise RevisionConflict(f"{collection}/{id}: deleted, or does not meet the conditions any more")
            revision, body = row[0], loaded(row[1])
            change(body, changes, unset)
            self._catalogue.index_elements(connection, collection, id, body)
            self._write(connection, collection, id, dumped(body), revision)
            _post(connection, collection, id, messages)
            return Stored(id, revision + 1, body)

        return await self._writer.do(write, self._following[collection])

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        messages = _contents(outbox)

        def write(connection: sqlite3.Connection) -> bool:
            self._catalogue.add(connection, collection)
            table = table_of(collection)
            row = connection.execute(f"SELECT revision FROM {table} WHERE id = ?", (id,)).fetchone()
            if row is None:
                return False
            if if_revision not in (None, row[0]):
                raise RevisionConflict(f"{collection}/{id}: at revision {row[0]}, not {if_revision}")
            # Its messages stay: they have a table of their own and are published from there.
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (id,))
            self._catalogue.remove(connection, collection)
            _post(connection, collection, id, messages)
            return True

        return await self._writer.do(write, self._following[collection])

    async def delete_many(self, collection: str, filter: Filter) -> int:
        if self._catalogue.published(collection) is None:
            return 0

        def write(connection: sqlite3.Connection) -> int:
            fits = condition(filter, self._catalogue.add(connection, collection))
            deleted = connection.execute(f"DELETE FROM {table_of(collection)} WHERE {fits.text}", fits.params).rowcount
            if deleted:
                self._catalogue.remove(connection, collection)
            return deleted

        return await self._writer.do(write, self._following[collection])

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        paths = self._catalogue.published(collection)
        if paths is None or query.limit == 0:
            return []
        found: list[Stored] = []
        for select in selects(paths, query):
            *params, limit = select.params
            wanted = limit - len(found) if query.limit else limit
            found += await self._rows(select.text, (*params, wanted), exclude=query.exclude)
            if query.limit and len(found) >= query.limit:
                break
        return found

    async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
        paths = self._catalogue.published(collection)
        if paths is None:
            return 0
        select = counting(paths, filter, limit)
        row = await self._readers.do(lambda connection: connection.execute(select.text, select.params).fetchone())
        return int(row[0])

    async def ensure_indexes(self, collection: str, indexes: Sequence[Index]) -> None:
        await self._writer.do(lambda connection: self._catalogue.index(connection, collection, indexes))

    async def pending_outbox(self, collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        def read(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
            return connection.execute(PENDING, (collection, collection, limit)).fetchall()

        messages: dict[str, list[Outgoing]] = {}
        for document, message, content in await self._readers.do(read):
            messages.setdefault(document, []).append(Outgoing(message, json.loads(content)))
        return [PendingOutbox(document, of_it) for document, of_it in messages.items()]

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        rows = [(collection, document, message) for document, messages in published.items() for message in messages]
        await self._writer.do(
            lambda connection: (
                connection.executemany(
                    "DELETE FROM outbox WHERE collection = ? AND document = ? AND message = ?", rows
                ).rowcount
            ),
            may_wait=True,
        )

    def writes_to(self, collection: str) -> Writes:
        return self._following[collection].new()

    async def is_ready(self) -> bool:
        try:
            await self._readers.do(lambda connection: connection.execute("SELECT 1").fetchone())
        except StoreUnavailable:
            return False
        return self._writer.is_running

    @property
    def takes_writes(self) -> bool:
        return not self._writer.is_refused

    async def _rows(self, query: str, params: Sequence[Any], *, exclude: Sequence[str] = ()) -> list[Stored]:
        inner = [path for path in exclude if "/" in path]  # json_remove does not lead through arrays

        def read(connection: sqlite3.Connection) -> list[Stored]:
            return [_stored(row, inner) for row in connection.execute(query, params).fetchall()]

        return await self._readers.do(read)

    def _write(self, connection: sqlite3.Connection, collection: str, id: str, text: str, if_revision: int) -> None:
        try:
            written = connection.execute(
                f"UPDATE {table_of(collection)} SET body = ?, revision = revision + 1 WHERE id = ? AND revision = ?",
                (text, id, if_revision),
            ).rowcount
        except sqlite3.IntegrityError as error:
            _refuse(collection, id, error)
        if not written:
            raise RevisionConflict(f"{collection}/{id}: deleted, or not at revision {if_revision} any more")


class _SeenWrites:
    """All of a collection: no other process writes to the file."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def following(self, *, look_s: float, longest_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self.event.wait()
        self.event.clear()


class _Followers:
    """Those who wait for writes to one collection."""

    def __init__(self) -> None:
        self._all: WeakSet[_SeenWrites] = WeakSet()

    def new(self) -> _SeenWrites:
        seen = _SeenWrites()
        self._all.add(seen)
        return seen

    def __call__(self) -> None:
        for each in self._all:
            each.event.set()


PENDING = """
SELECT document, message, content FROM outbox
WHERE collection = ? AND document IN
    (SELECT DISTINCT document FROM outbox WHERE collection = ? ORDER BY document LIMIT ?)
ORDER BY document, seq
"""
"""Documents in order of id, which the index gives without a sort; a document's messages oldest first."""


def _stored(row: tuple[str, int, str], exclude: Sequence[str]) -> Stored:
    body = loaded(row[2])
    for path in exclude:
        without(body, path)
    return Stored(row[0], row[1], body)


def _contents(outbox: Sequence[Outgoing]) -> list[tuple[str, str]]:
    return [(each.id, json.dumps(each.document, ensure_ascii=False, separators=(",", ":"))) for each in outbox]


def _post(connection: sqlite3.Connection, collection: str, id: str, messages: Sequence[tuple[str, str]]) -> None:
    connection.executemany(
        "INSERT INTO outbox (collection, document, message, content) VALUES (?, ?, ?, ?)",
        [(collection, id, message, content) for message, content in messages],
    )


def _refuse(collection: str, id: str, error: sqlite3.IntegrityError) -> NoReturn:
    raise AlreadyExists(f"{collection}/{id}: the id, or a value that must be unique, is taken") from error
