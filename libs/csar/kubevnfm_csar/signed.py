"""Signed packages (SOL004 clause 5): the signed files and their signatures; nothing is verified here.

Option 1: the manifest ends with a signature (CMS) of its text, whose digests cover the other files; a file may also have a
signature of its own. Option 2: an archive of the CSAR, the CSAR's signature and, maybe, a certificate.
"""

from __future__ import annotations

import posixpath
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubevnfm_csar.archive import Csar, copy_data, open_archive
from kubevnfm_csar.limits import Limits

_CSARS: Final = (".zip", ".csar")
_SIGNATURES: Final = (".cms",)
_CERTIFICATES: Final = (".cert", ".crt", ".pem", ".cer")


@dataclass(frozen=True)
class SignedArchive:
    """An option 2 package: the names of its two or three files."""

    path: Path
    csar: str
    signature: str
    certificate: str | None = None
    entries: dict[str, zipfile.ZipInfo] = field(default_factory=dict, repr=False)

    def unpack(self, name: str, target: Path) -> Path:
        """Write one of its files to ``target``. Raises PackageRefused when the archive's data is broken."""
        with zipfile.ZipFile(self.path) as archive, target.open("xb") as out:
            copy_data(archive, self.entries[name], name, out.write)
        return target


def signed_archive(path: Path, *, limits: Limits | None = None) -> SignedArchive | None:
    """Return the archive as an option 2 package; None if it is not one. Raises PackageRefused as ``open_csar``."""
    limits = limits or Limits()
    entries = open_archive(path, limits)
    by_kind = [
        [name for name in entries if name.lower().endswith(ends)] for ends in (_CSARS, _SIGNATURES, _CERTIFICATES)
    ]
    csars, signatures, certificates = by_kind
    # Anything else in the archive makes it an ordinary CSAR, which may contain signatures too.
    is_one = len(csars) == len(signatures) == 1 and len(certificates) <= 1
    if not is_one or len(entries) != sum(map(len, by_kind)) or any(posixpath.dirname(name) for name in entries):
        return None
    # Signature and certificate are read into memory later.
    if any(entries[name].file_size > limits.text_bytes for name in (*signatures, *certificates)):
        return None
    return SignedArchive(path, csars[0], signatures[0], certificates[0] if certificates else None, entries)


def uncovered(csar: Csar, security: set[str], signed_alone: set[str]) -> tuple[str, ...]:
    """Return the files that no digest of the manifest and no signature of their own covers.

    ``security``: signature and certificate files, which need no signature; ``signed_alone``: files with a signature of their own.
    """
    covered = {csar.index.manifest, csar.index.certificate} | csar.index.in_manifest | security | signed_alone
    return tuple(sorted(name for name in csar.names() if name not in covered))
