"""The collections of a file, their indexes, and the values of indexed paths on which documents have arrays.

Only the writer thread changes it; readers compile their queries with what is on the disk. A collection without documents
needs no search: many are searched several times a second and for each event, and most installations never fill them all.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.matching import kind_of, values_at
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Index, names_of
from kubevnfm_store.sqlite.filters import Paths, bindable
from kubevnfm_store.sqlite.queries import table_of
from kubevnfm_store.sqlite.text import extract, is_there, json_path, literal, loaded

# Names of tables are checked when they are created; every value is a bound parameter or a quoted literal.
# ruff: noqa: S608

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, document TEXT NOT NULL,
    message TEXT NOT NULL, content TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_pending ON outbox (collection, document, seq);
CREATE TABLE IF NOT EXISTS searched_paths (
    collection TEXT NOT NULL, path TEXT NOT NULL, has_arrays INTEGER NOT NULL, PRIMARY KEY (collection, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS elements (
    collection TEXT NOT NULL, path TEXT NOT NULL, value NOT NULL, type TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (collection, path, value, type, document)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS elements_of_documents ON elements (collection, document);
"""
_SINGLE, _MANY = range(2)
"""States of a path (``has_arrays``): without arrays; with arrays, so that all its values are in ``elements``."""
_EARLIER: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'indexed_paths'"
"""Versions without ``elements`` keep their paths in this table, and make it when they open a file."""
_ELEMENT: Final = "INSERT OR IGNORE INTO elements (collection, document, path, type, value) VALUES (?, ?, ?, ?, ?)"


class Catalogue:
    """The collections of one file."""

    _has_news: bool
    """Whether there are changes since the last commit, which a rollback undoes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_TABLES)
        self._has_news = True
        self._empty: set[str] = set()
        self._published: Mapping[str, Paths] = {}
        self._filled: Mapping[str, Paths] = {}
        """Those published that have documents."""
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute(_EARLIER).fetchone():
            self._list_again(connection)
        self.reread(connection)
        connection.execute("COMMIT")
        self.publish()

    def reread(self, connection: sqlite3.Connection) -> None:
        """Read the state from the file as the writer's transaction sees it: at the start and after a rollback."""
        if not self._has_news:
            return
        # First: if reading fails too, `add` reads each collection when it is written.
        self._paths: dict[str, Paths] = {}
        self._empty = set()
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'documents_*'")
        for (name,) in tables.fetchall():
            self._read(connection, name.removeprefix("documents_"))

    def publish(self) -> None:
        """Publish the writer's state to readers; called when its transaction is on the disk.

        Their connections do not see a table or its elements before that.
        """
        if self._has_news:
            self._published = {**self._published, **self._paths}
            # Collections that a failed `reread` has left out are as they were: its transaction has changed nothing.
            known = {name for name in self._published if name not in self._paths and name not in self._filled}
            empty = self._empty | known
            self._filled = {name: paths for name, paths in self._published.items() if name not in empty}
            self._has_news = False

    def published(self, collection: str) -> Paths | None:
        """Return what readers can ask for; None if the collection does not exist, or has no documents."""
        return self._filled.get(collection)

    def add(self, connection: sqlite3.Connection, collection: str) -> Paths:
        """Create the collection's table if it is missing; return its paths for the writer."""
        if (paths := self._paths.get(collection)) is not None:
            return paths
        if not _NAME.fullmatch(collection):
            raise InvalidInput("collection", f"must consist of a-z, 0-9 and _, got {collection!r}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table_of(collection)}"
            " (id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL)"
        )
        return self._read(connection, collection)

    def fill(self, collection: str) -> None:
        """Note that a document is inserted into the collection."""
        if collection in self._empty:
            self._empty.remove(collection)
            self._has_news = True

    def remove(self, connection: sqlite3.Connection, collection: str) -> None:
        """Note that documents of the collection were deleted."""
        if not _has_documents(connection, collection):
            self._empty.add(collection)
            self._has_news = True

    def index_elements(
        self, connection: sqlite3.Connection, collection: str, id: str, body: JsonMapping, *, is_new: bool = False
    ) -> None:
        """Bring ``elements`` up to date with a document that is written in the same transaction.

        ``is_new``: the document is inserted, so it has none yet.
        """
        for path in self._paths[collection].single:
            if _leads_to_array(body, path):
                self._list_elements(connection, collection, path)
        many = self._paths[collection].many
        if not many:
            return
        now = {row for path in many for row in _rows(path, body)}
        if is_new:
            connection.executemany(_ELEMENT, [(collection, id, *row) for row in now])
            return
        stored = connection.execute(
            "SELECT path, type, value FROM elements WHERE collection = ? AND document = ?", (collection, id)
        )
        before = set(stored.fetchall())
        connection.executemany(
            "DELETE FROM elements WHERE collection = ? AND document = ? AND path = ? AND type = ? AND value = ?",
            [(collection, id, *row) for row in before - now],
        )
        connection.executemany(_ELEMENT, [(collection, id, *row) for row in now - before])

    def index(self, connection: sqlite3.Connection, collection: str, indexes: Sequence[Index]) -> None:
        """Create missing indexes. Raises AlreadyExists if stored documents violate a unique one."""
        many = self.add(connection, collection).many
        for index in indexes:
            name, columns, having = index_sql(collection, index)
            if not index.unique and not index.sparse and len(index.fields) == 1 and index.fields[0] in many:
                connection.execute(f"DROP INDEX IF EXISTS {name}")  # an earlier version has made it
                continue
            try:
                connection.execute(
                    f"CREATE {'UNIQUE ' if index.unique else ''}INDEX IF NOT EXISTS"
                    f" {name} ON {table_of(collection)} ({columns}){having}"
                )
            except sqlite3.IntegrityError as error:
                raise AlreadyExists(f"{collection}: documents share values of {', '.join(index.fields)}") from error
        paths = self._paths[collection]
        for path in sorted({path for index in indexes for path in index.fields} - paths.single - paths.many):
            connection.execute("INSERT INTO searched_paths VALUES (?, ?, ?)", (collection, path, _SINGLE))
            # Read once, when the index is created; afterwards each body is seen before it is stored.
            if any(_has_array(connection, collection, prefix) for prefix in _prefixes(path)):
                self._list_elements(connection, collection, path)
        self._read(connection, collection)

    def _read(self, connection: sqlite3.Connection, collection: str) -> Paths:
        rows = connection.execute("SELECT has_arrays, path FROM searched_paths WHERE collection = ?", (collection,))
        states = rows.fetchall()
        single, many = (frozenset(path for state, path in states if state == wanted) for wanted in (_SINGLE, _MANY))
        self._paths[collection] = paths = Paths(collection, single, many)
        if _has_documents(connection, collection):
            self._empty.discard(collection)
        else:
            self._empty.add(collection)
        self._has_news = True
        return paths

    def _list_again(self, connection: sqlite3.Connection) -> None:
        """Take over the paths of an earlier version, which may have written documents since their elements were listed."""
        self._paths = {}
        connection.execute("DELETE FROM elements")
        connection.execute("DELETE FROM searched_paths")
        connection.execute("INSERT INTO searched_paths SELECT collection, path, has_arrays FROM indexed_paths")
        connection.execute("DROP TABLE indexed_paths")
        many = connection.execute("SELECT collection, path FROM searched_paths WHERE has_arrays <> ?", (_SINGLE,))
        for collection, path in many.fetchall():
            self._list_elements(connection, collection, path)

    def _list_elements(self, connection: sqlite3.Connection, collection: str, path: str) -> None:
        """Fill ``elements`` with the values of a path that has its first array; documents that are deleted take theirs with them."""
        table = table_of(collection)
        connection.execute(
            f'CREATE TRIGGER IF NOT EXISTS "elements_of_{collection}" AFTER DELETE ON {table} BEGIN'
            f" DELETE FROM elements WHERE collection = {literal(collection)} AND document = old.id; END"
        )
        for document, text in connection.execute(f"SELECT id, body FROM {table}"):
            connection.executemany(_ELEMENT, [(collection, document, *row) for row in _rows(path, loaded(text))])
        # No search reads the path's index any more, and each write would copy whole arrays into it.
        connection.execute(f"DROP INDEX IF EXISTS {index_sql(collection, Index([path]))[0]}")
        state = "UPDATE searched_paths SET has_arrays = ? WHERE collection = ? AND path = ?"
        connection.execute(state, (_MANY, collection, path))
        self._read(connection, collection)


def index_sql(collection: str, index: Index) -> tuple[str, str, str]:
    """Return the quoted name of an index, its columns, and which documents it holds."""
    # The id at the end serves key-set pages. In a unique index it would make every entry unique.
    columns = ", ".join([*(extract(path) for path in index.fields), *([] if index.unique else ["id"])])
    having = ""
    if index.sparse:
        # By id alone, or a page in the order of the ids would be read from the table.
        columns, having = "id", f" WHERE {' AND '.join(is_there(path) for path in index.fields)}"
    digest = hashlib.sha256(f"{index.unique}:{columns}{having}".encode()).hexdigest()[:12]
    return f'"index_{collection}_{digest}"', columns, having


def _rows(path: str, body: JsonMapping) -> Iterator[tuple[str, str, Any]]:
    """Yield (path, type, value) of each value that a comparison of the path can find, as json_type and json_extract see it."""
    for value in values_at(body, path):
        match kind_of(value):
            case "null":
                yield path, "null", ""
            case "boolean":
                yield path, "true" if value else "false", int(value)
            case "number":
                yield path, "real" if isinstance(value, float) else "integer", bindable(value)
            case "text":
                yield path, "text", str(value)


def _has_documents(connection: sqlite3.Connection, collection: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {table_of(collection)} LIMIT 1").fetchone() is not None


def _prefixes(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[: length + 1]) for length in range(len(names))]


def _has_array(connection: sqlite3.Connection, collection: str, path: str) -> bool:
    query = f"SELECT 1 FROM {table_of(collection)} WHERE json_type(body, ?) = 'array' LIMIT 1"
    return connection.execute(query, (json_path(path),)).fetchone() is not None


def _leads_to_array(body: JsonMapping, path: str) -> bool:
    node: Any = body
    for name in names_of(path):
        node = node.get(name) if isinstance(node, Mapping) else None
        if isinstance(node, list | tuple):
            return True
    return False
