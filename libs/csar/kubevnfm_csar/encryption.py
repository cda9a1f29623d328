"""Recognises encrypted files of a package.

SOL004 has an encrypted artifact as CMS EnvelopedData (RFC 5652 clause 6) and says so in no list, so the content decides.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_HEAD_BYTES: Final = 1024
_SEQUENCE: Final = 0x30
_ENVELOPED: Final = (
    bytes.fromhex("06092a864886f70d010703"),
    bytes.fromhex("060b2a864886f70d0109100117"),
)
"""The content types enveloped-data, and authEnveloped-data (RFC 5083), as they are encoded."""
_PEM_LABELS: Final = (b"-----BEGIN CMS-----", b"-----BEGIN PKCS7-----")
_MIME: Final = b"mime-version:"
_MIME_TYPES: Final = (b"smime-type=enveloped-data", b"smime-type=authenveloped-data")
"""In the header of the S/MIME form (RFC 8551), which ``openssl cms -encrypt`` writes by default."""


def encrypted_files(folder: Path, names: Iterable[str]) -> frozenset[str]:
    """Return the files of an unpacked package that are encrypted. Raises OSError."""
    return frozenset(name for name in names if _is_encrypted(_head(folder / name)))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _is_encrypted(head: bytes) -> bool:
    if head.startswith(_PEM_LABELS):
        return _is_enveloped(_decoded(head.partition(b"\n")[2]))
    if head[: len(_MIME)].lower() == _MIME:
        header = head.lower().replace(b'"', b"")
        return any(name in header for name in _MIME_TYPES)
    return _is_enveloped(head)


def _decoded(text: bytes) -> bytes:
    """Return the first line of a PEM body; empty if it is no base64."""
    try:
        return base64.b64decode(text.partition(b"\n")[0].strip(), validate=True)
    except binascii.Error:
        return b""


def _is_enveloped(der: bytes) -> bool:
    """Return whether a ContentInfo of these types begins here: a sequence, its length, the type."""
    if len(der) < 2 or der[0] != _SEQUENCE:
        return False
    length_octets = der[1] & 0x7F if der[1] & 0x80 else 0
    return der[2 + length_octets :].startswith(_ENVELOPED)
