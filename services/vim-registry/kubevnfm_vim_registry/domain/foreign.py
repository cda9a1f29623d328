"""Parts of foreign objects, whatever they are: what is not of the expected type counts as empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubevnfm_kit.json_types import JsonMapping


def as_map(value: object) -> JsonMapping:
    """Return an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_maps(value: object) -> Sequence[JsonMapping]:
    """Return the objects of a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
