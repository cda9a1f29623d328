"""One VNF instance in a line: its kind, its state, the operation that has claimed it, and what is wrong with it. Pure but for `with_operations`.

The documents are read without their large parts, so the rows are made from the documents and not from records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import TERMINAL, InstantiationState, OperationState
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Op, Query, Stored

from kubevnfm_lcm_api.alarm_marks import ExternalMark, external_marks
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.lifecycle.containers import trouble_marks
from kubevnfm_lcm_api.lifecycle.core import dependencies
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_of
from kubevnfm_lcm_api.views.causes.wording import line

VnfKind = Literal["machines", "cluster", "cnf", "workload-cluster"]
PREFIX: Final = "/kubevnfm/v1"
OPEN: Final = tuple(state.value for state in OperationState if state not in TERMINAL)
"""The states of operations that have not ended."""
_RESOURCES: Final = (
    *("extCpInfo", "extVirtualLinkInfo", "extManagedVirtualLinkInfo", "vnfcResourceInfo", "vnfcInfo"),
    *("vnfVirtualLinkResourceInfo", "virtualStorageResourceInfo", "additionalParams"),
    *("metadata/nfv", "metadata/vdu_resources"),
)
LARGE: Final = (
    *(f"instantiatedVnfInfo/{name}" for name in _RESOURCES),
    *(f"internal/{name}" for name in ("deployments", "resources", "release", "parameters", "request", "connections")),
)
"""The parts of an instance's document that a row does not need; those of 0.1.0 have `resources` and `release`."""
LARGE_OF_OPERATION: Final = ("internal/draft", "internal/steps", "internal/facts", "operationParams", "resourceChanges")


class CurrentOperation(Shown):
    """The operation that has claimed an instance: it runs, or has failed and waits for a decision."""

    id: str
    operation: str
    state: str
    startTime: str  # noqa: N815  # as it is on the wire
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    href: str


class DriftedObjectMark(Shown):
    """A Kubernetes object that another party has deleted or changed."""

    kind: str
    namespace: str | None = None
    name: str
    what: Literal["missing", "replaced", "changed"]


class DriftMark(Shown):
    """How the resources of an instance differ from what it shows: another party has deleted or changed them, or they have failed."""

    state: str
    since: str
    reason: str
    """One sentence for a person."""
    vnfcIds: list[str] | None = None  # noqa: N815  # as it is on the wire
    """The VNFCs whose servers or workloads do not exist or have failed."""
    missing: int | None = None
    replaced: int | None = None
    changed: int | None = None
    """Numbers of Kubernetes objects."""
    objects: list[DriftedObjectMark] | None = None
    """The first ones of them."""


class InstanceSummary(Shown):
    """A VNF instance in a list."""

    id: str
    name: str | None = None
    vnfdId: str  # noqa: N815  # as it is on the wire
    vnfProvider: str  # noqa: N815  # as it is on the wire
    vnfProductName: str  # noqa: N815  # as it is on the wire
    vnfSoftwareVersion: str  # noqa: N815  # as it is on the wire
    kind: VnfKind | None = None
    """Absent while it is NOT_INSTANTIATED."""
    state: Literal["NOT_INSTANTIATED", "INSTANTIATED"]
    health: Health
    """``problem``: it has drifted, lost what it stands on, a pod does not work, an alarm of a monitoring system is open, an operation has failed and waits, or remains of one exist."""
    text: str | None = None
    """Why the health is not ``ok``."""
    since: str | None = None
    """Since when that is so."""
    operation: CurrentOperation | None = None
    vimIds: list[str]  # noqa: N815  # as it is on the wire
    """The registered VIMs on which its resources exist or are being created."""
    namespace: str | None = None
    """The namespace of the objects of a CNF or workload cluster."""
    drift: DriftMark | None = None
    createdAt: str  # noqa: N815  # as it is on the wire
    updatedAt: str  # noqa: N815  # as it is on the wire
    href: str


async def with_operations(store: DocumentStore, found: Sequence[Stored], root: str) -> Sequence[InstanceSummary]:
    """Return the rows of documents; the operations that have claimed them are one query, and so are the marks of their pods and of alarms of monitoring systems."""
    claimed = [each.id for each in found if claim_of(each.body) is not None]
    operations: dict[str, Stored] = {}
    if claimed:
        wanted = AllOf([Compare("vnfInstanceId", Op.IN, claimed), Compare("operationState", Op.IN, OPEN)])
        answer = await store.find(occurrences.COLLECTION, Query(wanted, exclude=LARGE_OF_OPERATION))
        operations = {each.id: each for each in answer}
    standing = [each.id for each in found if each.body["instantiationState"] == InstantiationState.INSTANTIATED]
    marks = await store.get_many(trouble_marks.COLLECTION, standing) if standing else ()
    troubles = {each.id: each.body for each in marks}
    alarms = await external_marks(store, [each.id for each in found])
    return [
        summary(each.body, operations.get(claim_of(each.body) or ""), troubles.get(each.id), alarms.get(each.id), root)
        for each in found
    ]


def claim_of(document: JsonMapping) -> str | None:
    """Return the id of the operation that has claimed an instance."""
    claim = document.get("internal", {}).get("currentOperation")
    return claim if isinstance(claim, str) else None


def summary(
    document: JsonMapping,
    operation: Stored | None,
    trouble: JsonMapping | None,
    alarm: ExternalMark | None,
    root: str,
) -> InstanceSummary:
    """Return the row of one document."""
    internal = document.get("internal", {})
    drift = drift_of(document.get("metadata") or {})
    health, text, since = judged(document, None if operation is None else operation.body, drift, trouble, alarm)
    return InstanceSummary(
        id=document["id"],
        name=document.get("vnfInstanceName"),
        vnfdId=document["vnfdId"],
        vnfProvider=document["vnfProvider"],
        vnfProductName=document["vnfProductName"],
        vnfSoftwareVersion=document["vnfSoftwareVersion"],
        kind=kind_of(document),
        state=document["instantiationState"],
        health=health,
        text=text,
        since=since,
        operation=None if operation is None else shown_operation(operation.body, root),
        vimIds=list(_vim_ids(internal)),
        namespace=_namespace(document),
        drift=None if drift is None else drift_mark(drift),
        createdAt=document["createdAt"],
        updatedAt=document["updatedAt"],
        href=f"{root}{PREFIX}/instances/{document['id']}/tree",
    )


def shown_operation(document: JsonMapping, root: str) -> CurrentOperation:
    """Return an operation in one line."""
    return CurrentOperation(
        id=document["id"],
        operation=document["operation"],
        state=document["operationState"],
        startTime=document["startTime"],
        stateEnteredTime=document["stateEnteredTime"],
        href=f"{root}{PREFIX}/operations/{document['id']}",
    )


def drift_mark(drift: Drift) -> DriftMark:
    """Return the drift as views show it."""
    objects = [DriftedObjectMark.model_validate(each.model_dump()) for each in drift.objects]
    return DriftMark(
        state=drift.state,
        since=drift.since,
        reason=line(drift.reason),
        vnfcIds=list(drift.vnfc_ids) or None,
        missing=drift.missing or None,
        replaced=drift.replaced or None,
        changed=drift.changed or None,
        objects=objects or None,
    )


def judged(
    document: JsonMapping,
    operation: JsonMapping | None,
    drift: Drift | None,
    trouble: JsonMapping | None,
    alarm: ExternalMark | None,
) -> tuple[Health, str | None, str | None]:
    """Return the health of an instance by what is stored of it, why, and since when; the gravest reason counts.

    ``trouble``: the mark of its pods; ``alarm``: that of alarms of monitoring systems.
    """
    first = next(_reasons(document, operation, drift, trouble, alarm), None)
    return ("ok", None, None) if first is None else first


def _reasons(
    document: JsonMapping,
    operation: JsonMapping | None,
    drift: Drift | None,
    trouble: JsonMapping | None,
    alarm: ExternalMark | None,
) -> Iterator[tuple[Health, str, str | None]]:
    if operation is not None and operation["operationState"] == OperationState.FAILED_TEMP:
        detail = (operation.get("error") or {}).get("detail") or "no reason was reported"
        yield "problem", line(f"{operation['operation']} has failed: {detail}"), operation["stateEnteredTime"]
    mark: Any = (document.get("metadata") or {}).get(dependencies.KEY)
    if isinstance(mark, Mapping) and mark.get("reason"):
        yield "problem", line(str(mark["reason"])), str(mark.get("since") or "") or None
    if drift is not None:
        yield "problem", line(drift.reason), drift.since
    if trouble is not None:
        yield "problem", line(trouble["text"]), trouble["since"]
    if alarm is not None:
        yield "problem", line(alarm.text), alarm.since
    if operation is None and document.get("internal", {}).get("remainsOf"):
        text = "an instantiation has failed and its resources may still exist: delete the instance, or instantiate it"
        yield "problem", text, None
    if operation is not None:
        yield "progressing", f"{operation['operation']} is {operation['operationState']}", operation["startTime"]
    elif claim_of(document) is not None:
        yield "progressing", "an operation was accepted a moment ago", None


def kind_of(document: JsonMapping) -> VnfKind | None:
    """Return the kind of an INSTANTIATED instance."""
    internal = document.get("internal", {})
    if document["instantiationState"] != "INSTANTIATED":
        return None
    if internal.get("workload"):
        return "workload-cluster"
    if internal.get("cluster") or internal.get("clusterVimId"):
        return "cluster"
    types = {str(each.get("vimType")) for each in (document.get("vimConnectionInfo") or {}).values()}
    if OPENSTACK in types:
        return "machines"
    return "cnf" if KUBERNETES in types else None


def _vim_ids(internal: JsonMapping) -> Mapping[str, None]:
    place = (internal.get("multicloud") or {}).get("vimId")
    return dict.fromkeys([*(str(each) for each in internal.get("vimIds") or ()), *([str(place)] if place else [])])


def _namespace(document: JsonMapping) -> str | None:
    place = document.get("internal", {}).get("multicloud") or {}
    info = (document.get("instantiatedVnfInfo") or {}).get("metadata") or {}
    found = place.get("namespace") or info.get("namespace")
    return found if isinstance(found, str) else None
