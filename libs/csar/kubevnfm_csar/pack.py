"""Makes a CSAR out of a folder: ``python -m kubevnfm_csar.pack FOLDER OUT.zip``.

The folder's TOSCA-Metadata/TOSCA.meta holds the first block only; a block with type and digest for every artifact is
written after it. The same folder always gives the same bytes, so a package's checksum says whether anything changed.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from kubevnfm_csar.archive import file_digest
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.manifest import META
from kubevnfm_csar.package import Package, content_type_of, read_package

BESIDE: Final = ("requests", "README.md")
"""Files of a sample that are not part of the package: bodies of requests, a README."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold."""
_MODE: Final = 0o100644


def pack(folder: Path, out: Path, *, without: Sequence[str] = BESIDE) -> Package:
    """Write the package and return its content, read back from the archive with every check of onboarding.

    ``without``: names in the folder's root that are left out, as hidden files and byte code always are.
    Raises: PackageRefused if onboarding would refuse the package; ``out`` then stays unchanged.
    """
    head_file = folder / META
    if not head_file.is_file():
        raise PackageRefused("missing: its first block names the VNFD (Entry-Definitions)", file=META)
    head = head_file.read_text().split("\n\n", 1)[0].strip()
    names = sorted(_names(folder, without))
    blocks = [head, *(_block(folder, name) for name in names if not name.startswith("Definitions/"))]
    out.parent.mkdir(parents=True, exist_ok=True)
    # Each call has a draft of its own: `make demo` and `make samples` may pack the same folder at one time.
    draft = out.with_name(f".{out.name}.{uuid4().hex}.part")
    try:
        with zipfile.ZipFile(draft, "w") as archive:
            _add(archive, META, "\n\n".join(blocks).encode() + b"\n")
            for name in names:
                _add(archive, name, (folder / name).read_bytes())
        package = read_package(draft)
        # Renamed only after every check: `out` is the old package or a valid new one, never a part.
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    return package


def _names(folder: Path, without: Sequence[str]) -> Iterator[str]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not path.is_file() or parts[0] in without or path.suffix == ".pyc":
            continue
        name = "/".join(parts)
        if name != META and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield name


def _block(folder: Path, name: str) -> str:
    digest = file_digest(folder / name)
    return f"Name: {name}\nContent-Type: {content_type_of(name)}\nAlgorithm: SHA-256\nHash: {digest}"


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = _MODE << 16
    info.create_system = 3  # Unix: otherwise the bytes depend on the packing machine
    archive.writestr(info, content, compresslevel=9)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kubevnfm_csar.pack", description="Makes a CSAR out of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, metavar="OUT.zip")
    parser.add_argument("--without", action="append", metavar="NAME", help=f"left out; default: {', '.join(BESIDE)}")
    given = parser.parse_args(arguments)
    try:
        package = pack(given.folder, given.out, without=given.without or BESIDE)
    except PackageRefused as error:
        sys.stderr.write(f"{given.folder}: {error}\n")
        return 1
    sys.stdout.write(f"{given.out}: VNFD {package.vnfd.vnfd_id}, SHA-256 {package.checksum.hash}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
