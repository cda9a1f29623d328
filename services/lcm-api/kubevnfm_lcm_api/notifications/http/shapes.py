"""The attributes and the lists of subscriptions."""

from __future__ import annotations

from typing import Final

from kubevnfm_store.query import Compare, Op

from kubevnfm_lcm_api.http.listing import Listed
from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Shape
from kubevnfm_lcm_api.notifications.domain.subscription import SEALED_ADDRESS

PLAIN_SUBSCRIPTION: Final = Shape(
    {
        "id": Attribute("string", is_required=True),
        "callbackUri": Attribute("string", is_required=True),
        "filter": Attribute("free"),
    }
)
SUBSCRIPTION: Final = Shape(
    {
        **PLAIN_SUBSCRIPTION.attributes,
        "verbosity": Attribute("string", is_required=True),
        "metadata": Attribute("free"),
    }
)
_NOT_SHOWN: Final = ("authentication", "keys", "turn", SEALED_ADDRESS)
SUBSCRIPTIONS: Final = {
    api: Listed(f"subscriptions-{api}", shape, "createdAt", Compare("apiVersion", Op.EQ, [api]), _NOT_SHOWN)
    for api, shape in {
        **dict.fromkeys(("v1", "v2"), SUBSCRIPTION),
        **dict.fromkeys(("vnfpkgm", "vnfpkgm-v2", "vnffm"), PLAIN_SUBSCRIPTION),
    }.items()
}
"""By the ``apiVersion`` of the subscriptions."""
