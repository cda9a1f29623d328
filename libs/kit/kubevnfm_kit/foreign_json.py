"""Reads JSON of others: what later code cannot store or walk is refused here."""

from __future__ import annotations

import codecs
import json
import math
from typing import Any, Final, NoReturn

DEEPEST: Final = 100
"""Levels of objects and arrays. The deepest documents that are known are schemas of Kubernetes, with some 40."""

MOST_NODES: Final = 500_000
"""Objects and arrays. An empty one has two bytes in the text and sixty in memory; a list of 1,000 pods has some 200,000."""

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * 19


def read_foreign(raw: bytes | str, *, deepest: int = DEEPEST, most_nodes: int = MOST_NODES) -> Any:
    """Return the value of a JSON text; the caller limits its length.

    Raises ValueError for what is not JSON in UTF-8 (RFC 8259), is nested deeper than ``deepest``, has more than
    ``most_nodes`` objects and arrays, a number beyond 64 bits or the range of a double, or a text that is not Unicode.
    Never RecursionError.
    """
    # `json.loads` would also read other encodings, and halves of surrogate pairs in UTF-8.
    raw = raw if isinstance(raw, bytes) else raw.encode()
    text = raw.removeprefix(codecs.BOM_UTF8).decode()
    nodes = text.count("[") + text.count("{")
    if nodes > most_nodes:
        raise ValueError(f"more than {most_nodes} objects and arrays")
    # Reading each integer by a function of ours takes twice the time; a pattern for long ones takes as much as the reading.
    reader = _WITH_LONG_NUMBERS if _LONG_NUMBER in raw.translate(_DIGITS_AS_ZERO) else _PLAIN
    try:
        value = reader.decode(text)
        # A half of a surrogate pair can be read, but neither stored nor sent.
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(_too_deep(deepest)) from error
    # A document with fewer brackets than that is not too deep; most are spared the walk.
    if nodes > deepest:
        _check_depth(value, deepest)
    return value


def _too_deep(deepest: int) -> str:
    return f"nested deeper than {deepest} levels"


def _check_depth(value: Any, deepest: int) -> None:
    level = [value] if type(value) in (dict, list) else []
    for _ in range(deepest + 1):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            # Exact types, as the decoder makes them, take a third of the time.
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise ValueError(_too_deep(deepest))


def _integer(text: str) -> int:
    # The number of digits is checked first: the time to convert them grows with its square.
    if len(text) > len(str(_SMALLEST)) or not _SMALLEST <= (number := int(text)) <= _LARGEST:
        raise ValueError("a number beyond 64 bits")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond the range of a double")
    return number


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads."""
    raise ValueError(f"{name} is not JSON")


_PLAIN: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_WITH_LONG_NUMBERS: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer)
"""Made once: for a short text `json.loads`, which makes a decoder for each call, takes twice the time."""
