"""Takes a backup while the services run."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from kubevnfm_events.contract import services
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import KeyRing

from kubevnfm.backup.archive import DATABASE, FORMAT, KEY_FILES, Collection, Database, Manifest, Show, Writer
from kubevnfm.backup.places import OneProcess, SixServices

PACKAGES: Final = "vnf_packages"
CHARTS: Final = "fetched_charts"
_SEALED: Final = re.compile(rb"v1\.([0-9a-f]{8})\.[A-Za-z0-9_=-]{37}")
_ID: Final = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}")
_KEPT: Final = ("content.zip", "files", "external")
"""The parts of a package's folder from which all others are made."""
_ONBOARDED: Final = "ONBOARDED"
"""The state of a package that must have files."""
_PART: Final = ".part"
_TRIES: Final = 3
_SCRATCH: Final = ".kubevnfm-backup-"


class BackupRefused(VnfmError, code="backup-refused", title="Backup refused", status=409):
    """No backup can be taken."""


def write_backup(
    installed: OneProcess | SixServices, target: Path, *, longest_pause_s: float, with_keys: bool, show: Show
) -> Manifest:
    """Write the archive, which exists as a whole or not at all; return what is in it."""
    if target.exists():
        raise BackupRefused(f"{target} exists: name a new file")
    if with_keys and isinstance(installed, SixServices):
        raise BackupRefused("--with-keys: the keys of six services are settings; keep them as these are kept")
    for left in range(_TRIES - 1, -1, -1):
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.parent) as scratch:
            part = Path(scratch) / "archive"
            try:
                manifest = _write(installed, part, longest_pause_s, with_keys=with_keys, show=show)
            except FileNotFoundError as error:
                # The documents name it: it was deleted with its package since they were read.
                if (
                    not left
                    or not isinstance(error.filename, str | Path)
                    or installed.files not in Path(error.filename).parents
                ):
                    raise
                show("a package was deleted meanwhile: again")
                continue
            _put(part, target)
            return manifest
    raise AssertionError("unreachable")


def _write(
    installed: OneProcess | SixServices, part: Path, longest_pause_s: float, *, with_keys: bool, show: Show
) -> Manifest:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        writer = Writer(file)
        if isinstance(installed, OneProcess):
            moment, databases, sealed, owners = _add_file(writer, installed, part.parent, show)
        else:
            moment, databases, sealed, owners = _add_servers(writer, installed, part.parent, longest_pause_s, show)
        packages = _add_packages(writer, installed.files, owners, show)
        if with_keys and isinstance(installed, OneProcess):
            for name in KEY_FILES:
                if (installed.data_dir / name).exists():
                    writer.add_file(f"keys/{name}", installed.data_dir / name)
        manifest = Manifest(
            format=FORMAT,
            version=version("kubevnfm"),
            kind="one-process" if isinstance(installed, OneProcess) else "six-services",
            time=moment.isoformat(timespec="milliseconds"),
            databases=databases,
            sealed_values=dict(sorted(sealed.items())),
            packages=packages,
            has_keys=with_keys,
            members=writer.members,
        )
        writer.close(manifest)
        file.flush()
        os.fsync(file.fileno())
    return manifest


Owners = dict[str, dict[str, bool]]
"""The ids of the documents that may have files, by collection, and whether they must."""
Read = tuple[datetime, tuple[Database, ...], Counter[str], Owners]


def _add_file(writer: Writer, installed: OneProcess, scratch: Path, show: Show) -> Read:
    """Add the database of one process. One transaction reads it as a whole; the process writes meanwhile."""
    source, copy = installed.data_dir / DATABASE, scratch / DATABASE
    if not source.exists():
        raise BackupRefused(f"{source} does not exist: nothing is installed there (KUBEVNFM_DATA_DIR)")
    show(f"reading {source}")
    try:
        with closing(sqlite3.connect(source, timeout=30)) as database, closing(sqlite3.connect(copy)) as copied:
            database.execute("PRAGMA query_only = ON")
            moment = datetime.now(UTC)
            # All pages at once: in several steps it would begin again whenever something is written between them.
            database.backup(copied, pages=-1)
            # One file, without a log of writes beside it.
            copied.execute("PRAGMA journal_mode = DELETE")
            found = copied.execute("PRAGMA quick_check(1)").fetchone()
            if found != ("ok",):
                raise BackupRefused(f"{source} is damaged: {found[0]}")
            collections, sealed, owners = _read_tables(copied)
    except sqlite3.Error as error:
        raise BackupRefused(f"{source} cannot be read: {error}") from error
    writer.add_file(DATABASE, copy)
    copy.unlink()
    return moment, (Database(services=tuple(sorted(services())), collections=collections),), sealed, owners


def _read_tables(database: sqlite3.Connection) -> tuple[dict[str, Collection], Counter[str], Owners]:
    collections, sealed, owners = dict[str, Collection](), Counter[str](), Owners()
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info('{table}')")]
        if columns == ["id", "revision", "body"]:
            rows = database.execute(f'SELECT body FROM "{table}"')  # noqa: S608  # named by the database itself
            count = 0
            for (body,) in rows:
                count += 1
                sealed.update(_key_ids(body.encode()))
            name = _collection_of(table)
            collections[name] = Collection(documents=count)
            if name in (PACKAGES, CHARTS):
                state = f"SELECT id, json_extract(body, '$.onboardingState') FROM \"{table}\""  # noqa: S608
                owners[name] = {each: value == _ONBOARDED for each, value in database.execute(state)}
    for (content,) in database.execute("SELECT content FROM outbox"):
        sealed.update(_key_ids(content.encode()))
    return collections, sealed, owners


def _collection_of(table: str) -> str:
    return table.removeprefix("documents_")


def _add_servers(writer: Writer, installed: SixServices, scratch: Path, longest_pause_s: float, show: Show) -> Read:
    """Add the databases of six services, as they were at one moment."""
    from kubevnfm_store.mongo.reading import Copy, Place

    KeyRing.from_text(installed.keys.get_secret_value())
    sealed, owners, databases = Counter[str](), Owners(), list[Database]()
    with ExitStack() as open_ones:
        places = []
        for one in installed.locations:
            place = Place(one.url.get_secret_value(), one.database)
            open_ones.callback(place.close)
            places.append(place)
        copy = open_ones.enter_context(Copy(scratch / "documents", places))
        moment = copy.read_all(longest_s=longest_pause_s, show=show)
        for number, one in enumerate(installed.locations):
            found = copy.collections(number)
            for collection, (_, size) in found.items():
                seen = _Seen(copy.contents(number, collection), sealed)
                writer.add(f"mongo/{number}/{collection}.bson", size, seen)
                if collection in (PACKAGES, CHARTS):
                    bodies = copy.bodies(number, collection)
                    owners.setdefault(collection, {}).update((each, _must_have_files(body)) for each, body in bodies)
            sizes = {name: Collection(documents=count, bytes=size) for name, (count, size) in found.items()}
            databases.append(Database(services=one.services, collections=sizes))
            show(f"{', '.join(one.services)}: {sum(count for count, _ in found.values())} documents")
    return moment, tuple(databases), sealed, owners


class _Seen:
    """Documents, whose sealed values are counted as they pass."""

    def __init__(self, documents: Iterable[bytes], sealed: Counter[str]) -> None:
        self._documents, self._sealed = documents, sealed

    def __iter__(self) -> Iterator[bytes]:
        for each in self._documents:
            self._sealed.update(_key_ids(each))
            yield each


def _key_ids(content: bytes) -> Iterator[str]:
    """Yield the id of the key of each sealed value."""
    return (found.decode() for found in _SEALED.findall(content))


def _add_packages(writer: Writer, root: Path, owners: Owners, show: Show) -> int:
    """Add the files of packages and charts that the documents name; return the number of packages. Raises FileNotFoundError."""
    count = 0
    for collection, folder in ((PACKAGES, root / "packages"), (CHARTS, root / "charts")):
        for document_id, must_have in sorted(owners.get(collection, {}).items()):
            if not _ID.fullmatch(document_id):
                raise BackupRefused(f"{collection}: no id of a folder: {document_id[:100]!r}")
            files = list(_files_of(folder / document_id, folder.name))
            if must_have and not files:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / document_id))
            for path in files:
                writer.add_file(f"files/{path.relative_to(root).as_posix()}", path)
            count += bool(files) and collection == PACKAGES
    show(f"{count} packages")
    return count


def _must_have_files(body: Mapping[str, Any]) -> bool:
    return body.get("onboardingState") == _ONBOARDED


def _files_of(folder: Path, kind: str) -> Iterator[Path]:
    """Yield the files to keep; none if nothing was uploaded yet."""
    tops: Sequence[Path] = [folder / name for name in _KEPT] if kind == "packages" else [folder]
    for top in tops:
        found = [top] if top.is_file() else sorted(top.rglob("*"))
        # A file of a package may have any name.
        is_arriving = (lambda _: False) if top.name == "files" else _is_arriving
        yield from (path for path in found if path.is_file() and not path.is_symlink() and not is_arriving(path))


def _is_arriving(path: Path) -> bool:
    return path.suffix == _PART


def _put(part: Path, target: Path) -> None:
    """Give the archive its name, unless another file has got it meanwhile."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise BackupRefused(f"{target} exists: name a new file") from None
    except OSError:  # a file system without hard links
        shutil.move(part, target)
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
