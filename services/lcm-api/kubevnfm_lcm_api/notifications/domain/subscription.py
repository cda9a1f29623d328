"""What the subscriptions of every API have in common: the request, the keys by which one query finds those that want
some news, the notification that is posted. `lifecycle_subscription` and `package_subscription` have the rest.

SOL003 V3.7.1 clauses 4.4.1.5 and 5.5.2.15; api.md 3.7 to 3.9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from kubevnfm_kit.clock import rfc3339
from kubevnfm_sol.base import SolRequest
from kubevnfm_store.query import AllOf, Compare, Filter, Op
from pydantic import Field, field_validator

from kubevnfm_lcm_api.notifications.domain.callback import Authentication, checked_uri

COLLECTION: Final = "subscriptions"
ANY: Final = "*"


@dataclass(frozen=True)
class SubscribedApi:
    """An API with subscriptions."""

    prefix: str
    version: str
    """The ``Version`` of what is posted."""


ApiName = Literal["v1", "v2", "vnfpkgm"]
"""A subscription's ``apiVersion``."""
APIS: Final[Mapping[ApiName, SubscribedApi]] = {
    "v1": SubscribedApi("/vnflcm/v1", "1.3.0"),
    "v2": SubscribedApi("/vnflcm/v2", "2.0.0"),
    "vnfpkgm": SubscribedApi("/vnfpkgm/v1", "1.0.0"),
}


class Version(SolRequest):
    """One software version of a product."""

    vnf_software_version: str
    vnfd_versions: tuple[str, ...] = ()


class Product(SolRequest):
    """One product of a provider."""

    vnf_product_name: str
    versions: tuple[Version, ...] = ()


class Provider(SolRequest):
    """The products of one provider."""

    vnf_provider: str
    vnf_products: tuple[Product, ...] = ()


class SubscriptionRequest(SolRequest, ABC):
    """What every subscription is asked for with."""

    callback_uri: str = Field(max_length=255)
    authentication: Authentication | None = None

    _is_http = field_validator("callback_uri")(checked_uri)

    @abstractmethod
    def keys(self) -> dict[str, list[str]]:
        """Return what the subscription is found by; ``*`` where anything fits."""


@dataclass(frozen=True)
class News:
    """An event as subscribers are told of it."""

    notification_type: str
    wanted_by: Mapping[str, Sequence[str]]
    """For each key of a subscription the values of which those that want the news have one."""
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """What this notification has besides what all have, as a subscription wants it."""
    links: Mapping[str, str]
    """Paths, below the API's prefix, of what it is about."""
    entered_at: datetime | None = None
    """When what is told became true, where that is not when it was told."""
    follows: str = ""
    """The id of the event before it about the same instance or package; empty when there is none."""
    follows_at: datetime | None = None
    is_last: bool = False
    """Nothing more will be told of what it is about."""

    def moment(self, told_at: str) -> str:
        """Return the notification's timeStamp."""
        return rfc3339(self.entered_at) if self.entered_at is not None else told_at


NewsOf = Callable[[Any], News | None]
"""Returns what subscribers are told of an event, None for nothing."""


def matching(news: News) -> Filter:
    """Return the query for the subscriptions that want the news: one, by their keys."""
    return AllOf([Compare(f"keys/{name}", Op.IN, list(values)) for name, values in news.wanted_by.items()])


def notification(
    news: News, subscription: Mapping[str, Any], *, notification_id: str, time_stamp: str, root: str
) -> dict[str, Any]:
    """Return the body that is posted, in the spelling and with the links of the API that was subscribed."""
    links = {**news.links, "subscription": f"/subscriptions/{subscription['id']}"}
    base = f"{root}{APIS[subscription['apiVersion']].prefix}"
    return {
        "id": notification_id,
        "notificationType": news.notification_type,
        "subscriptionId": subscription["id"],
        "timeStamp": time_stamp,
        **news.attributes(subscription),
        "_links": {name: {"href": f"{base}{path}"} for name, path in links.items()},
    }


# --- products in filters ----------------------------------------------------------------------------------------------


def wanted_products(providers: Sequence[Provider]) -> list[str]:
    """Return the keys of a filter's vnfProductsFromProviders, each as deep as it says something."""
    keys: list[str] = []
    for provider in providers:
        if not provider.vnf_products:
            keys.append(_product(provider.vnf_provider))
        for one in provider.vnf_products:
            if not one.versions:
                keys.append(_product(provider.vnf_provider, one.vnf_product_name))
            for version in one.versions:
                base = (provider.vnf_provider, one.vnf_product_name, version.vnf_software_version)
                keys.extend([_product(*base, vnfd) for vnfd in version.vnfd_versions] or [_product(*base)])
    return keys


def product_keys(provider: str, product: str, software_version: str, vnfd_version: str) -> list[str]:
    """Return the keys that fit a product, of each depth."""
    names = (provider, product, software_version, vnfd_version)
    return [_product(*names[:depth]) for depth in range(1, 5)]


def _product(*parts: str) -> str:
    return "product:" + "\x1f".join(parts)
