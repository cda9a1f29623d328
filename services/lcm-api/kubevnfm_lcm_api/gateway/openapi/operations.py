"""The request and the answers of each route: the one table that the document is made of, with the routes themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_sol import lcm, packages
from pydantic import BaseModel

from kubevnfm_lcm_api.gateway.openapi import models
from kubevnfm_lcm_api.gateway.versions import ANNOUNCED
from kubevnfm_lcm_api.http.bodies import JSON, PATCH
from kubevnfm_lcm_api.notifications.domain.lifecycle import LccnSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.packages import PkgmSubscriptionRequest
from kubevnfm_lcm_api.packages.http.content import TEXT, ZIP, UploadFromUriRequest
from kubevnfm_lcm_api.packages.http.context import ONBOARDED, PACKAGES

_JSON_TYPE: Final = JSON[0]
OCTETS: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream"
HTML: Final = "text/html"


@dataclass(frozen=True)
class Parameter:
    """A query parameter."""

    name: str
    description: str
    is_flag: bool = False
    values: tuple[str, ...] = ()
    is_repeated: bool = False


@dataclass(frozen=True)
class Answer:
    """The content of an answer: nothing, a type, a list of it, any object, or other media types."""

    description: str
    model: type[BaseModel] | None = None
    is_list: bool = False
    is_any_object: bool = False
    media_types: tuple[str, ...] = (_JSON_TYPE,)
    has_location: bool = False
    has_etag: bool = False


@dataclass(frozen=True)
class Described:
    """One method of one path."""

    tag: str
    summary: str
    answers: Mapping[int, Answer]
    body: type[BaseModel] | None = None
    body_types: tuple[str, ...] = JSON
    is_body_required: bool = True
    query: tuple[Parameter, ...] = ()
    conditions: bool = False
    """Whether If-Match and If-Unmodified-Since are checked."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """The errors of this method, in addition to those of every request."""


_FILTER: Final = Parameter("filter", "SOL013 5.2: (op,path,value), joined by semicolons")
_SELECTORS: Final = (
    Parameter("all_fields", "Everything", is_flag=True),
    Parameter("fields", "Names of attributes to show, by commas; simple and required ones are always shown"),
    Parameter("exclude_fields", "Names of attributes to leave out, by commas"),
    Parameter("exclude-fields", "The same, as existing clients spell it"),
    Parameter("exclude_default", "Without what is left out unless asked", is_flag=True),
)
_PAGING: Final = (
    Parameter("nextpage_opaque_marker", "Where the next page begins: from the Link header of the page before"),
    Parameter("all_records", "Everything in one answer", values=("yes",)),
)
_LIST: Final = (_FILTER, *_SELECTORS, *_PAGING)
_SIGNATURES: Final = Parameter("include_signatures", "With signatures and certificates, as an archive", is_flag=True)
_VIM_FIELDS: Final = Parameter("fields", "Only these attributes", is_repeated=True)
_VIM_QUERY: Final = tuple(
    Parameter(name, "Equal to this, or to one of these", is_repeated=True)
    for name in ("id", "name", "type", "is_default", "status", "tenant_id", "description")
)

_ACCEPTED: Final = Answer("Accepted; Location is the operation occurrence", has_location=True)
_GONE: Final = Answer("Done; there is nothing to show")
_BUSY: Final = "The instance is not in a state for it, or an operation runs on it or waits on it FAILED_TEMP"
_UNSUPPORTED: Final = "No such instance, or its VNFD does not support this operation"
_NOT_READY: Final = "The package is not ONBOARDED"


def _task(summary: str, body: type[BaseModel], **more: Any) -> Described:
    refusals = {404: _UNSUPPORTED, 409: _BUSY, 422: "Understood and impossible", **more.pop("refusals", {})}
    return Described("VNF instances", summary, {202: _ACCEPTED}, body, refusals=refusals, **more)


def _ending(summary: str, status: int, answer: Answer, **more: Any) -> Described:
    refusals = {404: "No such occurrence, or this operation has not got it", 409: "Not in a state for it"}
    return Described("Operation occurrences", summary, {status: answer}, refusals=refusals, **more)


def _lcm(version: str) -> Iterator[tuple[str, str, Described]]:
    base = f"/vnflcm/{version}"
    instances, one = f"{base}/vnf_instances", f"{base}/vnf_instances/{{id}}"
    occurrences, occurrence = f"{base}/vnf_lcm_op_occs", f"{base}/vnf_lcm_op_occs/{{id}}"
    tag = "VNF instances"
    listed = Answer("A page; Link names the next one", lcm.VnfInstance, is_list=True)
    shown = Answer("The instance", lcm.VnfInstance, has_etag=True)
    made = Answer("Made; NOT_INSTANTIATED", lcm.VnfInstance, has_location=True)
    yield (
        "POST",
        instances,
        Described(
            tag,
            "Create a VNF instance",
            {201: made},
            lcm.CreateVnfRequest,
            refusals={422: "The package of vnfdId is missing, or not ENABLED"},
        ),
    )
    yield "GET", instances, Described(tag, "List VNF instances", {200: listed}, query=_LIST)
    yield "GET", one, Described(tag, "Show a VNF instance", {200: shown})
    yield (
        "DELETE",
        one,
        Described(tag, "Delete a VNF instance", {204: _GONE}, conditions=True, refusals={409: "INSTANTIATED, or busy"}),
    )
    yield (
        "PATCH",
        one,
        _task(
            "Modify the information of a VNF instance",
            lcm.VnfInfoModificationRequest,
            body_types=PATCH,
            conditions=True,
            refusals={404: "No such instance"},
        ),
    )
    yield "POST", f"{one}/instantiate", _task("Instantiate a VNF", lcm.InstantiateVnfRequest)
    yield "POST", f"{one}/terminate", _task("Terminate a VNF", lcm.TerminateVnfRequest)
    yield "POST", f"{one}/scale", _task("Scale a VNF by steps", lcm.ScaleVnfRequest)
    yield "POST", f"{one}/scale_to_level", _task("Scale a VNF to levels", lcm.ScaleVnfToLevelRequest)
    yield "POST", f"{one}/heal", _task("Heal a VNF, or VNFCs of it", lcm.HealVnfRequest, is_body_required=False)
    yield "POST", f"{one}/operate", _task("Start or stop a VNF", lcm.OperateVnfRequest)
    yield (
        "POST",
        f"{one}/change_ext_conn",
        _task("Change external connectivity", lcm.ChangeExtVnfConnectivityRequest),
    )
    yield "POST", f"{one}/change_flavour", _task("Change the flavour", lcm.ChangeVnfFlavourRequest)
    if version == "v2":
        yield "POST", f"{one}/change_vnfpkg", _task("Change the VNF package", lcm.ChangeCurrentVnfPkgRequest)

    tag = "Operation occurrences"
    listed = Answer("A page; Link names the next one", lcm.VnfLcmOpOcc, is_list=True)
    shown = Answer("The occurrence", lcm.VnfLcmOpOcc, has_etag=True)
    yield "GET", occurrences, Described(tag, "List operation occurrences", {200: listed}, query=_LIST)
    yield "GET", occurrence, Described(tag, "Show an operation occurrence", {200: shown})
    yield (
        "POST",
        f"{occurrence}/retry",
        _ending(
            "Retry a failed operation; a termination also with additionalParams.capi.force_remove_finalizers",
            202,
            _ACCEPTED,
        ),
    )
    yield "POST", f"{occurrence}/rollback", _ending("Roll a failed operation back", 202, _ACCEPTED)
    failed = Answer("The occurrence, FAILED", lcm.VnfLcmOpOcc)
    yield "POST", f"{occurrence}/fail", _ending("Give a failed operation up", 200, failed)
    yield "POST", f"{occurrence}/cancel", _ending("Cancel an operation", 202, _ACCEPTED, body=lcm.CancelMode)

    yield from _subscriptions(base, "life-cycle changes", LccnSubscriptionRequest, models.LccnSubscription)


def _subscriptions(
    base: str, to: str, wanted: type[BaseModel], shown: type[BaseModel]
) -> Iterator[tuple[str, str, Described]]:
    tag, many, one = "Subscriptions", f"{base}/subscriptions", f"{base}/subscriptions/{{id}}"
    made = Answer("Subscribed", shown, has_location=True)
    refusals = {422: "The test of the callback failed"}
    yield "POST", many, Described(tag, f"Subscribe to {to}", {201: made}, wanted, refusals=refusals)
    listed = Answer("A page; Link names the next one", shown, is_list=True)
    yield "GET", many, Described(tag, "List subscriptions", {200: listed}, query=_LIST)
    yield "GET", one, Described(tag, "Show a subscription", {200: Answer("The subscription", shown)})
    yield "DELETE", one, Described(tag, "End a subscription", {204: _GONE})


def _packages() -> Iterator[tuple[str, str, Described]]:
    tag, many, one = "VNF packages", PACKAGES, f"{PACKAGES}/{{id}}"
    info = packages.VnfPkgInfo
    yield (
        "POST",
        many,
        Described(
            tag,
            "Create a VNF package resource",
            {201: Answer("Made; CREATED, without content", info, has_location=True)},
            packages.CreateVnfPkgInfoRequest,
            is_body_required=False,
        ),
    )
    listed = Answer("A page; Link names the next one", info, is_list=True)
    yield "GET", many, Described(tag, "List VNF packages", {200: listed}, query=_LIST)
    yield "GET", one, Described(tag, "Show a VNF package", {200: Answer("The package", info, has_etag=True)})
    yield (
        "PATCH",
        one,
        Described(
            tag,
            "Enable, disable, or change the user-defined data of a VNF package",
            {200: Answer("What was changed", packages.VnfPkgInfoModifications)},
            packages.VnfPkgInfoModificationRequest,
            PATCH,
            conditions=True,
            refusals={409: "It is so already, or the package is not ONBOARDED"},
        ),
    )
    yield (
        "DELETE",
        one,
        Described(
            tag, "Delete a VNF package", {204: _GONE}, refusals={409: "ENABLED, IN_USE, UPLOADING or PROCESSING"}
        ),
    )
    taken = Answer("Accepted; onboardingState shows the result of its check")
    again = {409: "The package has content already, or is receiving it"}
    content = f"{one}/package_content"
    yield "PUT", content, Described(tag, "Upload the content", {202: taken}, None, (ZIP, OCTETS), refusals=again)
    yield (
        "POST",
        f"{content}/upload_from_uri",
        Described(tag, "Have the content fetched", {202: taken}, UploadFromUriRequest, refusals=again),
    )
    yield from _package_contents(one, {409: _NOT_READY})
    yield from _subscriptions("/vnfpkgm/v1", "news of VNF packages", PkgmSubscriptionRequest, models.PkgmSubscription)


def _onboarded_packages() -> Iterator[tuple[str, str, Described]]:
    """Yield the reading methods at the address by VNFD, which knows onboarded packages only."""
    tag, many, one = "VNF packages by VNFD", ONBOARDED, f"{ONBOARDED}/{{vnfdId}}"
    info = packages.VnfPkgInfo
    listed = Answer("A page; Link names the next one", info, is_list=True)
    yield "GET", many, Described(tag, "List the onboarded VNF packages", {200: listed}, query=_LIST)
    shown = Answer("The package", info, has_etag=True)
    yield "GET", one, Described(tag, "Show the VNF package of a VNFD", {200: shown})
    yield from _package_contents(one, {}, tag)


def _package_contents(
    one: str, not_ready: Mapping[int, str], tag: str = "VNF packages"
) -> Iterator[tuple[str, str, Described]]:
    """Yield the downloads below one package. ``not_ready``: how packages without content are refused there."""
    ranges = {**not_ready, 416: "The range begins behind the end"}
    uploaded = Answer("The uploaded bytes", media_types=(ZIP,), has_etag=True)
    part = Answer("A part of it", media_types=(ZIP,), has_etag=True)
    yield (
        "GET",
        f"{one}/package_content",
        Described(tag, "Download the content", {200: uploaded, 206: part}, refusals=ranges),
    )
    vnfd = Answer("One file as text, else an archive", media_types=(TEXT, ZIP), has_etag=True)
    yield "GET", f"{one}/vnfd", Described(tag, "Read the VNFD", {200: vnfd}, query=(_SIGNATURES,), refusals=not_ready)
    manifest = Answer("The manifest as text; with its certificate an archive", media_types=(TEXT, ZIP), has_etag=True)
    yield (
        "GET",
        f"{one}/manifest",
        Described(tag, "Read the manifest", {200: manifest}, query=(_SIGNATURES,), refusals=not_ready),
    )
    wanted = (
        _SIGNATURES,
        Parameter("exclude_all_mano_artifacts", "Without those that the VNFM uses", is_flag=True),
        Parameter("exclude_all_non_mano_artifacts", "Without those that the VNFM does not use", is_flag=True),
        Parameter("select_non_mano_artifact_sets", "Of those only these sets, by commas"),
        Parameter("include_external_artifacts", "Taken, and without effect: none are fetched", is_flag=True),
    )
    archive = Answer("An archive of them", media_types=(ZIP,), has_etag=True)
    yield (
        "GET",
        f"{one}/artifacts",
        Described(tag, "Read all artifacts", {200: archive, 206: part}, query=wanted, refusals=ranges),
    )
    file, piece = (Answer(text, media_types=("*/*",), has_etag=True) for text in ("The file", "A part of it"))
    yield (
        "GET",
        f"{one}/artifacts/{{path}}",
        Described(tag, "Read one artifact", {200: file, 206: piece}, query=(_SIGNATURES,), refusals=ranges),
    )


def _vims() -> Iterator[tuple[str, str, Described]]:
    tag = "VIMs"
    refused = {409: "There is a VIM of that name, or another default", 422: "The VIM cannot be used"}
    listed = Answer("Those that fit", models.VimsAnswer)
    for path in ("/v1.0/vims", "/v1.0/vims.json"):
        yield (
            "POST",
            path,
            Described(
                tag,
                "Register a VIM",
                {201: Answer("Registered", models.VimCreated)},
                models.CreateVim,
                refusals=refused,
            ),
        )
        yield "GET", path, Described(tag, "List VIMs", {200: listed}, query=(*_VIM_QUERY, _VIM_FIELDS))
    one = "/v1.0/vims/{id}"
    shown = Answer("The VIM", models.VimAnswer)
    yield "GET", one, Described(tag, "Show a VIM", {200: shown}, query=(_VIM_FIELDS,))
    used = {**refused, 409: f"{refused[409]}; or instances use it"}
    changed = Answer("The VIM as it is now", models.VimCreated)
    yield "PUT", one, Described(tag, "Change a VIM", {200: changed}, models.UpdateVim, refusals=used)
    yield "DELETE", one, Described(tag, "Delete a VIM", {204: _GONE}, refusals={409: "Instances use it"})


def _ours() -> Iterator[tuple[str, str, Described]]:
    tag, one = "Progress", "/kubevnfm/v1/operations/{id}"
    view = Answer("Steps, nodes, tasks and times", models.OperationView)
    yield "GET", one, Described(tag, "Show how an operation goes", {200: view})
    printed = Answer("Text as it is printed, secrets masked", media_types=(TEXT,))
    node = Parameter("node", "Of this machine only")
    yield "GET", f"{one}/log", Described(tag, "Read what the machines printed", {200: printed}, query=(node,))
    about = (
        Parameter("vnfInstanceId", "Of this VNF instance only"),
        Parameter("instance", "Another name of vnfInstanceId"),
        Parameter("operation", "Of this operation occurrence only"),
        Parameter("type", "Of these types only: routing keys with * and #, divided by commas"),
    )
    events = Answer("Server-sent events as they happen, without end", media_types=(EVENTS,))
    yield "GET", "/kubevnfm/v1/events", Described(tag, "Watch events", {200: events}, query=about)
    state = Answer("What is pending, what failed, when it is tried again", models.DeliveriesView)
    yield "GET", "/kubevnfm/v1/subscriptions/{id}", Described(tag, "Show how notifications are delivered", {200: state})


def _around() -> Iterator[tuple[str, str, Described]]:
    tag, versions = "Versions and health", Answer("The versions", models.ApiVersionInformation)
    yield "GET", "/", Described(tag, "Versions of the VIM API", {200: Answer("The versions", models.ServedVersions)})
    for base in ANNOUNCED:
        yield "GET", f"{base}/api_versions", Described(tag, "Versions that can be asked for", {200: versions})
    live, away = Answer("It does", models.Health), Answer("It is not", models.Health)
    yield "GET", "/health/live", Described(tag, "Whether the process lives", {200: live})
    ready = Answer("It is", models.Health)
    yield "GET", "/health/ready", Described(tag, "Whether it is ready to serve", {200: ready, 503: away})
    document = Answer("OpenAPI 3.1", is_any_object=True)
    yield "GET", "/openapi.json", Described(tag, "This document", {200: document})
    page = Answer("A page to read", media_types=(HTML,))
    yield "GET", "/docs", Described(tag, "This document for people", {200: page})

    tag = "Between the services"
    archive = Answer("The package without its VM images", media_types=(ZIP,))
    file = Answer("The file", media_types=("*/*",))
    base = "/internal/v1"
    yield "GET", f"{base}/packages/{{id}}/archive", Described(tag, "Read a package", {200: archive})
    yield "GET", f"{base}/packages/{{id}}/files/{{path}}", Described(tag, "Read a file of a package", {200: file})
    users = Answer("Their ids", models.VimUsers)
    yield "GET", f"{base}/vims/{{id}}/users", Described(tag, "Ask which instances live on a VIM", {200: users})
    exists = Answer("It exists", models.InstanceExists)
    yield "GET", f"{base}/instances/{{id}}", Described(tag, "Ask whether an instance exists", {200: exists})
    awaited = Answer("It, if there is one", models.AwaitedCallbacks)
    yield (
        "GET",
        f"{base}/awaited-callbacks",
        Described(
            tag,
            "Ask which call-back of a workload cluster an instance awaits",
            {200: awaited},
            query=(Parameter("vnfInstanceId", "The instance"), Parameter("operation", "What the call-back names")),
        ),
    )


DESCRIBED: Final[Mapping[tuple[str, str], Described]] = {
    (method, path): described
    for part in (_lcm("v1"), _lcm("v2"), _packages(), _onboarded_packages(), _vims(), _ours(), _around())
    for method, path, described in part
}
"""By method and path."""
