"""Subscriptions to life-cycle changes, and their notifications.

SOL003 V3.7.1 clauses 5.5.2.15 to 5.5.2.18; api.md 3.7 and 3.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Final, Literal, Self

from kubevnfm_events import Message
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, OperationChanged
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.lcm import OperationState, OperationType
from pydantic import Field, model_validator

from kubevnfm_lcm_api.notifications.domain.subscription import (
    ANY,
    Announcement,
    Provider,
    SubscriptionRequest,
    ToAnnouncement,
    alternatives,
    product_keys,
    wanted_products,
)

_CREATION: Final = "VnfIdentifierCreationNotification"
_DELETION: Final = "VnfIdentifierDeletionNotification"
_OPERATION: Final = "VnfLcmOperationOccurrenceNotification"
NotificationType = Literal[
    "VnfLcmOperationOccurrenceNotification", "VnfIdentifierCreationNotification", "VnfIdentifierDeletionNotification"
]


class InstanceFilter(SolRequest):
    """VnfInstanceSubscriptionFilter (clause 4.4.1.5)."""

    vnfd_ids: tuple[str, ...] = ()
    vnf_products_from_providers: tuple[Provider, ...] = ()
    vnf_instance_ids: tuple[str, ...] = ()
    vnf_instance_names: tuple[str, ...] = ()

    def keys(self) -> dict[str, list[str]]:
        """Return the keys of a subscription for it."""
        ids, names = [f"id:{i}" for i in self.vnf_instance_ids], [f"name:{n}" for n in self.vnf_instance_names]
        vnfds = [f"vnfd:{i}" for i in self.vnfd_ids]
        return {
            **alternatives("instances", ids, names),
            **alternatives("vnfds", vnfds, wanted_products(self.vnf_products_from_providers)),
        }


class LifecycleChangeFilter(SolRequest):
    """LifecycleChangeNotificationsFilter (clause 5.5.3.12)."""

    vnf_instance_subscription_filter: InstanceFilter | None = None
    notification_types: tuple[NotificationType, ...] = ()
    operation_types: tuple[OperationType, ...] = ()
    operation_states: tuple[OperationState, ...] = ()

    @model_validator(mode="after")
    def _only_of_operations(self) -> Self:
        if (self.operation_types or self.operation_states) and (
            self.notification_types and _OPERATION not in self.notification_types
        ):
            raise ValueError(f"operationTypes and operationStates need {_OPERATION} in notificationTypes")
        return self


class LccnSubscriptionRequest(SubscriptionRequest):
    """Clause 5.5.2.15."""

    filter: LifecycleChangeFilter = LifecycleChangeFilter()
    verbosity: Literal["FULL", "SHORT"] = "FULL"
    metadata: dict[Annotated[str, Field(min_length=1, max_length=63)], Annotated[str, Field(max_length=255)]] = Field(
        default_factory=dict, max_length=16
    )
    """Ours: data of the caller, stored, shown and filtered by."""

    def keys(self) -> dict[str, list[str]]:
        wanted = self.filter
        return {
            "types": list(wanted.notification_types) or [ANY],
            "operations": list(wanted.operation_types) or [ANY],
            "states": list(wanted.operation_states) or [ANY],
            **(wanted.vnf_instance_subscription_filter or InstanceFilter()).keys(),
        }


def _created(event: InstanceCreated) -> Announcement:
    return Announcement(
        _CREATION,
        _wanted_by(event, _CREATION),
        lambda _: {"vnfInstanceId": event.vnf_instance_id},
        _instance(event),
    )


def _deleted(event: InstanceDeleted) -> Announcement:
    return Announcement(
        _DELETION,
        _wanted_by(event, _DELETION),
        lambda _: {"vnfInstanceId": event.vnf_instance_id},
        _instance(event),
        follows=event.follows,
        follows_at=event.follows_at,
        is_last=True,
    )


def _changed(event: OperationChanged) -> Announcement:
    return Announcement(
        _OPERATION,
        {**_wanted_by(event, _OPERATION), "operations": [ANY, event.operation], "states": [ANY, event.state]},
        partial(_of_operation, event),
        {**_instance(event), "vnfLcmOpOcc": f"/vnf_lcm_op_occs/{event.vnf_lcm_op_occ_id}"},
        entered_at=event.state_entered_time,
        follows=event.follows,
        follows_at=event.follows_at,
    )


LIFECYCLE_ANNOUNCEMENTS: Final[Mapping[type[Message], ToAnnouncement]] = {
    InstanceCreated: _created,
    InstanceDeleted: _deleted,
    OperationChanged: _changed,
}


def _wanted_by(
    event: OperationChanged | InstanceCreated | InstanceDeleted, type_: NotificationType
) -> dict[str, Sequence[str]]:
    names = (event.vnf_provider, event.vnf_product_name, event.vnf_software_version, event.vnfd_version)
    return {
        "types": [ANY, type_],
        "instances": [ANY, f"id:{event.vnf_instance_id}", f"name:{event.vnf_instance_name}"],
        "vnfds": [ANY, f"vnfd:{event.vnfd_id}", *product_keys(*names)],
    }


def _instance(event: OperationChanged | InstanceCreated | InstanceDeleted) -> dict[str, str]:
    return {"vnfInstance": f"/vnf_instances/{event.vnf_instance_id}"}


def _of_operation(event: OperationChanged, subscription: JsonMapping) -> JsonObject:
    version, verbosity = subscription["apiVersion"], subscription["verbosity"]
    body: JsonObject = {
        "vnfInstanceId": event.vnf_instance_id,
        "notificationStatus": "START" if event.is_first else "RESULT",
        "operationState": event.state,
        "operation": event.operation,
        "isAutomaticInvocation": event.is_automatic_invocation,
        "vnfLcmOpOccId": event.vnf_lcm_op_occ_id,
    }
    if version == "v2":
        body["verbosity"] = verbosity
    if verbosity == "FULL" and not event.is_first:
        body |= _changes(event, version)
    if event.error is not None:
        body["error"] = event.error.model_dump(exclude_defaults=True) | {
            "status": event.error.status,
            "detail": event.error.detail,
        }
    return body


def _changes(event: OperationChanged, version: str) -> JsonObject:
    changes: JsonObject = {
        "affectedVnfcs": list(event.affected_vnfcs),
        "affectedVirtualLinks": list(event.affected_virtual_links),
        "affectedVirtualStorages": list(event.affected_virtual_storages),
        "changedInfo": event.changed_info,
        "changedExtConnectivity": list(event.changed_ext_connectivity),
        "metadata": event.change_metadata,
    }
    if version == "v2":
        changes["affectedExtLinkPorts"] = list(event.affected_ext_link_ports)
        changes["modificationsTriggeredByVnfPkgChange"] = event.modifications_triggered_by_vnf_pkg_change
        changes["vnfSnapshotInfoId"] = event.vnf_snapshot_info_id
    else:
        # currentVnfExtCpData came with version 2 of the API.
        changes["changedExtConnectivity"] = [
            {name: value for name, value in link.items() if name != "currentVnfExtCpData"}
            for link in event.changed_ext_connectivity
        ]
    return {name: value for name, value in changes.items() if value}
