"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload


@overload
def merge_patch(target: object, patch: Mapping[str, object]) -> dict[str, object]: ...


@overload
def merge_patch(target: object, patch: object) -> object: ...


def merge_patch(target: object, patch: object) -> object:
    """Return ``target`` changed by ``patch``; neither argument is modified. None removes a member."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, object] = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged
