"""A backup of several databases is of one moment; what a restore of six services refuses, and what it brings back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import bson
import pytest
from kubevnfm.backup import restoring, taking
from kubevnfm.backup.places import Location, SettingsIncomplete, SixServices, installation
from kubevnfm.backup.restoring import RestoreRefused
from kubevnfm_events.contract import services
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import KeyRing
from kubevnfm_store.mongo.pausing import BACKUP, PAUSES, WritePause
from kubevnfm_store.mongo.reading import Copy, NeverStill, Place
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import Outgoing
from kubevnfm_store.restoring import LAST, RESTORES
from motor.motor_asyncio import AsyncIOMotorClient
from patience import until_true
from pydantic import SecretStr

DEADLINE = "2026-01-01T00:00:00.000000Z"


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.fixture
def databases(mongodb_url: str) -> list[tuple[str, str]]:
    """The addresses of two new databases."""
    return [(mongodb_url, f"test_{new_id().replace('-', '')[:12]}") for _ in range(2)]


@pytest.fixture
def installed(databases: list[tuple[str, str]], tmp_path: Path) -> SixServices:
    """Six services: one with the first database, the others with the second."""
    first, *others = sorted(services(), key=lambda name: name != "lcm-api")
    owners = [(first,), tuple(others)]
    locations = tuple(Location(SecretStr(url), name, of) for (url, name), of in zip(databases, owners, strict=True))
    return SixServices(locations, tmp_path / "files", SecretStr(KeyRing.new_key()))


@pytest.fixture
def places(databases: list[tuple[str, str]]) -> Iterator[list[Place]]:
    """The databases as a backup reads them."""
    found = [Place(*each) for each in databases]
    yield found
    for each in found:
        each.close()


async def count_on(stores: list[MongoStore]) -> None:
    """Write one number after the other, each into both databases in turn."""
    for store in stores:
        await store.insert("numbers", "n", {"n": 0})
    number = 0
    while True:
        number += 1
        for store in stores:
            await store.update("numbers", "n", {"n": number})
            await store.insert("numbers", f"n-{number}", {"n": number})


def numbers(copy: Copy, place: int) -> tuple[int, int]:
    """Return the number in the document that is written over and over, and how many others there are."""
    found: dict[str, Any] = {each["_id"]: each["body"] for each in map(bson.decode, copy.contents(place, "numbers"))}
    return found.pop("n")["n"], len(found)


async def test_two_databases_are_read_as_they_were_at_one_moment(
    databases: list[tuple[str, str]], places: list[Place], tmp_path: Path
) -> None:
    async with AsyncExitStack() as running:
        stores = [await running.enter_async_context(MongoStore.connect(*each)) for each in databases]
        for store in stores:
            await running.enter_async_context(store.heeding_pauses())
        work = asyncio.create_task(count_on(stores))
        with Copy(tmp_path / "copy", places) as copy:
            await asyncio.to_thread(copy.read_all, longest_s=20, show=quiet)
            (first, made_first), (second, made_second) = numbers(copy, 0), numbers(copy, 1)
        assert first > 0
        # The second is written after the first, and each counts its documents by one write more.
        assert first - second in (0, 1)
        assert first - made_first in (0, 1)
        assert second - made_second in (0, 1)

        async def goes_on() -> bool:
            stored = await stores[0].get("numbers", "n")
            return stored is not None and stored.body["n"] > first + 2

        await until_true(goes_on)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_a_process_that_does_not_pause_fails_the_backup_and_is_not_held(
    databases: list[tuple[str, str]], places: list[Place], tmp_path: Path
) -> None:
    async with AsyncExitStack() as running:
        stores = [await running.enter_async_context(MongoStore.connect(*each)) for each in databases]
        work = asyncio.create_task(count_on(stores))
        with Copy(tmp_path / "copy", places) as copy, pytest.raises(NeverStill):
            await asyncio.to_thread(copy.read_all, longest_s=4, show=quiet)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        client: Any = AsyncIOMotorClient(databases[0][0])
        assert await client[databases[0][1]][PAUSES].count_documents({}) == 0
        client.close()


async def test_the_pause_of_a_backup_that_was_killed_ends_by_itself_and_is_not_repeated(
    databases: list[tuple[str, str]],
) -> None:
    url, database = databases[0]
    client: Any = AsyncIOMotorClient(url)
    documents = client[database][PAUSES]
    await documents.insert_one({"_id": BACKUP, "pause": "p-1", "lengthS": 0.2})
    pause = WritePause(documents)
    async with pause.heeded():
        await until_true(lambda: _is_held(pause))
        async with asyncio.timeout(10):
            await pause.passed()

        async def is_removed() -> bool:
            return not await documents.count_documents({})

        await until_true(is_removed)
        assert not await _is_held(pause)
    client.close()


async def _is_held(pause: WritePause) -> bool:
    try:
        async with asyncio.timeout(0.01):
            await pause.passed()
    except TimeoutError:
        return True
    return False


async def fill(installed: SixServices) -> None:
    """Store documents with messages, one of which belongs to a deleted document, and a sealed value."""
    ring = KeyRing.from_text(installed.keys.get_secret_value())
    for one in installed.locations:
        async with MongoStore.connect(one.url.get_secret_value(), one.database) as store:
            message = Outgoing("m", {"id": "m", "deadline": DEADLINE})
            body = {"a.b": 1, "password": {"$sealed": ring.seal("x")}}
            await store.insert("vnf_instances", "v", body, outbox=[message])
            await store.insert("vnf_instances", "gone", {}, outbox=[message])
            await store.delete("vnf_instances", "gone")


async def back_up(installed: SixServices, target: Path) -> None:
    await asyncio.to_thread(taking.write_backup, installed, target, longest_pause_s=20, with_keys=False, show=quiet)


async def restore(installed: SixServices, source: Path, *, replace: bool = False) -> None:
    await asyncio.to_thread(restoring.restore, installed, source, replace=replace, show=quiet)


async def test_documents_and_messages_come_back_and_nothing_else_is_left(
    installed: SixServices, tmp_path: Path
) -> None:
    await fill(installed)
    await back_up(installed, tmp_path / "backup")
    for one in installed.locations:
        async with MongoStore.connect(one.url.get_secret_value(), one.database) as store:
            await store.update("vnf_instances", "v", {"a.b": 2})
            await store.insert("later", "l", {})
    with pytest.raises(RestoreRefused, match=r"lcm-api has documents.*--replace"):
        await restore(installed, tmp_path / "backup")
    await restore(installed, tmp_path / "backup", replace=True)
    for one in installed.locations:
        async with MongoStore.connect(one.url.get_secret_value(), one.database) as store:
            [back] = await store.get_many("vnf_instances", ["v", "gone"])
            assert (back.revision, back.body["a.b"]) == (1, 1)
            assert await store.get("later", "l") is None
            waiting = {each.id: each.messages for each in await store.pending_outbox("vnf_instances")}
            assert set(waiting) == {"v", "gone"}
            assert waiting["v"][0].document["deadline"] > DEADLINE
            marked = await store.get(RESTORES, LAST)
            assert (marked is not None) is ("lcm-api" in one.services)
            assert marked is None or marked.body["isQueueLost"]


async def test_other_keys_and_another_division_of_the_services_are_refused(
    installed: SixServices, tmp_path: Path
) -> None:
    await fill(installed)
    await back_up(installed, tmp_path / "backup")
    key_id = KeyRing.from_text(installed.keys.get_secret_value()).ids[0]
    others = SixServices(installed.locations, installed.files, SecretStr(KeyRing.new_key()))
    with pytest.raises(RestoreRefused, match=f"keys {key_id} are missing"):
        await restore(others, tmp_path / "backup", replace=True)
    one = Location(installed.locations[0].url, "elsewhere", tuple(sorted(services())))
    with pytest.raises(RestoreRefused, match="divide them otherwise"):
        await restore(SixServices((one,), installed.files, installed.keys), tmp_path / "backup", replace=True)
    with pytest.raises(taking.BackupRefused, match="--with-keys"):
        taking.write_backup(installed, tmp_path / "other", longest_pause_s=20, with_keys=True, show=quiet)


def test_the_variables_of_the_services_say_where_their_data_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEVNFM_LCM_API_DATA_DIR", str(tmp_path))
    for number, service in enumerate(sorted(services())):
        prefix = f"KUBEVNFM_{service.replace('-', '_').upper()}"
        monkeypatch.setenv(f"{prefix}_MONGO_URL", "mongodb://a:1")
        monkeypatch.setenv(f"{prefix}_MONGO_DATABASE", "shared" if number else "own")
        monkeypatch.setenv(f"{prefix}_KEYS", "key")
    found = installation()
    assert isinstance(found, SixServices)
    assert found.files == tmp_path
    first, *others = sorted(services())
    assert [each.services for each in found.locations] == [(first,), tuple(others)]
    monkeypatch.delenv("KUBEVNFM_VIM_REGISTRY_MONGO_URL")
    with pytest.raises(SettingsIncomplete, match="KUBEVNFM_VIM_REGISTRY_MONGO_URL"):
        installation()
    monkeypatch.setenv("KUBEVNFM_VIM_REGISTRY_MONGO_URL", "mongodb://a:1")
    monkeypatch.setenv("KUBEVNFM_VIM_REGISTRY_KEYS", "another")
    with pytest.raises(SettingsIncomplete, match="not the same in all services"):
        installation()
