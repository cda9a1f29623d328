"""The outbox: messages are stored in the same write as their cause, and remain after the document is deleted."""

from __future__ import annotations

import asyncio

import pytest
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import AlreadyExists, DocumentStore, Outgoing, RevisionConflict
from kubevnfm_store.query import AllOf, Index, Query, by
from kubevnfm_store.sqlite.store import SqliteStore


def a_message(id: str) -> Outgoing:
    return Outgoing(id, {"id": id, "data": {"$sealed": "v1.x", "a.b": [1, {"": None}]}, "text": "ü\n"})


async def pending(store: DocumentStore) -> dict[str, list[str]]:
    return {each.id: [message.id for message in each.messages] for each in await store.pending_outbox("things")}


class OutboxSuite:
    @pytest.fixture
    async def store(self) -> DocumentStore:
        raise NotImplementedError

    async def test_messages_wait_in_order_until_cleared(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {"n": 1}, outbox=[a_message("m1"), a_message("m2")])
        await store.update("things", "a", {"n": 2}, outbox=[a_message("m3")])
        await store.replace("things", "a", {"n": 3}, if_revision=2, outbox=[a_message("m0")])
        await store.insert("things", "quiet", {})
        [document] = await store.pending_outbox("things")
        assert document.id == "a"
        assert list(document.messages) == [a_message("m1"), a_message("m2"), a_message("m3"), a_message("m0")]
        await store.clear_outbox("things", {"a": ["m2", "m3", "unknown"]})
        assert await pending(store) == {"a": ["m1", "m0"]}
        await store.clear_outbox("things", {"a": ["m1", "m0"]})
        assert await pending(store) == {}
        await store.clear_outbox("things", {"a": ["m1"]})
        await store.clear_outbox("things", {"none": ["m1"]})
        now = await store.get("things", "a")
        assert now is not None
        assert (now.revision, now.body) == (3, {"n": 3})
        await store.update("things", "a", {}, outbox=[a_message("m9")])
        assert await pending(store) == {"a": ["m9"]}

    async def test_one_call_clears_many_documents(self, store: DocumentStore) -> None:
        ids = [f"d{n:02}" for n in range(25)]
        for each in ids:
            await store.insert("things", each, {"n": 1}, outbox=[a_message(f"{each}-1")])
        await store.update("things", "d03", {"n": 2}, outbox=[a_message("d03-2")])
        await store.delete("things", "d07", outbox=[a_message("d07-2")])
        await store.delete("things", "d20")
        await store.clear_outbox("things", {each: [f"{each}-1"] for each in ids})
        assert await pending(store) == {"d03": ["d03-2"], "d07": ["d07-2"]}
        assert {each.id for each in await store.find("things", Query())} == {*ids} - {"d07", "d20"}
        assert (await store.insert("things", "d20", {"n": 3})).revision == 1

    async def test_a_refused_write_posts_nothing(self, store: DocumentStore) -> None:
        await store.ensure_indexes("things", [Index(["name"], unique=True)])
        await store.insert("things", "a", {"name": "x"})
        await store.insert("things", "b", {})
        with pytest.raises(AlreadyExists):
            await store.insert("things", "a", {}, outbox=[a_message("m1")])
        with pytest.raises(AlreadyExists):
            await store.update("things", "b", {"name": "x"}, outbox=[a_message("m1")])
        with pytest.raises(RevisionConflict):
            await store.replace("things", "a", {}, if_revision=9, outbox=[a_message("m1")])
        with pytest.raises(RevisionConflict):
            await store.update("things", "a", {}, where=by(name="y"), outbox=[a_message("m1")])
        with pytest.raises(RevisionConflict):
            await store.delete("things", "a", if_revision=9, outbox=[a_message("m1")])
        assert not await store.delete("things", "none", outbox=[a_message("m1")])
        assert await pending(store) == {}

    async def test_the_messages_of_a_deleted_document_are_still_published(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {"n": 1}, outbox=[a_message("m1")])
        assert await store.delete("things", "a", outbox=[a_message("m2")])
        assert await store.get("things", "a") is None
        assert await store.get_many("things", ["a"]) == []
        assert await store.find("things", Query()) == []
        assert await store.count("things", AllOf(), limit=5) == 0
        assert not await store.delete("things", "a")
        with pytest.raises(RevisionConflict):
            await store.update("things", "a", {"n": 2})
        with pytest.raises(RevisionConflict):
            await store.replace("things", "a", {"n": 2}, if_revision=1)
        assert await pending(store) == {"a": ["m1", "m2"]}
        await store.clear_outbox("things", {"a": ["m1"]})
        assert await pending(store) == {"a": ["m2"]}
        await store.clear_outbox("things", {"a": ["m2"]})
        assert await pending(store) == {}
        assert (await store.insert("things", "a", {"n": 5})).revision == 1

    async def test_what_was_pending_before_a_silent_delete_is_kept(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {"n": 1}, outbox=[a_message("m1")])
        await store.insert("things", "b", {"n": 1}, outbox=[a_message("m2")])
        assert await store.delete("things", "a")
        assert await store.delete_many("things", AllOf()) == 1
        assert await store.find("things", Query()) == []
        assert await pending(store) == {"a": ["m1"], "b": ["m2"]}

    async def test_a_document_is_recreated_while_messages_of_the_deleted_one_wait(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {"old": True}, outbox=[a_message("m1")])
        await store.update("things", "a", {"n": 1})
        await store.delete("things", "a", outbox=[a_message("m2")])
        recreated = await store.insert("things", "a", {"new": True}, outbox=[a_message("m3")])
        assert (recreated.revision, recreated.body) == (1, {"new": True})
        assert await store.get("things", "a") == recreated
        assert await pending(store) == {"a": ["m1", "m2", "m3"]}
        with pytest.raises(AlreadyExists):
            await store.insert("things", "a", {})
        await store.clear_outbox("things", {"a": ["m1", "m2", "m3"]})
        assert await store.get("things", "a") == recreated

    async def test_racing_inserts_over_a_deleted_document_make_one(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {})
        await store.delete("things", "a", outbox=[a_message("m1")])
        results = await asyncio.gather(
            *(store.insert("things", "a", {"by": n}) for n in range(10)),
            store.clear_outbox("things", {"a": ["m1"]}),
            return_exceptions=True,
        )
        assert sum(isinstance(result, AlreadyExists) for result in results) == 9
        assert await store.get("things", "a") is not None

    async def test_no_message_is_lost_while_others_are_cleared(self, store: DocumentStore) -> None:
        await store.insert("things", "a", {}, outbox=[a_message("first")])
        published: list[str] = []

        async def relay() -> None:
            while len(published) < 31:
                for document in await store.pending_outbox("things"):
                    ids = [message.id for message in document.messages]
                    published.extend(ids)
                    await store.clear_outbox("things", {document.id: ids})

        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            group.create_task(relay())
            for n in range(30):
                group.create_task(store.update("things", "a", {f"n{n}": n}, outbox=[a_message(f"m{n}")]))
        assert sorted(published) == sorted(["first", *(f"m{n}" for n in range(30))])
        assert await pending(store) == {}

    async def test_the_limit_counts_documents(self, store: DocumentStore) -> None:
        for each_id in ("a", "b", "c"):
            await store.insert("things", each_id, {}, outbox=[a_message(f"{each_id}1"), a_message(f"{each_id}2")])
        await store.insert("others", "x", {}, outbox=[a_message("x1")])
        assert {len(each.messages) for each in await store.pending_outbox("things", limit=2)} == {2}
        assert len(await store.pending_outbox("things", limit=2)) == 2
        assert len(await store.pending_outbox("things")) == 3
        assert await store.pending_outbox("no_things") == []


class TestSqlite(OutboxSuite):
    @pytest.fixture
    async def store(self, sqlite_store: SqliteStore) -> DocumentStore:
        return sqlite_store


@pytest.mark.server
class TestMongo(OutboxSuite):
    @pytest.fixture
    async def store(self, mongo_store: MongoStore) -> DocumentStore:
        return mongo_store
