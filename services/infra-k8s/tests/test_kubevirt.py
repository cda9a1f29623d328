"""When virtual machines and their disks are ready, and which of their states end a wait (multicloud.md MC-062, MC-063; scenario 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubevnfm_csar.waits import WantedValue
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Seen
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import Observation, Status, Verdict
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

NOW = datetime(2026, 11, 26, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}
API_VERSIONS = {"VirtualMachinePool": "pool.kubevirt.io/v1beta1", "DataVolume": "cdi.kubevirt.io/v1beta1"}


def verdict(kind: str, spec: dict[str, Any], status: dict[str, Any] | None, *unready: str) -> Verdict:
    body = {"apiVersion": API_VERSIONS.get(kind, "kubevirt.io/v1"), "kind": kind, "metadata": {"generation": 7}}
    given = {} if status is None else {"status": status}
    return judge({**body, "spec": spec, **given}, Observation(NOW, unready=frozenset(unready)))


def of_machine(strategy: str, shown: str, *, created: bool = False, ready: bool = False, **more: Any) -> Verdict:
    status = {"printableStatus": shown, "created": created, "conditions": [READY] if ready else [], **more}
    return verdict("VirtualMachine", {"runStrategy": strategy}, status)


@pytest.mark.parametrize(
    ("strategy", "shown", "created", "is_ready"),
    [
        ("Always", "Running", True, True),
        ("Always", "Stopped", False, False),
        ("Always", "Stopped", True, False),
        ("Always", "Starting", True, False),
        ("Always", "Unknown", True, False),
        ("RerunOnFailure", "Running", True, True),
        ("RerunOnFailure", "Stopped", False, False),
        ("RerunOnFailure", "Stopped", True, True),
        ("Once", "Stopped", False, False),
        ("Once", "Stopped", True, True),
        ("Manual", "Stopped", False, True),
        ("Manual", "Running", True, True),
        ("Manual", "Starting", True, False),
        ("Halted", "Stopped", False, True),
        ("Halted", "Stopped", True, False),
        ("Halted", "Running", True, False),
        ("WaitAsReceiver", "WaitingForReceiver", True, True),
        ("WaitAsReceiver", "Running", True, True),
        ("WaitAsReceiver", "Stopped", False, False),
    ],
)
def test_each_run_strategy_has_a_state_of_its_own(strategy: str, shown: str, created: bool, is_ready: bool) -> None:
    """MC-063: the default Stopped counts only after the machine has run."""
    found = of_machine(strategy, shown, created=created, ready=shown == "Running")
    assert found.is_current is is_ready, found
    assert not found.is_final


def test_a_running_machine_has_to_be_ready_and_its_generation_is_not_waited_for() -> None:
    """MC-011, MC-063: KubeVirt writes the generation of the running machine."""
    assert of_machine("Always", "Running").status is Status.IN_PROGRESS
    assert of_machine("Always", "Running", ready=True, observedGeneration=3, desiredGeneration=7).is_current
    for running, shown in ((True, "Running"), (False, "Stopped")):
        status = {"printableStatus": shown, "conditions": [READY]}
        assert verdict("VirtualMachine", {"running": running}, status).is_current
    assert verdict("VirtualMachine", {"runStrategy": "Manual"}, None).status is Status.IN_PROGRESS
    assert of_machine("Once", "Stopped", created=True, conditions=[{"type": "Failure", "status": "True"}]).is_final
    wanted = WantedValue(("status", "printableStatus"), "{.status.printableStatus}", "Running")
    body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"generation": 7}}
    body |= {"status": {"printableStatus": "Running", "observedGeneration": 3}}
    assert judge(body, Observation(NOW, wanted=wanted)).is_current


@pytest.mark.parametrize(
    "shown",
    [
        "ErrorUnschedulable",
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrorPvcNotFound",
        "DataVolumeError",
        "CrashLoopBackOff",
    ],
)
def test_an_error_state_ends_the_wait_with_the_message_of_its_condition(shown: str) -> None:
    """MC-062: unless it names a claim or DataVolume of the same set that is still to come."""
    spec, said = {"runStrategy": "Always"}, [READY, {"type": "Synchronized", "status": "False", "message": "no disk-1"}]
    status = {"printableStatus": shown, "conditions": said}
    found = verdict("VirtualMachine", spec, status)
    assert (found.is_final, found.message) == (True, f"{shown}: no disk-1")
    assert verdict("VirtualMachine", spec, status, "disk").is_final, "another name"
    assert verdict("VirtualMachine", spec, status, "disk-1").status is Status.IN_PROGRESS


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}


@pytest.mark.parametrize(
    ("status", "expected", "message"),
    [
        ({"phase": "Running", "conditions": [READY]}, Status.CURRENT, ""),
        ({"phase": "Running"}, Status.IN_PROGRESS, "phase Running"),
        ({"phase": "Succeeded"}, Status.CURRENT, ""),
        ({"phase": "Failed"}, Status.FAILED, "phase Failed"),
        ({"phase": "Scheduling", "conditions": [UNSCHEDULABLE]}, Status.FAILED, "Unschedulable: 0/3 nodes"),
        (None, Status.IN_PROGRESS, "phase unknown"),
    ],
)
def test_an_instance_is_judged_by_its_phase(status: Any, expected: Status, message: str) -> None:
    """MC-062."""
    found = verdict("VirtualMachineInstance", {}, status)
    assert (found.status, found.message) == (expected, message)


@pytest.mark.parametrize("kind", ["VirtualMachineInstanceReplicaSet", "VirtualMachinePool"])
def test_a_set_has_as_many_ready_machines_as_it_wants(kind: str) -> None:
    """MC-062."""
    assert verdict(kind, {"replicas": 2}, {"replicas": 2, "readyReplicas": 2}).is_current
    assert verdict(kind, {"replicas": 0}, {"replicas": 0}).is_current
    assert not verdict(kind, {"replicas": 0}, None).is_current
    left = verdict(kind, {"replicas": 2, "paused": True}, {"replicas": 3, "readyReplicas": 2})
    assert (left.status, left.message) == (Status.IN_PROGRESS, "2 of 2 ready, 3 there, paused")
    failure = {"type": "ReplicaFailure", "status": "True", "message": "quota"}
    found = verdict(kind, {"replicas": 2}, {"replicas": 1, "conditions": [failure]})
    assert (found.is_final, found.message) == (True, "ReplicaFailure: quota")


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Succeeded", Status.CURRENT),
        ("WaitForFirstConsumer", Status.CURRENT),
        ("PendingPopulation", Status.CURRENT),
        ("ImportInProgress", Status.IN_PROGRESS),
        ("Failed", Status.FAILED),
    ],
)
def test_a_data_volume_is_judged_by_its_phase(phase: str, expected: Status) -> None:
    """MC-062."""
    assert verdict("DataVolume", {}, {"phase": phase}).status is expected


class _FilledLate:
    """A cluster, and its clock: the machine shows the error of its disk until it was judged with the filled disk."""

    endpoint = "https://k"

    def __init__(self) -> None:
        self.is_filled = False
        self.is_judged = asyncio.Event()

    def now(self) -> datetime:
        if self.is_filled:
            self.is_judged.set()
        return NOW

    def masked(self, text: str) -> str:
        return text

    async def follow(self, resource: Resource, **_: str) -> AsyncIterator[Seen[dict[str, Any]]]:
        if resource.kind == "DataVolume":
            yield self._seen(resource, "disk-1", "1", {"phase": "ImportInProgress"})
            yield self._seen(resource, "disk-1", "2", {"phase": "Succeeded"})
            return
        said = {"type": "Synchronized", "status": "False", "message": "no disk-1"}
        yield self._seen(resource, "vm", "1", {"printableStatus": "DataVolumeError", "conditions": [said]})
        self.is_filled = True
        await self.is_judged.wait()
        yield self._seen(resource, "vm", "2", {"printableStatus": "Running", "conditions": [READY]})
        await asyncio.Event().wait()

    @staticmethod
    def _seen(resource: Resource, name: str, version: str, status: dict[str, Any]) -> Seen[dict[str, Any]]:
        metadata = {"name": name, "generation": 1, "resourceVersion": version}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        return Seen({name: {**body, "spec": {"runStrategy": "Always"}, "status": status}}, is_all=version == "1")


async def test_a_machine_whose_disk_is_just_filled_has_time_to_see_it() -> None:
    """MC-062: the error that names the disk stays for a moment after the disk is ready."""
    filled: Any = _FilledLate()
    kinds = [("cdi.kubevirt.io/v1beta1", "DataVolume", "disk-1"), ("kubevirt.io/v1", "VirtualMachine", "vm")]
    awaited = [
        Awaited(ObjectKey(version, kind, "shop", name), Resource(version, kind, f"{kind.lower()}s", namespaced=True))
        for version, kind, name in kinds
    ]

    async def publish(_: object) -> None: ...

    deadline = NOW + timedelta(seconds=60)
    wait = ReadinessWait(filled, "vnf", filled, deadline, settle_s=60.0, expressions=filled)
    found = await wait.until_ready(awaited, Progress("ready", publish))
    assert found is not None
    assert found[awaited[1].key]["status"]["printableStatus"] == "Running"
