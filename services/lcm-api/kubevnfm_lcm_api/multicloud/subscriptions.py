"""``/multicloud/v1/subscriptions``: changes of VNFs and regions, sent as CloudEvents (multicloud.md MC-052)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType, Page
from kubevnfm_events.changes import ChangeType
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Stored
from pydantic import Field, StringConstraints, field_validator

from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, add_routes, page_of
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.multicloud.bodies import read
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key, seed_of
from kubevnfm_lcm_api.multicloud.services import PREFIX, services, vnfs
from kubevnfm_lcm_api.multicloud.vnf_types import RegionId
from kubevnfm_lcm_api.notifications.domain.callback import (
    Authentication,
    CallbackRefused,
    CertificateRef,
    ParamsBasic,
    ParamsOauth2ClientCert,
    ParamsOauth2ClientCredentials,
    checked_uri,
)
from kubevnfm_lcm_api.notifications.domain.change_types import OF_VNFS
from kubevnfm_lcm_api.notifications.domain.changes import ChangeSubscriptionRequest
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions

_MANY: Final = f"{PREFIX}/subscriptions"
_ONE: Final = f"{_MANY}/{{id}}"
_MOST: Final = 100
LONGEST_INTERVAL_S: Final = 3600

CallbackUrl = Annotated[str, StringConstraints(max_length=255), Field(repr=False)]
Interval = Annotated[int, Field(strict=True, ge=0, le=LONGEST_INTERVAL_S)]


class ChangeFilter(MultiCloudRequest):
    """Which changes; a member that is absent or empty excludes none."""

    types: Annotated[tuple[ChangeType, ...], Field(max_length=_MOST)] = ()
    vnf_ids: Annotated[tuple[str, ...], Field(max_length=_MOST)] = ()
    """With it, changes of links and volumes are sent that these VNFs use, and none of regions."""
    cloud_region_ids: Annotated[tuple[RegionId, ...], Field(max_length=_MOST)] = ()


class StrictBasic(ParamsBasic, extra="forbid"):
    """As in SOL013."""


class StrictOauth2ClientCredentials(ParamsOauth2ClientCredentials, extra="forbid"):
    """As in SOL013."""


class StrictCertificateRef(CertificateRef, extra="forbid"):
    """As in SOL013."""


class StrictOauth2ClientCert(ParamsOauth2ClientCert, extra="forbid"):
    """As in SOL013."""

    certificate_ref: StrictCertificateRef


class StrictAuthentication(Authentication, extra="forbid"):
    """SubscriptionAuthentication of SOL013, spelled as there."""

    params_basic: StrictBasic | None = None
    params_oauth2_client_credentials: StrictOauth2ClientCredentials | None = None
    params_oauth2_client_cert: StrictOauth2ClientCert | None = None


class SubscriptionRequest(MultiCloudRequest):
    """A subscription to changes of VNFs, and of regions with their links and volumes."""

    callback_url: CallbackUrl
    """http or https. Each POST to it is a CloudEvent, or with an interval a batch of them."""
    filter: ChangeFilter = ChangeFilter()
    min_notify_interval: Interval = 0
    """Seconds from one notification to the next, at least; the changes in it are sent together, one of a type for each object."""
    authentication: StrictAuthentication | None = None

    _is_http = field_validator("callback_url")(checked_uri)


class Subscription(MultiCloudType):
    """A subscription; its authentication is never shown."""

    id: str
    callback_url: str
    """Without the values of its query."""
    filter: ChangeFilter
    min_notify_interval: int
    last_notify_at: str | None = None
    """When a notification was sent last, whatever became of it."""
    last_notify_status: int | None = None
    """The status that was answered; absent: there was no answer, or nothing was sent yet."""
    created_at: str


SUBSCRIPTIONS: Final = web.AppKey("multicloud-subscriptions", Subscriptions)


async def create(request: web.Request) -> web.Response:
    """POST subscriptions: 201."""
    wanted = await read(request, SubscriptionRequest)
    vim_ids = await _vims(request, wanted.filter.cloud_region_ids)
    asked = ChangeSubscriptionRequest(
        callback_uri=wanted.callback_url,
        authentication=wanted.authentication,
        types=wanted.filter.types,
        vnf_instance_ids=await _known_vnfs(request, wanted.filter, vim_ids),
        vim_ids=vim_ids,
        shown_filter=wanted.filter.model_dump(exclude_defaults=True),
        min_notify_interval_s=wanted.min_notify_interval,
    )
    seed = seed_of(request)
    subscription_id = None if seed is None else derived_id("multicloud-subscription", seed)
    subscriptions = request.app[SUBSCRIPTIONS]
    try:
        made = await pointed(subscriptions, asked, request[CALLER].subject, subscription_id)
    except AlreadyExists:
        # A run of the same request before a crash has made it.
        assert subscription_id is not None
        made = (await subscriptions.get(subscription_id, "multicloud")).body
    location = f"{api_root(request)}{_MANY}/{made['id']}"
    return web.json_response(_shown(made), status=201, headers={"Location": location})


async def pointed(
    subscriptions: Subscriptions, asked: ChangeSubscriptionRequest, by_caller: str, subscription_id: str | None
) -> JsonMapping:
    """Return the new subscription. Raises Unprocessable at the members of the body; AlreadyExists."""
    try:
        return await subscriptions.create(asked, "multicloud", by_caller=by_caller, subscription_id=subscription_id)
    except CallbackRefused as error:
        member, _, reason = str(error).partition(": ")
        raise Unprocessable("callback_url" if member == "callbackUri" else member, reason) from error
    except InvalidInput as error:
        raise Unprocessable(*error.places[0], *error.places[1:]) from error


async def _known_vnfs(request: web.Request, wanted: ChangeFilter, vim_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the VNFs of a filter. Raises Unprocessable for one that does not exist, and for what could never match."""
    for index, type_ in enumerate(wanted.types if wanted.vnf_ids else ()):
        if type_ not in OF_VNFS:
            names = ", ".join(OF_VNFS)
            raise Unprocessable(
                f"filter/types[{index}]", f"with vnf_ids, one that is about a VNF, or what it uses, expected: {names}"
            )
    for index, each in enumerate(wanted.vnf_ids):
        place = f"filter/vnf_ids[{index}]"
        try:
            stored = await vnfs(request).instances.get(each)
        except NotFound as error:
            raise Unprocessable(place, str(error)) from error
        # One that SOL003 has made can have another place after a termination.
        at = InstanceRecord.from_document(stored.body).internals.multicloud
        if at is not None and at.vim_id is not None and vim_ids and at.vim_id not in vim_ids:
            raise Unprocessable(place, f"a VNF in one of cloud_region_ids expected: it stays in {at.cloud_region_id}")
    return wanted.vnf_ids


async def _vims(request: web.Request, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the VIMs of regions; a name that several owners have stands for all of them."""
    found: list[str] = []
    for index, each in enumerate(ids):
        page = await services(request).regions.find({"cloud_region_id": each}, limit=_MOST)
        if not page.items:
            raise Unprocessable(f"filter/cloud_region_ids[{index}]", f"cloud region {each} does not exist")
        found += [region.vim_id for region in page.items]
    return tuple(found)


async def list_all(request: web.Request) -> web.Response:
    """GET subscriptions: a page of them, oldest first."""
    asked = read_page(request, ())
    at, _, last = (asked.after or "").partition(" ")
    found = await request.app[SUBSCRIPTIONS].page(
        "multicloud", limit=asked.limit + 1, after=(at, last) if asked.after else None
    )
    shown = found[: asked.limit]
    after = f"{shown[-1].body['createdAt']} {shown[-1].id}" if len(found) > asked.limit else None
    return page_answer(request, asked, Page(shown, after), lambda stored: _shown(stored.body))


async def show(request: web.Request) -> web.Response:
    """GET subscriptions/{id}: 200."""
    return web.json_response(_shown((await _stored(request)).body))


async def delete(request: web.Request) -> web.Response:
    """DELETE subscriptions/{id}: 204; what is pending is not sent any more."""
    await request.app[SUBSCRIPTIONS].delete(request.match_info["id"], "multicloud")
    return web.Response(status=204)


async def _stored(request: web.Request) -> Stored:
    return await request.app[SUBSCRIPTIONS].get(request.match_info["id"], "multicloud")


def _shown(document: JsonMapping) -> JsonObject:
    last = document.get("lastNotified", {})
    shown = Subscription(
        id=document["id"],
        callback_url=shown_url(document["callbackUri"]),
        filter=ChangeFilter.model_validate(document["shownFilter"]),
        min_notify_interval=document["minNotifyIntervalS"],
        last_notify_at=last.get("at"),
        last_notify_status=last.get("status"),
        created_at=document["createdAt"],
    )
    return shown.model_dump(mode="json", exclude_none=True)


def add_to(app: web.Application, subscriptions: Subscriptions) -> None:
    """Add the resources to an application."""
    app[SUBSCRIPTIONS] = subscriptions
    add_routes(app, map(once_for_a_key, routes()))


def routes() -> Iterator[Route]:
    """Yield the routes of subscriptions."""
    tag, wrong = "Subscriptions", {422: "An attribute is not as expected, or the callback must not be called"}
    made = {201: Answer("Subscribed", Subscription, has_location=True)}
    begin, page = "Subscribe to changes of VNFs and regions", page_of(Subscription)
    yield Route(tag, "POST", _MANY, create, begin, made, SubscriptionRequest, refusals=wrong)
    yield Route(tag, "GET", _MANY, list_all, "List subscriptions", page, query=PARAMETERS)
    yield Route(tag, "GET", _ONE, show, "Show a subscription", {200: Answer("The subscription", Subscription)})
    yield Route(tag, "DELETE", _ONE, delete, "End a subscription", DELETED)
