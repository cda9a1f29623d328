"""``/kubevnfm/v1/search``: finds what has an id or a name that begins as a caller has typed.

Each search is a range of an index, or that of the service that owns the resources, so that it costs the same in a large collection. Parts
within a name are not found: no index leads to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import MASK, shown_url
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.prefixes import prefixed, with_id
from kubevnfm_store.query import AllOf, Query, Sort

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import words
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.multicloud.services import services as multicloud
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION as SUBSCRIPTIONS
from kubevnfm_lcm_api.packages.usable import COLLECTION as PACKAGES
from kubevnfm_lcm_api.performance.job_record import COLLECTION as PM_JOBS
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLDS
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import LARGE, LARGE_OF_OPERATION, PREFIX
from kubevnfm_lcm_api.views.services import Finder, ViewServices, views
from kubevnfm_lcm_api.views.subscriptions import UNREAD

HitKind = Literal[
    "instance", "operation", "package", "vim", "virtual-link", "persistent-volume", "cloud-region", "subscription", "alarm",
    "pm-job", "threshold", "automatic-action",
]  # fmt: skip
_KINDS: Final[tuple[HitKind, ...]] = get_args(HitKind)
_MOST: Final = 20
"""The hits of a kind in an answer."""
_LONGEST: Final = 255
_LONGEST_S: Final = 3.0
"""The time limit for each kind."""
_Q: Final = Parameter(
    "q", f"The beginning of an id, a name, or the host of a callback, 1 to {_LONGEST} characters", is_required=True
)
_KIND: Final = Parameter("kind", "Of this kind, or one of these, by commas", values=_KINDS, is_repeated=True)
_SCHEMES: Final = ("https://", "http://")
_LOGINS: Final = ("", f"{MASK}@")
"""Before the host of a stored callback: none, or one that is not shown."""
_LARGE_OF_PACKAGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData", "warnings")


class Hit(Shown):
    """A resource that was found."""

    kind: HitKind
    id: str
    name: str | None = None
    """An operation has its type here, a package its product, a subscription its callback, an alarm the type of its fault,
    a PM job its metrics, a threshold its metric, an automatic action its operation."""
    foundBy: Literal["id", "name", "vnfdId", "callbackUri"]  # noqa: N815  # as it is on the wire
    isExact: bool  # noqa: N815  # as it is on the wire
    """Whether the whole id or name was given; of a callback its host, or all of it."""
    state: str | None = None
    vnfInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    """The instance of an operation."""
    href: str


class AwayKind(Shown):
    """A kind that could not be searched."""

    kind: HitKind
    text: str
    """Why not."""


class SearchView(Shown):
    """The resources that were found."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    items: list[Hit]
    """Exact ones first; at most 20 of each kind."""
    more: list[HitKind]
    """The kinds of which there are more."""
    away: list[AwayKind]
    """The kinds whose owner does not answer."""


_Search = Callable[[web.Request, str], Awaitable[Iterable[Hit]]]


async def search(request: web.Request) -> web.Response:
    """GET search?q=: what has an id or name that begins so."""
    text = request.query.get(_Q.name, "")
    if not 1 <= len(text) <= _LONGEST:
        raise InvalidInput(_Q.name, f"1 to {_LONGEST} characters expected")
    wanted = words(request.query.getall(_KIND.name, []), _KIND)
    kinds = [kind for kind in _KINDS if not wanted or kind in wanted]
    sequence = views(request).sequence()
    answers = await asyncio.gather(*(_searched(kind, request, text) for kind in kinds))
    view = SearchView(sequence=sequence, items=[], more=[], away=[])
    for kind, answer in zip(kinds, answers, strict=True):
        if isinstance(answer, str):
            view.away.append(AwayKind(kind=kind, text=answer))
            continue
        view.items.extend(answer[:_MOST])
        if len(answer) > _MOST:
            view.more.append(kind)
    view.items.sort(key=lambda hit: not hit.isExact)
    return web.json_response(view.model_dump(mode="json", exclude_none=True))


async def _searched(kind: HitKind, request: web.Request, text: str) -> Sequence[Hit] | str:
    """Return the hits of a kind, each once, exact ones first, and one more than are shown; or why there are none."""
    try:
        async with asyncio.timeout(_LONGEST_S):
            found = await _SEARCHES[kind](request, text)
    except TimeoutError:
        return f"no answer within {_LONGEST_S:g} s"
    except VnfmError as error:
        if kind in _OWN:
            raise
        return line(str(error))
    hits: dict[str, Hit] = {}
    for hit in sorted(found, key=lambda each: not each.isExact):
        hits.setdefault(hit.id, hit)
    return list(hits.values())[: _MOST + 1]


async def _instances(request: web.Request, text: str) -> list[Hit]:
    store = context(request).store
    by_id, by_name = await asyncio.gather(
        with_id(store, instances.COLLECTION, text, limit=_MOST + 1, exclude=LARGE),
        _named(store, instances.COLLECTION, "vnfInstanceName", text, LARGE),
    )

    def hit(body: JsonMapping, found_by: Literal["id", "name"]) -> Hit:
        name = body.get("vnfInstanceName")
        return Hit(
            kind="instance", id=body["id"], name=name, foundBy=found_by, isExact=text in (body["id"], name),
            state=body["instantiationState"], href=f"{api_root(request)}{PREFIX}/instances/{body['id']}/tree",
        )  # fmt: skip

    return [*(hit(each.body, "id") for each in by_id), *(hit(each, "name") for each in by_name)]


async def _operations(request: web.Request, text: str) -> list[Hit]:
    store, root = context(request).store, api_root(request)
    found = await with_id(
        store, occurrences.COLLECTION, text, limit=_MOST + 1, exclude=LARGE_OF_OPERATION, where=[occurrences.PUBLIC]
    )
    return [
        Hit(
            kind="operation", id=each.id, name=each.body["operation"], foundBy="id", isExact=each.id == text,
            state=each.body["operationState"], vnfInstanceId=each.body["vnfInstanceId"],
            href=f"{root}{PREFIX}/operations/{each.id}",
        )
        for each in found
        if not each.body["internal"].get("isInternal")
    ]  # fmt: skip


async def _packages(request: web.Request, text: str) -> list[Hit]:
    store = context(request).store
    by_id, by_vnfd, by_name = await asyncio.gather(
        with_id(store, PACKAGES, text, limit=_MOST + 1, exclude=_LARGE_OF_PACKAGE),
        _named(store, PACKAGES, "vnfdId", text, _LARGE_OF_PACKAGE),
        _named(store, PACKAGES, "vnfProductName", text, _LARGE_OF_PACKAGE),
    )

    def hit(body: JsonMapping, found_by: Literal["id", "name", "vnfdId"]) -> Hit:
        name = body.get("vnfProductName")
        return Hit(
            kind="package", id=body["id"], name=name, foundBy=found_by,
            isExact=text in (body["id"], body.get("vnfdId"), name), state=body["onboardingState"],
            href=f"{api_root(request)}{PREFIX}/packages/{body['id']}/warnings",
        )  # fmt: skip

    return [
        *(hit(each.body, "id") for each in by_id),
        *(hit(each, "vnfdId") for each in by_vnfd),
        *(hit(each, "name") for each in by_name),
    ]


async def _vims(request: web.Request, text: str) -> list[Hit]:
    find = views(request).vims.views
    (by_id, _), (by_name, _) = await asyncio.gather(
        find({"id": text}, limit=_MOST + 1), find({"name": text}, limit=_MOST + 1)
    )
    path = f"{api_root(request)}{PREFIX}/vims"
    return _owned("vim", text, path, by_id, by_name, lambda one: one.status)


async def _links(request: web.Request, text: str) -> list[Hit]:
    found = await _in_owner(multicloud(request).links.find, text)
    path = f"{api_root(request)}{PREFIX}/links"
    return _owned("virtual-link", text, path, *found, lambda one: one.status)


async def _volumes(request: web.Request, text: str) -> list[Hit]:
    found = await _in_owner(multicloud(request).volumes.find, text)
    path = f"{api_root(request)}{PREFIX}/volumes"
    return _owned("persistent-volume", text, path, *found, lambda one: one.phase)


async def _in_owner(find: Any, text: str) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what the service that owns them finds by id, and by name."""
    by_id, by_name = await asyncio.gather(
        find({"id_prefix": text}, limit=_MOST + 1), find({"name_prefix": text}, limit=_MOST + 1)
    )
    return by_id.items, by_name.items


def _owned(
    kind: HitKind,
    text: str,
    path: str,
    by_id: Iterable[Any],
    by_name: Iterable[Any],
    state: Callable[[Any], str],
    name: Callable[[Any], str] = attrgetter("name"),
) -> list[Hit]:
    """Return the hits of a kind that another service owns."""
    ways: list[tuple[Any, Literal["id", "name"]]] = [*((each, "id") for each in by_id), *((e, "name") for e in by_name)]
    return [
        Hit(
            kind=kind, id=one.id, name=name(one), foundBy=found_by, isExact=text in (one.id, name(one)),
            state=state(one), href=f"{path}/{one.id}",
        )
        for one, found_by in ways
    ]  # fmt: skip


async def _regions(request: web.Request, text: str) -> list[Hit]:
    found = await _in_owner(multicloud(request).regions.find, text)
    path = f"{api_root(request)}{PREFIX}/regions"
    return _owned("cloud-region", text, path, *found, lambda one: one.status, name=lambda one: one.cloud_region)


async def _subscriptions(request: web.Request, text: str) -> list[Hit]:
    """Return subscriptions by id, and by the callback: people know its host."""
    store = context(request).store
    begins = (
        [text] if text.startswith(_SCHEMES) else [f"{scheme}{login}{text}" for scheme in _SCHEMES for login in _LOGINS]
    )
    by_id, by_callback = await asyncio.gather(
        with_id(store, SUBSCRIPTIONS, text, limit=_MOST + 1, exclude=UNREAD),
        asyncio.gather(*(_named(store, SUBSCRIPTIONS, "callbackUri", each, UNREAD) for each in begins)),
    )

    def hit(body: JsonMapping, found_by: Literal["id", "callbackUri"]) -> Hit:
        callback = shown_url(body["callbackUri"])
        return Hit(
            kind="subscription", id=body["id"], name=callback, foundBy=found_by,
            isExact=text in (body["id"], callback, urlsplit(callback).hostname),
            href=f"{api_root(request)}{PREFIX}/subscriptions/{body['id']}",
        )  # fmt: skip

    return [
        *(hit(each.body, "id") for each in by_id),
        *(hit(each, "callbackUri") for found in by_callback for each in found),
    ]


async def _named(
    store: DocumentStore, collection: str, path: str, text: str, exclude: Sequence[str]
) -> list[JsonMapping]:
    query = Query(AllOf(prefixed(path, text)), sort=Sort(path), limit=_MOST + 1, exclude=exclude)
    return [each.body for each in await store.find(collection, query)]


def _found_by(kind: HitKind, finder: Callable[[ViewServices], Finder], address: str) -> _Search:
    """Return the search of another part of lcm-api; ``address``: behind the prefix of our views."""

    async def search(request: web.Request, text: str) -> list[Hit]:
        found = await finder(views(request)).with_id(text, limit=_MOST + 1)
        base = f"{api_root(request)}{PREFIX}/{address}"
        return [
            Hit(kind=kind, id=each.id, name=each.name, foundBy="id", isExact=each.id == text, state=each.state,
                href=f"{base}{each.id}")
            for each in found
        ]  # fmt: skip

    return search


def _measured(kind: HitKind, collection: str, address: str) -> _Search:
    """Return the search for PM jobs or thresholds."""

    async def search(request: web.Request, text: str) -> list[Hit]:
        found = await with_id(
            context(request).store, collection, text, limit=_MOST + 1, exclude=("reports", "internal", "metadata")
        )
        base = f"{api_root(request)}{PREFIX}/{address}"
        return [
            Hit(kind=kind, id=each.id, name=_metrics(each.body), foundBy="id", isExact=each.id == text,
                href=f"{base}/{each.id}")
            for each in found
        ]  # fmt: skip

    return search


def _metrics(body: JsonMapping) -> str:
    criteria = body["criteria"]
    metrics = criteria.get("performanceMetric", ())
    if isinstance(metrics, str):  # of a threshold
        return metrics
    return ", ".join([*metrics, *criteria.get("performanceMetricGroup", ())])


_SEARCHES: Final[Mapping[HitKind, _Search]] = {
    "instance": _instances,
    "operation": _operations,
    "package": _packages,
    "vim": _vims,
    "virtual-link": _links,
    "persistent-volume": _volumes,
    "cloud-region": _regions,
    "subscription": _subscriptions,
    "alarm": _found_by("alarm", attrgetter("alarms"), "alarms?id="),
    "pm-job": _measured("pm-job", PM_JOBS, "pm-jobs"),
    "threshold": _measured("threshold", THRESHOLDS, "thresholds"),
    "automatic-action": _found_by("automatic-action", attrgetter("actions"), "automatic-actions/"),
}
_OWN: Final = frozenset(
    {"instance", "operation", "package", "subscription", "alarm", "pm-job", "threshold", "automatic-action"}
)
"""The kinds in lcm-api's own database: without it there is no answer."""


def routes() -> list[Route]:
    """Return the route of the search."""
    found = {200: Answer("What was found", SearchView)}
    summary = "Find resources by the beginning of an id or a name"
    return [Route("Views", "GET", f"{PREFIX}/search", search, summary, found, query=(_Q, _KIND))]
