"""Subscriptions to changes of VNFs and of cloud regions, and their notifications (multicloud.md MC-052).

A change is sent as a CloudEvent. A subscription with an interval gets those of the interval together, and of each type one
for each thing that it is about (`change_types`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kubevnfm_events import Message
from kubevnfm_events.changes import ChangeType
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.base import SolRequest
from kubevnfm_store.query import Stored
from pydantic import Field

from kubevnfm_lcm_api.notifications.domain import change_types
from kubevnfm_lcm_api.notifications.domain.callback import Notice
from kubevnfm_lcm_api.notifications.domain.subscription import (
    ANY,
    APIS,
    Announcement,
    SubscriptionRequest,
    ToAnnouncement,
)

ANY_CHANGE: Final = "change"
"""The key of subscriptions to all types: ``*`` there is any news of life cycles."""
ANY_VNF: Final = "vnf"
"""The key of subscriptions to changes of some VNFs: they get those of a link that more VNFs hold than its event can name."""
OF_ONAP: Final[ChangeType] = "infra.placement.changed"
"""The type that ONAP's clients understand."""
_USERS, _MORE_USERS = "vnf_instance_ids", "has_more_vnf_instances"
_FIRST_SOURCE: Final = "/kubevnfm/infra-k8s"
"""That of the changes which earlier versions have stored, all of this type."""
_EVENT: Final = "application/cloudevents+json"
_EVENTS: Final = "application/cloudevents-batch+json"


class OnapForm(SolRequest):
    """A subscription of a client of ONAP: one instance, and the form of its notifications."""

    vnf_instance_id: str
    instance_name: str
    """The name by which the client knows the instance."""
    name: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Sent with each notification."""


class ChangeSubscriptionRequest(SubscriptionRequest):
    """The request that those of each API become."""

    types: tuple[ChangeType, ...] = ()
    vnf_instance_ids: tuple[str, ...] = ()
    vim_ids: tuple[str, ...] = ()
    shown_filter: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """As the caller has given it."""
    min_notify_interval_s: int = 0
    """How long at least from one notification to the next; 0: each change is sent by itself."""
    onap: OnapForm | None = None
    """None: notifications are CloudEvents."""

    def keys(self) -> dict[str, list[str]]:
        types = (OF_ONAP,) if self.onap is not None else self.types
        return {
            "types": list(types) or [ANY_CHANGE],
            "instances": [*(f"id:{each}" for each in self.vnf_instance_ids), ANY_VNF]
            if self.vnf_instance_ids
            else [ANY],
            "regions": list(self.vim_ids) or [ANY],
        }


def _announced(type_: ChangeType, event: Message) -> Announcement:
    about = change_types.ABOUT[type_]
    vnf = {"vnfInstanceId": str(getattr(event, about.subject))} if about.is_of_vnf else {}
    unnamed = [ANY_VNF] if getattr(event, _MORE_USERS, False) else []
    one = getattr(event, "vim_id", None)
    vim_ids = getattr(event, "vim_ids", ()) if one is None else (one,)

    def attributes(_: JsonMapping) -> JsonMapping:
        # Most changes are announced to no subscription.
        data = event.model_dump(mode="json", exclude_none=True)
        return {**vnf, "subject": data[about.subject], "source": about.source, "data": data}

    return Announcement(
        type_,
        {
            "types": [ANY_CHANGE, type_],
            "instances": [ANY, *(f"id:{each}" for each in (*vnf.values(), *getattr(event, _USERS, ()))), *unnamed],
            "regions": [ANY, *vim_ids],
        },
        attributes,
        {},
        is_change=True,
        is_last=True,
    )


CHANGE_ANNOUNCEMENTS: Final[Mapping[type[Message], ToAnnouncement]] = {
    about.event: partial(_announced, type_) for type_, about in change_types.ABOUT.items()
}


# --- what is sent -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Post:
    """Notifications that are sent together."""

    notice: Notice | None
    """None: they cancel each other out, and nothing is sent."""
    entries: Sequence[Stored]


def interval_s(subscription: JsonMapping) -> float:
    """Return how long at least from one notification to the next."""
    interval: float = subscription.get("minNotifyIntervalS", 0)
    return interval


def posts(subscription: JsonMapping, pending: Sequence[Stored]) -> Iterator[Post]:
    """Yield pending notifications of a subscription as they are sent, in order."""
    form = subscription.get("onap")
    if form is not None:
        if pending:
            changes = merged(pending)
            yield Post(Notice(_onap_notification(form, changes), {}) if changes else None, pending)
        return
    api = subscription["apiVersion"]
    version = APIS[api].version
    if version is not None:
        for entry in pending:
            yield Post(Notice(entry.body["body"], {"Version": version}), [entry])
    elif not pending:
        return
    elif interval_s(subscription):
        events = [_cloud_event(each) for each in merged(pending)]
        yield Post(Notice(events, {"Content-Type": _EVENTS}) if events else None, pending)
    else:
        for entry in pending:
            yield Post(Notice(_cloud_event(entry.body["body"]), {"Content-Type": _EVENT}), [entry])


def merged(pending: Sequence[Stored]) -> Sequence[JsonMapping]:
    """Return the notifications with one of each type for each thing that it is about, in the order of the last changes.

    A pod or machine that has come and gone has none.
    """
    found: dict[tuple[str, ...], JsonMapping] = {}
    for entry in pending:
        body: JsonMapping = entry.body["body"]
        about = change_types.ABOUT[body["notificationType"]]
        key = (body["notificationType"], *about.thing(body["data"]))
        earlier = found.pop(key, None)
        if earlier is not None:
            body = {**body, "data": about.joined(earlier["data"], body["data"])}
        found[key] = body
    return [each for each in found.values() if change_types.ABOUT[each["notificationType"]].is_news(each["data"])]


def _onap_notification(form: JsonMapping, changes: Sequence[JsonMapping]) -> JsonMapping:
    """Return changes as ONAP's plug-in sends them."""
    found: dict[str, list[JsonMapping]] = {"created": [], "deleted": [], "modified": []}
    for each in changes:
        change = each["data"]
        found[_ONAP_CHANGES[change["change"]]].append(_onap_object(change))
    return {
        "instance-id": form["instanceName"],
        "subscription-name": form["name"],
        "metadata": form["metadata"],
        "resource-changes": found,
    }


_ONAP_CHANGES: Final = {"created": "created", "vanished": "deleted", "changed": "modified"}


def _onap_object(change: JsonMapping) -> JsonMapping:
    """Return a pod or machine with as much of the object as the change has."""
    state = change.get("new") or change.get("old") or {}
    group, _, version = change["api_version"].rpartition("/")
    addresses = [{"ip": address} for network in state.get("networks", ()) for address in network.get("addresses", ())]
    body = {
        "apiVersion": change["api_version"],
        "kind": change["kind"],
        "metadata": {"name": change["name"], "namespace": change.get("namespace", ""), "uid": state.get("uid", "")},
        "spec": {"nodeName": state.get("node", "")},
        "status": {"phase": state.get("phase", ""), "podIPs": addresses},
    }
    return {"name": change["name"], "GVK": {"Group": group, "Version": version, "Kind": change["kind"]}, "status": body}


def _cloud_event(body: JsonMapping) -> JsonMapping:
    """Return a notification as a CloudEvent 1.0."""
    return {
        "specversion": "1.0",
        "id": body["id"],
        "source": body.get("source", _FIRST_SOURCE),
        "type": f"kubevnfm.{body['notificationType']}.v1",
        "time": body["timeStamp"],
        "subject": body["subject"] if "subject" in body else body["vnfInstanceId"],
        "datacontenttype": "application/json",
        "data": body["data"],
    }
