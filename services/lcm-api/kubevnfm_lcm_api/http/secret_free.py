"""Documents without their secrets, as every resource shows them."""

from __future__ import annotations

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import hide, opened, without_secrets


def without_secret_leaves(tree: JsonMapping) -> JsonObject:
    """Return a stored document's tree without its secrets (SOL003 V3.7.1 clause 4.4.1).

    Sealed values are left out, and those in clear whose names are secret today: earlier versions recognised fewer.
    """
    return dict(without_secrets(hide(opened(tree))))
