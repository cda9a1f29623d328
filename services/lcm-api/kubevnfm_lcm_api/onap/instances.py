"""``/v1/instance``, as SO's CNF adapter calls it: ordinary VNFs of the multi-cloud API (multicloud.md MC-130, MC-134)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.types import MultiCloudRequest
from kubevnfm_kit.errors import ConflictingInput, InvalidInput, Unprocessable
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import mask
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.query import Stored
from pydantic import Field, StringConstraints

from kubevnfm_lcm_api.http.bodies import check_names
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace, OnapFacts
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.multicloud import vnf_removal, vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.services import ends, services, vnfs
from kubevnfm_lcm_api.multicloud.taken_places import place_check
from kubevnfm_lcm_api.multicloud.vnf_lists import named_by_onap, of_onap
from kubevnfm_lcm_api.multicloud.vnf_reading import vnf_in_path
from kubevnfm_lcm_api.multicloud.vnf_types import ReleaseName, VnfInstanceRequest
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf
from kubevnfm_lcm_api.onap.answers import (
    AWAY,
    FAILED,
    NO_BODY,
    NOT_THERE,
    PREFER,
    SEVERAL,
    WRONG,
    ListedInstance,
    ShownInstance,
    listed,
)
from kubevnfm_lcm_api.onap.bundle_store import VERSION, BundleName, Found, Labels
from kubevnfm_lcm_api.onap.bundles import bundles
from kubevnfm_lcm_api.onap.names import new_name
from kubevnfm_lcm_api.onap.override_values import MEMBER, flat, nested
from kubevnfm_lcm_api.onap.plain import read_plain, region_named

_MANY: Final = "/v1/instance"
_ONE: Final = f"{_MANY}/{{id}}"
_FILTERS: Final = ("rb-name", "rb-version", "profile-name")
_PAGE: Final = 500
_PACKAGES: Final = 200
"""Packages of one search."""
_TRIES: Final = 5
_OF_ONAP: Final = {
    "values": MEMBER, "csar_id": "profile-name", "namespace": "profile-name", "release_name": "release-name",
    "cloud_region_id": "cloud-region", "order_artifact": "profile-name",
}  # fmt: skip
"""Members of ONAP's request by those of ours."""
T = TypeVar("T")


class InstanceRequest(MultiCloudRequest):
    """An instance to bring up, or what it is to become by an upgrade."""

    rb_name: Annotated[BundleName, Field(alias="rb-name")]
    rb_version: Annotated[BundleName, Field(alias="rb-version")]
    profile_name: Annotated[BundleName, Field(alias="profile-name")]
    cloud_region: Annotated[str, StringConstraints(min_length=1, max_length=129), Field(alias="cloud-region")]
    release_name: Annotated[ReleaseName | None, Field(alias="release-name")] = None
    labels: Labels | None = None


class InstanceBody(InstanceRequest):
    """An instance to bring up, with the values that it is given."""

    # Read by hand: a type would hide the texts whose names are those of secrets.
    values: Annotated[dict[str, str] | None, Field(alias=MEMBER)] = None
    """By dotted names, as Helm's ``--set`` has them."""


async def create(request: web.Request) -> web.Response:
    """POST instance: 201, or 500 once its operation has failed. At the end of the wait it is 201 too: ONAP has no other answer."""
    wanted, values = await _read(request)
    profile = await _profile(request, wanted)
    region = await region_named(request, wanted.cloud_region)
    body = {
        "cloud_region_id": region.id,
        "csar_id": await bundles(request).package_of(profile),
        "values": values,
        "release_name": wanted.release_name or profile.body.get("release-name") or wanted.profile_name,
        **({"namespace": profile.body["namespace"]} if "namespace" in profile.body else {}),
        "kubernetes_version": profile.body.get(VERSION),
    }
    vnf_id, operation_id = await _accepted(request, wanted, body)
    await ends(request).ended(operation_id, read_preference(request).wait_s)
    vnf = await vnf_in_path(request, vnf_id)
    if vnf.status == "FAILED":
        return web.Response(status=500, text=f"instance {name_of(vnf)} was not brought up: {vnf.detail}\n")
    return web.json_response(await _shown(request, vnf), status=201)


async def _accepted(request: web.Request, wanted: InstanceRequest, body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ids of the VNF and of its operation, under a name that no other one has. Raises as `vnf_requests.accept`."""
    for tried in range(_TRIES):
        name = new_name(is_numbered=tried > 0)
        facts = OnapFacts(name=name, cloud_region=wanted.cloud_region, labels=wanted.labels or {})
        asked = {**body, "vnf_instance_name": name}
        try:
            return await _in_words_of_onap(_begun(request, asked, facts))
        except AlreadyExists:
            continue
    raise AssertionError("random names are taken again and again")


async def _begun(request: web.Request, asked: Mapping[str, Any], facts: OnapFacts) -> tuple[str, str]:
    on, regions, origin = vnfs(request), services(request).regions, Origin(request[CALLER].subject, "create")
    wanted = parsed(VnfInstanceRequest, asked)
    places = place_check(services(request).dry_runs)
    made, operation_id = await vnf_requests.accept(
        on, regions, wanted, asked, origin, check_places=places, instance_id=None, onap=facts
    )
    return made.vnf.id, operation_id


async def list_all(request: web.Request) -> web.Response:
    """GET instance: 200."""
    filters = {name: request.query[name] for name in _FILTERS if request.query.get(name)}
    parts: list[Sequence[str] | None] = [None]
    if filters:
        packages = await bundles(request).packages(filters)
        parts = [packages[begin : begin + _PACKAGES] for begin in range(0, len(packages), _PACKAGES)]
    shown: list[JsonObject] = []
    known: dict[str, Found | None] = {}
    for part in parts:
        after: str | None = None
        while True:
            page = await of_onap(context(request).store, part, limit=_PAGE, after=after)
            for package in {vnf.record.vnf.vnf_pkg_id for vnf in page.items} - known.keys():
                known[package] = await bundles(request).of_package(package)
            # Values may be large.
            shown += await asyncio.to_thread(_entries, page.items, known)
            after = page.next_after
            if after is None:
                break
    return web.json_response(shown)


async def show(request: web.Request) -> web.Response:
    """GET instance/{id}: 200."""
    return web.json_response(await _shown(request, await vnf_named(request)))


async def delete(request: web.Request) -> web.Response:
    """DELETE instance/{id}: 202."""
    vnf = await vnf_named(request)
    on, regions = vnfs(request), services(request).regions
    await vnf_removal.accept(on, regions, vnf, is_orphaning=False, check=_any)
    return web.Response(status=202)


async def upgrade(request: web.Request) -> web.Response:
    """POST instance/{id}/upgrade: 201, or 500 once its operation has failed; the given override-values replace the earlier ones."""
    vnf = await vnf_named(request)
    wanted, values = await _read(request)
    profile = await _profile(request, wanted)
    await _check_upgrade(request, vnf, wanted, profile)
    csar_id = await bundles(request).package_of(profile)
    origin, places = Origin(request[CALLER].subject, "patch"), place_check(services(request).dry_runs)
    operation_id = await _in_words_of_onap(
        vnf_requests.replace(
            vnfs(request),
            vnf,
            csar_id,
            values,
            kubernetes_version=profile.body.get(VERSION),
            origin=origin,
            check=_any,
            check_places=places,
        )
    )
    await ends(request).ended(operation_id, read_preference(request).wait_s)
    vnf = await vnf_in_path(request, vnf.record.vnf.id)
    if vnf.status == "FAILED":
        return web.Response(status=500, text=f"instance {name_of(vnf)} was not upgraded: {vnf.detail}\n")
    return web.json_response(await _shown(request, vnf), status=201)


async def _check_upgrade(request: web.Request, vnf: Vnf, wanted: InstanceRequest, profile: Found) -> None:
    """Raise Unprocessable for what an upgrade does not change."""
    place = _place(vnf)
    region = await region_named(request, wanted.cloud_region)
    if region.id != place.cloud_region_id:
        raise Unprocessable("cloud-region", f"{place.cloud_region_id} expected: an upgrade does not move an instance")
    if profile.body.get("namespace", place.namespace) != place.namespace:
        raise Unprocessable("profile-name", f"one in namespace {place.namespace} expected: an instance does not move")
    if wanted.release_name not in (None, _release_name(vnf)):
        raise Unprocessable("release-name", f"{_release_name(vnf)} expected: it stays as it was given first")
    if wanted.labels and wanted.labels != (place.onap.labels if place.onap is not None else {}):
        raise Unprocessable("labels", "they stay as they were given first: leave them out")


async def vnf_named(request: web.Request) -> Vnf:
    """Return the VNF of a path, which has its name or its id. Raises NotFound."""
    named = request.match_info["id"]
    return await vnf_in_path(request, await named_by_onap(context(request).store, named) or named)


async def shown_request(request: web.Request, vnf: Vnf) -> JsonMapping:
    """Return the request that would bring a VNF up, as ONAP shows it; secret values are masked."""
    profile = await bundles(request).of_package(vnf.record.vnf.vnf_pkg_id)
    entry = await asyncio.to_thread(_entry, vnf, profile)
    shown: JsonMapping = entry["request"]
    return shown


def group_version_kind(api_version: str, kind: str) -> JsonObject:
    """Return the kind of an object as ONAP has it."""
    group, _, version = api_version.rpartition("/")
    return {"Group": group, "Version": version, "Kind": kind}


def _entries(vnfs: Sequence[Vnf], profiles: Mapping[str, Found | None]) -> list[JsonObject]:
    return [_entry(vnf, profiles[vnf.record.vnf.vnf_pkg_id]) for vnf in vnfs]


async def _shown(request: web.Request, vnf: Vnf) -> JsonObject:
    resources = [
        {"GVK": group_version_kind(each.api_version, each.kind), "Name": each.name}
        for each in vnf.resources
        if each.hook is None
    ]
    profile = await bundles(request).of_package(vnf.record.vnf.vnf_pkg_id)
    entry = await asyncio.to_thread(_entry, vnf, profile)
    return {**entry, "resources": resources, "hooks": None}


def _entry(vnf: Vnf, profile: Found | None) -> JsonObject:
    place, body = _place(vnf), {} if profile is None else profile.body
    facts, values = place.onap, mask(vnf.record.internals.parameters).get("values", {})
    asked = {
        **{name: body.get(name, "") for name in _FILTERS},
        "release-name": _release_name(vnf),
        "cloud-region": place.key[1] if facts is None else facts.cloud_region,
        "labels": {} if facts is None else facts.labels,
        MEMBER: flat(values),
    }
    return {"id": name_of(vnf), "request": asked, "namespace": place.namespace, "release-name": _release_name(vnf)}


def name_of(vnf: Vnf) -> str:
    """Return the name by which ONAP knows a VNF: its id, if it has none."""
    facts = _place(vnf).onap
    return vnf.record.vnf.id if facts is None else facts.name


def _release_name(vnf: Vnf) -> str:
    name: str = vnf.record.internals.parameters.get("release_name") or f"vnf{vnf.record.vnf.id.replace('-', '')}"
    return name


def _place(vnf: Vnf) -> CloudPlace:
    place = vnf.record.internals.multicloud
    assert place is not None
    return place


async def _read(request: web.Request) -> tuple[InstanceRequest, dict[str, Any]]:
    body = await read_plain(request)
    for name in (*_FILTERS, "cloud-region"):
        if not body.get(name):
            raise Unprocessable(name, "required")
    # Not by the type, which would hide the texts whose names are those of secrets.
    given = body.pop(MEMBER, None) or {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise Unprocessable(MEMBER, "an object of texts expected")
    values = nested(given)
    # A dotted name hides them from the check of the body, and a stored ``$sealed`` would count as one of our secrets.
    check_names({MEMBER: values})
    if "namespace" in values:
        raise Unprocessable(f"{MEMBER}/namespace", "a reserved name, which charts do not get: leave it out")
    return parsed(InstanceRequest, {name: value or None for name, value in body.items()}), values


async def _in_words_of_onap(work: Awaitable[T]) -> T:
    """Return the result; raise what is wrong with our request at the members of ONAP's."""
    try:
        return await work
    except InvalidInput as error:
        kind = type(error) if isinstance(error, Unprocessable | ConflictingInput) else Unprocessable
        places = []
        for place, reason in error.places:
            member, slash, rest = place.partition("/")
            places.append((f"{_OF_ONAP.get(member, member)}{slash}{rest}", reason))
        raise kind(*places[0], *places[1:]) from error


async def _profile(request: web.Request, wanted: InstanceRequest) -> Found:
    return await bundles(request).profile(wanted.rb_name, wanted.rb_version, wanted.profile_name)


def _any(_: Stored) -> None:
    """Accept an instance in every state: ONAP has no conditional requests."""


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag = "Instances"
    made, shown = {201: Answer("The instance", ShownInstance)}, {200: Answer("The instance", ShownInstance)}
    refused = {**NO_BODY, **NOT_THERE, **SEVERAL, **WRONG, **FAILED, **AWAY}
    filters = tuple(Parameter(name, f"That of the instance's {name}") for name in _FILTERS)
    busy = {409: "Another operation runs"}
    yield Route(
        tag, "POST", _MANY, create, "Bring an instance up", made, InstanceBody, headers=(PREFER,), refusals=refused
    )
    yield Route(tag, "GET", _MANY, list_all, "List instances", listed(ListedInstance, "The instances"), query=filters)
    yield Route(tag, "GET", _ONE, show, "Show an instance", shown)
    yield Route(
        tag, "DELETE", _ONE, delete, "Bring an instance down", {202: Answer("It is being brought down")}, refusals=busy
    )
    yield Route(
        tag, "POST", f"{_ONE}/upgrade", upgrade, "Bring an instance to another profile", made, InstanceBody,
        headers=(PREFER,), refusals={**refused, 409: f"{SEVERAL[409]}; or another operation runs"},
    )  # fmt: skip
