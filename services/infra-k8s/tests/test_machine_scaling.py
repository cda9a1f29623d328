"""Scaling of workload clusters on the lab's stand-in: which Machines leave, and the limits of an autoscaler."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import ClusterFailed, MachinesMissing, ObjectsNotReady, OutsideAutoscaler
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key, value_at
from worlds.capi_management import CLASS_VDUS, Management, files_of, managed

WORKERS = Key("default", "workload-md-0")
DEPLOYMENTS = "machinedeployments.cluster.x-k8s.io"
LIMIT = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


async def test_chosen_machines_leave_first(management: Management) -> None:
    """CR-090: also when the command comes twice; a chosen one that is gone already ends it before others leave."""
    reached = await management.built()
    await management.scale_workers(3)
    three = await management.wait("available", attempt=2, is_settled=True)
    chosen, *others = (each for each in three.machines if each.vdu_id == "worker")
    for operation in ("op3", "op3"):
        await management.scale_workers(2, chosen, operation=operation)
    left = await management.wait("available", attempt=3, is_settled=True)
    assert {each.uid for each in left.machines} == {each.uid for each in three.machines} - {chosen.uid}
    with pytest.raises(MachinesMissing, match=f"has no Machines {chosen.name}"):
        await management.scale_workers(1, chosen, operation="op4")
    assert value_at(management.lab.store.get(DEPLOYMENTS, WORKERS), "spec", "replicas") == 2
    assert len(others) == len(reached.machines) - 1


async def test_a_scale_out_whose_machine_fails_for_good_goes_back(management: Management, faults: FaultBook) -> None:
    """CR-093: the failed Machine ends the wait for it, and not the one after the way back."""
    before = await management.built("capi-workload-v1beta1")
    faults.add(part="capi", verb="boot workload-md-0-*", effect="fail", status=422, message="no such flavor")
    with pytest.raises(ObjectsNotReady, match="2 of 3 ready"):
        await management.scale_workers(3, wait_timeout_s=2.0)
    with pytest.raises(ClusterFailed, match="no such flavor"):
        await management.wait("available", attempt=2, is_settled=True)
    await management.scale_workers(2, operation="back")
    after = await management.wait("available", attempt=3, is_settled=True)
    assert {each.uid for each in after.machines} == {each.uid for each in before.machines}


async def test_an_autoscaler_owns_numbers_in_a_topology_too(management: Management) -> None:
    """CR-091: the annotations of the topology's MachineDeployment."""
    files = files_of("capi-workload-class")
    limits = "".join(f'              {LIMIT.format(end)}: "{size}"\n' for end, size in (("min", 3), ("max", 5)))
    name, text = next((name, text) for name, text in files.items() if "          name: md-0\n" in text)
    found = "          name: md-0\n"
    files[name] = text.replace(found, f"{found}          metadata:\n            annotations:\n{limits}", 1)
    reached = await management.built("capi-workload-class", files=files, vdus=CLASS_VDUS)
    assert Counter(each.vdu_id for each in reached.machines) == {"controlPlane": 1, "worker": 3}


def autoscaled(least: str, most: str) -> dict[str, str]:
    """The sample, whose workers an autoscaler may change."""
    files = files_of("capi-workload")
    for name, text in files.items():
        found = "kind: MachineDeployment\nmetadata:\n"
        if found in text:
            limits = "".join(f'    {LIMIT.format(end)}: "{size}"\n' for end, size in (("min", least), ("max", most)))
            files[name] = text.replace(found, f"{found}  annotations:\n{limits}")
    return files


async def test_the_limits_of_an_autoscaler_hold(management: Management) -> None:
    """CR-091: an apply leaves the number to the autoscaler, and a scaling outside of its limits changes nothing."""
    files = autoscaled("1", "3")
    reached = await management.built(files=files)
    assert Counter(each.vdu_id for each in reached.machines) == {"controlPlane": 1, "worker": 1}
    await management.scale_workers(3)
    await management.wait("available", attempt=2, is_settled=True)
    for count, operation in ((0, "op3"), (4, "op4")):
        with pytest.raises(OutsideAutoscaler, match=rf"{count} replicas wanted, 1 to 3 expected") as refused:
            await management.scale_workers(count, operation=operation)
        assert refused.value.status == 422
    await management.apply(files=files, operation="op5", adopt=True)
    assert value_at(management.lab.store.get(DEPLOYMENTS, WORKERS), "spec", "replicas") == 3
