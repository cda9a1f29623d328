"""``/v1/instance/{id}/status/subscription``: changes of an instance's pods, sent in ONAP's form (multicloud.md MC-134)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.types import MultiCloudRequest
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import hide, shown_url
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Stored
from pydantic import Field, StringConstraints, field_validator

from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.subscriptions import LONGEST_INTERVAL_S, SUBSCRIPTIONS
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf
from kubevnfm_lcm_api.notifications.domain.callback import CallbackRefused
from kubevnfm_lcm_api.notifications.domain.changes import ChangeSubscriptionRequest, OnapForm
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions
from kubevnfm_lcm_api.onap.answers import NO_BODY, WRONG, ShownSubscription, listed
from kubevnfm_lcm_api.onap.instances import name_of, vnf_named
from kubevnfm_lcm_api.onap.plain import read_plain

_MANY: Final = "/v1/instance/{id}/status/subscription"
_ONE: Final = f"{_MANY}/{{name}}"
_MOST: Final = 100
_LARGEST_METADATA: Final = 16 * 1024
_NEVER: Final = "0001-01-01T00:00:00Z"
"""The time of nothing, as programs in Go write it."""


class SubscriptionRequest(MultiCloudRequest):
    """A subscription, as ONAP sends it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    min_notify_interval: Annotated[
        int | None, Field(alias="min-notify-interval", strict=True, ge=0, le=LONGEST_INTERVAL_S)
    ] = None
    callback_url: Annotated[
        str, StringConstraints(min_length=1, max_length=255), Field(alias="callback-url", repr=False)
    ]
    metadata: JsonObject | None = None

    @field_validator("metadata")
    @classmethod
    def _is_short(cls, given: JsonObject | None) -> JsonObject | None:
        if given is not None and len(str(given)) > _LARGEST_METADATA:
            raise ValueError(f"at most {_LARGEST_METADATA} characters expected")
        return given


async def create(request: web.Request) -> web.Response:
    """POST subscription: 201."""
    vnf = await vnf_named(request)
    asked, subscriptions = await _asked(request, vnf), request.app[SUBSCRIPTIONS]
    assert asked.onap is not None
    if len(await subscriptions.of_onap(vnf.record.vnf.id)) >= _MOST:
        raise Conflict(f"the instance has {_MOST} subscriptions, the most allowed")
    own_id = _id(vnf, asked.onap.name)
    try:
        made = await subscriptions.create(asked, "onap", by_caller=request[CALLER].subject, subscription_id=own_id)
    except AlreadyExists as error:
        raise Conflict(f"the instance has a subscription {asked.onap.name} already") from error
    except (CallbackRefused, InvalidInput) as error:
        raise _refused(error) from error
    return web.json_response(_shown(made), status=201)


async def list_all(request: web.Request) -> web.Response:
    """GET subscription: 200."""
    vnf = await vnf_named(request)
    found = await _subscriptions(request).of_onap(vnf.record.vnf.id)
    return web.json_response([_shown(each.body) for each in found])


async def show(request: web.Request) -> web.Response:
    """GET subscription/{name}: 200."""
    return web.json_response(_shown((await _stored(request, await vnf_named(request))).body))


async def change(request: web.Request) -> web.Response:
    """PUT subscription/{name}: 200."""
    vnf = await vnf_named(request)
    found = await _stored(request, vnf)
    asked = await _asked(request, vnf)
    try:
        changed = await _subscriptions(request).change(found, asked)
    except CallbackRefused as error:
        raise _refused(error) from error
    return web.json_response(_shown(changed))


async def delete(request: web.Request) -> web.Response:
    """DELETE subscription/{name}: 202."""
    found = await _stored(request, await vnf_named(request))
    await _subscriptions(request).delete(found.id, "onap")
    return web.Response(status=202)


async def _asked(request: web.Request, vnf: Vnf) -> ChangeSubscriptionRequest:
    """Return the request of a body; one of a path with a name has that name. Raises Unprocessable."""
    body: dict[str, Any] = await read_plain(request)
    named = request.match_info.get("name")
    if named is not None and body.setdefault("name", named) != named:
        raise Unprocessable("name", f"{named}, as in the path, expected")
    if isinstance(body.get("metadata"), dict) and hide(body["metadata"]) != body["metadata"]:
        raise Unprocessable("metadata", "no secrets expected: it is shown, and sent with each notification")
    wanted = parsed(SubscriptionRequest, body)
    form = OnapForm(
        vnf_instance_id=vnf.record.vnf.id,
        instance_name=name_of(vnf),
        name=wanted.name,
        metadata=wanted.metadata or {},
    )
    try:
        return ChangeSubscriptionRequest(
            callback_uri=wanted.callback_url,
            vnf_instance_ids=(vnf.record.vnf.id,),
            min_notify_interval_s=wanted.min_notify_interval or 0,
            onap=form,
        )
    except ValueError as error:
        raise Unprocessable("callback-url", "an address of http or https expected") from error


def _refused(error: CallbackRefused | InvalidInput) -> Unprocessable:
    """Return the error of a callback that must not be called, at the member that names it."""
    _, _, reason = str(error).partition(": ")
    return Unprocessable("callback-url", reason or str(error))


def _subscriptions(request: web.Request) -> Subscriptions:
    return request.app[SUBSCRIPTIONS]


async def _stored(request: web.Request, vnf: Vnf) -> Stored:
    name = request.match_info["name"]
    try:
        return await _subscriptions(request).get(_id(vnf, name), "onap")
    except NotFound as error:
        raise NotFound(f"the instance has no subscription {name}") from error


def _id(vnf: Vnf, name: str) -> str:
    return derived_id("onap-subscription", vnf.record.vnf.id, name)


def _shown(document: JsonMapping) -> JsonObject:
    form, last = document["onap"], document.get("lastNotified", {})
    return {
        "name": form["name"],
        "min-notify-interval": document["minNotifyIntervalS"],
        "callback-url": shown_url(document["callbackUri"]),
        "metadata": form["metadata"],
        "last-update-time": document["createdAt"],
        "last-notify-time": last.get("at", _NEVER),
        "last-notify-status": last.get("status") or 0,
    }


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag = "Instances"
    made, shown = ({status: Answer("The subscription", ShownSubscription)} for status in (201, 200))
    taken = {409: f"The instance has one of this name, or {_MOST} subscriptions"}
    wrong = {**NO_BODY, **WRONG}
    yield Route(
        tag, "POST", _MANY, create, "Subscribe to changes of its pods", made, SubscriptionRequest,
        refusals={**wrong, **taken},
    )  # fmt: skip
    yield Route(tag, "GET", _MANY, list_all, "List subscriptions", listed(ShownSubscription, "Those of the instance"))
    yield Route(tag, "GET", _ONE, show, "Show a subscription", shown)
    yield Route(tag, "PUT", _ONE, change, "Change a subscription", shown, SubscriptionRequest, refusals=wrong)
    yield Route(tag, "DELETE", _ONE, delete, "End a subscription", {202: Answer("It has ended")})
