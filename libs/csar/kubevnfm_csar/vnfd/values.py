"""Single values of a service template: inputs, sizes, numbers."""

from __future__ import annotations

import re
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_csar.errors import PackageRefused

_SIZE: Final = re.compile(r"^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?i?[bB])?$", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]{1,20}")
_LARGEST: Final = 2**53
"""The largest size and number: below it every integer has a float of its own, so all systems read the same (RFC 8259)."""
_BOOLEANS: Final = {
    **{form(word): True for word in ("true", "yes", "on") for form in (str.lower, str.capitalize, str.upper)},
    **{form(word): False for word in ("false", "no", "off") for form in (str.lower, str.capitalize, str.upper)},
}
_FACTOR: Final = {
    "b": 1, "kb": 1000, "kib": 1024, "mb": 1000**2, "mib": 1024**2,
    "gb": 1000**3, "gib": 1024**3, "tb": 1000**4, "tib": 1024**4,
}  # fmt: skip
"""Bytes by unit, case ignored (TOSCA Simple Profile, scalar-unit.size)."""


def resolve(value: Any, inputs: JsonMapping) -> Any:
    """Return the value with ``get_input`` replaced by the inputs' defaults; one without default becomes None."""
    if isinstance(value, dict):
        if set(value) == {"get_input"}:
            return _input(value["get_input"], inputs)
        return {key: resolve(item, inputs) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, inputs) for item in value]
    return value


def _input(path: Any, inputs: JsonMapping) -> Any:
    # TOSCA also allows a path into the input: `[name, key, index]`.
    names = path if isinstance(path, list) else [path]
    found: Any = inputs.get(str(names[0])) if names else None
    for name in names[1:]:
        if isinstance(found, list) and isinstance(name, int) and 0 <= name < len(found):
            found = found[name]
        else:
            found = mapping(found).get(str(name))
    return found


def input_defaults(document: JsonMapping) -> JsonObject:
    """Return the default of each input of a service template that has one."""
    inputs = mapping(mapping(document.get("topology_template")).get("inputs"))
    return {name: value["default"] for name, value in inputs.items() if mapping(value).get("default") is not None}


def size_bytes(value: Any, *, file: str, what: str) -> int:
    """Return a TOSCA size (``4096 MiB``) in bytes; a bare number is bytes, nothing is 0. Raises PackageRefused."""
    if value is None:
        return 0
    number = -1.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str) and (found := _SIZE.match(value.strip())) is not None:
        number = float(found[1]) * _FACTOR[(found[2] or "b").lower()]
    if 0 <= number <= _LARGEST:
        return int(number)
    raise PackageRefused(f"{what}: a size such as '20 GB' expected, got {value!r}", file=file)


def whole_number(value: Any, *, file: str, what: str) -> int:
    """Return a number of at least 0; nothing is 0. Raises PackageRefused."""
    if value is None:
        return 0
    number = -1
    if (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and _DIGITS.fullmatch(value)
    ):
        number = int(value)
    if not 0 <= number <= _LARGEST:
        raise PackageRefused(f"{what}: a whole number of at least 0 expected, got {value!r}", file=file)
    return number


def mapping(value: object) -> JsonMapping:
    """Return the value if it is a mapping, else an empty one: hand-written VNFDs leave sections empty."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a value as text, as it is written (a number too: ``1.10``); nothing is empty."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def boolean(value: Any) -> bool | None:
    """Return a boolean in a spelling of YAML 1.2, or of YAML 1.1 (``no``), as which Tacker reads VNFDs; None if the value is none."""
    return value if isinstance(value, bool) else _BOOLEANS.get(value) if isinstance(value, str) else None
