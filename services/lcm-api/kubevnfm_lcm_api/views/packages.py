"""``/kubevnfm/v1/packages``: VNF packages with their states, and what was found in them when they were onboarded."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from aiohttp import web
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.prefixes import prefixed
from kubevnfm_store.query import AllOf, Compare, Op, Sort

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.packages.http.context import services as packages
from kubevnfm_lcm_api.packages.usable import COLLECTION
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ListPage, Part, find_page, list_answer
from kubevnfm_lcm_api.views.services import views

_MANY: Final = f"{PREFIX}/packages"
_STATE: Final = Parameter(
    "state", "In this onboarding state", values=("CREATED", "UPLOADING", "PROCESSING", "ONBOARDED", "ERROR")
)
_VNFD: Final = Parameter("vnfdId", "With this VNFD")
_NAME: Final = Parameter("name", "Whose product's name begins so")
_FILTERS: Final = (_STATE, _VNFD, _NAME)
_LARGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData")
_OF_VNFD: Final = ("vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion")
_NEWEST_FIRST: Final = Sort("createdAt", descending=True)
_BY_NAME: Final = Sort("vnfProductName")
_FILE: Final = re.compile(r"(?P<file>[^\s:,][^:,\n]{0,400}?)(?:, line (?P<line>[0-9]{1,7}))?: ")
_LINE: Final = re.compile(r"\bline (?P<line>[0-9]{1,7})(?:,? column (?P<column>[0-9]{1,7}))?")
_NEAREST: Final = re.compile(r"\(nearest known name: (?P<near>[^()]{1,200})\)|did you mean (?P<meant>[^?\s]{1,200})\?")
_OF_PACKAGES: Final = (
    *(".yaml", ".yml", ".json", ".mf", ".meta", ".py", ".sh", ".tgz", ".zip", ".csar", ".tpl", ".cert", ".txt"),
    *(".j2", ".tf", ".qcow2", ".img"),
)
"""The ends of files' names in packages, for those that were not onboarded, whose files are not stored."""
_HEAD: Final = 600
"""The file and the line of a text are in its first characters."""


class PackageFailure(Shown):
    """Why a package was refused, or could not be fetched."""

    code: str
    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None


class PackageWarning(Shown):
    """Something in a package that will not do what its author may expect."""

    text: str
    file: str | None = None
    """Absent: it is about the package as a whole."""
    line: int | None = None
    column: int | None = None
    nearest: str | None = None
    """The known name that is nearest to the unknown one."""


class PackageSummary(Shown):
    """A VNF package."""

    id: str
    vnfdId: str | None = None  # noqa: N815  # as it is on the wire
    """Absent until it is ONBOARDED, as all that its VNFD says."""
    vnfProvider: str | None = None  # noqa: N815  # as it is on the wire
    vnfProductName: str | None = None  # noqa: N815  # as it is on the wire
    vnfSoftwareVersion: str | None = None  # noqa: N815  # as it is on the wire
    vnfdVersion: str | None = None  # noqa: N815  # as it is on the wire
    onboardingState: Literal["CREATED", "UPLOADING", "PROCESSING", "ONBOARDED", "ERROR"]  # noqa: N815  # as it is on the wire
    operationalState: Literal["ENABLED", "DISABLED"]  # noqa: N815  # as it is on the wire
    usageState: Literal["IN_USE", "NOT_IN_USE"]  # noqa: N815  # as it is on the wire
    health: Health
    failure: PackageFailure | None = None
    warningCount: int  # noqa: N815  # as it is on the wire
    createdAt: str  # noqa: N815  # as it is on the wire
    updatedAt: str  # noqa: N815  # as it is on the wire
    href: str


class PackagesPage(ListPage):
    """A page of VNF packages."""

    items: list[PackageSummary]


class PackageWarnings(Shown):
    """The findings in a package when it was onboarded."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    id: str
    vnfdId: str | None = None  # noqa: N815  # as it is on the wire
    """Absent until it is ONBOARDED, as all that its VNFD says."""
    vnfProvider: str | None = None  # noqa: N815  # as it is on the wire
    vnfProductName: str | None = None  # noqa: N815  # as it is on the wire
    vnfSoftwareVersion: str | None = None  # noqa: N815  # as it is on the wire
    vnfdVersion: str | None = None  # noqa: N815  # as it is on the wire
    onboardingState: str  # noqa: N815  # as it is on the wire
    operationalState: Literal["ENABLED", "DISABLED"]  # noqa: N815  # as it is on the wire
    usageState: Literal["IN_USE", "NOT_IN_USE"]  # noqa: N815  # as it is on the wire
    createdAt: str  # noqa: N815  # as it is on the wire
    failure: PackageFailure | None = None
    """Why it was refused."""
    warnings: list[PackageWarning]


async def list_all(request: web.Request) -> web.Response:
    """GET packages: newest first, by name with ``name``."""
    asked = read_page(request, _FILTERS)
    sequence = views(request).sequence()
    wanted = [
        Compare(path, Op.EQ, [asked.filters[parameter.name]])
        for parameter, path in ((_STATE, "onboardingState"), (_VNFD, "vnfdId"))
        if parameter.name in asked.filters
    ]
    name = asked.filters.get(_NAME.name)
    if name is not None:
        wanted += prefixed("vnfProductName", name)
    part = Part([AllOf(wanted)], _BY_NAME if name is not None else _NEWEST_FIRST)
    found = await find_page(context(request).store, COLLECTION, [part], asked, exclude=_LARGE)
    rows = [package_summary(each.body, api_root(request)) for each in found.items]
    return list_answer(
        request, asked, sequence, [row.model_dump(mode="json", exclude_none=True) for row in rows], found.after
    )


async def warnings(request: web.Request) -> web.Response:
    """GET packages/{id}/warnings: those of its onboarding, each with its file, and why it was refused."""
    sequence = views(request).sequence()
    catalogue = packages(request).catalogue
    body = (await catalogue.get(request.match_info["id"])).body
    files = await catalogue.file_names(body["id"])
    shown = PackageWarnings(
        sequence=sequence,
        **_names(body),
        id=body["id"],
        onboardingState=body["onboardingState"],
        operationalState=body["operationalState"],
        usageState=body["usageState"],
        createdAt=body["createdAt"],
        failure=_failure(body, files),
        warnings=[placed_warning(str(each), files) for each in body.get("warnings") or ()],
    )
    return web.json_response(shown.model_dump(mode="json", exclude_none=True))


def package_summary(body: JsonMapping, root: str) -> PackageSummary:
    """Return a package in one line."""
    state, failure = body["onboardingState"], _failure(body, ())
    health: Health = "ok" if state in {"CREATED", "ONBOARDED"} else "problem" if state == "ERROR" else "progressing"
    return PackageSummary(
        **_names(body),
        id=body["id"],
        onboardingState=state,
        operationalState=body["operationalState"],
        usageState=body["usageState"],
        health="problem" if failure is not None else health,
        failure=failure,
        warningCount=len(body.get("warnings") or ()),
        createdAt=body["createdAt"],
        updatedAt=body["updatedAt"],
        href=f"{root}{_MANY}/{body['id']}/warnings",
    )


def _names(body: JsonMapping) -> Mapping[str, Any]:
    """Return what the VNFD says of the package, if it is there."""
    return {name: body[name] for name in _OF_VNFD if name in body}


def _failure(body: JsonMapping, files: Collection[str]) -> PackageFailure | None:
    details = body.get("onboardingFailureDetails")
    if not isinstance(details, Mapping) or body["onboardingState"] != "ERROR":
        return None
    text = str(details.get("detail") or details.get("title") or "no reason was reported")
    return PackageFailure(code=str(details.get("type") or "about:blank"), text=line(text, _HEAD), **_place(text, files))


def placed_warning(text: str, files: Collection[str]) -> PackageWarning:
    """Return a warning with the file, the line and the nearest name that its text says; ``files``: of the package."""
    near = _NEAREST.search(text[: 4 * _HEAD])
    nearest = None if near is None else near["near"] or near["meant"]
    return PackageWarning(text=line(text, _HEAD), nearest=nearest, **_place(text, files))


def _place(text: str, files: Collection[str]) -> dict[str, Any]:
    """Return file, line and column, as far as a text says them."""
    head = text[:_HEAD]
    found = _FILE.match(head)
    if found is None or not _is_file(found["file"], files):
        return {}
    at = _LINE.match(head, found.end()) or _LINE.search(head, found.end())
    number = found["line"] or (at["line"] if at is not None else None)
    column = at["column"] if at is not None and found["line"] is None else None
    return {
        "file": found["file"],
        **({"line": int(number)} if number is not None else {}),
        **({"column": int(column)} if column is not None else {}),
    }


def _is_file(name: str, files: Collection[str]) -> bool:
    return name in files if files else name.lower().endswith(_OF_PACKAGES)


def routes() -> list[Route]:
    """Return the routes of packages."""
    page = {200: Answer("A page; Link names the next one", PackagesPage)}
    shown = {200: Answer("The findings", PackageWarnings)}
    summary = "Show what was found in a VNF package when it was onboarded"
    return [
        Route(
            "Views", "GET", _MANY, list_all, "List VNF packages with their states", page, query=(*_FILTERS, *PARAMETERS)
        ),
        Route("Views", "GET", f"{_MANY}/{{id}}/warnings", warnings, summary, shown),
    ]
