"""The names of the files in a zip archive, as programs that unpack it show them.

APPNOTE 4.4.4 (bit 11) and appendix D: UTF-8 with the bit, IBM code page 437 without. Beside these, archives hold:

- Info-ZIP's Unicode Path (extra field 0x7075, APPNOTE 4.6.9): the name in UTF-8, valid while its CRC is that of the other name.
- The bytes of the file system. Programs for Unix and macOS write UTF-8 and do not set the bit.
- A code page of Windows or DOS, which the archive does not name: TOSCA.meta does, in ``File-Name-Encoding``. It is never guessed.

A name is in Unicode's form NFC, in which macOS does not write it: both forms are the same file.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from kubevnfm_csar.errors import PackageRefused

_UTF_8: Final = 0x800
_UNICODE_PATH: Final = 0x7075
_UNIX: Final = frozenset({3, 19})
"""``version made by`` (APPNOTE 4.4.2): Unix and macOS."""
_DOS: Final = "cp437"
_ENCODINGS: Final = re.compile(
    r"cp(437|720|737|775|8[56]\d|874|932|949|950|125\d)|iso8859-\d+|koi8-[rtu]|shift_jis(_2004|x0213)?|euc_(jp|kr)|euc_jis_2004"
    r"|gbk|gb2312|gb18030|big5(hkscs)?|mac-\w+|utf-8"
)
"""Python's names of the encodings that archives have names in."""
_WIDER: Final = {"shift_jis": "cp932", "gb2312": "gbk", "euc_kr": "cp949"}
"""Code pages of Windows go by the name of the standard that they extend."""


def encoding_of(declared: str, *, file: str) -> str:
    """Return Python's name of a declared encoding (``Shift_JIS``, ``cp932``). Raises PackageRefused."""
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        name = ""
    if not _ENCODINGS.fullmatch(name):
        raise PackageRefused(f"File-Name-Encoding: {declared} is no code page of file names that is known", file=file)
    return _WIDER.get(name, name)


def plain_name(name: str) -> str:
    """Return a name in the form in which names are compared."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def shown_name(info: zipfile.ZipInfo, encoding: str | None = None) -> str:
    """Return the name of an entry; ``encoding``: the declared one of names whose own is not known. Raises PackageRefused."""
    # zipfile's ``filename`` is cut at a NUL and has the system's separator replaced.
    name = info.orig_filename
    raw = name.encode() if info.flag_bits & _UTF_8 or name.isascii() else name.encode(_DOS)
    given = _unicode_path(info.extra, raw)
    if given is not None:
        return plain_name(given)
    if not info.flag_bits & _UTF_8 and not name.isascii():
        name = _decoded(raw, encoding, is_unix=info.create_system in _UNIX, shown=name)
    return plain_name(name)


def _decoded(raw: bytes, encoding: str | None, *, is_unix: bool, shown: str) -> str:
    if is_unix:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            pass
    if encoding is None:
        return raw.decode(_DOS)
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise PackageRefused(f"a name that is not {encoding}, which File-Name-Encoding says", file=shown) from error


def _unicode_path(extra: bytes, raw: bytes) -> str | None:
    """Return the name in the Unicode Path field; None if there is none, or one of another name."""
    for kind, data in _fields(extra):
        # Version 1, the CRC-32 of the other name, the name.
        if kind == _UNICODE_PATH and len(data) > 5 and data[0] == 1 and _number(data[1:5]) == zlib.crc32(raw):
            try:
                return data[5:].decode()
            except UnicodeDecodeError:
                return None
    return None


def _fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(extra):
        kind, size = _number(extra[at : at + 2]), _number(extra[at + 2 : at + 4])
        yield kind, extra[at + 4 : at + 4 + size]
        at += 4 + size


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
