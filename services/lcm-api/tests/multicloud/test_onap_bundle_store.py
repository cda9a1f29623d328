"""Definitions and profiles of bundles with the packages that are made of them, whatever ends in between (multicloud.md MC-131)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Conflict, InUse, NotFound, Unprocessable
from kubevnfm_lcm_api.onap.bundle_store import DEFINITIONS, PROFILES, Bundles, Definition, Profile
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import AllOf, Query, Stored
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.lives import Lives

NAMES = ("rb", "v1")
DEFINITION = Definition.model_validate({"rb-name": "rb", "rb-version": "v1"})
PROFILE = Profile.model_validate({"rb-name": "rb", "rb-version": "v1", "profile-name": "p1"})


class MemoryPackages:
    """`BundlePackages` without archives: the id of a package says what it is made of."""

    def __init__(self, lives: Lives) -> None:
        self.present: dict[str, bool] = {}
        """Whether each is enabled."""
        self.used: set[str] = set()
        self.together = asyncio.Barrier(1)
        """The first requests that have made a package wait here for one another."""
        self._made = 0
        self._lives = lives

    async def make(
        self, names: tuple[str, ...], content: bytes | None, *, base: str | None = None, chart_name: str = ""
    ) -> tuple[str, str]:
        package_id = f"{names[-1]}:{(content or b'').decode()} on {base}"
        await self._set(package_id, True)
        self._made += 1
        if self._made <= self.together.parties:
            await self.together.wait()
        return package_id, chart_name or "chart"

    async def exists(self, package_id: str) -> bool:
        return self.present.get(package_id, False)

    async def check_unused(self, package_id: str) -> None:
        if package_id in self.used:
            raise InUse(package_id)

    async def remove(self, package_id: str, *, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        await self.check_unused(package_id)
        if package_id not in self.present:
            return
        await self._set(package_id, False)
        if await is_wanted():
            await self._set(package_id, True)
        elif not self.present.get(package_id, True):
            await self._set(package_id, None)

    async def _set(self, package_id: str, is_enabled: bool | None) -> None:
        async def write() -> bool:
            if is_enabled is None:
                self.present.pop(package_id, None)
            else:
                self.present[package_id] = is_enabled
            return True

        await self._lives.write(f"{is_enabled} {package_id}", write)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def lives() -> Lives:
    return Lives()


@pytest.fixture
def packages(lives: Lives) -> MemoryPackages:
    return MemoryPackages(lives)


@pytest.fixture
def bundles(store: SqliteStore, lives: Lives, packages: MemoryPackages) -> Bundles:
    return Bundles(lives.store(store), SystemClock(), packages)


async def named(store: SqliteStore) -> dict[str, bool]:
    """Return the packages that documents have, as they should be."""
    found = [each for name in (DEFINITIONS, PROFILES) for each in await store.find(name, Query(AllOf()))]
    assert not any(each.body.get("replaced") for each in found)
    return {each.body["package"]: True for each in found if "package" in each.body}


async def test_a_kill_at_any_write_leaves_no_package_and_no_chart_of_before(
    store: SqliteStore, lives: Lives, packages: MemoryPackages, bundles: Bundles
) -> None:
    """MC-131: each request is repeated after each kill, as clients do."""
    await bundles.define(DEFINITION)

    async def default_package() -> str:
        return await bundles.package_of(await bundles.profile(*NAMES, "default"))

    for content in ("a", "b"):
        await lives.until_done(partial(bundles.upload, *NAMES, content.encode()))
        made = await lives.until_done(default_package)
        assert made == f"default: on v1:{content} on None"
        assert packages.present == await named(store) == {f"v1:{content} on None": True, made: True}
    await bundles.add_profile(*NAMES, PROFILE)
    for content in ("c", "d"):
        await lives.until_done(partial(bundles.upload_profile, *NAMES, "p1", content.encode()))
        assert packages.present == await named(store)
        assert await bundles.package_of(await bundles.profile(*NAMES, "p1")) == f"p1:{content} on v1:b on None"

    async def removed() -> None:
        with suppress(NotFound):
            await bundles.undefine(*NAMES)

    await lives.until_done(removed)
    assert packages.present == await named(store) == {}
    assert len(lives.deaths) > 20


@pytest.mark.parametrize("contents", [("a", "b"), ("a", "a"), ("a", "a", "b")])
async def test_contents_that_come_at_once_are_all_stored_one_after_another(
    store: SqliteStore, packages: MemoryPackages, bundles: Bundles, contents: tuple[str, ...]
) -> None:
    """MC-009, MC-131: a request that loses the race is computed again; the package of the last one stays."""
    await bundles.define(DEFINITION)
    packages.together = asyncio.Barrier(len(contents))
    sent = [bundles.upload(*NAMES, each.encode()) for each in contents]
    ended = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), timeout=300)
    assert ended == [None] * len(contents)
    assert packages.present == await named(store)
    assert len(packages.present) == 1


async def test_a_package_that_an_instance_got_meanwhile_goes_with_the_definition(
    store: SqliteStore, packages: MemoryPackages, bundles: Bundles
) -> None:
    """MC-131: content that is replaced while an instance is made of it; one that is disabled is enabled by its content."""
    await bundles.define(DEFINITION)
    await bundles.upload(*NAMES, b"a")
    packages.used.add("v1:a on None")
    with pytest.raises(InUse):
        await bundles.upload(*NAMES, b"b")
    assert packages.present == {"v1:a on None": True}
    packages.used.clear()
    packages.present["v1:a on None"] = False
    with pytest.raises(Unprocessable):
        await bundles.package_of(await bundles.profile(*NAMES, "default"))
    await bundles.upload(*NAMES, b"a")
    assert packages.present == await named(store) == {"v1:a on None": True}


async def test_changes_that_come_at_once_are_all_stored_one_after_another(bundles: Bundles) -> None:
    """MC-009, MC-131: of the same definition, and of the same profile; a removal is not refused for them."""
    await bundles.define(DEFINITION)
    await bundles.add_profile(*NAMES, PROFILE)
    texts = [f"text {number}" for number in range(8)]
    defined = [bundles.redefine(*NAMES, DEFINITION.model_copy(update={"description": each})) for each in texts]
    placed = [bundles.change_profile(*NAMES, "p1", PROFILE.model_copy(update={"namespace": "ns"})) for _ in texts]
    made = await asyncio.wait_for(asyncio.gather(*defined, *placed), timeout=300)
    assert [each.get("description") for each in made[: len(texts)]] == texts
    assert (await bundles.definition(*NAMES)).body["description"] in texts
    changes = [bundles.redefine(*NAMES, DEFINITION) for _ in texts]
    removed, *_ = await asyncio.gather(bundles.undefine(*NAMES), *changes, return_exceptions=True)
    assert removed is None
    with pytest.raises(NotFound):
        await bundles.definition(*NAMES)


class WatchedStore(SqliteStore):
    """A store that calls back before it deletes a profile, and after it has stored one."""

    async def before_delete(self) -> None: ...

    async def after_insert(self) -> None: ...

    async def delete(
        self, collection: str, id: str, *, if_revision: int | None = None, outbox: Sequence[Outgoing] = ()
    ) -> bool:
        if collection == PROFILES:
            await self.before_delete()
        return await super().delete(collection, id, if_revision=if_revision, outbox=outbox)

    async def insert(self, collection: str, *given: Any, **more: Any) -> Stored:
        stored = await super().insert(collection, *given, **more)
        if collection == PROFILES:
            await self.after_insert()
        return stored


@pytest.mark.parametrize("when", ["during", "around"])
async def test_a_profile_that_is_added_while_its_definition_is_deleted_stays_nowhere(
    tmp_path: Path, packages: MemoryPackages, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """MC-131: it is refused, whichever of both comes first."""
    async with WatchedStore.open(tmp_path / "watched.db") as store:
        bundles = Bundles(store, SystemClock(), packages)
        await bundles.define(DEFINITION)
        refused: list[type[Exception]] = []

        async def add() -> None:
            with pytest.raises((Conflict, NotFound)) as caught:
                await bundles.add_profile(*NAMES, PROFILE)
            refused.append(caught.type)

        async def add_once() -> None:
            monkeypatch.undo()
            await add()

        async def delete() -> None:
            monkeypatch.undo()
            await bundles.undefine(*NAMES)

        if when == "during":
            monkeypatch.setattr(store, "before_delete", add_once)
            await bundles.undefine(*NAMES)
        else:
            monkeypatch.setattr(store, "after_insert", delete)
            await add()
        assert refused
        assert await store.find(PROFILES, Query()) == await store.find(DEFINITIONS, Query()) == []
        # One whose maker has died in between is removed later; one that is being made is not.
        for number, created in enumerate(("2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z")):
            body = {**PROFILE.model_dump(by_alias=True), "definition": "none", "created-at": created}
            await store.insert(PROFILES, f"p{number}", body)
        await bundles.remove_orphans()
        assert [each.id for each in await store.find(PROFILES, Query())] == ["p1"]


async def test_a_definition_whose_removal_is_refused_stays_as_it_was(
    packages: MemoryPackages, bundles: Bundles
) -> None:
    """MC-131: also if a VNF is made of it after the check."""
    await bundles.define(DEFINITION)
    await bundles.upload(*NAMES, b"a")
    check = packages.check_unused

    async def late(package_id: str) -> None:
        await check(package_id)
        packages.used.add(package_id)

    packages.check_unused = late  # type: ignore[method-assign]
    with pytest.raises(InUse):
        await bundles.undefine(*NAMES)
    await bundles.add_profile(*NAMES, PROFILE)
