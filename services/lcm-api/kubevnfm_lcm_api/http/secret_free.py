"""Documents without their secrets, as every resource shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_secrets import opened, without_secrets


def without_secret_leaves(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored document's tree without its sealed values (SOL003 V3.7.1 clause 4.4.1)."""
    return dict(without_secrets(opened(tree)))
