"""Opens a CSAR (a zip archive) after checking that unpacking it is safe.

Everything here blocks: callers run it in a process or thread of its own. Archives inside the archive (Helm charts, image
tars) are never unpacked, so a zip bomb nested in them does no harm.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final, Self, cast

from kubevnfm_secrets import shown_url

from kubevnfm_csar.errors import ExternalMissing, PackageRefused
from kubevnfm_csar.files import names_below
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.manifest import HASH_NAMES, META, Index, Listed, declared_encoding, read_index
from kubevnfm_csar.zip_names import encoding_of, shown_name

CHUNK: Final = 1024 * 1024
_COMPRESSIONS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA})
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
"""General purpose bits 0 (encryption), 6 (strong encryption), 13 (masked directory): APPNOTE 4.4.4."""
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, NotImplementedError, RuntimeError,
)  # fmt: skip
"""The errors of zipfile and its decompressors for data that is not a zip archive."""


@dataclass(frozen=True)
class Csar:
    """A checked archive, open: its list of files is read once. Leaving a ``with`` block closes it."""

    path: Path
    limits: Limits
    archive: zipfile.ZipFile = field(repr=False)
    entries: dict[str, zipfile.ZipInfo] = field(repr=False)
    """Entry by path; files only."""
    index: Index = field(default_factory=Index, repr=False)
    """The content of TOSCA.meta and the manifest."""
    external: Mapping[str, Path] = field(default_factory=dict, repr=False)
    """The fetched artifacts from outside of the package: the file on disk by path."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.close()

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset((*self.entries, *self.external))

    @cached_property
    def _sorted(self) -> Sequence[str]:
        return sorted(self._names)

    def names(self) -> frozenset[str]:
        return self._names

    def below(self, folder: str) -> Sequence[str]:
        return names_below(self._sorted, folder)

    def size(self, name: str) -> int:
        if name in self.external:
            return self.external[name].stat().st_size
        return self.entries[name].file_size

    def open(self, name: str) -> BinaryIO:
        if name in self.external:
            return self.external[name].open("rb")
        if name not in self.entries:
            raise PackageRefused("the package has no such file", file=name)
        return cast("BinaryIO", _Entry(self.archive, self.entries[name], name))


class _Entry:
    """A file of an archive, open for reading. Raises PackageRefused, at the start and by `read`, for broken data."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> None:
        self._name = name
        with self._refusing():
            self._stream = archive.open(info)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        with self._refusing():
            return self._stream.read(size)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise PackageRefused(f"cannot be unpacked: {error}", file=self._name) from error


def open_csar(path: Path, *, limits: Limits | None = None, external: Path | None = None) -> Csar:
    """Return the package, its structure, its index and every digest in it checked.

    ``external``: the folder with the artifacts from outside of it that have been fetched (`external_name`).
    Raises: PackageRefused with the file and the rule that it breaks; ExternalMissing.
    Source: SOL004 (structure, digests); api.md 7.2.
    """
    limits = limits or Limits()
    archive = _archive(path)
    try:
        entries = _checked_entries(archive, limits, archive_bytes=path.stat().st_size)
        csar = Csar(path=path, limits=limits, archive=archive, entries=entries)
        index = read_index(csar)
        csar = replace(csar, index=index, external=_external(csar, index, external))
        # The digests come last: they read the whole archive, and a package with a wrong structure is refused before that.
        check_digests(csar)
    except BaseException:
        archive.close()
        raise
    return csar


def external_name(uri: str, algorithm: str, digest: str) -> str:
    """Return the name of a fetched artifact on disk: only content with this digest has it."""
    return hashlib.sha256(f"{uri} {algorithm} {digest}".encode()).hexdigest()


def _external(csar: Csar, index: Index, folder: Path | None) -> dict[str, Path]:
    """Return the files of the artifacts from outside of the package, by path. Raises ExternalMissing, PackageRefused."""
    found: dict[str, Path] = {}
    missing: list[Listed] = []
    for one in index.external:
        if one.name in csar.entries:
            raise PackageRefused(f"the path of an artifact outside of the package: {shown_url(one.uri)}", file=one.name)
        path = folder / external_name(one.uri, one.algorithm, one.hash) if folder is not None else None
        if path is not None and path.is_file():
            found[one.name] = path
        else:
            missing.append(one)
    if missing:
        raise ExternalMissing(missing)
    return found


def open_archive(path: Path, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """Return the entry of each file by its path, the structure checked and nothing else. Raises PackageRefused."""
    with _archive(path) as archive:
        return _checked_entries(archive, limits, archive_bytes=path.stat().st_size)


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _BROKEN as error:
        raise PackageRefused(f"not a zip archive: {error}") from error


def _checked_entries(archive: zipfile.ZipFile, limits: Limits, *, archive_bytes: int) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > limits.entries:
        raise PackageRefused(f"{len(infos)} entries; at most {limits.entries} are allowed")
    seen: set[str] = set()
    found: dict[str, zipfile.ZipInfo] = {}
    encoding = _declared_encoding(archive, limits)
    for info in infos:
        name = shown_name(info, encoding)
        check_name(name)
        _check_kind(info, name, limits)
        plain = name.rstrip("/")
        # Readers differ in which of two entries with one name they take: the checked one might not be the used one.
        if plain in seen:
            raise PackageRefused("the archive contains this name twice", file=name)
        seen.add(plain)
        if not name.endswith("/"):
            found[name] = info
    ordered = sorted(seen)
    for name in found:
        if names_below(ordered, f"{name}/"):
            raise PackageRefused("both a file and a folder", file=name)
    total = sum(info.file_size for info in found.values())
    if total > limits.unpacked_bytes:
        raise PackageRefused(f"{total} bytes unpacked; at most {limits.unpacked_bytes} are allowed")
    if total > limits.small_bytes and total > archive_bytes * limits.expansion_ratio:
        raise PackageRefused(
            f"unpacks to {total / archive_bytes:.0f} times its size; at most {limits.expansion_ratio:g} is allowed"
        )
    return found


def _declared_encoding(archive: zipfile.ZipFile, limits: Limits) -> str | None:
    """Return the encoding that TOSCA.meta declares for names whose own is not known. Raises PackageRefused."""
    info = archive.NameToInfo.get(META)
    if (
        info is None
        or info.file_size > limits.text_bytes
        or all(one.orig_filename.isascii() for one in archive.infolist())
    ):
        return None
    _check_kind(info, META, limits)
    with _Entry(archive, info, META) as stream:
        declared = declared_encoding(stream.read(limits.text_bytes).decode("utf-8-sig", errors="replace"))
    return encoding_of(declared, file=META) if declared else None


def check_name(name: str) -> None:
    """Raise PackageRefused for a name in an archive that could lead out of its folder, or that a disk cannot hold."""
    rule = ""
    parts = name.removesuffix("/").split("/")
    if "\\" in name:
        hint = "" if name.isascii() else "; File-Name-Encoding in TOSCA.meta declares the code page of names"
        rule = f"a backslash in a name{hint}"
    # The second part: a Windows drive (`C:`).
    elif name.startswith("/") or (len(name) > 1 and name[1] == ":"):
        rule = "an absolute path"
    elif ".." in parts:
        rule = "a path that leaves the package"
    elif not all(parts) or "." in parts:
        rule = "a path with empty or '.' parts"
    elif any(ord(character) < 32 or ord(character) == 127 for character in name):
        rule = "a control character in a name"
    elif len(name) > 1024 or any(len(part.encode()) > 255 for part in parts):
        rule = "a name longer than file systems take"
    if rule:
        raise PackageRefused(rule, file=repr(name)[1:-1])


def _check_kind(info: zipfile.ZipInfo, name: str, limits: Limits) -> None:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    rule = ""
    if info.flag_bits & _ENCRYPTED:
        rule = "encrypted"
    # 0: packed on a system without Unix modes.
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        rule = "a link" if stat.S_ISLNK(mode) else "a device, socket or pipe"
    elif info.compress_type not in _COMPRESSIONS:
        rule = f"compression method {info.compress_type} is not supported"
    elif info.file_size > limits.file_bytes:
        rule = f"{info.file_size} bytes; at most {limits.file_bytes} are allowed for one file"
    if rule:
        raise PackageRefused(rule, file=name)


def check_digests(csar: Csar) -> None:
    """Compare every listed digest with the file. Raises PackageRefused on the first that differs."""
    for listed in csar.index.listed.values():
        # TOSCA.meta may list a file without a digest; there is nothing to compare.
        if not listed.algorithm:
            continue
        digest = hashlib.new(HASH_NAMES[listed.algorithm])
        copy_entry(csar, listed.name, digest.update)
        if digest.hexdigest() != listed.hash:
            by = csar.index.manifest if listed.name in csar.index.in_manifest else csar.index.path
            raise PackageRefused(
                f"its {listed.algorithm} digest is {digest.hexdigest()}, {by} says {listed.hash}",
                file=listed.name,
            )


def extract(csar: Csar, target: Path, *, skip: Callable[[str], bool] | None = None) -> None:
    """Unpack into the folder ``target``, which is created; leave out the files that ``skip`` selects (disk images).

    Files get mode 0600, folders 0700, whatever the archive says: nothing in a package is executed in place.
    Raises: PackageRefused when the archive's data is broken; the files written until then stay, and the caller removes them.
    """
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in csar.entries:
        if skip is not None and skip(name):
            continue
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # O_EXCL|O_NOFOLLOW: the folder is ours, but a second unpacking into it would be a bug that must show
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as out:
            copy_entry(csar, name, out.write)
    for name, path in csar.external.items():
        if skip is not None and skip(name):
            continue
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.link(path, place)


def copy_entry(csar: Csar, name: str, write: Callable[[bytes], object]) -> None:
    """Feed a file's bytes to ``write``; zipfile itself checks the CRC and never yields more than the declared size.

    Raises: PackageRefused when the data is broken; the errors of ``write``.
    """
    if name in csar.external:
        with csar.open(name) as stream:
            while chunk := stream.read(CHUNK):
                write(chunk)
        return
    copy_data(csar.archive, csar.entries[name], name, write)


def copy_data(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, write: Callable[[bytes], object]) -> None:
    """As ``copy_entry``, for an archive that is no CSAR."""
    with _Entry(archive, info, name) as stream:
        while chunk := stream.read(CHUNK):
            write(chunk)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
