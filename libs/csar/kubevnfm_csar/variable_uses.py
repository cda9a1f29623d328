"""The places in manifests at which variables are used (multicloud.md MC-022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubevnfm_kit.json_pointer import escaped

from kubevnfm_csar.manifest_values import VARIABLE, is_switched_off, name_in


@dataclass(frozen=True)
class Use:
    """A variable in a manifest."""

    name: str
    path: str
    """A JSON pointer to the scalar, or to the member whose name it is in."""
    has_default: bool
    """Whether the place has a value without one of the variable."""


def uses_in(body: Any) -> Iterator[Use]:
    """Yield the variables of a manifest in the order in which they are written."""
    if isinstance(body, Mapping) and not is_switched_off(body):
        yield from _uses(body, "")


def _uses(node: Any, path: str) -> Iterator[Use]:
    if isinstance(node, str):
        for found in VARIABLE.finditer(node) if "$" in node else ():
            if name := name_in(found):
                yield Use(name, path, found["default"] is not None)
    elif isinstance(node, Mapping):
        for name, value in node.items():
            here = f"{path}/{escaped(name)}"
            yield from _uses(name, here)
            yield from _uses(value, here)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _uses(value, f"{path}/{index}")
