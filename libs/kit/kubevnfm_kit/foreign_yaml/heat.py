"""Reads Heat templates as Heat does: the values of YAML 1.1, without dates.

``heat_template_version: 2013-05-23`` is a text, and ``enable_dhcp: yes`` a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from yaml.constructor import SafeConstructor
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from kubevnfm_kit.foreign_yaml.reader import LONGEST_NUMBER, Budget, Dialect, read_documents

_LARGEST: Final = 2**63 - 1
_MAKERS: Final[Mapping[str, Callable[[SafeConstructor, ScalarNode], Any]]] = {
    "tag:yaml.org,2002:null": SafeConstructor.construct_yaml_null,
    "tag:yaml.org,2002:bool": SafeConstructor.construct_yaml_bool,
    "tag:yaml.org,2002:int": SafeConstructor.construct_yaml_int,
    "tag:yaml.org,2002:float": SafeConstructor.construct_yaml_float,
}
_RULES: Final[Mapping[str, list[tuple[str, re.Pattern[str]]]]] = {
    first: [(tag, pattern) for tag, pattern in rules if tag in _MAKERS]
    for first, rules in Resolver.yaml_implicit_resolvers.items()
}
"""By the first character of a scalar: PyYAML's types and their patterns."""
_MAKER: Final = SafeConstructor()


def read_heat_yaml(text: str, budget: Budget | None = None, *, is_repeated_key_refused: bool = False) -> list[Any]:
    """Return the documents of a Heat template as JSON values, None for one without content.

    Keys are texts: ``1: x`` and ``true: x`` become ``"1"`` and ``"true"``. So are numbers that are infinite, no number, or
    of more than 64 bits. ``budget``: of several texts together. ``is_repeated_key_refused``: if not, the last one is used,
    as by Heat. Raises YamlRefused.
    """
    return read_documents(text, _STRICT if is_repeated_key_refused else _HEAT, budget)


def _plain_value(text: str) -> Any:
    for tag, pattern in _RULES.get(text[:1], ()):
        if pattern.match(text):
            if len(text) > LONGEST_NUMBER:
                raise ValueError(f"a number of at most {LONGEST_NUMBER} characters expected")
            value = _MAKERS[tag](_MAKER, ScalarNode(tag, text))
            is_stored = not isinstance(value, int | float) or -_LARGEST <= value <= _LARGEST
            return value if is_stored else str(value)
    return text


def _key(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


_HEAT: Final = Dialect(plain=_plain_value, key=_key, is_repeated_key_refused=False)
_STRICT: Final = Dialect(plain=_plain_value, key=_key, is_repeated_key_refused=True)
