"""The DocumentStore port with its MongoDB and SQLite adapters, which are loaded when they are first asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubevnfm_store.mongo import MongoStore
    from kubevnfm_store.sqlite import SqliteStore

__all__ = ["MongoStore", "SqliteStore"]


def __getattr__(name: str) -> Any:
    """Load an adapter with its driver; a process on SQLite never loads MongoDB's."""
    if name == "MongoStore":
        from kubevnfm_store.mongo import MongoStore

        return MongoStore
    if name == "SqliteStore":
        from kubevnfm_store.sqlite import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
