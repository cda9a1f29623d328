"""Subscriptions to life-cycle changes: the request, the keys by which one query finds the matches, the notification.

SOL003 V3.7.1 clauses 5.5.2.15 to 5.5.2.18; api.md 3.7 and 3.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, OperationChanged
from kubevnfm_kit.clock import rfc3339
from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.lcm import OperationState, OperationType
from kubevnfm_store.query import AllOf, Compare, Filter, Op
from pydantic import Field, field_validator, model_validator

from kubevnfm_lcm_api.domain.callback_access import Authentication, checked_uri

COLLECTION: Final = "subscriptions"
ANY: Final = "*"

NotificationType = Literal[
    "VnfLcmOperationOccurrenceNotification", "VnfIdentifierCreationNotification", "VnfIdentifierDeletionNotification"
]
LcmNews = OperationChanged | InstanceCreated | InstanceDeleted


OperationName = OperationType | Literal["CREATE_SNAPSHOT", "REVERT_TO_SNAPSHOT"]
"""What may be subscribed to: more than what there is today."""


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


class InstanceFilter(SolRequest):
    """VnfInstanceSubscriptionFilter (clause 4.4.1.5)."""

    vnfd_ids: tuple[str, ...] = ()
    vnf_products_from_providers: tuple[Provider, ...] = ()
    vnf_instance_ids: tuple[str, ...] = ()
    vnf_instance_names: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if self.vnfd_ids and self.vnf_products_from_providers:
            raise ValueError("vnfdIds or vnfProductsFromProviders expected, not both")
        if self.vnf_instance_ids and self.vnf_instance_names:
            raise ValueError("vnfInstanceIds or vnfInstanceNames expected, not both")
        return self


class LifecycleChangeFilter(SolRequest):
    """LifecycleChangeNotificationsFilter (clause 5.5.3.12)."""

    vnf_instance_subscription_filter: InstanceFilter | None = None
    notification_types: tuple[NotificationType, ...] = ()
    operation_types: tuple[OperationName, ...] = ()
    operation_states: tuple[OperationState, ...] = ()

    @model_validator(mode="after")
    def _only_of_operations(self) -> Self:
        of_operations = "VnfLcmOperationOccurrenceNotification"
        if (self.operation_types or self.operation_states) and (
            self.notification_types and of_operations not in self.notification_types
        ):
            raise ValueError(f"operationTypes and operationStates need {of_operations} in notificationTypes")
        return self


class SubscriptionRequest(SolRequest):
    """LccnSubscriptionRequest (clause 5.5.2.15)."""

    filter: LifecycleChangeFilter = LifecycleChangeFilter()
    callback_uri: str = Field(max_length=255)
    authentication: Authentication | None = None
    verbosity: Literal["FULL", "SHORT"] = "FULL"

    _is_http = field_validator("callback_uri")(checked_uri)


def _provider_keys(providers: Sequence[Provider]) -> list[str]:
    keys: list[str] = []
    for provider in providers:
        if not provider.vnf_products:
            keys.append(_key(provider.vnf_provider))
        for one in provider.vnf_products:
            if not one.versions:
                keys.append(_key(provider.vnf_provider, one.vnf_product_name))
            for version in one.versions:
                base = (provider.vnf_provider, one.vnf_product_name, version.vnf_software_version)
                keys.extend([_key(*base, vnfd) for vnfd in version.vnfd_versions] or [_key(*base)])
    return keys


def _key(*parts: str) -> str:
    return "product:" + "\x1f".join(parts)


def match_keys(wanted: LifecycleChangeFilter) -> dict[str, list[str]]:
    """Return what a subscription is found by; ``*`` where anything fits."""
    of = wanted.vnf_instance_subscription_filter or InstanceFilter()
    return {
        "types": list(wanted.notification_types) or [ANY],
        "operations": list(wanted.operation_types) or [ANY],
        "states": list(wanted.operation_states) or [ANY],
        "instances": [f"id:{i}" for i in of.vnf_instance_ids] + [f"name:{n}" for n in of.vnf_instance_names] or [ANY],
        "vnfds": [f"vnfd:{i}" for i in of.vnfd_ids] + _provider_keys(of.vnf_products_from_providers) or [ANY],
    }


def notification_type(news: LcmNews) -> NotificationType:
    """Return the notification that carries the news."""
    if isinstance(news, OperationChanged):
        return "VnfLcmOperationOccurrenceNotification"
    if isinstance(news, InstanceCreated):
        return "VnfIdentifierCreationNotification"
    return "VnfIdentifierDeletionNotification"


def matching(news: LcmNews) -> Filter:
    """Return the query for the subscriptions that want the news: one, by their keys."""
    names = (news.vnf_provider, news.vnf_product_name, news.vnf_software_version, news.vnfd_version)
    products = [_key(*names[:depth]) for depth in range(1, 5)]
    wanted: dict[str, list[str]] = {
        "types": [notification_type(news)],
        "instances": [f"id:{news.vnf_instance_id}", f"name:{news.vnf_instance_name}"],
        "vnfds": [f"vnfd:{news.vnfd_id}", *products],
    }
    if isinstance(news, OperationChanged):
        wanted |= {"operations": [news.operation], "states": [news.state]}
    return AllOf([Compare(f"keys/{name}", Op.IN, [ANY, *values]) for name, values in wanted.items()])


def notification(
    news: LcmNews, subscription: Mapping[str, Any], *, notification_id: str, time_stamp: str, root: str
) -> dict[str, Any]:
    """Return the body that is posted, in the spelling and with the links of the API version that was subscribed."""
    version = subscription["apiVersion"]
    base = f"{root}/vnflcm/{version}"
    links = {
        "vnfInstance": {"href": f"{base}/vnf_instances/{news.vnf_instance_id}"},
        "subscription": {"href": f"{base}/subscriptions/{subscription['id']}"},
    }
    body: dict[str, Any] = {
        "id": notification_id,
        "notificationType": notification_type(news),
        "subscriptionId": subscription["id"],
        "timeStamp": time_stamp,
        "vnfInstanceId": news.vnf_instance_id,
        "_links": links,
    }
    if not isinstance(news, OperationChanged):
        return body
    links["vnfLcmOpOcc"] = {"href": f"{base}/vnf_lcm_op_occs/{news.vnf_lcm_op_occ_id}"}
    body |= {
        "notificationStatus": "START" if news.is_first else "RESULT",
        "operationState": news.state,
        "operation": news.operation,
        "isAutomaticInvocation": news.is_automatic_invocation,
        "vnfLcmOpOccId": news.vnf_lcm_op_occ_id,
    }
    if version == "v2":
        body["verbosity"] = subscription["verbosity"]
    if subscription["verbosity"] == "FULL" and not news.is_first:
        changes: dict[str, Any] = {
            "affectedVnfcs": list(news.affected_vnfcs),
            "affectedVirtualLinks": list(news.affected_virtual_links),
            "affectedVirtualStorages": list(news.affected_virtual_storages),
            "changedInfo": news.changed_info,
            "changedExtConnectivity": list(news.changed_ext_connectivity),
        }
        if version == "v2":
            changes["affectedExtLinkPorts"] = list(news.affected_ext_link_ports)
            changes["modificationsTriggeredByVnfPkgChange"] = news.modifications_triggered_by_vnf_pkg_change
        else:
            changes["changedExtConnectivity"] = [
                {name: value for name, value in link.items() if name != "currentVnfExtCpData"}
                for link in news.changed_ext_connectivity
            ]
        body |= {name: value for name, value in changes.items() if value}
    if news.error is not None:
        body["error"] = news.error.model_dump(exclude_defaults=True) | {
            "status": news.error.status,
            "detail": news.error.detail,
        }
    return body


def moment(news: LcmNews, told_at: str) -> str:
    """Return the notification's timeStamp: when the state was entered, else when it was told."""
    return rfc3339(news.state_entered_time) if isinstance(news, OperationChanged) else told_at
