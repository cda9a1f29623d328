"""The faults of VNF instances: their state in, their faults out. Pure; nothing is remembered between two looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_sol.faults import FaultyResourceInfo, PerceivedSeverity
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_sol.resources import ResourceHandle

from kubevnfm_lcm_api.faults.domain.fault import Fault, FaultType, Findings, ManagedObject
from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_of, lost_workloads
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle
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
    workloads = lost_workloads(record)
    for workload in workloads[:_MOST_MACHINES]:
        name = f"{workload.kind} {workload.namespace}/{workload.name}"
        yield Fault(
            "machine-lost",
            "MAJOR",
            "EQUIPMENT_ALARM",
            "machine-lost",
            (f"The workload of VDU {workload.vdu_id}, {name}, does not exist.", sentence(drift.reason)),
            drift.since,
            part=name,
            resource=_compute(handle(workload.uid, record.release.vim_key, workload.kind)) if record.release else None,
            root=root,
        )
    # The pods of a lost workload are lost with it, or soon.
    is_of_machines = drift.state in _LOST and not workloads
    lost = [vnfcs[each] for each in drift.vnfc_ids if each in vnfcs] if is_of_machines else []
    for vnfc in lost[:_MOST_MACHINES]:
        text = f"The machine of VNFC {vnfc.id} ({vnfc.vdu_id}) does not exist or has failed."
        yield Fault(
            "machine-lost",
            "MAJOR",
            "EQUIPMENT_ALARM",
            "machine-lost",
            (text, sentence(drift.reason)),
            drift.since,
            part=vnfc.id,
            resource=_compute(vnfc.compute_resource),
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


def _compute(resource: ResourceHandle) -> FaultyResourceInfo:
    return FaultyResourceInfo(faulty_resource=resource, faulty_resource_type="COMPUTE")


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
