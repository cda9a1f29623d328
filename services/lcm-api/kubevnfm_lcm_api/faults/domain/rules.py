"""The table of faults: the state of an object in, its faults out. Pure; nothing is remembered between two looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_clients.vim_views import VimView
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_sol.faults import EventType, FaultyResourceInfo, PerceivedSeverity
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.resources import VnfcResourceInfo

from kubevnfm_lcm_api.faults.domain.fault import Fault, FaultType, Findings, ManagedObject
from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.siblings import SeenService
from kubevnfm_lcm_api.views.causes import Situation, cause_of
from kubevnfm_lcm_api.views.causes.finding import fitting
from kubevnfm_lcm_api.views.causes.wording import sentence

_MOST_MACHINES: Final = 100
"""Lost machines of one VNF that have an alarm each."""
_LOST: Final = frozenset({"INCOMPLETE"})
_DRIFT_SEVERITY: Final[Mapping[str, PerceivedSeverity]] = {
    "MISSING": "CRITICAL",
    "FAILED": "MAJOR",
    "INCOMPLETE": "MAJOR",
    "CHANGED": "MINOR",
}
_VIM_FAULTS: Final[Mapping[str, tuple[FaultType, str]]] = {
    "UNREACHABLE": ("vim-unreachable", "vim-away"),
    "ERROR": ("vim-error", "vim-refused"),
}
"""By the status of a VIM: the type, and the cause where the table of causes knows no better one."""
_VERBS: Final[Mapping[FaultType, str]] = {"vim-unreachable": "cannot be reached", "vim-error": "refuses requests"}
OF_VIMS: Final[frozenset[FaultType]] = frozenset(kind for kind, _ in _VIM_FAULTS.values())
_EXPIRES_SOON: Final = 14
_DAYS: Final[tuple[tuple[int, PerceivedSeverity], ...]] = ((0, "CRITICAL"), (3, "MAJOR"), (7, "MINOR"))
"""The severity of access data that end in at most so many days; above: WARNING."""
_FAILS_FOR: Final = timedelta(minutes=1)
"""So long a subscriber may refuse or be away before that is a fault."""


_LACKS: Final[Mapping[str, tuple[FaultType, PerceivedSeverity, EventType, str]]] = {
    "disk": ("disk-low", "MAJOR", "EQUIPMENT_ALARM", "disk-low"),
    "parked-commands": ("commands-parked", "MAJOR", "PROCESSING_ERROR_ALARM", "service-crashes"),
    "sandbox": ("code-not-run", "MINOR", "PROCESSING_ERROR_ALARM", "code-not-run"),
}
"""By the part that a process lacks. Without its database or its broker it could report nothing, and is away."""


@dataclass(frozen=True)
class VimAlarm:
    """The alarm of a VIM that cannot be used."""

    id: str
    type: FaultType
    cause: str
    text: str
    since: str


@dataclass(frozen=True)
class VnfState:
    """All that the faults of a VNF instance are found from."""

    instance_id: str
    record: InstanceRecord | None
    """None: it was deleted."""
    operation: OccurrenceRecord | None
    """The newest one."""
    tasks: Sequence[JsonObject]
    """Those of a newest operation that has failed."""
    trouble: JsonMapping | None
    """The mark of its pods and virtual machines."""
    vim_alarms: Mapping[str, VimAlarm]
    """By the id of a VIM that cannot be used."""
    now: datetime


def faults_of_vnf(state: VnfState) -> Findings:
    """Return the faults of a VNF instance."""
    if state.record is None:
        return Findings(ManagedObject("vnf", state.instance_id), is_gone=True)
    about = ManagedObject("vnf", state.instance_id, state.record.facts)
    undecided: frozenset[FaultType] = frozenset()
    found = [*_of_vims(state, state.record)]
    root = found[0].root if found else None
    operation = state.operation
    if operation is not None and operation.occ.operation_state in (S.STARTING, S.PROCESSING, S.ROLLING_BACK):
        # A retry or a further operation may repair it: its end decides.
        undecided = frozenset({"operation-failed"})
    elif operation is not None and operation.occ.operation_state in (S.FAILED_TEMP, S.FAILED):
        found.append(_operation_failed(state, operation, root))
    found += _drifted(state.record, root)
    found += _troubled(state, root)
    return Findings(about, found, undecided)


def _of_vims(state: VnfState, record: InstanceRecord) -> Iterator[Fault]:
    """Yield the fault of a VNF whose VIM cannot be used: it may well work, but cannot be watched or changed."""
    for vim_id in record.internals.vim_ids:
        if (alarm := state.vim_alarms.get(vim_id)) is not None:
            yield Fault(
                alarm.type,
                "WARNING",
                "COMMUNICATIONS_ALARM",
                alarm.cause,
                (alarm.text, "The VNF is neither watched nor changed meanwhile."),
                alarm.since,
                part=vim_id,
                root=alarm.id,
            )


def _operation_failed(state: VnfState, operation: OccurrenceRecord, root: str | None) -> Fault:
    occ = operation.occ
    cause = cause_of(Situation(operation, state.tasks, state.now, instance=state.record))
    code = cause.code if cause is not None else occ.error.type if occ.error is not None else "waits"
    reason = cause.text if cause is not None else ""
    is_open = occ.operation_state is S.FAILED_TEMP
    wanted = "has failed; retry, rollback or fail it" if is_open else "was given up after its failure"
    remedy = (cause.remedy,) if cause is not None and cause.remedy else ()
    return Fault(
        "operation-failed",
        "MAJOR" if is_open else "MINOR",
        "PROCESSING_ERROR_ALARM",
        code,
        tuple(each for each in (f"{occ.operation} {occ.id} {wanted}.", reason, *remedy) if each),
        occ.state_entered_time,
        root=root,
    )


def _drifted(record: InstanceRecord, root: str | None) -> Iterator[Fault]:
    drift = drift_of(record.vnf.metadata)
    if drift is None:
        return
    info = record.vnf.instantiated_vnf_info
    vnfcs = {each.id: each for each in info.vnfc_resource_info} if info is not None else {}
    lost = [vnfcs[each] for each in drift.vnfc_ids if each in vnfcs] if drift.state in _LOST else []
    for vnfc in lost[:_MOST_MACHINES]:
        text = f"The machine or workload of VNFC {vnfc.id} ({vnfc.vdu_id}) does not exist or has failed."
        yield Fault(
            "machine-lost",
            "MAJOR",
            "EQUIPMENT_ALARM",
            "machine-lost",
            (text, sentence(drift.reason)),
            drift.since,
            part=vnfc.id,
            resource=_compute(vnfc),
            root=root,
        )
    yield from _quorum(record, drift, root)
    if lost and len(lost) <= _MOST_MACHINES and not drift.objects:
        return
    yield Fault(
        "resources-drifted",
        _DRIFT_SEVERITY[drift.state],
        "PROCESSING_ERROR_ALARM",
        f"drift-{drift.state.lower()}",
        (sentence(drift.reason),),
        drift.since,
        root=root,
    )


def _quorum(record: InstanceRecord, drift: Drift, root: str | None) -> Iterator[Fault]:
    """Yield the fault of a cluster that loses its etcd with the next master, or has lost it."""
    cluster, stack = record.internals.cluster, record.stack
    if cluster is None or stack is None or stack.resources is None:
        return
    try:
        nodes = find_nodes(stack.resources, cluster).nodes
    except VnfmError:  # an operation that failed may have left some of them, or none
        return
    masters = [each for each in nodes if each.role == "master"]
    lost = [each for each in masters if each.vnfc_id in drift.vnfc_ids]
    spare = (len(masters) - 1) // 2 - len(lost)
    if not lost or spare > 0:
        return
    text = (
        f"{len(lost)} of {len(masters)} masters do not exist or have failed: "
        + ("the cluster has lost its quorum." if spare < 0 else "the loss of one more ends the quorum of the cluster.")
    )  # fmt: skip
    severity: PerceivedSeverity = "CRITICAL" if spare < 0 else "MAJOR"
    yield Fault("quorum-at-risk", severity, "EQUIPMENT_ALARM", "machine-lost", (text,), drift.since, root=root)


def _compute(vnfc: VnfcResourceInfo) -> FaultyResourceInfo:
    return FaultyResourceInfo(faulty_resource=vnfc.compute_resource, faulty_resource_type="COMPUTE")


def _troubled(state: VnfState, root: str | None) -> Iterator[Fault]:
    """Yield the fault of a VNF whose pods or virtual machines do not work."""
    assert state.record is not None
    mark = state.trouble
    if mark is None or state.record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        return
    text = str(mark["text"])
    fits = fitting("waits", text, is_shallow=False)
    cause = fits[0].slug if fits is not None else "workload-troubled"
    yield Fault(
        "workload-troubled",
        "MAJOR",
        "PROCESSING_ERROR_ALARM",
        cause,
        (sentence(text),),
        str(mark["since"]),
        root=root,
    )


def faults_of_vim(vim_id: str, vim: VimView | None) -> Findings:
    """Return the faults of a VIM; None: it was deleted."""
    about = ManagedObject("vim", vim_id)
    if vim is None:
        return Findings(about)
    found: list[Fault] = []
    if vim.status in _VIM_FAULTS:
        kind, cause = _VIM_FAULTS[vim.status]
        fits = fitting(kind, vim.status_reason, is_shallow=False)
        cause = fits[0].slug if fits is not None else cause
        details = (f"The VIM {vim.name} {_VERBS[kind]}.", sentence(vim.status_reason))
        found.append(
            Fault(kind, "MAJOR", "COMMUNICATIONS_ALARM", cause, details, vim.status_since, is_root=True)
        )  # fmt: skip
    if vim.days_left is not None and vim.days_left <= _EXPIRES_SOON and vim.expires_at is not None:
        severity: PerceivedSeverity = next((each for days, each in _DAYS if vim.days_left <= days), "WARNING")
        details = (f"The {vim.expiring} of the VIM {vim.name} ends at {vim.expires_at}.", "Give the VIM new ones.")
        found.append(
            Fault(
                "credentials-expiring",
                severity,
                "PROCESSING_ERROR_ALARM",
                "credentials-expiring",
                details,
                rfc3339(datetime.fromisoformat(vim.expires_at) - timedelta(days=_EXPIRES_SOON)),
                part=vim.expiring or "",
            )
        )
    return Findings(about, found)


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


def faults_of_service(service: SeenService) -> Findings:
    """Return the faults of a service of this manager: no process of it runs, or one lacks a part."""
    about = ManagedObject("service", service.name)
    if service.state in {"unknown", "missing"}:
        # A gateway that has just started, or hears no reports, knows nothing of a service; some are not deployed everywhere.
        return Findings(about, undecided=frozenset({"service-away", *(each[0] for each in _LACKS.values())}))
    if service.state == "away":
        text = f"No process of {service.name} runs, or the message broker does not take its reports."
        since = rfc3339(service.since)
        return Findings(
            about, [Fault("service-away", "CRITICAL", "PROCESSING_ERROR_ALARM", "service-away", (text,), since)]
        )
    found = [
        Fault(
            kind,
            severity,
            event,
            cause,
            (sentence(trouble.text),),
            rfc3339(trouble.since or process.since),
            part=process.report.host,
        )
        for process in service.processes
        # One process with several services lacks it once.
        if process.state != "away" and service.name == (process.report.services or ("lcm-api",))[0]
        for trouble in process.report.troubles
        if trouble.part in _LACKS
        for kind, severity, event, cause in (_LACKS[trouble.part],)
    ]
    return Findings(about, found)
