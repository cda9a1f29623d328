"""The keys of an instance's metadata that kubevnfm sets itself: requests cannot set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.lifecycle.core import dependencies, drift, outputs, suspension

_KEYS: Final = (drift.KEY, dependencies.KEY, suspension.KEY, outputs.KEY)


def check_not_given(metadata: Mapping[str, Any] | None, present: Mapping[str, Any]) -> None:
    """Raise InvalidInput if a request sets a key. The present value is allowed: clients send back what they have read."""
    for key in _KEYS:
        if metadata is not None and key in metadata and metadata[key] != present.get(key):
            raise InvalidInput(f"metadata/{key}", "kubevnfm sets this key itself; leave it out")


def own_part(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is left of the metadata if a request removes all of them."""
    return {key: metadata[key] for key in _KEYS if key in metadata}
