"""The archive of a backup: a tar in gzip, whose last member lists all others with their sizes and SHA-256.

An archive may come from anywhere: members are regular files under the few names that a backup has, nothing is believed before the
whole archive was read once, and no size that the archive claims is taken into memory.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal

from kubevnfm_kit.errors import VnfmError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DATABASE: Final = "kubevnfm.db"
KEY_FILES: Final = ("keys", "internal-token", "credentials-token", "callback-key")
_MEMBER: Final = re.compile(
    r"(?s)manifest\.json|kubevnfm\.db|keys/[a-z-]{1,40}|mongo/\d{1,2}/[A-Za-z0-9_-]{1,100}\.bson|files/(?:packages|charts)/.+"
)
_MOST_MEMBERS: Final = 300_000
_LONGEST_NAME: Final = 4096
_LONGEST_PART: Final = 255
_MANIFEST_BYTES: Final = 128 * 1024 * 1024
_CHUNK: Final = 256 * 1024
_HEADER_BYTES: Final = 64 * 1024
_LEVEL: Final = 3
"""Most of an archive are packages, which are compressed already."""


class ArchiveInvalid(VnfmError, code="backup-damaged", title="Backup damaged", status=422):
    """The archive is damaged, or is no backup."""


class Member(BaseModel):
    """A member of the archive."""

    model_config = ConfigDict(frozen=True)

    size: int = Field(ge=0)
    sha256: str


class Collection(BaseModel):
    """A collection in a database."""

    model_config = ConfigDict(frozen=True)

    documents: int = Field(ge=0)
    bytes: int = Field(default=0, ge=0)


class Database(BaseModel):
    """A database, and whose documents it has."""

    model_config = ConfigDict(frozen=True)

    services: tuple[str, ...]
    collections: dict[str, Collection] = {}


class Manifest(BaseModel):
    """The list of all that the archive has."""

    model_config = ConfigDict(frozen=True)

    format: int
    version: str
    """The version of kubevnfm that has written it."""
    kind: Literal["one-process", "six-services"]
    time: str
    """The moment that the documents are of, RFC 3339."""
    databases: tuple[Database, ...]
    sealed_values: dict[str, int] = {}
    """The number of sealed values by the id of the key that each needs."""
    packages: int = 0
    has_keys: bool = False
    members: dict[str, Member]

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the keys that sealed values need."""
        return tuple(sorted(self.sealed_values))

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(each.documents for one in self.databases for each in one.collections.values())


class Writer:
    """Writes the members of an archive, and the manifest as the last one. Each method may raise ArchiveInvalid."""

    def __init__(self, target: IO[bytes]) -> None:
        self._zipped = gzip.GzipFile(filename="", mode="wb", fileobj=target, compresslevel=_LEVEL, mtime=0)
        self._tar = tarfile.open(fileobj=self._zipped, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  # closed by `close`
        self.members: dict[str, Member] = {}

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Add a member of exactly that size."""
        source = _Counted(chunks)
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        # No archive is written that a restore would refuse.
        _check_name(info)
        if len(self.members) >= _MOST_MEMBERS:
            raise ArchiveInvalid(f"more than {_MOST_MEMBERS} members")
        self._tar.addfile(info, source)
        if source.size != size:
            raise ArchiveInvalid(f"{name} has changed while it was read")
        self.members[name] = Member(size=size, sha256=source.digest.hexdigest())

    def add_file(self, name: str, path: Path) -> None:
        """Add a file. Raises FileNotFoundError."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.add(name, size, iter(lambda: file.read(_CHUNK), b""))

    def close(self, manifest: Manifest) -> None:
        """Write the manifest and the end."""
        text = manifest.model_dump_json(indent=1).encode()
        if len(text) > _MANIFEST_BYTES:
            raise ArchiveInvalid("the manifest is too large")
        self.add(MANIFEST, len(text), [text])
        self._tar.close()
        self._zipped.close()


class _Counted:
    """Chunks as a file, hashed as they are read."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._left = iter(chunks), b""
        self.digest, self.size = hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer at the end."""
        parts, wanted = [], size
        while wanted > 0:
            if not self._left:
                self._left = next(self._chunks, b"")
                if not self._left:
                    break
            parts.append(self._left[:wanted])
            self._left = self._left[wanted:]
            wanted -= len(parts[-1])
        found = b"".join(parts)
        self.digest.update(found)
        self.size += len(found)
        return found


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Yield a reader that has read the whole archive once, and found it undamaged. Raises ArchiveInvalid, OSError."""
    with path.open("rb") as file:
        yield Reader(file)


class Reader:
    """Reads an archive: once to check it, then again for its contents. The file stays open, so both are of the same one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        members: dict[str, Member] = {}
        text = b""
        for name, size, chunks in self._members():
            if name in members or text:
                raise ArchiveInvalid(f"two members {name}, or one behind the manifest")
            if name == MANIFEST:
                if size > _MANIFEST_BYTES:
                    raise ArchiveInvalid("the manifest is too large")
                text = b"".join(chunks)
                continue
            digest = hashlib.sha256()
            for chunk in chunks:
                digest.update(chunk)
            members[name] = Member(size=size, sha256=digest.hexdigest())
        self.manifest = _manifest(text)
        if self.manifest.members != members:
            wrong = sorted(
                name
                for name in {*members, *self.manifest.members}
                if members.get(name) != self.manifest.members.get(name)
            )
            raise ArchiveInvalid(f"{wrong[0]} is missing, or is not what the manifest says")

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield each member but the manifest, with its contents, which are to be read before the next one."""
        for name, _, chunks in self._members():
            if name != MANIFEST:
                yield name, self._checked(name, chunks)

    def _checked(self, name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.manifest.members[name].sha256:
            raise ArchiveInvalid(f"{name} has changed while it was read")

    def _members(self) -> Iterator[tuple[str, int, Iterator[bytes]]]:
        self._file.seek(0)
        with _understood(), gzip.GzipFile(fileobj=self._file, mode="rb") as zipped:
            bounded = _Bounded(zipped)
            count = 0
            tar = tarfile.open(fileobj=bounded, mode="r|")  # type: ignore[call-overload]  # noqa: SIM115  # it closes nothing
            while (info := _next(tar, bounded)) is not None:
                count += 1
                if count > _MOST_MEMBERS:
                    raise ArchiveInvalid(f"more than {_MOST_MEMBERS} members")
                _check_name(info)
                found = tar.extractfile(info)
                assert found is not None
                chunks = _chunks(found, info)
                yield info.name, info.size, chunks
                # To its end: a header follows.
                for _ in chunks:
                    pass
            # To the end, where gzip has the checksum of all.
            while zipped.read(_CHUNK):
                pass


@contextmanager
def _understood() -> Iterator[None]:
    """Show of what cannot be read that it is damaged."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError) as error:
        raise ArchiveInvalid(f"it is truncated, damaged, or no backup ({type(error).__name__})") from error


def _next(tar: tarfile.TarFile, bounded: _Bounded) -> tarfile.TarInfo | None:
    """Return the next member. It is forgotten at once: tarfile keeps them all otherwise."""
    bounded.begin_header()
    info = tar.next()
    bounded.end_header()
    tar.members = []  # type: ignore[attr-defined,unused-ignore]
    return info


class _Bounded:
    """The stream that tarfile reads: for the headers of one member no more than ours have, whatever an archive claims."""

    def __init__(self, source: gzip.GzipFile) -> None:
        self._source = source
        self._header_left: int | None = _HEADER_BYTES

    def begin_header(self) -> None:
        """Count the bytes from now on."""
        self._header_left = _HEADER_BYTES

    def end_header(self) -> None:
        """Count no more: contents follow."""
        self._header_left = None

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end."""
        if self._header_left is not None:
            self._header_left -= size
            if self._header_left < 0:
                raise ArchiveInvalid("it has a header that is too large")
        return self._source.read(size)


def _chunks(found: IO[bytes], info: tarfile.TarInfo) -> Iterator[bytes]:
    left = info.size
    while left:
        # Not around the `yield`: what reads the chunks has errors of its own.
        with _understood():
            if not (chunk := found.read(min(left, _CHUNK))):
                raise EOFError
        left -= len(chunk)
        yield chunk


def _check_name(info: tarfile.TarInfo) -> None:
    name = info.name
    parts = PurePosixPath(name).parts
    is_plain = info.isreg() and not info.issparse() and len(name) <= _LONGEST_NAME and "\0" not in name
    if not is_plain or not _MEMBER.fullmatch(name) or "/".join(parts) != name or ".." in parts:
        raise ArchiveInvalid(f"no member of a backup: {name[:100]!r}")
    if any(len(part.encode()) > _LONGEST_PART for part in parts):
        raise ArchiveInvalid(f"a name in it is too long: {name[:100]!r}")


def _manifest(text: bytes) -> Manifest:
    if not text:
        raise ArchiveInvalid("it has no manifest")
    try:
        form = _Form.model_validate_json(text).format
        if form > FORMAT:
            raise ArchiveInvalid(
                f"its format is {form}, and this version reads up to {FORMAT}: use the version that wrote it"
            )
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ArchiveInvalid("its manifest cannot be read") from error


class _Form(BaseModel):
    format: int = Field(ge=1)


Show = Callable[[str], None]
"""Shows a line of progress."""
