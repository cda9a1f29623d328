"""Reads YAML as kubectl does: the same values for plain scalars, text keys, and no key twice.

PyYAML follows YAML 1.1, in which ``52:54:00:12:34:56`` and ``22:30`` are numbers of base 60. kubectl's reader (go-yaml 2,
then JSON) has texts there, but numbers for ``0o17`` and ``1e3``.

Source: gopkg.in/yaml.v2, resolve.go; sigs.k8s.io/yaml for keys. Compared with kubectl 1.32, value by value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_PLAIN: Final = "tag:kubevnfm.io,2026:plain"
_MERGE: Final = "tag:yaml.org,2002:merge"
_REFUSED: Final = ("binary", "set", "omap", "pairs", "timestamp")
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
_WHOLE_BELOW: Final = 1e21
"""Go writes a whole number below this without a fraction or an exponent."""


def read_documents(text: str) -> Iterator[Any]:
    """Yield the documents as JSON values. Raises yaml.YAMLError, also for a key given twice."""
    yield from yaml.load_all(text, Loader=_Loader)


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
        sign, *by_base = whole.groups()
        number = next(int(each, base) for each, base in zip(by_base, _BASES, strict=True) if each is not None)
        number = -number if sign == "-" else number
        return number if _SMALLEST <= number <= _LARGEST else float(number)
    if _FLOAT.fullmatch(digits) is None:
        return text
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{text}: a number that JSON has expected")
    return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # the C loader, if PyYAML has it
    """PyYAML's safe loader with kubectl's values."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Return a map with texts as keys."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self._key(key_node)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key} given twice", key_node.start_mark)
            seen.add(key)
        # Merged keys come first, so that the map's own ones replace them.
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        value = self.construct_object(node, deep=True)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value)
        raise yaml.constructor.ConstructorError(None, None, "a text expected as a key", node.start_mark)


def _construct_plain(loader: _Loader, node: yaml.ScalarNode) -> bool | int | float | str | None:
    try:
        return plain_value(node.value)
    except ValueError as error:
        raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error


def _refuse(loader: _Loader, node: yaml.Node) -> None:
    raise yaml.constructor.ConstructorError(None, None, f"{node.tag}: a value that JSON has expected", node.start_mark)


# One rule for all plain scalars in place of YAML 1.1's.
_Loader.yaml_implicit_resolvers = {"<": [(_MERGE, re.compile(r"<<$"))], None: [(_PLAIN, re.compile(""))]}
_Loader.add_constructor(_PLAIN, _construct_plain)
for _name in _REFUSED:
    _Loader.add_constructor(f"tag:yaml.org,2002:{_name}", _refuse)
