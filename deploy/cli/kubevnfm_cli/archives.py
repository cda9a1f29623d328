"""Archives of VNF packages: a CSAR as it is, or one that is packed from a folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from kubevnfm_cli.faults import Fault

META: Final = "TOSCA-Metadata/TOSCA.meta"
LEFT_OUT: Final = ("requests", "README.md")
"""Names in the root of a folder that are no part of the package: bodies of requests, a README."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that an archive can hold."""
_MODE: Final = 0o100644
_CHUNK: Final = 1 << 20
_LARGE: Final = 64 << 20
"""Bytes of a file that is not compressed."""
_MOST_FILES: Final = 100_000
_CONTENT_TYPES: Final = {
    ".yaml": "application/yaml", ".yml": "application/yaml", ".json": "application/json", ".sh": "application/x-sh",
    ".py": "text/x-python", ".md": "text/markdown", ".txt": "text/plain", ".meta": "text/plain", ".mf": "text/plain",
    ".crt": "application/x-x509-ca-cert", ".pem": "application/x-pem-file", ".tgz": "application/gzip",
    ".gz": "application/gzip", ".zip": "application/zip", ".tar": "application/x-tar",
}  # fmt: skip
"""Those of `kubevnfm_csar`: a test packs the samples with both."""


@dataclass(frozen=True)
class Archive:
    """An archive on the disk."""

    path: Path
    size: int
    sha256: str


@contextlib.contextmanager
def archive_of(path: Path, *, follows_links: bool = False) -> Iterator[Archive]:
    """Yield the archive of a file, or of a folder, which is packed for the time of the block. Raises Fault.

    ``follows_links``: whether links of a folder may lead out of it. Without that, a folder of others cannot send files of the user.
    """
    if not path.is_dir():
        yield _described(path)
        return
    with tempfile.TemporaryDirectory(prefix="kubevnfm-") as folder:
        packed = Path(folder) / f"{path.resolve().name}.zip"
        pack(path, packed, follows_links=follows_links)
        yield _described(packed)


def _described(path: Path) -> Archive:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            return Archive(path, os.fstat(file.fileno()).st_size, digest.hexdigest())
    except OSError as error:
        raise Fault(f"{path}: {error.strerror or error}") from error


def pack(folder: Path, out: Path, *, follows_links: bool = False) -> None:
    """Write a folder as an archive; the same folder always gives the same bytes. Raises Fault.

    Hidden files, byte code and the names in `LEFT_OUT` are left out. If the folder has a TOSCA.meta, only its first block is
    used: a block with type and digest for each file is written after it. Nothing else is checked: the gateway does that.
    """
    try:
        names = sorted(_names(folder, follows_links=follows_links))
        if not names:
            raise Fault(f"{folder}: no file for a package in there")
        with zipfile.ZipFile(out, "w") as archive:
            if (folder / META).is_file():
                head = (folder / META).read_text().split("\n\n", 1)[0].strip()
                blocks = [head, *(_block(folder, name) for name in names if not name.startswith("Definitions/"))]
                _add(archive, META, "\n\n".join(blocks).encode() + b"\n")
            for name in names:
                _add_file(archive, name, folder / name)
    except (OSError, UnicodeDecodeError) as error:
        raise Fault(f"{folder}: {error}") from error


def _names(folder: Path, *, follows_links: bool) -> Iterator[str]:
    for count, path in enumerate(folder.rglob("*")):
        if count > _MOST_FILES:
            raise Fault(f"{folder}: at most {_MOST_FILES} files expected")
        parts = path.relative_to(folder).parts
        if (
            parts[0] in LEFT_OUT
            or path.suffix == ".pyc"
            or any(each.startswith(".") or each == "__pycache__" for each in parts)
        ):
            continue
        if not follows_links and path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise Fault(
                f"{path} leads out of the folder: --follow-links, or followLinks in a site file, packs what is there"
            )
        name = "/".join(parts)
        if path.is_file() and name != META:
            yield name


def _block(folder: Path, name: str) -> str:
    digest = _described(folder / name).sha256
    kind = _CONTENT_TYPES.get(Path(name).suffix.lower(), "application/octet-stream")
    return f"Name: {name}\nContent-Type: {kind}\nAlgorithm: SHA-256\nHash: {digest}"


def _add_file(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    """Add a file; a large one, such as an image, is stored as it is, and never whole in memory."""
    size = path.stat().st_size
    if size <= _LARGE:
        _add(archive, name, path.read_bytes())
        return
    info = _info(name)
    info.compress_type, info.file_size = zipfile.ZIP_STORED, size
    with archive.open(info, "w") as out, path.open("rb") as file:
        shutil.copyfileobj(file, out, _CHUNK)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = _info(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content, compresslevel=9)


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.external_attr = _MODE << 16
    info.create_system = 3  # Unix: otherwise the bytes depend on the packing machine
    return info


class CountedFile:
    """A file that reports how much of it was read."""

    def __init__(self, file: BinaryIO, report: Callable[[int], None]) -> None:
        self._file, self._report, self._count = file, report, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        chunk = self._file.read(size)
        self._count += len(chunk)
        if chunk:
            self._report(self._count)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
