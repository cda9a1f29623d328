"""The DocumentStore port on MongoDB; the only module that uses motor, so that pymongo's client can replace it.

It needs no replica set. Each write carries a token by which a write that is repeated after a lost connection finds out
whether the first try arrived.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any, Final, NoReturn, Self, TypeVar

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.outages import Outage
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import (
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.monitoring import CommandListener
from pymongo.write_concern import WriteConcern

from kubevnfm_store.changes import check_apart
from kubevnfm_store.mongo.documents import LIVE, entries, in_body, messages, posting, stored, written
from kubevnfm_store.mongo.filters import NOT_NULL, sought
from kubevnfm_store.mongo.pages import projection, segments
from kubevnfm_store.mongo.pausing import PAUSES, WritePause
from kubevnfm_store.names import read_tree
from kubevnfm_store.port import (
    AlreadyExists,
    Outgoing,
    PendingOutbox,
    RevisionConflict,
    StoreUnavailable,
    UnsupportedServer,
    Writes,
)
from kubevnfm_store.query import Filter, Index, Query, Stored

T = TypeVar("T")
Document = JsonMapping
_PAUSES_S: Final = (0.05, 0.2, 0.8)
_TRIES: Final = 5
"""How often a write retries if a tombstone appears or disappears meanwhile."""
_PATH_NOT_VIABLE: Final = 28
_TIMES: Final[JsonObject] = {"serverSelectionTimeoutMS": 3000, "connectTimeoutMS": 3000, "socketTimeoutMS": 30_000}
"""Defaults for options that the URL does not set; the driver lets keyword arguments win over the URL."""


class MongoStore:
    """Documents in one database."""

    def __init__(self, database: Any) -> None:
        self._database = database
        # The driver makes a new object at each look-up of a collection.
        self._documents: Callable[[str], Any] = cache(database.__getitem__)
        self._with_pending_index: set[str] = set()
        self._outage = Outage("database")
        self._pause = WritePause(database[PAUSES])

    def heeding_pauses(self) -> AbstractAsyncContextManager[None]:
        """Hold writes while a backup asks for it, as long as the block lasts."""
        return self._pause.heeded()

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, url: str, database: str, *, listeners: Sequence[CommandListener] = ()
    ) -> AsyncIterator[Self]:
        """Yield the store; ``listeners`` see each command. Raises StoreUnavailable when the server does not answer or
        refuses the credentials, UnsupportedServer when it is FerretDB 1.x.
        """
        own = {name: value for name, value in _TIMES.items() if name.lower() not in url.lower()}
        client: Any = AsyncIOMotorClient(url, event_listeners=list(listeners), **own)
        try:
            try:
                build = await client.admin.command("buildInfo")
            except PyMongoError as error:
                raise StoreUnavailable(_reason(error)) from error
            version = str(build.get("ferretdbVersion", ""))
            if version.startswith(("v0.", "v1.")):
                # It reads, changes and writes back in separate statements, so two callers could win one revision.
                raise UnsupportedServer(f"the server is FerretDB {version}, whose writes are not atomic; use MongoDB")
            # With less than a majority a failover rolls acknowledged writes back, and without the journal a crash loses
            # them. Either would lose a message whose command was acknowledged already.
            concern = WriteConcern(w="majority", j=True)
            yield cls(client.get_database(database, write_concern=concern))
        finally:
            client.close()

    async def get(self, collection: str, id: str) -> Stored | None:
        wanted = {"_id": id, **LIVE}
        found = await self._retrying(lambda: self._documents(collection).find_one(wanted, {"outbox": 0}))
        return None if found is None else stored(found)

    async def get_many(self, collection: str, ids: Sequence[str]) -> Sequence[Stored]:
        return [
            stored(each) for each in await self._all(collection, {"_id": {"$in": list(ids)}, **LIVE}, {"outbox": 0})
        ]

    async def insert(
        self,
        collection: str,
        id: str,
        body: JsonMapping,
        *,
        outbox: Sequence[Outgoing] = (),
        may_wait: bool = False,
    ) -> Stored:
        token, content = new_id(), written(body)
        fresh = {"_id": id, "revision": 1, "body": content, "write": token}
        if outbox:
            fresh |= {"outbox": entries(outbox), "pending": True}
        revival = posting(outbox)
        revival["$set"] |= {"revision": 1, "body": content, "write": token}
        revival["$unset"] = {"deleted": ""}

        async def write() -> None:
            # Between two calls the tombstone may disappear, because its last message was published, or the id may be
            # inserted by another process. Each round decides on the present state.
            for _ in range(_TRIES):
                try:
                    await self._documents(collection).insert_one(dict(fresh))
                except DuplicateKeyError:
                    if await self._modify(collection, {"_id": id, "deleted": True}, revival, shown={"_id": 1}):
                        return
                    there = await self._documents(collection).find_one({"_id": id}, {"write": 1, "deleted": 1})
                    # An earlier try of this write arrived, and its answer was lost.
                    if there is not None and there.get("write") == token:
                        return
                    if there is not None and "deleted" not in there:
                        break
                else:
                    return
            raise DuplicateKeyError("")

        await self._writing(write, subject=f"{collection}/{id}")
        return Stored(id, 1, read_tree(content))

    async def replace(
        self, collection: str, id: str, body: JsonMapping, *, if_revision: int, outbox: Sequence[Outgoing] = ()
    ) -> Stored:
        content, change = written(body), posting(outbox)
        change["$set"]["body"] = content
        await self._change(collection, id, {"revision": if_revision}, change)
        return Stored(id, if_revision + 1, read_tree(content))

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
        change = posting(outbox)
        change["$set"] |= {in_body(path): written(value) for path, value in fields.items()}
        if unset:
            change["$unset"] = {in_body(path): "" for path in unset}
        conditions: JsonObject = {} if if_revision is None else {"revision": if_revision}
        return stored(await self._change(collection, id, conditions, change, where=where))

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        token = new_id()
        there: JsonObject = {"_id": id, **LIVE}
        wanted = there if if_revision is None else there | {"revision": if_revision}
        bury = posting(outbox)
        # Marked even without a message: if this process dies before `_settle`, the mark lets a sweep find the tombstone
        # and remove it.
        bury["$set"] |= {"deleted": True, "pending": True, "write": token}
        bury["$unset"] = {"body": ""}

        async def write() -> bool:
            documents = self._documents(collection)
            for _ in range(_TRIES):
                if not outbox:
                    # A document that has waiting messages must not be removed with them: it becomes a tombstone until
                    # they are published.
                    silent = wanted | {"pending": {"$exists": False}}
                    if (await documents.delete_one(silent)).deleted_count:
                        return True
                buried = await self._modify(collection, wanted, bury, shown={"outbox.id": 1})
                if buried is not None:
                    if not buried.get("outbox"):
                        await self._settle(collection, id)
                    return True
                now = await documents.find_one({"_id": id}, {"revision": 1, "write": 1, "deleted": 1})
                if now is None or "deleted" in now:
                    return now is not None and now.get("write") == token
                if if_revision not in (None, now["revision"]):
                    raise RevisionConflict(f"{collection}/{id}: at revision {now['revision']}, not {if_revision}")
            raise RevisionConflict(f"{collection}/{id}: changes too fast")

        return await self._writing(write, subject=f"{collection}/{id}")

    async def delete_many(self, collection: str, filter: Filter) -> int:
        query: Document = {"$and": [LIVE, sought(filter)]}

        async def write() -> int:
            documents = self._documents(collection)
            # The documents that are left after this have waiting messages and become tombstones.
            silent = await documents.delete_many({"$and": [query, {"pending": {"$exists": False}}]})
            buried = await documents.update_many(query, {"$set": {"deleted": True}, "$unset": {"body": ""}})
            return int(silent.deleted_count + buried.modified_count)

        return await self._writing(write)

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        if query.limit == 0:
            return []
        wanted, shown = sought(query.filter), projection(query.exclude)
        found: list[Stored] = []
        for condition, order in segments(query):
            room = None if query.limit is None else query.limit - len(found)
            if room == 0:
                break
            search = {"$and": [LIVE, wanted, condition]}
            found += [stored(each) for each in await self._all(collection, search, shown, order, room)]
        return found

    async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
        if limit == 0:
            return 0
        search = {"$and": [LIVE, sought(filter)]}
        return int(await self._retrying(lambda: self._documents(collection).count_documents(search, limit=limit)))

    async def ensure_indexes(self, collection: str, indexes: Sequence[Index]) -> None:
        for index in indexes:
            names = [in_body(path) for path in index.fields]
            # MongoDB indexes a missing field as null: two documents without a unique one would collide. A partial index
            # leaves them out; it serves a query whose condition on the fields is the same, as that of `Exists` is.
            having = dict.fromkeys(names, NOT_NULL) if index.unique or index.sparse else None
            # With the id at its end the index serves a key-set page, which continues after (value, id).
            keys = names if index.unique else [*names, "_id"]
            await self._index(collection, keys, unique=index.unique, sparse=index.sparse, having=having)

    async def pending_outbox(self, collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        await self._index_pending(collection)
        waiting = await self._all(collection, {"pending": True}, {"outbox": 1}, [("_id", 1)], limit)
        for each in waiting:
            if not each.get("outbox"):  # the process that cleared it died before it removed the mark
                await self._settle(collection, each["_id"])
        return [PendingOutbox(each["_id"], messages(each)) for each in waiting if each.get("outbox")]

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        left = await self._writing(lambda: self._unmark_all(collection, published))
        await asyncio.gather(*(self._remove(collection, each, published[each]) for each in left))

    async def _unmark_all(self, collection: str, published: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Remove the outboxes of live documents that hold exactly these messages, by one call; return the other documents."""
        changes = [
            UpdateOne(
                {"_id": each, **LIVE, "outbox": {"$size": len(messages)}, "outbox.id": {"$all": list(messages)}},
                {"$unset": {"outbox": "", "pending": ""}},
            )
            for each, messages in published.items()
        ]
        result = await self._documents(collection).bulk_write(changes, ordered=False)
        if result.modified_count == len(changes):
            return []
        pending = {"_id": {"$in": list(published)}, "pending": True}
        return [each["_id"] async for each in self._documents(collection).find(pending, {"_id": 1})]

    async def _remove(self, collection: str, id: str, message_ids: Sequence[str]) -> None:
        """Remove messages from a document that may have others, or be deleted."""
        pull = {"$pull": {"outbox": {"id": {"$in": list(message_ids)}}}}
        # The document may be large, and only its outbox is needed.
        left = await self._writing(lambda: self._modify(collection, {"_id": id}, pull, shown={"outbox.id": 1}))
        if left is not None and not left.get("outbox"):
            await self._settle(collection, id)

    def writes_to(self, collection: str) -> Writes:
        return _UnseenWrites()

    async def is_ready(self) -> bool:
        asked_at = time.monotonic()
        try:
            await self._database.command("ping")
        except PyMongoError:
            return False
        # A process that asks for documents seldom would say much later that an outage has ended.
        self._outage.answered(asked_at=asked_at)
        return True

    @property
    def takes_writes(self) -> bool:
        # A server without a disk to write on ends itself, and one that is not the primary is not asked: `is_ready` is False.
        return True

    async def _all(
        self,
        collection: str,
        search: Document,
        shown: Document,
        order: Sequence[tuple[str, int]] = (),
        limit: int | None = None,
    ) -> list[Document]:
        async def read() -> list[Document]:
            cursor = self._documents(collection).find(search, shown, limit=limit or 0, sort=list(order) or None)
            return [each async for each in cursor]

        return await self._retrying(read)

    async def _change(
        self,
        collection: str,
        id: str,
        conditions: Document,
        change: dict[str, JsonObject],
        *,
        where: Filter | None = None,
    ) -> Document:
        """Write one document that meets the conditions. Raises RevisionConflict, AlreadyExists."""
        token = new_id()
        change["$set"]["write"] = token
        change["$inc"] = {"revision": 1}
        search: JsonObject = {"_id": id, **conditions, **LIVE}
        if where is not None:
            search = {"$and": [search, sought(where)]}

        async def write() -> Document:
            changed = await self._modify(collection, search, change)
            if changed is None:  # the first try of this write may have arrived, and its answer was lost
                changed = await self._documents(collection).find_one({"_id": id, "write": token})
            if changed is None:
                raise RevisionConflict(f"{collection}/{id}: deleted, or does not meet the conditions any more")
            return changed

        return await self._writing(write, subject=f"{collection}/{id}")

    async def _modify(
        self, collection: str, search: Document, change: Document, *, shown: Document | None = None
    ) -> Document | None:
        """Change one document; return it, or what is ``shown`` of it; None if there is none."""
        # Servers before MongoDB 5.0 refuse an operator without fields.
        operators = {operator: fields for operator, fields in change.items() if fields}
        result: Document | None = await self._documents(collection).find_one_and_update(
            search, operators, projection=shown, return_document=ReturnDocument.AFTER
        )
        return result

    async def _settle(self, collection: str, id: str) -> None:
        """Remove the mark of an empty outbox, and the document with it if it is deleted."""
        empty: JsonObject = {"_id": id, "outbox": {"$in": [[], None]}}
        unmark = {"$unset": {"outbox": "", "pending": ""}}

        async def write() -> None:
            documents = self._documents(collection)
            if not (await documents.update_one({**empty, **LIVE}, unmark)).modified_count:
                await documents.delete_one(empty | {"deleted": True})

        await self._writing(write, subject=f"{collection}/{id}")

    async def _index_pending(self, collection: str) -> None:
        if collection not in self._with_pending_index:
            await self._index(collection, ["pending", "_id"], having={"pending": True})
            self._with_pending_index.add(collection)

    async def _index(
        self,
        collection: str,
        names: Sequence[str],
        *,
        unique: bool = False,
        sparse: bool = False,
        having: Document | None = None,
    ) -> None:
        # A sparse index on fields that had another one is another index, or the server would refuse it.
        kind = f"{unique}:sparse" if sparse else f"{unique}"
        digest = hashlib.sha256(f"{kind}:{'|'.join(names)}".encode()).hexdigest()[:12]
        options: JsonObject = {"name": f"kubevnfm_{digest}", "unique": unique}
        keys = [(name, 1) for name in names]

        await self._retrying(
            lambda: self._documents(collection).create_index(keys, **options, partialFilterExpression=having or {}),
            subject=f"{collection}: index on {', '.join(names)}",
        )

    async def _writing(self, call: Callable[[], Awaitable[T]], *, subject: str = "") -> T:
        await self._pause.passed()
        return await self._retrying(call, subject=subject)

    async def _retrying(self, call: Callable[[], Awaitable[T]], *, subject: str = "") -> T:
        """Call until the server answers; every call is safe to repeat."""
        with self._outage.watched(StoreUnavailable):
            return await self._tried(call, subject)

    async def _tried(self, call: Callable[[], Awaitable[T]], subject: str) -> T:
        for pause_s in (*_PAUSES_S, None):
            try:
                return await call()
            except ConnectionFailure as error:
                if pause_s is None or isinstance(error, ServerSelectionTimeoutError):  # this error has waited already
                    raise StoreUnavailable(_reason(error)) from error
                await asyncio.sleep(pause_s)
            # The server has answered, so another try would get the same answer.
            except PyMongoError as error:
                _refuse(subject, error)
            except OverflowError as error:
                raise InvalidInput("body", "an integer in it has more than 64 bits") from error
        raise AssertionError("unreachable")


class _UnseenWrites:
    """Change streams would report them, but they need a replica set."""

    async def following(self, *, look_s: float, longest_s: float) -> None:
        await asyncio.sleep(min(look_s, longest_s))


def _refuse(subject: str, error: PyMongoError) -> NoReturn:
    if isinstance(error, DuplicateKeyError):
        raise AlreadyExists(f"{subject}: the id, or a value that must be unique, is taken") from error
    if isinstance(error, DocumentTooLarge):
        raise InvalidInput("body", "larger than MongoDB accepts (16 MiB)") from error
    if isinstance(error, OperationFailure) and error.code == _PATH_NOT_VIABLE:
        raise InvalidInput("fields", f"{subject}: a path leads through a value that is not an object") from error
    raise StoreUnavailable(_reason(error)) from error


def _reason(error: PyMongoError) -> str:
    """Return the cause without values of documents, which the server's messages may quote."""
    if isinstance(error, OperationFailure):
        name = (error.details or {}).get("codeName", "")
        return f"MongoDB refused: code {error.code} {name}".rstrip()
    return f"MongoDB does not answer: {type(error).__name__}"
