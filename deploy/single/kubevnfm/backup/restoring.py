"""Restores an archive into an installation that does not run."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.files import private_folder
from kubevnfm_secrets import KeyRing
from kubevnfm_store.restoring import mark_restored, moved
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_store.sqlite.writer import locked

from kubevnfm.backup.archive import DATABASE, KEY_FILES, ArchiveInvalid, Manifest, Reader, Show, opened
from kubevnfm.backup.places import OneProcess, SixServices

_GATEWAY: Final = "lcm-api"
_FOLDERS: Final = ("packages", "charts")
_SCRATCH: Final = ".kubevnfm-restore-"
_LENGTH_BYTES: Final = 4
_MOST_DOCUMENT_BYTES: Final = 48 * 1024 * 1024
"""MongoDB's own limit is 16 MiB, and a little more for documents of its own."""
_ROOM: Final = 1.1


class RestoreRefused(VnfmError, code="restore-refused", title="Restore refused", status=409):
    """The archive does not fit the installation, or there is one already."""


def restore(installed: OneProcess | SixServices, source: Path, *, replace: bool, show: Show) -> Manifest:
    """Write what the archive has. Nothing is written before the whole archive was read, and found to fit.

    A restore that was ended in the middle is repeated with ``replace``.
    """
    show(f"checking {source}")
    with opened(source) as reader:
        found = reader.manifest
        kind = "one-process" if isinstance(installed, OneProcess) else "six-services"
        if found.kind != kind:
            raise RestoreRefused(f"the archive is of {found.kind}, and the settings are of {kind}")
        if isinstance(installed, OneProcess):
            _restore_one(installed, reader, replace=replace, show=show)
        else:
            _restore_six(installed, reader, replace=replace, show=show)
        return found


def _later_s(found: Manifest) -> float:
    """Return how much time has passed since the archive's moment: it counts in no deadline."""
    return max((datetime.now(UTC) - datetime.fromisoformat(found.time)).total_seconds(), 0.0)


# --- one process ------------------------------------------------------------------------------------------------------


def _restore_one(installed: OneProcess, reader: Reader, *, replace: bool, show: Show) -> None:
    folder, found = private_folder(installed.data_dir), reader.manifest
    if DATABASE not in found.members:
        raise ArchiveInvalid(f"it has no {DATABASE}")
    # Held until the end: a process that starts meanwhile would find half of it.
    with locked(folder / DATABASE):
        _check_empty([folder / DATABASE, *(installed.files / name for name in _FOLDERS)], replace=replace)
        _check_room(folder, found)
        if (folder / "keys").exists():
            _check_keys(found, (folder / "keys").read_text(), str(folder / "keys"))
        elif found.key_ids and "keys/keys" not in found.members:
            raise RestoreRefused(
                f"{folder / 'keys'}: put the file with the keys {', '.join(found.key_ids)} there first"
            )
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
            show("unpacking")
            unpacked = Path(scratch)
            _unpack(reader, unpacked)
            if (unpacked / "keys" / "keys").exists() and not (folder / "keys").exists():
                _check_keys(found, (unpacked / "keys" / "keys").read_text(), "the archive")
            _renew(unpacked / DATABASE, found)
            _clear(installed.data_dir / DATABASE)
            _put_files(unpacked, installed.files)
            for name in KEY_FILES:
                if (unpacked / "keys" / name).exists() and not (folder / name).exists():
                    (unpacked / "keys" / name).replace(folder / name)
            # Last: without it there is no installation.
            (unpacked / DATABASE).replace(folder / DATABASE)
        os.sync()


def _renew(path: Path, found: Manifest) -> None:
    """Prepare the database for its services."""
    later_s = _later_s(found)
    try:
        with closing(sqlite3.connect(path)) as database, database:
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise ArchiveInvalid(f"{DATABASE} is damaged")
            due = "SELECT seq, json_extract(content, '$.deadline') FROM outbox WHERE content LIKE '%\"deadline\"%'"
            database.executemany(
                "UPDATE outbox SET content = json_set(content, '$.deadline', ?) WHERE seq = ?",
                [(later, seq) for seq, text in database.execute(due) if (later := moved(text, later_s)) != text],
            )
    except sqlite3.Error as error:
        raise ArchiveInvalid(f"{DATABASE} is no database of kubevnfm: {error}") from error

    async def mark() -> None:
        async with SqliteStore.open(path) as store:
            await mark_restored(
                store, cut_at=found.time, restored_at=datetime.now(UTC).isoformat(), is_queue_lost=False
            )

    asyncio.run(mark())


def _clear(database: Path) -> None:
    for name in (database, *(database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))):
        name.unlink(missing_ok=True)


# --- six services -----------------------------------------------------------------------------------------------------


def _restore_six(installed: SixServices, reader: Reader, *, replace: bool, show: Show) -> None:
    from kubevnfm_store.mongo.reading import Place

    found = reader.manifest
    numbers = _numbers(installed, found)
    _check_keys(found, installed.keys.get_secret_value(), "KUBEVNFM_<SERVICE>_KEYS")
    folder = private_folder(installed.files)
    _check_empty([folder / name for name in _FOLDERS], replace=replace)
    _check_room(folder, found)
    with ExitStack() as open_ones:
        places = {}
        for number, at in numbers.items():
            one = installed.locations[at]
            places[number] = Place(one.url.get_secret_value(), one.database)
            open_ones.callback(places[number].close)
            if not replace and places[number].has_documents():
                raise RestoreRefused(
                    f"the database {one.database} of {', '.join(one.services)} has documents: stop the services, and"
                    " give --replace to remove what is there"
                )
        _check_documents(reader)
        scratch = Path(open_ones.enter_context(tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder)))
        show("unpacking")
        _unpack(reader, scratch)
        _put_files(scratch, folder)
        for number, place in places.items():
            place.empty()
            count = 0
            for collection in found.databases[number].collections:
                path = scratch / "mongo" / str(number) / f"{collection}.bson"
                count += place.insert(collection, _documents(path), later_s=_later_s(found))
            show(f"{', '.join(found.databases[number].services)}: {count} documents")
        _mark_six(installed, found)
    os.sync()


def _numbers(installed: SixServices, found: Manifest) -> Mapping[int, int]:
    """Return which location gets each database of the archive."""
    numbers = {}
    for number, database in enumerate(found.databases):
        fits = [at for at, one in enumerate(installed.locations) if set(one.services) == set(database.services)]
        if len(fits) != 1:
            raise RestoreRefused(
                f"the archive has {', '.join(database.services)} in one database, and the settings divide them otherwise"
            )
        numbers[number] = fits[0]
        for collection, facts in database.collections.items():
            member = found.members.get(f"mongo/{number}/{collection}.bson")
            if member is None or member.size != facts.bytes:
                raise ArchiveInvalid(f"the documents of {collection} are missing")
    if len(numbers) != len(installed.locations):
        raise RestoreRefused("the archive has no documents of some of the services")
    return numbers


def _check_documents(reader: Reader) -> None:
    from kubevnfm_store.mongo.reading import check_document

    for name, chunks in reader.contents():
        if name.startswith("mongo/"):
            try:
                for document in _split(chunks):
                    check_document(document)
            except ValueError as error:
                raise ArchiveInvalid(f"{name}: {error}") from error


def _documents(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _split(iter(lambda: file.read(256 * 1024), b""))


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the BSON documents that follow one another. Raises ValueError."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= _LENGTH_BYTES:
            length = int.from_bytes(held[:_LENGTH_BYTES], "little", signed=True)
            if not _LENGTH_BYTES < length <= _MOST_DOCUMENT_BYTES:
                raise ValueError("not BSON")
            if len(held) < length:
                break
            yield bytes(held[:length])
            del held[:length]
    if held:
        raise ValueError("not BSON")


def _mark_six(installed: SixServices, found: Manifest) -> None:
    from kubevnfm_store.mongo.store import MongoStore

    one = next(each for each in installed.locations if _GATEWAY in each.services)

    async def mark() -> None:
        async with MongoStore.connect(one.url.get_secret_value(), one.database) as store:
            await mark_restored(store, cut_at=found.time, restored_at=datetime.now(UTC).isoformat(), is_queue_lost=True)

    asyncio.run(mark())


# --- both -------------------------------------------------------------------------------------------------------------


def _check_empty(paths: list[Path], *, replace: bool) -> None:
    for path in paths:
        is_there = any(path.iterdir()) if path.is_dir() else path.exists()
        if is_there and not replace:
            raise RestoreRefused(f"{path} is there: there is an installation already; --replace removes it")


def _check_room(folder: Path, found: Manifest) -> None:
    needed, free = sum(each.size for each in found.members.values()) * _ROOM, shutil.disk_usage(folder).free
    if needed > free:
        raise RestoreRefused(f"{folder}: {needed / 2**20:.0f} MiB are needed, and {free / 2**20:.0f} MiB are free")


def _check_keys(found: Manifest, text: str, where: str) -> None:
    try:
        ring = KeyRing.from_text(text)
    except ValueError as error:
        raise RestoreRefused(f"{where}: {error}") from error
    missing = sorted(set(found.key_ids) - set(ring.ids))
    if missing:
        raise RestoreRefused(
            f"{where}: the keys {', '.join(missing)} are missing, without which stored secrets cannot be read"
        )


def _unpack(reader: Reader, folder: Path) -> None:
    for name, chunks in reader.contents():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for chunk in chunks:
                file.write(chunk)


def _put_files(unpacked: Path, root: Path) -> None:
    """Put the packages in their place."""
    private_folder(root)
    for name in _FOLDERS:
        shutil.rmtree(root / name, ignore_errors=True)
        if (unpacked / "files" / name).exists():
            (unpacked / "files" / name).replace(root / name)
