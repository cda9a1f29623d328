"""Decides whether virtual machines of KubeVirt, and the disks that CDI fills for them, are ready (multicloud.md MC-062, MC-063).

Source: KubeVirt's API (``printableStatus``, run strategies) and that of the Containerized Data Importer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from kubevnfm_infra_k8s.domain.objects import Body, condition, conditions, field_at, group_of
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, Observation, Status, Verdict, failed, in_progress

MACHINE: Final = ("kubevirt.io", "VirtualMachine")
DISKS: Final = frozenset({"DataVolume", "PersistentVolumeClaim", "Secret"})
"""The kinds of which a machine may have to wait for one of the same set, which its error names."""
_ERRORS: Final = frozenset(
    {
        "CrashLoopBackOff",
        "DataVolumeError",
        "ErrImagePull",
        "ErrorPvcNotFound",
        "ErrorUnschedulable",
        "ImagePullBackOff",
    }
)
_ON_REQUEST: Final = frozenset({"Manual", "RerunOnFailure"})
"""The run strategies by which KubeVirt starts no machine whose instance was deleted; its subresource ``restart`` does."""
_LONGEST_MESSAGE: Final = 500
_POPULATED_LATER: Final = frozenset({"Succeeded", "WaitForFirstConsumer", "PendingPopulation"})


def _machine(body: Body, seen: Observation) -> Verdict:
    shown = str(field_at(body, "status", "printableStatus") or "")
    if shown in _ERRORS:
        said = _false_condition(body)
        text = f"{shown}: {said}" if said else shown
        is_waiting = _names_one(said, seen)
        return Verdict(Status.IN_PROGRESS, text, again_in_s=seen.settle_s) if is_waiting else failed(text)
    strategy = run_strategy(body)
    is_running = shown == "Running" and _is_true(body, "Ready")
    # The field has the default Stopped, so that a machine that was never started shows it too.
    has_instance = field_at(body, "status", "created") is True
    is_at_rest = shown == "Stopped" and bool(body.get("status"))
    if strategy == "Once" and _is_true(body, "Failure"):
        return failed(f"its guest has failed: {_message(condition(body, 'Failure'))}")
    is_ready = {
        "Halted": is_at_rest and not has_instance,
        "Manual": is_running or is_at_rest,
        "Once": is_running or (is_at_rest and has_instance),
        "RerunOnFailure": is_running or (is_at_rest and has_instance),
        "WaitAsReceiver": is_running or shown == "WaitingForReceiver",
    }.get(strategy, is_running)
    return CURRENT if is_ready else in_progress(f"{shown or 'no status yet'}, run strategy {strategy}")


def needs_restart_request(body: Body) -> bool:
    """Return whether KubeVirt starts the machine again by a request alone, and not when its instance is deleted."""
    return run_strategy(body) in _ON_REQUEST


def _is_ending(body: Body) -> bool:
    return bool(field_at(body, "metadata", "deletionTimestamp"))


def obstacle_to_restart(body: Body, *, is_there: bool) -> str:
    """Return why KubeVirt would not start the machine again; "" if it would. ``is_there``: whether it has an instance."""
    strategy = run_strategy(body)
    if _is_ending(body):
        return "it is being deleted"
    if strategy == "Halted":
        return "its run strategy is Halted, so that it is not to run"
    if strategy in _ON_REQUEST and not is_there and not _is_being_started(body):
        return f"it is stopped, and its run strategy {strategy} does not start it"
    return ""


def obstacle_to_replacement(body: Body) -> str:
    """Return why a set would not make another instance in place of one that ends; "" if it would."""
    if _is_ending(body):
        return "it is being deleted"
    return "it is paused, so that it makes no instance" if field_at(body, "spec", "paused") is True else ""


def _is_being_started(body: Body) -> bool:
    requests = field_at(body, "status", "stateChangeRequests")
    return any(field_at(each, "action") == "Start" for each in (requests if isinstance(requests, list) else ()))


def is_restart_required(body: Body) -> bool:
    """Return whether a change of the machine waits for its next start (multicloud.md MC-063)."""
    running, wanted = (field_at(body, "status", name) for name in ("observedGeneration", "desiredGeneration"))
    is_behind = isinstance(running, int) and isinstance(wanted, int) and running < wanted
    kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    return kind == MACHINE and (_is_true(body, "RestartRequired") or is_behind)


def run_strategy(body: Body) -> str:
    """Return the run strategy of a machine."""
    given = field_at(body, "spec", "runStrategy")
    if isinstance(given, str):
        return given
    return "Halted" if field_at(body, "spec", "running") is False else "Always"


def _instance(body: Body, _: Observation) -> Verdict:
    phase = field_at(body, "status", "phase")
    if phase == "Succeeded" or (phase == "Running" and _is_true(body, "Ready")):
        return CURRENT
    scheduled = condition(body, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return failed(f"Unschedulable: {_message(scheduled)}")
    if phase == "Failed":
        said = _false_condition(body)
        return failed(f"phase Failed: {said}" if said else "phase Failed")
    return in_progress(f"phase {phase or 'unknown'}")


def _set(body: Body, _: Observation) -> Verdict:
    if _is_true(body, "ReplicaFailure"):
        return failed(f"ReplicaFailure: {_message(condition(body, 'ReplicaFailure'))}")
    given = field_at(body, "spec", "replicas")
    wanted = given if isinstance(given, int) else 1
    there, ready = (_count(body, name) for name in ("replicas", "readyReplicas"))
    if there == ready == wanted and body.get("status"):
        return CURRENT
    paused = ", paused" if field_at(body, "spec", "paused") is True else ""
    return in_progress(f"{ready} of {wanted} ready, {there} there{paused}")


def _data_volume(body: Body, _: Observation) -> Verdict:
    phase = field_at(body, "status", "phase")
    if phase == "Failed":
        said = _false_condition(body)
        return failed(f"phase Failed: {said}" if said else "phase Failed")
    # The others are filled when their first pod comes, as a claim of such a class is bound.
    return CURRENT if phase in _POPULATED_LATER else in_progress(f"phase {phase or 'unknown'}")


def _is_true(body: Body, type: str) -> bool:
    return (condition(body, type) or {}).get("status") == "True"


def _count(body: Body, name: str) -> int:
    value = field_at(body, "status", name)
    return value if isinstance(value, int) else 0


def _false_condition(body: Body) -> str:
    """Return the message of the first condition that is False; "" if none has one."""
    false = (_message(each) for each in conditions(body) if each.get("status") == "False")
    return next((text for text in false if text), "")


def _message(found: Body | None) -> str:
    return str((found or {}).get("message") or (found or {}).get("reason") or "")[:_LONGEST_MESSAGE]


def _names_one(said: str, seen: Observation) -> bool:
    return bool(seen.unready.intersection(re.findall(r"[\w.-]+", said)))


RULES: Final[Mapping[tuple[str, str], Callable[[Body, Observation], Verdict]]] = {
    MACHINE: _machine,
    ("kubevirt.io", "VirtualMachineInstance"): _instance,
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _set,
    ("pool.kubevirt.io", "VirtualMachinePool"): _set,
    ("cdi.kubevirt.io", "DataVolume"): _data_volume,
}
