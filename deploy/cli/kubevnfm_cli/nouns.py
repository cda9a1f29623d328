"""The kinds of things: where the gateway has them, and how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.output import Column, Table
from kubevnfm_cli.terminal import printable


@dataclass(frozen=True)
class Noun:
    """A kind of things."""

    name: str
    aliases: Sequence[str]
    title: str
    list_path: str
    """Of the list; one thing is below it."""
    table: Table
    name_of: Callable[[JsonObject], object]
    """The name by which people call it, or None."""
    one_path: str = ""
    """Of one thing, if it is below another path."""
    inside: str = ""
    """The attribute that has the things of a list, or the one thing (``vims`` and ``vim``)."""

    def items(self, body: object) -> list[JsonObject]:
        """Return the things of a list's body."""
        found = body.get(f"{self.inside}s", body.get("items")) if isinstance(body, dict) else body
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def item(self, body: JsonObject) -> JsonObject:
        """Return the thing of a body."""
        inner = body.get(self.inside) if self.inside else None
        return inner if isinstance(inner, dict) else body


def at(*names: str) -> Callable[[JsonObject], Any]:
    """Return what reads the attribute at the names one below the other."""
    return lambda one: part(one, *names)


def age(*names: str) -> Callable[[JsonObject], str | None]:
    """Return what reads how long ago a time was."""
    return lambda one: ago(part(one, *names))


def ago(time: object) -> str | None:
    """Return how long ago a time of the wire was: ``3m``."""
    then = moment(time)
    return None if then is None else duration((datetime.now(UTC) - then).total_seconds())


def moment(time: object) -> datetime | None:
    """Return a time of the wire; None if it is not one."""
    try:
        read = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def duration(seconds: float) -> str:
    """Return a duration for people, in its two largest units at most."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = int(seconds)
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            count, rest = divmod(whole, size)
            return f"{count}{unit}{rest // below}{small}" if rest // below and count < 10 else f"{count}{unit}"
    return f"{whole}s"


def _scale_levels(one: JsonObject) -> str | None:
    levels = part(one, "instantiatedVnfInfo", "scaleStatus")
    return ", ".join(f"{part(each, 'aspectId')}={part(each, 'scaleLevel')}" for each in levels) if levels else None


_ID: Final = Column("ID", at("id"))

_VNF: Final = Noun(
    "vnf",
    ("vnfs", "instance", "instances"),
    "VNF instances",
    "/vnflcm/v2/vnf_instances",
    Table(
        "vnf",
        (
            _ID,
            Column("NAME", at("vnfInstanceName")),
            Column("STATE", at("instantiationState"), is_state=True),
            Column("PRODUCT", at("vnfProductName")),
            Column("VNFD", at("vnfdId"), is_wide=True),
            Column("FLAVOUR", at("instantiatedVnfInfo", "flavourId"), is_wide=True),
            Column("LEVELS", _scale_levels, is_wide=True),
        ),
    ),
    at("vnfInstanceName"),
)
_OP: Final = Noun(
    "op",
    ("ops", "operation", "operations"),
    "Operations (VNF LCM operation occurrences)",
    "/vnflcm/v2/vnf_lcm_op_occs",
    Table(
        "op",
        (
            _ID,
            Column("OPERATION", at("operation")),
            Column("STATE", at("operationState"), is_state=True),
            Column("VNF", at("vnfInstanceId")),
            Column("STARTED", age("startTime")),
            Column("SINCE", at("stateEnteredTime"), is_wide=True),
            Column("ERROR", at("error", "detail"), is_wide=True),
        ),
    ),
    lambda one: None,
)
_PKG: Final = Noun(
    "pkg",
    ("pkgs", "package", "packages"),
    "VNF packages",
    "/vnfpkgm/v2/vnf_packages",
    Table(
        "pkg",
        (
            _ID,
            Column("PRODUCT", at("vnfProductName")),
            Column("VERSION", at("vnfSoftwareVersion")),
            Column("ONBOARDING", at("onboardingState"), is_state=True),
            Column("STATE", at("operationalState"), is_state=True),
            Column("USAGE", at("usageState")),
            Column("VNFD", at("vnfdId")),
            Column("FAILURE", at("onboardingFailureDetails", "detail"), is_wide=True),
        ),
    ),
    at("vnfProductName"),
)
_VIM: Final = Noun(
    "vim",
    ("vims",),
    "VIMs: OpenStack clouds and Kubernetes clusters",
    "/v1.0/vims",
    Table(
        "vim",
        (
            _ID,
            Column("NAME", at("name")),
            Column("TYPE", at("type")),
            Column("STATUS", at("status"), is_state=True),
            Column("DEFAULT", at("is_default")),
            Column("URL", at("auth_url"), is_wide=True),
            Column("REASON", at("status_reason")),
        ),
    ),
    at("name"),
    inside="vim",
)
_REGION: Final = Noun(
    "region",
    ("regions",),
    "Cloud regions",
    "/multicloud/v1/cloud-regions",
    Table(
        "region",
        (
            _ID,
            Column("STATUS", at("status"), is_state=True),
            Column("VERSION", at("server_version")),
            Column("VIM", at("vim_id"), is_wide=True),
            Column("ENDPOINT", at("endpoint"), is_wide=True),
            Column("CREDENTIALS UNTIL", at("not_after"), is_wide=True),
            Column("AGE", age("created_at")),
            Column("REASON", at("status_reason")),
        ),
    ),
    at("cloud_region"),
)
_LINK: Final = Noun(
    "link",
    ("links", "virtual-link", "virtual-links"),
    "Virtual links",
    "/multicloud/v1/virtual-links",
    Table(
        "link",
        (
            _ID,
            Column("NAME", at("name")),
            Column("REGION", at("cloud_region_id")),
            Column("TYPE", at("type")),
            Column("STATUS", at("status"), is_state=True),
            Column("USED", at("use_count")),
            Column("AGE", age("created_at"), is_wide=True),
            Column("DETAIL", at("status_detail")),
        ),
    ),
    at("name"),
)
_VOLUME: Final = Noun(
    "volume",
    ("volumes", "persistent-volume", "persistent-volumes"),
    "Persistent volumes",
    "/multicloud/v1/persistent-volumes",
    Table(
        "volume",
        (
            _ID,
            Column("NAME", at("name")),
            Column("REGION", at("cloud_region_id")),
            Column("SIZE", at("size")),
            Column("PHASE", at("phase"), is_state=True),
            Column("USED BY", at("in_use_by")),
            Column("AGE", age("created_at"), is_wide=True),
            Column("DETAIL", at("phase_detail")),
        ),
    ),
    at("name"),
)
_SUB: Final = Noun(
    "sub",
    ("subs", "subscription", "subscriptions"),
    "Subscriptions to notifications",
    "/vnflcm/v2/subscriptions",
    Table("sub", (_ID, Column("TYPES", at("filter", "notificationTypes")), Column("CALLBACK", at("callbackUri")))),
    lambda one: None,
)
NOUNS: Final = (_VNF, _OP, _PKG, _VIM, _REGION, _LINK, _VOLUME, _SUB)
_BY_WORD: Final = {word: noun for noun in NOUNS for word in (noun.name, *noun.aliases)}


def noun_of(word: str) -> Noun:
    """Return the noun of a word. Raises UsageFault."""
    found = _BY_WORD.get(word.lower())
    if found is None:
        raise UsageFault(f"{printable(word)}: one of {', '.join(noun.name for noun in NOUNS)} expected")
    return found
