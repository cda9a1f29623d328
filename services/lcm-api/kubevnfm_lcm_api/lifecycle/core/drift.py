"""The drift of an instance: while no operation ran, its resources were deleted or changed by others, or have failed.

It is shown in the instance's metadata, which both API versions have and filters can search; SOL003 has no attribute for
it. Operations clear it when they end; comparisons with the VIM (`lifecycle.core.drift_watch`) set and clear it otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_events import Envelope
from kubevnfm_events.common import DriftState
from kubevnfm_events.lcm import InstanceDrifted
from kubevnfm_events.objects import DriftedObject, ObjectCount, ObjectFacts, ObjectsDrift
from kubevnfm_events.stacks import StackDrift
from kubevnfm_kit.errors import Conflict
from kubevnfm_sol.lcm import OperationState, OperationType, VnfLcmOpOcc
from pydantic import BaseModel, ConfigDict, ValidationError

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

KEY: Final = "kubevnfm_drift"
"""The key in the instance's metadata; requests cannot set it."""
PATH: Final = f"metadata/{KEY}"
_UNDONE: Final = frozenset({OperationState.FAILED, OperationState.ROLLED_BACK})
_STACK_MISSING: Final = "stack-missing"
"""The code with which infra-openstack reports that an operation has found no stack."""
_MAKE_MACHINES: Final = frozenset(
    {("Cluster", "cluster.x-k8s.io"), ("KubeadmControlPlane", "controlplane.cluster.x-k8s.io")}
)
_LEAVE_STACKS_ALONE: Final = frozenset({OperationType.MODIFY_INFO, OperationType.OPERATE})


class Drifted(Conflict, code="instance-drifted"):
    """The operation needs resources that were found deleted."""


class Drift(BaseModel):
    """The value in the metadata."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: DriftState
    since: str
    reason: str
    """One sentence for a person."""
    vnfc_ids: tuple[str, ...] = ()
    """The VNFCs (vnfcResourceInfo) whose servers do not exist or are in state ERROR, or whose workloads do not exist."""
    missing: int = 0
    replaced: int = 0
    changed: int = 0
    """Numbers of Kubernetes objects."""
    objects: tuple[DriftedObject, ...] = ()
    """The first ones of them."""

    @property
    def of_objects(self) -> ObjectsDrift:
        """The drift as infra-k8s has reported it."""
        return ObjectsDrift(**{name: getattr(self, name) for name in ObjectsDrift.model_fields})


def drift_of(metadata: Mapping[str, Any]) -> Drift | None:
    """Return the drift that an instance's metadata show; None if there is none."""
    try:
        return Drift.model_validate(metadata[KEY])
    # Version 0.1.0 let requests set any key.
    except (KeyError, ValidationError):
        return None


def marked(record: InstanceRecord, drift: Drift | None) -> InstanceRecord:
    """Return the record with this drift, or without any."""
    others = {name: value for name, value in record.vnf.metadata.items() if name != KEY}
    shown = {KEY: drift.model_dump(mode="json", exclude_defaults=True)} if drift is not None else {}
    return record.with_vnf(metadata={**others, **shown})


def found(record: InstanceRecord, drift: StackDrift | ObjectsDrift | None, reason: str, now: str) -> InstanceRecord:
    """Return the record with what a comparison has found."""
    if drift is None:
        return marked(record, None)
    before = drift_of(record.vnf.metadata)
    since = before.since if before is not None and before.state == drift.state else now
    if isinstance(drift, ObjectsDrift):
        vnfc_ids = _vnfcs_without_workload(record, drift)
        return marked(record, Drift(since=since, reason=reason, vnfc_ids=vnfc_ids, **dict(drift)))
    vnfcs = vnfcs_by_server(record)
    vnfc_ids = tuple(vnfcs[one] for one in drift.servers if one in vnfcs)
    return marked(record, Drift(state=drift.state, since=since, reason=reason, vnfc_ids=vnfc_ids))


def _vnfcs_without_workload(record: InstanceRecord, drift: ObjectsDrift) -> tuple[str, ...]:
    """Return the VNFCs whose workloads are among the named objects that do not exist any more."""
    release = record.release.release if record.release is not None else None
    vdus = {each.vdu_id for each in _gone(record, drift)}
    return tuple(pod.name for pod in release.pods if pod.vdu_id in vdus) if release is not None else ()


def _gone(record: InstanceRecord, drift: ObjectsDrift | Drift) -> Iterator[ObjectFacts]:
    gone = {(each.kind, each.namespace, each.name) for each in drift.objects if each.what != "changed"}
    return (each for each in _objects(record) if _names(each) in gone)


def lost_workloads(record: InstanceRecord) -> Sequence[ObjectFacts]:
    """Return the workloads of VDUs that were found deleted, of a VNF of containers.

    Their pods are removed soon after them, so that VNFCs need not be left by which they could be known.
    """
    drift = drift_of(record.vnf.metadata)
    if drift is None or record.internals.workload is not None:
        return ()
    return [each for each in _gone(record, drift) if each.vdu_id is not None]


def _names(one: ObjectFacts | ObjectCount) -> tuple[str, str | None, str]:
    return (one.kind, one.namespace, one.name)


def vnfcs_by_server(record: InstanceRecord) -> Mapping[str, str]:
    """Return the ids of the VNFCs by the Nova ids of their servers."""
    resources = record.stack.resources if record.stack is not None else None
    return {one.server_id: one.vnfc_id for one in resources.servers} if resources is not None else {}


def after_operation(record: InstanceRecord, occ: VnfLcmOpOcc) -> InstanceRecord:
    """Return the record at the end of an operation, with the drift that it has met, without the drift that it has ended.

    Drift that the operation did not touch stays: the next comparison decides.
    """
    if occ.operation_state in _UNDONE and occ.error is not None and occ.error.type == _STACK_MISSING:
        # Known without a comparison: the operation has looked for the stack.
        record = found(record, StackDrift(state="MISSING"), occ.error.detail, occ.state_entered_time)
    drift = drift_of(record.vnf.metadata)
    if drift is None:
        return record
    if not record.internals.deployments:
        return marked(record, None)
    # Objects: the drafts of the operations that apply every one have cleared it.
    if (
        record.stack is None
        or occ.operation_state is not OperationState.COMPLETED
        or occ.operation in _LEAVE_STACKS_ALONE
    ):
        return record
    # The operation has found the stack and left it complete; only servers that it did not replace are still missing.
    present = set(vnfcs_by_server(record).values())
    left = tuple(one for one in drift.vnfc_ids if one in present)
    if not left:
        return marked(record, None)
    reason = f"{occ.operation} has not replaced all machines that were found missing"
    return marked(record, drift.model_copy(update={"state": "INCOMPLETE", "vnfc_ids": left, "reason": reason}))


def drift_events(before: InstanceRecord, after: InstanceRecord) -> list[Envelope[InstanceDrifted]]:
    """Return the event of a changed drift; none if it is the same."""
    old, new = drift_of(before.vnf.metadata), drift_of(after.vnf.metadata)
    if old == new:
        return []
    event = InstanceDrifted(
        vnf_instance_id=after.vnf.id,
        **after.facts.model_dump(),
        state=new.state if new is not None else "NONE",
        vnfc_ids=new.vnfc_ids if new is not None else (),
        objects=new.objects if new is not None else (),
        reason=new.reason if new is not None else "",
    )
    return [Envelope(data=event, source=SOURCE, subject=after.vnf.id)]


def check_stack_exists(record: InstanceRecord, task: str) -> None:
    """Raise Drifted if the stack was found deleted: only a heal of the whole VNF, or a terminate, leads on."""
    drift = drift_of(record.vnf.metadata)
    if drift is not None and record.stack is not None and drift.state == "MISSING":
        raise Drifted(f"{task}: since {drift.since} {drift.reason}; heal the whole VNF, or terminate it")


def check_cluster_exists(record: InstanceRecord, task: str) -> None:
    """Raise Drifted if an object without which a workload cluster has no machines was found deleted: it is lost.

    Only a heal that builds the cluster again, or a terminate, leads on.
    """
    if record.internals.workload is None:
        return
    lost = _missing(record, (each for each in _objects(record) if _makes_machines(each)))
    if lost:
        raise Drifted(
            f"{task}: {lost}; the machines of the cluster are lost with it: heal with additionalParams.capi.recreate: true, which "
            "builds it again behind the same VIM, or terminate the VNF instance"
        )


def check_objects_exist(record: InstanceRecord, objects: Iterable[ObjectFacts | ObjectCount], task: str) -> None:
    """Raise Drifted if one of the objects was found deleted."""
    lost = _missing(record, objects)
    if lost:
        raise Drifted(f"{task}: {lost}; heal with additionalParams.repair: true first, which applies it again")


def _missing(record: InstanceRecord, objects: Iterable[ObjectFacts | ObjectCount]) -> str:
    """Return one sentence about those of the objects that were found deleted; "" if none was."""
    drift = drift_of(record.vnf.metadata)
    if drift is None:
        return ""
    missing = {(each.kind, each.namespace, each.name) for each in drift.objects if each.what == "missing"}
    names = [f"{each.kind} {each.name}" for each in objects if _names(each) in missing]
    return f"another party has deleted {', '.join(names)}, as found at {drift.since}" if names else ""


def _objects(record: InstanceRecord) -> tuple[ObjectFacts, ...]:
    release = record.release.release if record.release is not None else None
    return release.objects if release is not None else ()


def _makes_machines(one: ObjectFacts) -> bool:
    return (one.kind, one.api_version.partition("/")[0]) in _MAKE_MACHINES


def is_stack_missing(record: InstanceRecord) -> bool:
    """Return whether the stack was found deleted."""
    drift = drift_of(record.vnf.metadata)
    return drift is not None and drift.state == "MISSING"


def check_machines_exist(record: InstanceRecord, servers: Collection[str], task: str) -> None:
    """Raise Drifted if one of the servers (Nova ids) was found deleted or in state ERROR."""
    drift = drift_of(record.vnf.metadata)
    vnfcs = vnfcs_by_server(record)
    broken = [vnfcs[one] for one in servers if drift is not None and vnfcs.get(one) in drift.vnfc_ids]
    if drift is not None and broken:
        raise Drifted(f"{task}: since {drift.since} {drift.reason}; heal VNFC {', '.join(broken)} first")
