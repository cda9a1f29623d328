"""The kinds of things: where the gateway has them, and how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.names import nearest
from kubevnfm_cli.output import Column, Table
from kubevnfm_cli.terminal import printable

_HUGE: Final = 1e15


@dataclass(frozen=True)
class Noun:
    """A kind of things."""

    name: str
    aliases: Sequence[str]
    title: str
    list_path: str
    """The path of the list; one thing is below it."""
    table: Table
    name_of: Callable[[JsonObject], object]
    """The name by which people call it, or None."""
    searched_as: str
    """The word of the gateway's search, which finds ids and names."""
    one_path: str = ""
    """The path that one thing is below, if it is another one."""
    has_events: bool = True
    """Whether the stream of events has all changes of them; others are looked for again and again."""
    id_in_events: str = ""
    """The attribute of events that has the id of the thing that each is about; "" if only the whole list says what has changed."""
    api_path: str = ""
    """The path at which one is created and deleted, if it is another one."""
    inside: str = ""
    """The attribute that has the thing in requests and answers of that path (``vim``)."""

    def items(self, body: object) -> list[JsonObject]:
        """Return the things of a list's body."""
        return objects(body.get("items") if isinstance(body, dict) else body)

    def item(self, body: JsonObject) -> JsonObject:
        """Return the thing of a body."""
        inner = body.get(self.inside) if self.inside else None
        return inner if isinstance(inner, dict) else body


def value_at(*names: str) -> Callable[[JsonObject], Any]:
    """Return what reads the attribute at the names one below the other."""
    return lambda one: part(one, *names)


def age(title: str, *names: str, is_wide: bool = False) -> Column:
    """Return a column that says how long ago a time was; for programs it has the time."""
    return Column(title, lambda one: ago(part(one, *names)), is_wide=is_wide, exact=value_at(*names))


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
    try:
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except OverflowError:  # the first or the last day that there is
        return None


def number(value: object) -> float | None:
    """Return a number of the wire as a finite one; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -_HUGE < value < _HUGE else None


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


def _period(seconds: object) -> str | None:
    """Return a number of seconds of the wire for people."""
    found = number(seconds)
    return None if found is None else duration(found).replace(".0s", "s")


def either(*names: str) -> Callable[[JsonObject], Any]:
    """Return what reads the first attribute that is there: SOL003 and our own views differ in some names."""
    return lambda one: next((one[name] for name in names if one.get(name) not in (None, "")), None)


def steps_done(one: JsonObject) -> str | None:
    """Return how many steps of an operation are done, of how many."""
    steps = one.get("steps")
    if isinstance(steps, list):
        return f"{sum(part(step, 'state') in ('done', 'skipped') for step in steps)}/{len(steps)}"
    return f"{steps.get('done')}/{steps.get('total')}" if isinstance(steps, dict) else None


def _running(one: JsonObject) -> str | None:
    operation = one.get("operation")
    return f"{operation.get('operation')} {operation.get('state')}" if isinstance(operation, dict) else None


def nodes_ready(one: JsonObject) -> str | None:
    """Return how many nodes of a cluster are ready, of how many."""
    capacity = one.get("capacity")
    if not isinstance(capacity, dict) or capacity.get("nodes") is None:
        return None
    return f"{capacity.get('nodesReady', '?')}/{capacity['nodes']}"


def _warning_count(one: JsonObject) -> object:
    found = one.get("warnings")
    return len(found) if isinstance(found, list) else one.get("warningCount")


def _failure(one: JsonObject) -> object:
    return part(one, "failure", "text") or part(one, "onboardingFailureDetails", "detail")


def _why(one: JsonObject) -> object:
    return part(one, "cause", "text") or part(one, "error", "detail")


def _users(one: JsonObject) -> list[object]:
    """Return who uses a link or a volume: VNF instances by their ids."""
    return [
        each.get("name") or each.get("vnfInstanceId") or each.get("reference") for each in objects(one.get("users"))
    ]


def _state_of_alarm(one: JsonObject) -> object:
    return one.get("state") or ("CLEARED" if one.get("alarmClearedTime") else "OPEN")


def _object_of_alarm(one: JsonObject) -> str:
    name = one.get("objectName") or one.get("objectId") or one.get("managedObjectId")
    return f"{one['objectKind']}/{name}" if one.get("objectKind") else str(name)


def _action(one: JsonObject) -> object:
    """Return what an automatic action does: ``HEAL``, ``SCALE_OUT web``."""
    words = (one.get("direction") or one.get("operation"), one.get("aspectId"))
    return " ".join(str(word) for word in words if word)


def _measured_vnfs(one: JsonObject) -> object:
    """Return the first VNF that a PM job measures, and how many further ones."""
    ids = one.get("vnfInstanceIds")
    first, *others = ids if isinstance(ids, list) and ids else [one.get("vnfInstanceId")]
    name = one.get("vnfInstanceName") or first
    return f"{name} and {len(others)} more" if others else name


def _automation(one: JsonObject) -> str | None:
    """Return what the crossing of a threshold asks for."""
    asked = one.get("automation")
    if not isinstance(asked, dict):
        return None
    words = [f"{side} {asked[key]}" for key, side in (("onUp", "up:"), ("onDown", "down:")) if asked.get(key)]
    return ", ".join([*words, *([f"aspect {asked['aspectId']}"] if asked.get("aspectId") else [])])


def _is_acknowledged(one: JsonObject) -> str:
    return "yes" if one.get("ackState") == "ACKNOWLEDGED" else "no"


def nameless(_: JsonObject) -> None:
    """Say that things of a kind have no names."""


_ID: Final = Column("ID", value_at("id"))
_SUSPENDED: Final = Column("SUSPENDED", value_at("suspended", "reason"), is_wide=True)

_VNF: Final = Noun(
    "vnf",
    ("vnfs", "instance", "instances"),
    "VNF instances",
    "/kubevnfm/v1/instances",
    Table(
        "vnf",
        (
            _ID,
            Column("NAME", either("name", "vnfInstanceName")),
            Column("STATE", either("state", "instantiationState"), is_state=True),
            Column("HEALTH", value_at("health"), is_state=True),
            Column("KIND", value_at("kind")),
            Column("PRODUCT", value_at("vnfProductName")),
            Column("OPERATION", _running),
            age("AGE", "createdAt"),
            Column("VNFD", value_at("vnfdId"), is_wide=True),
            Column("VIMS", value_at("vimIds"), is_wide=True),
            Column("NAMESPACE", value_at("namespace"), is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    either("name", "vnfInstanceName"),
    one_path="/vnflcm/v2/vnf_instances",
    searched_as="instance",
    id_in_events="subject",
)
_OP: Final = Noun(
    "op",
    ("ops", "operation", "operations"),
    "Operations (VNF LCM operation occurrences)",
    "/kubevnfm/v1/operations",
    Table(
        "op",
        (
            _ID,
            Column("OPERATION", value_at("operation")),
            Column("STATE", value_at("state"), is_state=True),
            Column("VNF", either("vnfInstanceName", "vnfInstanceId")),
            Column("STEPS", steps_done),
            age("STARTED", "startTime"),
            Column("SINCE", value_at("stateEnteredTime"), is_wide=True),
            Column("VNF ID", value_at("vnfInstanceId"), is_wide=True),
            Column("WARNINGS", value_at("warningCount"), is_wide=True),
            Column("WHY", _why),
        ),
    ),
    nameless,
    searched_as="operation",
    id_in_events="operationid",
)
_PKG: Final = Noun(
    "pkg",
    ("pkgs", "package", "packages"),
    "VNF packages",
    "/kubevnfm/v1/packages",
    Table(
        "pkg",
        (
            _ID,
            Column("PRODUCT", value_at("vnfProductName")),
            Column("VERSION", value_at("vnfSoftwareVersion")),
            Column("ONBOARDING", value_at("onboardingState"), is_state=True),
            Column("STATE", value_at("operationalState"), is_state=True),
            Column("USAGE", value_at("usageState")),
            Column("WARNINGS", _warning_count),
            age("AGE", "createdAt"),
            Column("PROVIDER", value_at("vnfProvider"), is_wide=True),
            Column("VNFD", value_at("vnfdId"), is_wide=True),
            Column("WHY", _failure),
        ),
    ),
    value_at("vnfProductName"),
    one_path="/vnfpkgm/v2/vnf_packages",
    searched_as="package",
)
_VIM: Final = Noun(
    "vim",
    ("vims",),
    "VIMs: OpenStack clouds and Kubernetes clusters",
    "/kubevnfm/v1/vims",
    Table(
        "vim",
        (
            _ID,
            Column("NAME", value_at("name")),
            Column("TYPE", value_at("type")),
            Column("STATE", value_at("state"), is_state=True),
            age("SINCE", "since"),
            Column("VNFS", value_at("vnfCount")),
            Column("DAYS", value_at("credentialsEnd", "daysLeft")),
            Column("DEFAULT", value_at("isDefault"), is_wide=True),
            Column("VERSION", value_at("kubernetesVersion"), is_wide=True),
            age("CHECKED", "lastCheck", is_wide=True),
            Column("NODES", nodes_ready, is_wide=True),
            Column("ENDPOINT", value_at("endpoint"), is_wide=True),
            Column("WHY", either("text", "lastError")),
        ),
    ),
    value_at("name"),
    api_path="/v1.0/vims",
    searched_as="vim",
    inside="vim",
)
_REGION: Final = Noun(
    "region",
    ("regions",),
    "Cloud regions",
    "/kubevnfm/v1/regions",
    Table(
        "region",
        (
            _ID,
            Column("STATE", value_at("state"), is_state=True),
            Column("HEALTH", value_at("health"), is_state=True),
            Column("VERSION", value_at("serverVersion")),
            _SUSPENDED,
            Column("VIM", value_at("vimId"), is_wide=True),
            Column("ENDPOINT", value_at("endpoint"), is_wide=True),
            Column("CREDENTIALS UNTIL", value_at("credentialsEndAt"), is_wide=True),
            age("AGE", "createdAt"),
            Column("WHY", value_at("text")),
        ),
    ),
    value_at("name"),
    api_path="/multicloud/v1/cloud-regions",
    searched_as="cloud-region",
    has_events=False,
)
_LINK: Final = Noun(
    "link",
    ("links", "virtual-link", "virtual-links"),
    "Virtual links",
    "/kubevnfm/v1/links",
    Table(
        "link",
        (
            _ID,
            Column("NAME", value_at("name")),
            Column("REGION", value_at("regionId")),
            Column("TYPE", value_at("type")),
            Column("STATE", value_at("state"), is_state=True),
            Column("HEALTH", value_at("health"), is_state=True),
            Column("USED", value_at("useCount")),
            _SUSPENDED,
            Column("USED BY", _users, is_wide=True),
            age("AGE", "createdAt", is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    value_at("name"),
    api_path="/multicloud/v1/virtual-links",
    searched_as="virtual-link",
    has_events=False,
)
_VOLUME: Final = Noun(
    "volume",
    ("volumes", "persistent-volume", "persistent-volumes"),
    "Persistent volumes",
    "/kubevnfm/v1/volumes",
    Table(
        "volume",
        (
            _ID,
            Column("NAME", value_at("name")),
            Column("REGION", value_at("regionId")),
            Column("SIZE", value_at("size")),
            Column("STATE", value_at("state"), is_state=True),
            Column("HEALTH", value_at("health"), is_state=True),
            Column("USED", value_at("useCount")),
            _SUSPENDED,
            Column("USED BY", _users, is_wide=True),
            Column("CLAIM", value_at("claim"), is_wide=True),
            age("AGE", "createdAt", is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    value_at("name"),
    api_path="/multicloud/v1/persistent-volumes",
    searched_as="persistent-volume",
    has_events=False,
)
_SUB: Final = Noun(
    "sub",
    ("subs", "subscription", "subscriptions"),
    "Subscriptions to notifications",
    "/kubevnfm/v1/subscriptions",
    Table(
        "sub",
        (
            _ID,
            Column("API", value_at("api")),
            Column("STATE", value_at("state"), is_state=True),
            Column("HEALTH", value_at("health"), is_state=True),
            Column("PENDING", value_at("pending")),
            age("DELIVERED", "lastSuccessAt"),
            Column("CALLBACK", value_at("callbackUri")),
            Column("TO", value_at("filter"), is_wide=True),
            Column("BY", value_at("createdBy"), is_wide=True),
            Column("DROPPED", value_at("dropped"), is_wide=True),
            age("FAILING", "since", is_wide=True),
            Column("NEXT TRY", value_at("nextTryAt"), is_wide=True),
            age("AGE", "createdAt", is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    nameless,
    api_path="/vnflcm/v2/subscriptions",
    searched_as="subscription",
    has_events=False,
)
ALARM: Final = Noun(
    "alarm",
    ("alarms",),
    "Alarms",
    "/kubevnfm/v1/alarms",
    Table(
        "alarm",
        (
            _ID,
            Column("SEVERITY", either("severity", "perceivedSeverity"), is_state=True),
            Column("STATE", _state_of_alarm, is_state=True),
            Column("FAULT", value_at("faultType")),
            Column("OF", _object_of_alarm),
            Column("SEEN", _is_acknowledged),
            age("AGE", "raisedAt"),
            Column("CAUSE", value_at("probableCause"), is_wide=True),
            Column("OBJECT ID", either("objectId", "managedObjectId"), is_wide=True),
            age("SINCE", "since", is_wide=True),
            age("CLEARED", "clearedAt", is_wide=True),
            Column("ROOT", value_at("rootAlarmId"), is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    nameless,
    one_path="/vnffm/v1/alarms",
    searched_as="alarm",
)
_JOB: Final = Noun(
    "pmjob",
    ("pmjobs", "pm-job", "pm-jobs"),
    "PM jobs",
    "/kubevnfm/v1/pm-jobs",
    Table(
        "pmjob",
        (
            _ID,
            Column("STATE", value_at("state"), is_state=True),
            Column("VNF", _measured_vnfs),
            Column("OF", value_at("objectType")),
            Column("METRICS", value_at("performanceMetric")),
            Column("EVERY", lambda one: _period(one.get("collectionPeriod"))),
            Column("REPORTS", value_at("reportCount")),
            age("LAST REPORT", "lastReport", "readyTime"),
            age("AGE", "createdAt"),
            Column("REPORT EVERY", lambda one: _period(one.get("reportingPeriod")), is_wide=True),
            Column("UNTIL", value_at("reportingBoundary"), is_wide=True),
            Column("PARTS", value_at("subObjectInstanceIds"), is_wide=True),
            Column("VNF IDS", value_at("vnfInstanceIds"), is_wide=True),
            Column("CALLBACK", value_at("callbackUri"), is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    nameless,
    api_path="/vnfpm/v2/pm_jobs",
    searched_as="pm-job",
    has_events=False,
)
_THRESHOLD: Final = Noun(
    "threshold",
    ("thresholds",),
    "Thresholds",
    "/kubevnfm/v1/thresholds",
    Table(
        "threshold",
        (
            _ID,
            Column("STATE", value_at("state"), is_state=True),
            Column("SIDE", value_at("side"), is_state=True),
            Column("VNF", _measured_vnfs),
            Column("OF", value_at("objectType")),
            Column("METRIC", value_at("performanceMetric")),
            Column("VALUE", value_at("thresholdValue")),
            Column("HYSTERESIS", value_at("hysteresis")),
            Column("CROSSED", value_at("crossings")),
            Column("ASKS FOR", _automation),
            age("AGE", "createdAt"),
            Column("ABOVE", value_at("up"), is_wide=True),
            Column("BELOW", value_at("down"), is_wide=True),
            Column("PARTS", value_at("subObjectInstanceIds"), is_wide=True),
            Column("VNF ID", value_at("vnfInstanceId"), is_wide=True),
            Column("CALLBACK", value_at("callbackUri"), is_wide=True),
            Column("WHY", value_at("text")),
        ),
    ),
    nameless,
    api_path="/vnfpm/v2/thresholds",
    searched_as="threshold",
    has_events=False,
)
ACTION: Final = Noun(
    "automatic-action",
    ("automatic-actions", "action", "actions"),
    "Automatic actions",
    "/kubevnfm/v1/automatic-actions",
    Table(
        "automatic-action",
        (
            _ID,
            Column("STATE", value_at("state"), is_state=True),
            Column("ACTION", _action),
            Column("VNF", either("vnfInstanceName", "vnfInstanceId")),
            age("SINCE", "stateSince"),
            Column("ASKED FOR", value_at("text")),
            Column("OPERATION", value_at("operationState"), is_state=True),
            age("AGE", "createdAt", is_wide=True),
            Column("OPERATION ID", value_at("operationId"), is_wide=True),
            Column("VNFCS", value_at("vnfcIds"), is_wide=True),
            Column("VNF ID", value_at("vnfInstanceId"), is_wide=True),
            Column("WHY", lambda one: one.get("reason") or part(one, "waiting", "text")),
        ),
    ),
    nameless,
    searched_as="automatic-action",
    has_events=False,
)
NOUNS: Final = (
    _VNF, _OP, _PKG, _VIM, _REGION, _LINK, _VOLUME, _SUB, ALARM, _JOB, _THRESHOLD, ACTION,
)  # fmt: skip
WORDS: Final = {word: noun for noun in NOUNS for word in (noun.name, *noun.aliases)}
"""The nouns by each word for them."""


def noun_of(word: str) -> Noun:
    """Return the noun of a word. Raises UsageFault."""
    found = WORDS.get(word.lower())
    if found is None:
        near = nearest(word, WORDS)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageFault(f"{printable(word)}: one of {', '.join(noun.name for noun in NOUNS)} expected{hint}")
    return found
