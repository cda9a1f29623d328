"""The common part of the subscriptions of every API: the request, the keys by which one query finds the subscriptions
that match an event, and the notification. `lifecycle` and `packages` have the parts of each API.

SOL003 V3.7.1 clauses 4.4.1.5 and 5.5.2.15; api.md 3.7 to 3.9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import KeyRing, Secret, opened, shown_url
from kubevnfm_sol.base import SolRequest
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Op
from pydantic import Field, field_validator

from kubevnfm_lcm_api.notifications.domain.callback import Authentication, Callback, checked_uri

COLLECTION: Final = "subscriptions"
ANY: Final = "*"
SEALED_ADDRESS: Final = "sealedCallbackUri"
"""Stored, sealed: the ``callbackUri`` as it was given, if it has parts that are not shown."""
ONAP_INSTANCE: Final = "onap/vnfInstanceId"
"""The path of the instance of a subscription that a client of ONAP has made; others have none."""
_ALTERNATIVES: Final[Mapping[str, int]] = {"instances": 2, "vnfds": 2, "packages": 3}
"""How many attributes of a filter are alternatives to one another, by key."""


@dataclass(frozen=True)
class SubscribedApi:
    """An API with subscriptions."""

    prefix: str
    version: str | None = None
    """The ``Version`` header of its notifications; None: it is no API of SOL, so its callbacks are not tested either."""
    has_subscriptions: bool = True
    """Whether callers subscribe; otherwise a resource has a callback of its own, and its notifications name no subscription."""

    def is_for(self, announcement: Announcement) -> bool:
        """Return whether subscriptions of this API have such announcements."""
        return announcement.is_change is (self.version is None)


ApiName = Literal["v1", "v2", "vnfpkgm", "vnfpkgm-v2", "vnffm", "vnfpm", "multicloud", "onap"]
"""A subscription's ``apiVersion``."""
APIS: Final[Mapping[ApiName, SubscribedApi]] = {
    "v1": SubscribedApi("/vnflcm/v1", "1.3.0"),
    "v2": SubscribedApi("/vnflcm/v2", "2.0.0"),
    "vnfpkgm": SubscribedApi("/vnfpkgm/v1", "1.0.0"),
    "vnfpkgm-v2": SubscribedApi("/vnfpkgm/v2", "2.4.0"),
    "vnffm": SubscribedApi("/vnffm/v1", "1.5.0"),
    "vnfpm": SubscribedApi("/vnfpm/v2", "2.2.0", has_subscriptions=False),
    "multicloud": SubscribedApi("/multicloud/v1"),
    "onap": SubscribedApi("/v1"),
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
    """The common attributes of subscription requests."""

    callback_uri: str = Field(max_length=255, repr=False)
    authentication: Authentication | None = None

    _is_http = field_validator("callback_uri")(checked_uri)

    @abstractmethod
    def keys(self) -> dict[str, list[str]]:
        """Return the keys that the subscription is found by; ``*`` matches any value."""


def stored_address(uri: str, ring: KeyRing) -> dict[str, object]:
    """Return the attributes of a stored subscription for its ``callbackUri``: as it is shown, and sealed if more is in it."""
    shown = shown_url(uri)
    # Filters work on the stored attribute, so they see no more than an answer has.
    return {"callbackUri": shown, **({} if shown == uri else {SEALED_ADDRESS: Secret(uri).document(ring)})}


def callback_of(document: JsonMapping) -> Callback:
    """Return the address of a stored subscription."""
    return Callback(
        opened(document.get(SEALED_ADDRESS)) or document["callbackUri"], opened(document.get("authentication"))
    )


@dataclass(frozen=True)
class Announcement:
    """An event as subscribers are notified of it."""

    notification_type: str
    wanted_by: Mapping[str, Sequence[str]]
    """The matching values by key of a subscription: a subscription matches if it has one of them for each key."""
    attributes: Callable[[JsonMapping], JsonMapping]
    """Returns the attributes that only this type of notification has, in the form of a subscription."""
    links: Mapping[str, str]
    """Paths of the resources concerned, below the API's prefix."""
    entered_at: datetime | None = None
    """When the change happened, if that is not the time of the event."""
    follows: str = ""
    """The id of the previous event about the same instance or package; empty if there is none."""
    follows_at: datetime | None = None
    is_change: bool = False
    """It is for subscriptions to changes, whose notifications are CloudEvents; otherwise for those of SOL."""
    is_last: bool = False
    """No event names this one as the one that it ``follows``."""
    inner_links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Paths of the links of attributes that are resources themselves, below the root of all APIs."""
    root_links: Mapping[str, str] = field(default_factory=dict)
    """Paths of resources of other APIs that are concerned, below the root of all APIs."""

    def moment(self, published_at: str) -> str:
        """Return the notification's timeStamp."""
        return rfc3339(self.entered_at) if self.entered_at is not None else published_at


ToAnnouncement = Callable[[Any], Announcement | None]
"""Returns the announcement of an event, None if subscribers are not notified of it."""


def alternatives(name: str, *given: list[str]) -> dict[str, list[str]]:
    """Return the keys of attributes that are alternatives: ``*`` without any, otherwise one key for each that is given.

    SOL003 says that alternatives should not be used together; if they are, each must match.
    """
    keys = [values for values in given if values] or [[ANY]]
    return dict(zip((name, *_further(name)), keys, strict=False))


def _further(name: str) -> list[str]:
    """Return the names of the keys of the second alternative and those after it."""
    return [f"{name}_{number}" for number in range(2, _ALTERNATIVES.get(name, 1) + 1)]


def matching(announcement: Announcement) -> Filter:
    """Return the one query for all subscriptions that match the announcement."""
    conditions: list[Filter] = []
    for name, values in announcement.wanted_by.items():
        fits = {key: Compare(f"keys/{key}", Op.IN, list(values)) for key in (name, *_further(name))}
        conditions.append(fits.pop(name))
        conditions += [AnyOf([Exists(one.path, exists=False), one]) for one in fits.values()]
    return AllOf(conditions)


def notification(
    announcement: Announcement, subscription: JsonMapping, *, notification_id: str, time_stamp: str, root: str
) -> JsonObject:
    """Return the body that is posted, in the spelling and with the links of the API that was subscribed."""
    api = APIS[subscription["apiVersion"]]
    own, of_subscription = dict(announcement.links), {}
    if api.has_subscriptions:
        own["subscription"], of_subscription = (
            f"/subscriptions/{subscription['id']}",
            {"subscriptionId": subscription["id"]},
        )
    links = {name: f"{api.prefix}{path}" for name, path in own.items()}
    links.update(announcement.root_links)
    body = {
        "id": notification_id,
        "notificationType": announcement.notification_type,
        **of_subscription,
        "timeStamp": time_stamp,
        **announcement.attributes(subscription),
        "_links": {name: {"href": f"{root}{path}"} for name, path in links.items()},
    }
    for name, inner in announcement.inner_links.items():
        body[name] = {**body[name], "_links": {each: {"href": f"{root}{path}"} for each, path in inner.items()}}
    return body


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
    # Joined by a character that names do not contain: names with spaces or slashes cannot make two keys equal.
    return "product:" + "\x1f".join(parts)
