"""DocumentStore on MongoDB."""

from kubevnfm_store.mongo.store import MongoStore

__all__ = ["MongoStore"]
