"""The places in manifests at which variables are used (multicloud.md MC-022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubevnfm_kit.json_pointer import Place, escaped

from kubevnfm_csar.manifest_values import VARIABLE, is_switched_off, name_in


@dataclass(frozen=True)
class Use:
    """A variable in a manifest."""

    name: str
    path: Place
    """A JSON pointer to the scalar, or to the member whose name it is in."""
    has_default: bool
    """Whether the place has a value without one of the variable."""


def uses_in(body: Any) -> Iterator[Use]:
    """Yield the variables of a manifest in the order in which they are written."""
    if isinstance(body, Mapping) and not is_switched_off(body):
        yield from _uses(body, None)


def _uses(node: Any, path: Place | None) -> Iterator[Use]:
    if isinstance(node, str):
        for found in VARIABLE.finditer(node) if "$" in node else ():
            if path is not None and (name := name_in(found)):
                yield Use(name, path, found["default"] is not None)
    elif isinstance(node, Mapping):
        for name, value in node.items():
            here = Place(path, f"/{escaped(name)}")
            yield from _uses(name, here)
            yield from _uses(value, here)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _uses(value, Place(path, f"/{index}"))
