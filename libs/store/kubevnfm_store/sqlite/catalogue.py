"""The collections of a file, their indexes, and the indexed paths on which no document has an array.

Only the writer thread changes it; readers use it when they compile a query. A reader that compiles just before the
first array arrives answers as of that moment, which is all that concurrent calls may expect.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Index, names_of
from kubevnfm_store.sqlite.queries import table_of
from kubevnfm_store.sqlite.text import extract, is_there, json_path

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, document TEXT NOT NULL,
    message TEXT NOT NULL, content TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_pending ON outbox (collection, document, seq);
CREATE TABLE IF NOT EXISTS indexed_paths (
    collection TEXT NOT NULL, path TEXT NOT NULL, has_arrays INTEGER NOT NULL, PRIMARY KEY (collection, path)
) WITHOUT ROWID;
"""


class Catalogue:
    """The collections of one file."""

    _has_news: bool
    """Whether there are changes since the last commit, which a rollback undoes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_TABLES)
        self._has_news = True
        self.reread(connection)
        self.publish()

    def reread(self, connection: sqlite3.Connection) -> None:
        """Read the state from the file as the writer's transaction sees it: at the start and after a rollback."""
        if not self._has_news:
            return
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'documents_*'")
        self._collections = {name.removeprefix("documents_") for (name,) in tables}
        single_valued: dict[str, frozenset[str]] = {}
        for collection, path in connection.execute("SELECT collection, path FROM indexed_paths WHERE has_arrays = 0"):
            single_valued[collection] = single_valued.get(collection, frozenset()) | {path}
        self._single_valued = single_valued

    def publish(self) -> None:
        """Publish the writer's collections to readers; called when its transaction is on the disk.

        Their connections do not see a table before that, and would fail with "no such table".
        """
        if self._has_news:
            self._readable = frozenset(self._collections)
            self._has_news = False

    def __contains__(self, collection: str) -> bool:
        """Return whether readers can ask for the collection."""
        return collection in self._readable

    def single_valued(self, collection: str) -> frozenset[str]:
        """Return the indexed paths on which no document has an array."""
        return self._single_valued.get(collection, frozenset())

    def add(self, connection: sqlite3.Connection, collection: str) -> None:
        """Create the collection's table if it is missing."""
        if collection in self._collections:
            return
        if not _NAME.fullmatch(collection):
            raise InvalidInput("collection", f"must consist of a-z, 0-9 and _, got {collection!r}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table_of(collection)}"
            " (id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL)"
        )
        self._collections.add(collection)
        self._has_news = True

    def watch(self, connection: sqlite3.Connection, collection: str, body: JsonMapping) -> None:
        """Note the arrays of a body about to be stored on single-valued paths."""
        known = self.single_valued(collection)
        arrays = [path for path in known if _leads_to_array(body, path)]
        for path in arrays:
            connection.execute(
                "UPDATE indexed_paths SET has_arrays = 1 WHERE collection = ? AND path = ?", (collection, path)
            )
        if arrays:
            self._single_valued[collection] = known.difference(arrays)
            self._has_news = True

    def index(self, connection: sqlite3.Connection, collection: str, indexes: Sequence[Index]) -> None:
        """Create missing indexes. Raises AlreadyExists if stored documents violate a unique one."""
        self.add(connection, collection)
        for index in indexes:
            # The id at the end serves key-set pages. In a unique index it would make every entry unique.
            columns = ", ".join([*(extract(path) for path in index.fields), *([] if index.unique else ["id"])])
            having = ""
            if index.sparse:
                # By id alone, or a page in the order of the ids would be read from the table.
                columns, having = "id", f" WHERE {' AND '.join(is_there(path) for path in index.fields)}"
            digest = hashlib.sha256(f"{index.unique}:{columns}{having}".encode()).hexdigest()[:12]
            try:
                connection.execute(
                    f"CREATE {'UNIQUE ' if index.unique else ''}INDEX IF NOT EXISTS"
                    f' "index_{collection}_{digest}" ON {table_of(collection)} ({columns}){having}'
                )
            except sqlite3.IntegrityError as error:
                raise AlreadyExists(f"{collection}: documents share values of {', '.join(index.fields)}") from error
        self._learn(connection, collection, {path for index in indexes for path in index.fields})

    def _learn(self, connection: sqlite3.Connection, collection: str, paths: Collection[str]) -> None:
        known = {
            path for (path,) in connection.execute("SELECT path FROM indexed_paths WHERE collection = ?", (collection,))
        }
        for path in sorted(set(paths) - known):
            # Read once, when the index is created; afterwards `watch` sees each body before it is stored.
            has_arrays = any(_has_array(connection, collection, prefix) for prefix in _prefixes(path))
            connection.execute("INSERT INTO indexed_paths VALUES (?, ?, ?)", (collection, path, has_arrays))
            if not has_arrays:
                self._single_valued[collection] = self.single_valued(collection) | {path}
                self._has_news = True


def _prefixes(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[: length + 1]) for length in range(len(names))]


def _has_array(connection: sqlite3.Connection, collection: str, path: str) -> bool:
    query = f"SELECT 1 FROM {table_of(collection)} WHERE json_type(body, ?) = 'array' LIMIT 1"  # noqa: S608 - a checked name
    return connection.execute(query, (json_path(path),)).fetchone() is not None


def _leads_to_array(body: JsonMapping, path: str) -> bool:
    node: Any = body
    for name in names_of(path):
        node = node.get(name) if isinstance(node, Mapping) else None
        if isinstance(node, list | tuple):
            return True
    return False
