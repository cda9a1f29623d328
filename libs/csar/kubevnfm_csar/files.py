"""The sources of a package's files: the archive, or the folder that it was unpacked to."""

from __future__ import annotations

import hashlib
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final, Protocol
from urllib.parse import urlsplit

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.zip_names import plain_name

IMAGES: Final = "Files/images/"
"""The folder of VM images, by convention; no stack has them, and copies for other services leave them out."""
_URI: Final = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_IMAGE_ENDS: Final = (
    ".img",
    ".qcow2",
    ".raw",
    ".iso",
    ".vmdk",
    ".vdi",
    ".vhd",
    ".vhdx",
    ".ova",
    ".aki",
    ".ami",
    ".ari",
)
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME: Final = 100


class PackageFiles(Protocol):
    """The files of one package by their path within it (``Definitions/vnfd.yaml``)."""

    @property
    def limits(self) -> Limits: ...

    def names(self) -> frozenset[str]:
        """The path of every file, without folders."""
        ...

    def below(self, folder: str) -> Sequence[str]:
        """The paths of the files in a folder (``BaseHOT/simple/``) and in its subfolders, sorted."""
        ...

    def size(self, name: str) -> int:
        """Bytes, unpacked."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Open for reading. Raises PackageRefused when there is no such file."""
        ...


class FolderFiles:
    """An unpacked package; links are ignored, so that no file outside of it is read."""

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        self.folder = folder
        self.limits = limits or Limits()
        self._paths = dict(self._walk())
        self._names = frozenset(self._paths)
        self._sorted = sorted(self._names)

    def _walk(self) -> Iterable[tuple[str, Path]]:
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield plain_name(path.relative_to(self.folder).as_posix()), path

    def names(self) -> frozenset[str]:
        return self._names

    def below(self, folder: str) -> Sequence[str]:
        return names_below(self._sorted, folder)

    def size(self, name: str) -> int:
        return self._path(name).stat().st_size

    def open(self, name: str) -> BinaryIO:
        return self._path(name).open("rb")

    def _path(self, name: str) -> Path:
        if name not in self._names:
            raise PackageRefused("the package has no such file", file=name)
        return self._paths[name]


def names_below(ordered: Sequence[str], folder: str) -> Sequence[str]:
    """Return the names that begin with ``folder`` (``BaseHOT/simple/``), out of sorted ones, without reading the others."""
    start = bisect_left(ordered, folder)
    return list(takewhile(lambda name: name.startswith(folder), map(ordered.__getitem__, range(start, len(ordered)))))


def read_text(files: PackageFiles, name: str) -> str:
    """Return a text file of the package. Raises PackageRefused when it is missing, too large, or not UTF-8."""
    if name not in files.names():
        raise PackageRefused("the package has no such file", file=name)
    limit = files.limits.text_bytes
    if files.size(name) > limit:
        raise PackageRefused(f"larger than the {limit} bytes allowed for a text file", file=name)
    with files.open(name) as stream:
        # Bounded once more: a file of an unpacked folder can grow after its size was read.
        raw = stream.read(limit + 1)
    try:
        # Editors on Windows put a byte order mark in front, which YAML and the manifest's first key must not contain.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PackageRefused(f"not UTF-8 at byte {error.start}", file=name) from error


def listed_path(path: str) -> str:
    """Return a path that a request names as the package's list of files has it."""
    return plain_name(path.removeprefix("./"))


def is_uri(reference: str) -> bool:
    """Return whether a file is outside of the package."""
    return _URI.match(reference) is not None


def external_path(uri: str) -> str:
    """Return the path that an artifact outside of the package gets in it, once it is fetched."""
    digest = hashlib.sha256(uri.encode()).hexdigest()[:16]
    name = _UNUSUAL.sub("_", posixpath.basename(urlsplit(uri).path))[-_LONGEST_NAME:].lstrip(".") or "artifact"
    return f"{IMAGES if name.lower().endswith(_IMAGE_ENDS) else ''}external/{digest}/{name}"


def locate(files: PackageFiles, reference: str, *, beside: str) -> str | None:
    """Return the path of the file that ``reference`` (in the file ``beside``) points to; None if there is none.

    In Tacker's v1 packages references are relative to the package's root, in v2 packages and TOSCA to the folder of the
    referring file: the latter is tried first because it is the standard (TOSCA Simple Profile, import definition).
    """
    reference = plain_name(reference.strip())
    if is_uri(reference):
        fetched = external_path(reference)
        return fetched if fetched in files.names() else None
    if not reference or reference.startswith("/") or "\\" in reference:
        return None
    for base in (posixpath.dirname(beside), ""):
        name = posixpath.normpath(posixpath.join(base, reference))
        if not name.startswith("../") and name in files.names():
            return name
    return None


def inside(path: str) -> str | None:
    """Return a path that a request names in its plain form; None when it is absolute or leaves the package."""
    if not path or path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
        return None
    name = plain_name(posixpath.normpath(path))
    return None if name == "." else name
