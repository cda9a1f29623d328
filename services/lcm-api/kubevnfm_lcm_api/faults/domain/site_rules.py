"""The faults of what VNFs depend on: VIMs, subscriptions, and the services of this manager. Pure, as `vnf_rules`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_clients.multicloud.inventory import StaleWatch
from kubevnfm_clients.vim_views import VimView
from kubevnfm_events.services import Trouble
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import shown_url
from kubevnfm_sol.faults import EventType, PerceivedSeverity

from kubevnfm_lcm_api.faults.domain.fault import Fault, FaultType, Findings, ManagedObject
from kubevnfm_lcm_api.measurement_sources import AWAY_FOR, FAILED_AT, OF_CLUSTER, UNASKED_AFTER
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.siblings import SeenProcess, SeenService
from kubevnfm_lcm_api.views.causes.finding import fitting
from kubevnfm_lcm_api.views.causes.wording import sentence

_VIM_FAULTS: Final[Mapping[str, tuple[FaultType, str]]] = {
    "UNREACHABLE": ("vim-unreachable", "vim-away"),
    "ERROR": ("vim-error", "vim-refused"),
}
"""By the status of a VIM: the type, and the cause where the table of causes knows no better one."""
_VERBS: Final[Mapping[FaultType, str]] = {"vim-unreachable": "cannot be reached", "vim-error": "refuses requests"}
OF_VIMS: Final[frozenset[FaultType]] = frozenset(kind for kind, _ in _VIM_FAULTS.values())
_EXPIRES_SOON: Final = timedelta(days=14)
_DAYS: Final[tuple[tuple[int, PerceivedSeverity], ...]] = ((0, "CRITICAL"), (3, "MAJOR"), (7, "MINOR"))
"""The severity of what ends in at most so many days; above: WARNING."""
_FAILS_FOR: Final = timedelta(minutes=1)
"""So long a subscriber may refuse or be away before that is a fault."""
_NOT_READY_FOR: Final = timedelta(minutes=1)
"""So long a node may not be ready: one that starts takes a while."""
_STALE_FOR: Final = timedelta(minutes=5)
"""So long a watch may not work: before that the VIM shows that it is away."""
_OUT_OF_USE_AFTER: Final = timedelta(days=7)
"""A service that has not run for so long was taken out of use."""
_LACKS: Final[Mapping[str, tuple[FaultType, PerceivedSeverity, EventType, str]]] = {
    "certificates": ("certificate-expiring", "CRITICAL", "PROCESSING_ERROR_ALARM", "certificate-expiring"),
    "disk": ("disk-low", "MAJOR", "EQUIPMENT_ALARM", "disk-low"),
    "parked-commands": ("commands-parked", "MAJOR", "PROCESSING_ERROR_ALARM", "service-crashes"),
    "sandbox": ("code-not-run", "MINOR", "PROCESSING_ERROR_ALARM", "code-not-run"),
}
"""By the part that a process lacks. Without its database or its broker it could report nothing, and is away."""
WATCHING: Final = "infra-k8s"
"""The service that watches the clusters."""


@dataclass(frozen=True)
class VimState:
    """All that the faults of a VIM are found from."""

    vim_id: str
    vim: VimView | None
    """None: it was deleted."""
    stale: StaleWatch | None
    """The watch over its objects that has not worked for the longest time."""
    is_watch_known: bool
    now: datetime


def faults_of_vim(state: VimState) -> Findings:
    """Return the faults of a VIM."""
    about, vim = ManagedObject("vim", state.vim_id), state.vim
    if vim is None:
        return Findings(about)
    found, undecided = list[Fault](), set[FaultType]()
    if vim.status in _VIM_FAULTS:
        kind, cause = _VIM_FAULTS[vim.status]
        fits = fitting(kind, vim.status_reason, is_shallow=False)
        cause = fits[0].slug if fits is not None else cause
        details = (f"The VIM {vim.name} {_VERBS[kind]}.", sentence(vim.status_reason))
        found.append(
            Fault(kind, "MAJOR", "COMMUNICATIONS_ALARM", cause, details, vim.status_since, is_root=True)
        )  # fmt: skip
    found += _credentials(vim)
    if vim.status in _VIM_FAULTS or vim.capacity is None or vim.capacity_error:
        undecided.add("node-not-ready")
    else:
        found += _nodes(vim, state.now)
    if not state.is_watch_known:
        undecided.add("watch-stale")
    elif vim.status not in _VIM_FAULTS:  # otherwise the alarm of the VIM says it
        found += _watch(vim, state.stale, state.now)
    return Findings(about, found, frozenset(undecided))


def _credentials(vim: VimView) -> Iterator[Fault]:
    if vim.days_left is None or vim.days_left > _EXPIRES_SOON.days or vim.expires_at is None:
        return
    details = (f"The {vim.expiring} of the VIM {vim.name} ends at {vim.expires_at}.", "Give the VIM new ones.")
    yield Fault(
        "credentials-expiring",
        _severity_of_end(vim.days_left),
        "PROCESSING_ERROR_ALARM",
        "credentials-expiring",
        details,
        rfc3339(datetime.fromisoformat(vim.expires_at) - _EXPIRES_SOON),
        part=vim.expiring or "",
    )


def _severity_of_end(days_left: int) -> PerceivedSeverity:
    return next((each for days, each in _DAYS if days_left <= days), "WARNING")


def _nodes(vim: VimView, now: datetime) -> Iterator[Fault]:
    """Yield the fault of each node that is not ready; one whose kubelet has never reported counts from the reading on."""
    assert vim.capacity is not None
    for node in vim.nodes_not_ready:
        since = _moment(node.since) or _moment(vim.capacity.as_of) or now
        if now - since < _NOT_READY_FOR:
            continue
        built = (f"VNF instance {vim.owner} has built the cluster.",) if vim.owner is not None else ()
        yield Fault(
            "node-not-ready",
            "MAJOR",
            "EQUIPMENT_ALARM",
            "node-not-ready",
            (f"The node {node.name} of the VIM {vim.name} is not ready.", sentence(node.reason), *built),
            rfc3339(since),
            part=node.name,
        )


def _moment(text: str) -> datetime | None:
    """Return a time that a cluster has written; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _watch(vim: VimView, stale: StaleWatch | None, now: datetime) -> Iterator[Fault]:
    since = None if stale is None else _moment(stale.since)
    if stale is None or since is None or now - since < _STALE_FOR:
        return
    yield Fault(
        "watch-stale",
        "MAJOR",
        "COMMUNICATIONS_ALARM",
        "watch-stale",
        (
            f"{stale.kind} in the VIM {vim.name} cannot be watched: what others change there is not seen.",
            sentence(stale.reason),
        ),
        rfc3339(since),
    )


def faults_of_subscription(subscription_id: str, document: JsonMapping | None, now: datetime) -> Findings:
    """Return the fault of a subscription whose callbacks fail; None: it was deleted."""
    about = ManagedObject("subscription", subscription_id)
    since = (document or {}).get(FAILING_SINCE)
    if document is None or not since or now - datetime.fromisoformat(since) < _FAILS_FOR:
        return Findings(about)
    reason = sentence(str(document.get("delivery", {}).get("last_failure", "")))
    details = (f"Notifications to {shown_url(document['callbackUri'])} are not accepted.", reason)
    return Findings(
        about,
        [Fault("callbacks-failing", "MINOR", "COMMUNICATIONS_ALARM", "subscriber-away", details, since)],
    )


def faults_of_source(source_id: str, document: JsonMapping | None, now: datetime) -> Findings:
    """Return the fault of a system that measures and does not answer; None: it answers."""
    about = ManagedObject("source", source_id)
    if document is None or now - datetime.fromisoformat(document[FAILED_AT]) >= UNASKED_AFTER:
        return Findings(about)
    if now - datetime.fromisoformat(document["since"]) < AWAY_FOR:
        return Findings(about)
    address = document["address"]
    which = {
        "site": "Prometheus of the setting prometheus_url",
        "cluster": f"metrics-server of VIM {address.removeprefix(OF_CLUSTER)} (metrics.k8s.io)",
    }.get(document["source"], f"Prometheus at {address}")
    details = (
        f"The {which} does not answer: PM jobs and thresholds wait for it.",
        sentence(document["reason"]),
    )
    return Findings(
        about,
        [
            Fault(
                "measurement-source-away",
                "MAJOR",
                "COMMUNICATIONS_ALARM",
                "measurement-source-away",
                details,
                document["since"],
            )
        ],
    )


@dataclass(frozen=True)
class ServiceState:
    """All that the faults of a service are found from."""

    seen: SeenService
    unwatched_since: str | None
    """Since when no process of the service that watches clusters does so; "": one does; None: that is not known."""
    now: datetime


def faults_of_service(state: ServiceState) -> Findings:
    """Return the faults of a service of this manager: no process of it runs, or one lacks a part."""
    service, now = state.seen, state.now
    about = ManagedObject("service", service.name)
    of_watches: frozenset[FaultType] = frozenset({"watch-stale"}) if state.unwatched_since is None else frozenset()
    if service.state in {"unknown", "missing"}:
        # A gateway that has just started, or hears no reports, knows nothing of a service; some are not deployed everywhere.
        undecided = frozenset({"service-away", "watch-stale", *(each[0] for each in _LACKS.values())})
        return Findings(about, undecided=undecided, undecided_until=now - _OUT_OF_USE_AFTER)
    if service.state == "away":
        if now - service.since > _OUT_OF_USE_AFTER:
            return Findings(about)
        text = f"No process of {service.name} runs, or the message broker does not take its reports."
        since = rfc3339(service.since)
        return Findings(
            about, [Fault("service-away", "CRITICAL", "PROCESSING_ERROR_ALARM", "service-away", (text,), since)]
        )
    found = [
        _lack(process, trouble, now)
        for process in service.processes
        # One process with several services lacks it once.
        if process.state != "away" and service.name == (process.report.services or ("lcm-api",))[0]
        for trouble in process.report.troubles
        if trouble.part in _LACKS
    ]
    unwatched = None if not state.unwatched_since else _moment(state.unwatched_since)
    if service.name == WATCHING and unwatched is not None and now - unwatched >= _STALE_FOR:
        text = f"No process of {service.name} watches the clusters: what others change there is not seen."
        found.append(
            Fault("watch-stale", "MAJOR", "PROCESSING_ERROR_ALARM", "watch-stale", (text,), rfc3339(unwatched))
        )  # fmt: skip
    return Findings(about, found, of_watches)


def _lack(process: SeenProcess, trouble: Trouble, now: datetime) -> Fault:
    kind, severity, event, cause = _LACKS[trouble.part]
    since = trouble.since or process.since
    if trouble.ends_at is not None:
        severity, since = _severity_of_end((trouble.ends_at - now).days), trouble.ends_at - _EXPIRES_SOON
    part = "/".join(filter(None, (process.report.host, trouble.of)))
    return Fault(kind, severity, event, cause, (sentence(trouble.text),), rfc3339(since), part=part)
