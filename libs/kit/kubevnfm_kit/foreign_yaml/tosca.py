"""Reads VNF descriptors: YAML 1.2 with its core schema, booleans written ``true`` and ``false`` only.

``NO``, ``on``, ``1:30``, ``1_0`` and ``0b1`` are texts; ``010`` is ten. A number has its text as it is written, because a
descriptor may write a version without quotes: ``str()`` of ``1.10`` is ``1.10``.

Source: YAML 1.2.2, 10.3; TOSCA Simple Profile in YAML 1.3, 1.8 (YAML 1.2), 3.2.1.1 and 3.3.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.reader import LONGEST_NUMBER, Budget, Dialect, read_documents

_LARGEST: Final = 2**63 - 1
_WORDS: Final[dict[str, bool | None]] = {
    "true": True, "false": False, **dict.fromkeys(["", "~", "null", "Null", "NULL"])
}  # fmt: skip
_NUMERIC: Final = frozenset("-+.0123456789")
_INTEGER: Final = re.compile(r"(?:([-+]?[0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+))")
_BASES: Final = (10, 8, 16)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class WrittenInt(int):
    """A whole number with another text than Python's: ``str()`` of it is the text as it is written."""

    written: str

    def __new__(cls, value: int, written: str) -> WrittenInt:
        made = super().__new__(cls, value)
        made.written = written
        return made

    def __str__(self) -> str:
        return self.written

    def __reduce__(self) -> tuple[type[WrittenInt], tuple[int, str]]:
        return WrittenInt, (int(self), self.written)


class WrittenFloat(float):
    """A number with another text than Python's: ``str()`` of it is the text as it is written."""

    written: str

    def __new__(cls, value: float, written: str) -> WrittenFloat:
        made = super().__new__(cls, value)
        made.written = written
        return made

    def __str__(self) -> str:
        return self.written

    def __reduce__(self) -> tuple[type[WrittenFloat], tuple[float, str]]:
        return WrittenFloat, (float(self), self.written)


def read_tosca_yaml(text: str, budget: Budget | None = None) -> list[Any]:
    """Return the documents of a VNF descriptor as JSON values, None for one without content.

    Keys are texts: ``1: x`` and ``true: x`` become ``"1"`` and ``"true"``. So are numbers that are infinite, no number, or
    of more than 64 bits, such as a digest of digits only without quotes. ``budget``: of several texts together.
    Raises YamlRefused, also for a key given twice (TOSCA Simple Profile in YAML 1.3, 3.1.3.1).
    """
    return read_documents(text, _TOSCA, budget)


def _plain_value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    whole = _INTEGER.fullmatch(text)
    if whole is None and _FLOAT.fullmatch(text) is None:
        return text
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of at most {LONGEST_NUMBER} characters expected")
    if whole is not None:
        number = next(int(each, base) for each, base in zip(whole.groups(), _BASES, strict=True) if each is not None)
        if not -_LARGEST <= number <= _LARGEST:
            return text
        return number if str(number) == text else WrittenInt(number, text)
    value = float(text)
    if not math.isfinite(value) or abs(value) > _LARGEST:
        return text
    return value if str(value) == text else WrittenFloat(value, text)


def _key(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


_TOSCA: Final = Dialect(plain=_plain_value, key=_key, is_repeated_key_refused=True)
