"""DocumentStore on SQLite: one file, durable, one process: the embedded default."""

from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_store.sqlite.writer import FileInUse

__all__ = ["FileInUse", "SqliteStore"]
