"""Copies of sample packages with other VNFD ids: tests can onboard and delete them independently of the samples."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Final

from callers.user import PACKED

Files = dict[str, bytes]
_VM: Final = b"1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a3"
"""The VNFD id of the sample ``vm``."""


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return the files as a package."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        for name, content in files.items():
            written.writestr(name, content)
    return packed.getvalue()


def own_vm(vnfd_id: str) -> Files:
    """Return the files of the sample ``vm`` with another VNFD id, in a package without digests."""
    with zipfile.ZipFile(PACKED / "vm.zip") as sample:
        files = {name: sample.read(name).replace(_VM, vnfd_id.encode()) for name in sample.namelist()}
    meta = files["TOSCA-Metadata/TOSCA.meta"].decode()
    files["TOSCA-Metadata/TOSCA.meta"] = meta.split("\n\n")[0].encode() + b"\n"
    return files
