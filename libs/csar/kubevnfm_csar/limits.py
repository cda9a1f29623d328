"""Limits on the size of a package."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Limits:
    """Bounds that a package must keep before a byte of it is unpacked."""

    entries: int = 10_000
    expansion_ratio: float = 20.0
    """Unpacked size over the archive's own. Real packages stay below 5; a bomb reaches 1,000."""
    small_bytes: int = 16 * MIB
    """Unpacked size up to which the ratio is not checked: a few small text files compress well."""
    unpacked_bytes: int = 64 * GIB
    file_bytes: int = 32 * GIB
    """One file; disk images are the large ones."""
    text_bytes: int = 4 * MIB
    """One YAML file or TOSCA.meta: these are read into memory."""
    definitions: int = 500
    """Files that the VNFD consists of. Real ones have fewer than 20."""
    definitions_bytes: int = 16 * MIB
    """All files of the VNFD together. ETSI's type files have 0.3 MiB."""
