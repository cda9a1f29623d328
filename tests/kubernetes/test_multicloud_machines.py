"""Virtual machines as the workload of a VDU, on a real API server: the test makes the instances that KubeVirt would make."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from callers.user import User
from packages.kubernetes_objects import an_object
from packages.kubevirt import a_machine, a_pool, an_instance, an_instance_set
from patience import until
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered
from real.region_packages import MACHINE_SET

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

OUT: Body = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
READY: Body = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-11-26T10:00:00Z"}

PLACES: Final = {
    "VirtualMachine": "kubevirt.io/v1/namespaces/{}/virtualmachines",
    "VirtualMachineInstance": "kubevirt.io/v1/namespaces/{}/virtualmachineinstances",
    "VirtualMachineInstanceReplicaSet": "kubevirt.io/v1/namespaces/{}/virtualmachineinstancereplicasets",
    "VirtualMachinePool": "pool.kubevirt.io/v1beta1/namespaces/{}/virtualmachinepools",
    "DataVolume": "cdi.kubevirt.io/v1beta1/namespaces/{}/datavolumes",
}


def machine_is(shown: str, *conditions: Body, created: bool = True, **more: Any) -> Body:
    """Return a status that KubeVirt writes for a machine."""
    return {"printableStatus": shown, "created": created, "conditions": list(conditions), **more}


def condition(type: str, status: str, message: str = "", reason: str = "Reason") -> Body:
    """Return a condition."""
    return {**READY, "type": type, "status": status, "reason": reason, "message": message}


RUNNING: Final = machine_is("Running", READY)
NEVER_RUN: Final = machine_is("Stopped", created=False)
ENDED: Final = machine_is("Stopped")
STARTING: Final = machine_is("Starting")
STATES: Final[Mapping[str, tuple[tuple[Body, str], ...]]] = {
    "Always": (
        (RUNNING, "Current"), (machine_is("Running"), "InProgress"), (ENDED, "InProgress"),
        (NEVER_RUN, "InProgress"), (machine_is("Unknown"), "InProgress"),
    ),
    "RerunOnFailure": ((RUNNING, "Current"), (NEVER_RUN, "InProgress"), (STARTING, "InProgress"), (ENDED, "Current")),
    "Once": (
        (RUNNING, "Current"), (NEVER_RUN, "InProgress"), (ENDED, "Current"),
        (machine_is("Stopped", condition("Failure", "True", "exit 3")), "Failed"),
    ),
    "Manual": ((RUNNING, "Current"), (STARTING, "InProgress"), (NEVER_RUN, "Current"), (ENDED, "Current")),
    "Halted": ((NEVER_RUN, "Current"), (ENDED, "InProgress"), (RUNNING, "InProgress")),
    "WaitAsReceiver": (
        (machine_is("WaitingForReceiver"), "Current"), (NEVER_RUN, "InProgress"), (RUNNING, "Current"),
    ),
}  # fmt: skip
"""By run strategy, what KubeVirt may write and how it is judged (MC-063); the first of each is that of a bring-up."""
DISK: Final = an_object(
    "DataVolume", "disk", api_version="cdi.kubevirt.io/v1beta1",
    spec={"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
)  # fmt: skip
_SAID: Final = condition("Ready", "False", "seen by a test")
ERRORS: Final[tuple[tuple[Body, Body, str], ...]] = (
    *(
        (a_machine("vm"), machine_is(shown, _SAID), f"{shown}: seen by a test")
        for shown in (
            "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError", "CrashLoopBackOff"
        )
    ),
    (an_instance("vmi"), {"phase": "Failed", "conditions": [_SAID]}, "phase Failed: seen by a test"),
    (
        an_instance("vmi"),
        {"phase": "Scheduling", "conditions": [condition("PodScheduled", "False", "0/3 nodes", "Unschedulable")]},
        "Unschedulable: 0/3 nodes",
    ),
    *(
        (body, {"replicas": 1, "conditions": [condition("ReplicaFailure", "True", "quota")]}, "ReplicaFailure: quota")
        for body in (an_instance_set("set"), a_pool("pool"))
    ),
    (DISK, {"phase": "Failed"}, "phase Failed"),
)  # fmt: skip
"""Manifests, a status that ends the wait for them at once, and the text of the error (MC-062)."""


def package(*bodies: Body) -> dict[str, str]:
    """Return the files of a package of these objects."""
    files = {f"{body['kind'].lower()}-{body['metadata']['name']}.yaml": json.dumps(body) for body in bodies}
    return {"artifact-order.yaml": json.dumps({"artifacts": [{"file": each} for each in files]}), **files}


def path_of(body: Body, namespace: str) -> str:
    """Return the path of an object of KubeVirt or CDI."""
    return f"/apis/{PLACES[body['kind']].format(namespace)}/{body['metadata']['name']}"


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


async def test_a_set_of_virtual_machines_is_scaled_and_healed_by_sol003(region: RealRegion) -> None:
    """MC-001, MC-062 (scenario 3)."""
    user, place = region.user, region.place()
    vnf = await region.start(await region.onboard(MACHINE_SET), namespace=place)
    path = f"/apis/kubevirt.io/v1/namespaces/{place}"
    web, instances = f"{path}/virtualmachineinstancereplicasets/web", f"{path}/virtualmachineinstances"

    async def wants(count: int) -> Body:
        async def found() -> Body | None:
            body = await region.cluster.get(web)
            return body if body is not None and body["spec"]["replicas"] == count else None

        return dict(await until(found, timeout_s=60))

    async def run(owner: Body, name: str) -> None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "web"}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True}
        labels = owner["spec"]["template"]["metadata"]["labels"]
        made: Body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
            "spec": owner["spec"]["template"]["spec"],
        }
        await region.cluster.make(instances, made)
        interface = {"name": "default", "ipAddress": "10.66.1.5"}
        status = {"phase": "Running", "nodeName": "node-1", "interfaces": [interface], "conditions": [READY]}
        await region.write_status(f"{instances}/{name}", status)

    async def count(number: int) -> None:
        await region.write_status(web, {"replicas": number, "readyReplicas": number, "labelSelector": "app=web"})

    async def vnfcs() -> dict[str, str]:
        listed = (await user.instance(vnf["vnf_id"]))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return {each["id"]: each["computeResource"]["vimLevelResourceType"] for each in listed}

    # The instantiation level, not the manifest, says how many.
    owner = await wants(2)
    for name in ("web-a", "web-b"):
        await run(owner, name)
    await count(2)
    await region.settled(vnf)
    assert await vnfcs() == dict.fromkeys(("web-a", "web-b"), "VirtualMachineInstanceReplicaSet")

    operation = await user.start(vnf["vnf_id"], "scale", OUT)
    await run(await wants(3), "web-c")
    await count(3)
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert set(await vnfcs()) == {"web-a", "web-b", "web-c"}

    operation = await user.start(vnf["vnf_id"], "heal", {"vnfcInstanceId": ["web-a"]})

    async def is_gone() -> bool | None:
        return await region.cluster.get(f"{instances}/web-a") is None or None

    await until(is_gone, timeout_s=60)
    await run(owner, "web-d")
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert set(await vnfcs()) == {"web-b", "web-c", "web-d"}
    await region.remove(vnf)
    assert await region.is_empty(place)


async def test_each_run_strategy_has_states_of_its_own(region: RealRegion) -> None:
    """MC-049, MC-062, MC-063 (scenario 3): all strategies in one VNF, brought up, and then in each state that KubeVirt may write."""
    machines = {each: a_machine(each.lower(), run_strategy=each) for each in STATES}
    place = region.place()
    vnf = await region.start(await region.onboard(package(*machines.values())), namespace=place)

    async def write(strategy: str, status: Body) -> None:
        await region.write_status(path_of(machines[strategy], place), status)

    one = f"/vnf_instances/{vnf['vnf_id']}"
    for strategy, states in STATES.items():
        assert (await region.call("GET", one)).must(200).json["status"] == "CREATING"
        await write(strategy, states[0][0])
    vnf = await region.settled(vnf)
    for number in range(1, max(map(len, STATES.values()))):
        now = {each: states[min(number, len(states) - 1)] for each, states in STATES.items()}
        await asyncio.gather(*(write(each, status) for each, (status, _) in now.items()))
        shown = (await region.call("GET", f"{one}/status")).must(200).json["resources"]
        judged = {each["name"]: each["judgement"] for each in shown if each["kind"] == "VirtualMachine"}
        assert judged == {each.lower(): judgement for each, (_, judgement) in now.items()}

    await write("Always", machine_is("Running", READY, condition("RestartRequired", "True")))
    shown = (await region.call("GET", f"{one}/status")).must(200).json["resources"]
    assert [each["name"] for each in shown if each.get("restart_required")] == ["always"]
    await region.remove(vnf)
    assert await region.is_empty(place)


async def test_each_error_state_ends_the_wait_at_once(region: RealRegion) -> None:
    """MC-020, MC-062 (scenario 3): each in a VNF of its own, at the same time."""
    kinds = {each["kind"]: each for each, _, _ in ERRORS}
    packages = {kind: await region.onboard(package(body)) for kind, body in kinds.items()}

    async def fails(body: Body, status: Body, text: str) -> None:
        place = region.place()
        vnf = await region.start(packages[body["kind"]], namespace=place)
        await region.write_status(path_of(body, place), status)
        vnf = await region.settled(vnf, "FAILED")
        assert text in vnf["status_detail"], vnf
        assert f"{body['kind']} {place}/{body['metadata']['name']}" in vnf["status_detail"], vnf
        await region.remove(vnf)
        assert await region.is_empty(place)

    await asyncio.gather(*(fails(*each) for each in ERRORS))


async def test_an_error_that_names_a_disk_of_the_same_set_is_awaited(region: RealRegion) -> None:
    """MC-062 (scenario 3): KubeVirt clears the error after the disk is filled."""
    place, machine = region.place(), a_machine("vm")
    vnf = await region.start(await region.onboard(package(DISK, machine)), namespace=place)
    await region.write_status(path_of(DISK, place), {"phase": "ImportInProgress"})
    early = machine_is("DataVolumeError", condition("Ready", "False", "DataVolume disk is not filled"), created=False)
    await region.write_status(path_of(machine, place), early)
    operation = vnf["operation"].rpartition("/")[2]

    async def says_so() -> bool | None:
        view = (await region.user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json
        assert view["state"] == "PROCESSING", view
        return "DataVolumeError: DataVolume disk is not filled" in json.dumps(view) or None

    await until(says_so, timeout_s=60)
    await region.write_status(path_of(DISK, place), {"phase": "Succeeded"})
    await region.write_status(path_of(machine, place), RUNNING)
    await region.remove(await region.settled(vnf))
    assert await region.is_empty(place)
