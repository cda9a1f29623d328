"""Backup and restore of one process: what comes back, and what is refused before anything is written."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import shutil
import sys
import tarfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubevnfm import cli
from kubevnfm.backup import archive, places, restoring, taking
from kubevnfm.backup.archive import ArchiveInvalid, Manifest
from kubevnfm.backup.places import OneProcess
from kubevnfm.backup.restoring import RestoreRefused
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import Index, Query, Sort
from kubevnfm_store.restoring import LAST, RESTORES
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_store.sqlite.writer import FileInUse

DEADLINE = "2026-01-01T00:00:00.000000Z"
VNF = {"name": "web", "password": {"$sealed": ""}, "many": list(range(3))}


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The data of an installation, and a backup that was taken while its store was open."""
    folder = tmp_path_factory.mktemp("made")
    data = folder / "data"
    data.mkdir()
    (data / "keys").write_text(KeyRing.new_key())
    ring = KeyRing.from_text((data / "keys").read_text())
    package = data / "lcm-api" / "packages" / "p-1"
    (package / "files" / "Definitions").mkdir(parents=True)
    (package / "files" / "Definitions" / "vnfd.yaml").write_text("vnfd")
    (package / "files" / "notes.part").write_text("a file of the package")
    (package / "content.zip").write_bytes(b"PK" * 1000)
    (package / "archive.zip").write_bytes(b"made from the others")

    async def fill() -> None:
        async with SqliteStore.open(data / "kubevnfm.db") as store:
            await store.ensure_indexes("vnf_instances", [Index(["name"])])
            body = VNF | {"password": {"$sealed": ring.seal("secret")}}
            message = {"id": "m-1", "deadline": DEADLINE, "data": {}}
            await store.insert("vnf_instances", "v-1", body, outbox=[Outgoing("m-1", message)])
            await store.insert("vnf_packages", "p-1", {"onboardingState": "ONBOARDED"})
            await store.insert("page_sessions", "s-1", {})
            await asyncio.to_thread(backed_up, OneProcess(data), folder / "backup")
            await store.insert("vnf_instances", "v-2", {"name": "later"})

    asyncio.run(fill())
    return data, folder / "backup"


def backed_up(installed: OneProcess, target: Path, *, with_keys: bool = False) -> Manifest:
    return taking.write_backup(installed, target, longest_pause_s=20, with_keys=with_keys, show=quiet)


def restore(data: Path, source: Path, *, replace: bool = False) -> Manifest:
    return restoring.restore(OneProcess(data), source, replace=replace, show=quiet)


@pytest.fixture
def fresh(tmp_path: Path, made: tuple[Path, Path]) -> Path:
    """An empty installation with the keys."""
    (tmp_path / "data").mkdir()
    shutil.copy(made[0] / "keys", tmp_path / "data" / "keys")
    return tmp_path / "data"


@asynccontextmanager
async def opened(data: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(data / "kubevnfm.db") as store:
        yield store


async def test_documents_messages_and_packages_come_back_as_they_were(made: tuple[Path, Path], fresh: Path) -> None:
    found = await asyncio.to_thread(restore, fresh, made[1])
    ring = KeyRing.from_text((made[0] / "keys").read_text())
    assert (found.documents, found.packages, found.key_ids) == (3, 1, ring.ids)
    async with opened(fresh) as store:
        vnfs = await store.find("vnf_instances", Query(sort=Sort("name")))
        assert [each.id for each in vnfs] == ["v-1"]
        assert ring.open(vnfs[0].body["password"]["$sealed"]) == "secret"
        [pending] = await store.pending_outbox("vnf_instances")
        marked = await store.get(RESTORES, LAST)
        assert await store.get("page_sessions", "s-1") is None
    assert marked is not None
    assert (marked.body["state"], marked.body["isQueueLost"]) == ("PENDING", False)
    # Nothing was done between the backup and the restore: that time counts in no deadline.
    moved = datetime.fromisoformat(pending.messages[0].document["deadline"]) - datetime.fromisoformat(DEADLINE)
    since = datetime.now(UTC) - datetime.fromisoformat(found.time)
    assert timedelta(0) < moved <= since
    package = fresh / "lcm-api" / "packages" / "p-1"
    assert (package / "content.zip").read_bytes() == b"PK" * 1000
    assert (package / "files" / "Definitions" / "vnfd.yaml").read_text() == "vnfd"
    assert (package / "files" / "notes.part").exists()
    assert not (package / "archive.zip").exists()


async def test_a_restore_twice_needs_replace(made: tuple[Path, Path], fresh: Path) -> None:
    await asyncio.to_thread(restore, fresh, made[1])
    with pytest.raises(RestoreRefused, match=r"kubevnfm.db is there.*--replace"):
        await asyncio.to_thread(restore, fresh, made[1])
    async with opened(fresh) as store:
        await store.insert("vnf_instances", "v-3", {})
    await asyncio.to_thread(restore, fresh, made[1], replace=True)
    async with opened(fresh) as store:
        assert await store.get("vnf_instances", "v-3") is None


async def test_a_restore_under_a_running_process_is_refused(made: tuple[Path, Path], fresh: Path) -> None:
    async with opened(fresh):
        with pytest.raises(FileInUse):
            await asyncio.to_thread(restore, fresh, made[1], replace=True)


def test_a_restore_without_the_keys_is_refused_with_their_ids(made: tuple[Path, Path], tmp_path: Path) -> None:
    key_id = KeyRing.from_text((made[0] / "keys").read_text()).ids[0]
    with pytest.raises(RestoreRefused, match=f"keys {key_id} there first"):
        restore(tmp_path, made[1])
    (tmp_path / "keys").write_text(KeyRing.new_key())
    with pytest.raises(RestoreRefused, match=f"keys {key_id} are missing"):
        restore(tmp_path, made[1])
    assert not (tmp_path / "kubevnfm.db").exists()


def test_with_keys_an_empty_folder_is_enough(made: tuple[Path, Path], tmp_path: Path) -> None:
    backed_up(OneProcess(made[0]), tmp_path / "backup", with_keys=True)
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    restore(tmp_path / "new", tmp_path / "backup")
    assert (tmp_path / "new" / "keys").read_text() == (made[0] / "keys").read_text()
    assert (tmp_path / "new" / "keys").stat().st_mode & 0o777 == 0o600


def test_no_backup_has_the_keys_unasked(made: tuple[Path, Path]) -> None:
    key = (made[0] / "keys").read_text().encode()
    assert key not in gzip.decompress(made[1].read_bytes())


def test_a_backup_never_replaces_a_file(made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "backup").write_text("an older one")
    with pytest.raises(taking.BackupRefused, match="exists"):
        backed_up(OneProcess(made[0]), tmp_path / "backup")
    assert (tmp_path / "backup").read_text() == "an older one"


def test_a_package_whose_files_are_gone_fails_the_backup_and_leaves_nothing(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(made[0], tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "lcm-api" / "packages" / "p-1")
    (tmp_path / "backups").mkdir()
    with pytest.raises(FileNotFoundError):
        backed_up(OneProcess(tmp_path / "data"), tmp_path / "backups" / "one")
    assert list((tmp_path / "backups").iterdir()) == []


# --- archives of others -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 10, 50, 90, 99])
def test_a_truncated_archive_is_refused_before_anything_is_written(
    made: tuple[Path, Path], fresh: Path, share: int
) -> None:
    whole = made[1].read_bytes()
    (fresh.parent / "cut").write_bytes(whole[: len(whole) * share // 100])
    refused(fresh, fresh.parent / "cut", "truncated|no manifest|manifest says")


def test_a_flipped_bit_is_refused_wherever_it_is(made: tuple[Path, Path], fresh: Path) -> None:
    whole = made[1].read_bytes()
    for at in range(12, len(whole) - 1, len(whole) // 40):
        flipped = bytearray(whole)
        flipped[at] ^= 1
        with suppress(EOFError, OSError, zlib.error):
            # Deflate has bits without a meaning.
            if gzip.decompress(flipped) == gzip.decompress(whole):
                continue
        (fresh.parent / "flipped").write_bytes(flipped)
        refused(fresh, fresh.parent / "flipped", "damaged|manifest")


def member(name: str, content: bytes = b"x", **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for fact, value in facts.items():
        setattr(info, fact, value)
    return info, content


HOSTILE: dict[str, tuple[tarfile.TarInfo, bytes]] = {
    "absolute": member("/etc/cron.d/x"),
    "upwards": member("files/packages/../../../x"),
    "dot": member("files/packages/./x"),
    "unknown": member("keys/../x"),
    "link": member("files/packages/p/x", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": member("files/packages/p/x", b"", type=tarfile.LNKTYPE, linkname="kubevnfm.db"),
    "device": member("files/packages/p/x", b"", type=tarfile.CHRTYPE),
    "folder": member("files/packages/p", b"", type=tarfile.DIRTYPE),
    "long part": member(f"files/packages/{'x' * 300}"),
    "long header": member("files/packages/x", pax_headers={"comment": "x" * 1_000_000}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_members_are_refused(fresh: Path, name: str) -> None:
    written(fresh.parent / "hostile", [HOSTILE[name]])
    refused(fresh, fresh.parent / "hostile", "no member of a backup|name in it is too long|header that is too large")


def test_a_member_twice_and_one_behind_the_manifest_are_refused(made: tuple[Path, Path], fresh: Path) -> None:
    with tarfile.open(made[1], "r:gz") as tar:
        whole = [(info, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]
    written(fresh.parent / "twice", [whole[0], *whole])
    refused(fresh, fresh.parent / "twice", "two members")
    written(fresh.parent / "behind", [*whole, member("files/packages/x")])
    refused(fresh, fresh.parent / "behind", "behind the manifest")


def test_a_newer_format_is_refused_with_what_to_do(made: tuple[Path, Path], fresh: Path) -> None:
    with tarfile.open(made[1], "r:gz") as tar:
        whole = [(info, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]
    newer = json.dumps({"format": 2, "what": "this version does not know"}).encode()
    written(fresh.parent / "newer", [*whole[:-1], member(archive.MANIFEST, newer)])
    refused(fresh, fresh.parent / "newer", "format is 2")


def written(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))


def refused(data: Path, source: Path, why: str) -> None:
    with pytest.raises(ArchiveInvalid, match=why):
        restore(data, source)
    assert [each.name for each in data.iterdir()] == ["keys"]


# --- the command line -------------------------------------------------------------------------------------------------


def run(command: Callable[[], object], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["kubevnfm", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command()
    return int(ended.value.code or 0)


def test_the_verbs_say_what_they_did_and_end_with_a_code(
    made: tuple[Path, Path], fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "installation", lambda: OneProcess(made[0]))
    target = fresh.parent / "by-verb"
    assert run(cli.backup, monkeypatch, target) == 0
    said = capsys.readouterr()
    assert "written" in said.out
    assert "a restore needs the keys" in said.err
    assert run(cli.backup, monkeypatch, "--check", target) == 0
    assert "is whole" in capsys.readouterr().out
    assert run(cli.backup, monkeypatch, target) == 1
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr(places, "installation", lambda: OneProcess(fresh))
    assert run(cli.restore, monkeypatch, target) == 0
    assert run(cli.restore, monkeypatch, target) == 1
    target.write_bytes(target.read_bytes()[:500])
    assert run(cli.backup, monkeypatch, "--check", target) == 1
    assert run(cli.backup, monkeypatch, "--longest-pause", "1", target) == 2
