"""Reads YAML as kubectl does: the same values for plain scalars, text keys, and no key twice.

PyYAML follows YAML 1.1, in which ``52:54:00:12:34:56`` and ``22:30`` are numbers of base 60. kubectl's reader (go-yaml 2,
then JSON) has texts there, but numbers for ``0o17`` and ``1e3``.

Source: gopkg.in/yaml.v2, resolve.go; sigs.k8s.io/yaml for keys. Compared with kubectl 1.32, value by value.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.reader import LONGEST_NUMBER, Budget, Dialect, Lines, YamlRefused, read_documents

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
}
_NOT_JSON: Final = frozenset(
    ["+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"]
)
_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9][0-9]*))")
_BASES: Final = (16, 8, 2, 10)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_SHOWN: Final = 60
_WHOLE_BELOW: Final = 1e21
"""Go writes a whole number below this without a fraction or an exponent."""


def read_kubernetes_yaml(text: str, budget: Budget | None = None, lines: Lines | None = None) -> list[Any]:
    """Return the documents of a text that Kubernetes or a program of it would read, as JSON values.

    None stands for a document without content. ``budget``: of several texts together; ``lines`` gets the lines of keys.
    Raises YamlRefused, also for a key given twice.
    """
    return read_documents(text, _KUBERNETES, budget, lines)


def read_one_kubernetes_yaml(text: str, lines: Lines | None = None) -> Any:
    """Return the value of a text with one document, None for one without content. Raises YamlRefused."""
    found = read_kubernetes_yaml(text, lines=lines)
    if len(found) > 1:
        raise YamlRefused(f"{len(found)} documents; one expected")
    return found[0] if found else None


def plain_value(text: str) -> bool | int | float | str | None:
    """Return the value of a scalar without quotes. Raises ValueError for a number that JSON does not have."""
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_JSON:
        raise ValueError(f"{text}: a number that JSON has expected")
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    whole = _INTEGER.fullmatch(digits)
    if whole is not None:
        _check_length(digits)
        sign, *by_base = whole.groups()
        number = next(int(each, base) for each, base in zip(by_base, _BASES, strict=True) if each is not None)
        number = -number if sign == "-" else number
        return number if _SMALLEST <= number <= _LARGEST else _finite(number, text)
    if _FLOAT.fullmatch(digits) is None:
        return text
    _check_length(digits)
    value = _finite(digits, text)
    return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value


def _finite(number: int | str, text: str) -> float:
    """Return the number as JSON can have it. Raises ValueError."""
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
        raise ValueError(f"{shown}: a number that JSON has expected")
    return value


def _check_length(digits: str) -> None:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number of at most {LONGEST_NUMBER} characters expected")


def _key(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError("a text expected as a key")


_KUBERNETES: Final = Dialect(plain=plain_value, key=_key, is_repeated_key_refused=True)
