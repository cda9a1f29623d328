"""Judges how far a workload cluster has come, from all its objects (capi.md chapter 8): a pure function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from kubevnfm_events.capi import ClusterStage

from kubevnfm_infra_k8s.domain.capi.contract import DEPLOYMENT_LABEL, POOL_LABEL, Conditions, is_paused
from kubevnfm_infra_k8s.domain.capi.machines import (
    CONTROL_PLANE_VDU,
    is_leaving,
    is_of_control_plane,
    owner_of_kind,
)
from kubevnfm_infra_k8s.domain.capi.readiness import counts, endpoint_of, is_infrastructure_ready, is_initialized
from kubevnfm_infra_k8s.domain.capi.topology import part_name, part_of
from kubevnfm_infra_k8s.domain.objects import Body, field_at, labels_of, name_of, uid_of
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import NOT_FOUND, Observation, Verdict

Phase = Literal["infrastructure", "control_plane", "workers"]
"""A part of the way to a cluster that `additionalParams.capi.timeouts` limits."""

PAUSED = "paused: Cluster API leaves the cluster alone until it is no longer paused"
NO_NETWORK = (
    "the API server answers, but no node is Ready. Without a network plugin (CNI) none becomes so: name its manifests in "
    "additionalParams.capi.addon-def-files, apply them by a ClusterResourceSet, or ask for capi.ready: initialized"
)


_NO_REASONS: Final = frozenset({"UpToDate", "MachinesUpToDate"})


@dataclass(frozen=True)
class ClusterObjects:
    """The objects of one workload cluster as the API server shows them."""

    cluster: Body | None = None
    infrastructure: Body | None = None
    control_plane: Body | None = None
    workers: Sequence[Body] = field(default=())
    """MachineDeployments and MachinePools."""
    machines: Sequence[Body] = field(default=())
    sets: Sequence[Body] = field(default=())
    """MachineSets: each has the template from which its Machines were made. They are not judged by themselves."""

    def __iter__(self) -> Iterator[Body]:
        """Yield the objects in the order in which a cluster comes up."""
        for each in (self.infrastructure, self.cluster, self.control_plane, *self.machines, *self.workers):
            if each is not None:
                yield each


@dataclass(frozen=True)
class Assessment:
    """How far the cluster has come."""

    phase: Phase
    message: str
    """For people: the step, the replicas, and the message of the first False condition (CR-056)."""
    wanted: int = 0
    ready: int = 0
    is_done: bool = False
    failure: str = ""
    """The permanent failure (CR-057); "" if there is none."""
    again_in_s: float | None = None
    """After this time the assessment can change although no object does."""


@dataclass(frozen=True)
class Goal:
    """The state of a cluster that a step waits for."""

    stage: ClusterStage
    is_settled: bool = False
    """No Machine is being deleted (CR-089)."""
    made_after: datetime | None = None
    """No Machine is older than that (CR-103)."""
    uid: str | None = None
    """That of the Cluster: one of this name with another uid is an earlier one. None: whichever has the name."""


def assess(objects: ClusterObjects, goal: Goal, seen: Observation) -> Assessment:
    """Return how far the cluster is on its way to ``goal``."""
    cluster = objects.cluster
    wanted, ready = _replicas(objects)
    if cluster is None or goal.uid not in (None, uid_of(cluster)):
        return Assessment("infrastructure", NOT_FOUND.message, wanted, ready)
    verdicts = [(each, judge(each, seen)) for each in objects]
    replaced = _older(objects, goal.made_after) if goal.made_after is not None else []
    # A Machine that is to be replaced may have failed: that may be why it is.
    failed = [
        f"{_name(each)}: {verdict.message}" for each, verdict in verdicts if verdict.is_final and each not in replaced
    ]
    again = [verdict.again_in_s for _, verdict in verdicts if verdict.again_in_s is not None]
    phase = _phase(objects, seen)
    if goal.stage == "initialized":
        is_done = is_infrastructure_ready(cluster) and bool(endpoint_of(cluster)) and is_initialized(cluster)
    else:
        # Machines count through their owners, since old ones may still be deleted; the infrastructure through its Cluster.
        owners = [each for each in (cluster, objects.control_plane, *objects.workers) if each is not None]
        is_done = all(judge(each, seen).is_current for each in owners)
    leaving = _leaving(objects) if goal.is_settled else []
    behind = next(_behind(objects), "") if goal.is_settled else ""
    old = [_name(each) for each in replaced]
    message = _with_reason(behind, objects, verdicts, phase) if behind else _message(objects, verdicts, phase)
    if old:
        message = f"to be replaced: {', '.join(old)}; {message}"
        ready = min(ready, max(0, wanted - len(old)))
    return Assessment(
        phase,
        f"being deleted: {', '.join(leaving)}" if is_done and leaving and not old and not behind else message,
        wanted,
        ready,
        is_done=is_done and not is_paused(cluster) and not leaving and not old and not behind,
        failure="; ".join(failed),
        again_in_s=min(again) if again else None,
    )


def _behind(objects: ClusterObjects) -> Iterator[str]:
    """Yield why an update is not done although every object is ready (CR-100)."""
    plane, topology = objects.control_plane, field_at(objects.cluster, "spec", "topology")
    for each in (plane, *objects.workers):
        if each is not None and Conditions(each).is_against("MachinesUpToDate"):
            yield f"{_name(each)}: {Conditions(each).in_words('MachinesUpToDate')}"
    yield from _of_other_templates(objects)
    if plane is None:
        return
    wanted, now = field_at(plane, "spec", "version"), field_at(plane, "status", "version")
    if now is not None and now != wanted:
        yield f"{_name(plane)}: version {now}, {wanted} wanted"
    if topology is None:
        return
    for owner, part, path in (
        (plane, part_of(objects.cluster, CONTROL_PLANE_VDU), ("spec", "version")),
        *(
            (each, part_of(objects.cluster, part_name(each)), ("spec", "template", "spec", "version"))
            for each in objects.workers
        ),
    ):
        version, replicas = field_at(topology, "version"), field_at(part, "replicas")
        if version and field_at(owner, *path) not in (None, version):
            yield f"{_name(owner)}: version {field_at(owner, *path)}, {version} wanted by the topology"
        if replicas is not None and field_at(owner, "spec", "replicas") != replicas:
            yield f"{_name(owner)}: {field_at(owner, 'spec', 'replicas')} replicas, {replicas} wanted by the topology"


def _of_other_templates(objects: ClusterObjects) -> Iterator[str]:
    """Yield the Machines that were made from another template than the one that their MachineDeployment has now.

    Cluster API marks such a Machine only after it has observed the MachineDeployment: until then, each count and each condition
    says that the roll-out is done before it has begun.
    """
    deployments = {name_of(each): each for each in objects.workers}
    sets = {name_of(each): each for each in objects.sets}
    for each in objects.machines:
        deployment = deployments.get(str(labels_of(each).get(DEPLOYMENT_LABEL)))
        made_from = sets.get(owner_of_kind(each, "MachineSet"))
        if deployment is None or made_from is None or is_leaving(each):
            continue
        if _made_of(made_from) != _made_of(deployment):
            yield f"{_name(deployment)}: {_name(each)} is of its earlier template"


def _made_of(owner: Body) -> Sequence[object]:
    """Return what of a template a Machine is made of. References in another version name the same object."""
    spec = field_at(owner, "spec", "template", "spec")
    return [
        field_at(spec, *path)
        for path in (
            ("version",),
            ("infrastructureRef", "name"),
            ("bootstrap", "configRef", "name"),
            ("bootstrap", "dataSecretName"),
        )
    ]


def _phase(objects: ClusterObjects, seen: Observation) -> Phase:
    assert objects.cluster is not None
    if not is_infrastructure_ready(objects.cluster) or not endpoint_of(objects.cluster):
        return "infrastructure"
    if not is_initialized(objects.cluster):
        return "control_plane"
    control_plane = objects.control_plane
    if control_plane is not None and not judge(control_plane, seen).is_current:
        return "control_plane"
    return "workers"


def _message(objects: ClusterObjects, verdicts: Sequence[tuple[Body, Verdict]], phase: Phase) -> str:
    cluster = objects.cluster
    assert cluster is not None
    if is_paused(cluster):
        return PAUSED
    judged = next(verdict for each, verdict in verdicts if each is cluster)
    said = judged.message
    if judged.is_current:
        # A Cluster of v1beta1 is Ready before its workers are.
        open_ones = (pair for pair in verdicts if not pair[1].is_current and pair[0].get("kind") != "Machine")
        said = next((f"{_name(each)}: {verdict.message}" for each, verdict in open_ones), "")
    return _with_reason(said or judged.status, objects, verdicts, phase)


def _with_reason(said: str, objects: ClusterObjects, verdicts: Sequence[tuple[Body, Verdict]], phase: Phase) -> str:
    why = next((text for text in _reasons(objects, verdicts, phase) if text not in said), "")
    return f"{said}; {why}" if why else said


def _reasons(objects: ClusterObjects, verdicts: Sequence[tuple[Body, Verdict]], phase: Phase) -> Iterator[str]:
    """Yield what objects of the present phase say about the condition that is False, those nearest to the cause first."""
    is_plane = phase == "control_plane"
    nearest: Sequence[Body | None] = (
        [objects.infrastructure]
        if phase == "infrastructure"
        else [
            *(each for each in objects.machines if is_of_control_plane(each) is is_plane and not is_leaving(each)),
            *([objects.control_plane] if is_plane else objects.workers),
        ]
    )
    for each in nearest:
        verdict = next((verdict for judged, verdict in verdicts if judged is each), None)
        if each is None or verdict is None or verdict.is_current:
            continue
        if message := _why(each):
            yield f"{_name(each)}: {message}"
    if is_plane and objects.cluster is not None:
        # Its object may not exist.
        yield f"control plane: {Conditions(objects.cluster).in_words('ControlPlaneAvailable')}"


def _why(body: Body) -> str:
    """Return why an object is not ready. That a Machine is to be replaced, or waits to be so, is not why."""
    said = Conditions(body)
    # Without a Machine there is no other condition that says what blocks the first one.
    scaling = said["ScalingUp"]
    if scaling is not None and scaling.is_true and scaling.message:
        return f"{scaling.type}: {scaling.message}"
    return said.first_false(_NO_REASONS)


def _replicas(objects: ClusterObjects) -> tuple[int, int]:
    found = [counts(each) for each in (objects.control_plane, *objects.workers) if each is not None]
    done = [min(each["readyReplicas"], each.get("upToDateReplicas", each["readyReplicas"])) for each in found]
    return sum(each["wanted"] for each in found), sum(done)


def lacks_network(objects: ClusterObjects) -> bool:
    """Return whether the API server answers and the node of no Machine is Ready (CR-047)."""
    if objects.cluster is None or not is_initialized(objects.cluster):
        return False
    joined = [each for each in objects.machines if field_at(each, "status", "nodeRef")]
    return bool(joined) and all(Conditions(each).is_against("NodeHealthy") for each in joined)


def _leaving(objects: ClusterObjects) -> list[str]:
    return [_name(each) for each in objects.machines if is_leaving(each)]


def _older(objects: ClusterObjects, than: datetime) -> list[Body]:
    """Return the Machines that a roll-out has yet to replace; those of a MachinePool are not rolled out."""
    return [
        each
        for each in objects.machines
        if POOL_LABEL not in labels_of(each)
        and datetime.fromisoformat(str(field_at(each, "metadata", "creationTimestamp"))) < than
    ]


def _name(body: Body) -> str:
    return f"{body.get('kind')} {field_at(body, 'metadata', 'name')}"
