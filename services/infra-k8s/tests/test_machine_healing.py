"""Heal of workload clusters on the lab's stand-in for Cluster API: which Machines are replaced, how, and how often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from kubevnfm_events.capi import (
    ClusterReached,
    ClusterTimeouts,
    MachineFacts,
    MachineReplaced,
)
from kubevnfm_infra_k8s.domain.errors import ClusterFailed, ClusterNotReady, MachinesMissing, QuorumAtRisk
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_lab.kubernetes.watches import Watch
from kubevnfm_worker.outcome import NotYet
from patience import until
from worlds.capi_management import MACHINES, Management, managed


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


def of_vdu(reached: ClusterReached | MachineReplaced, vdu_id: str) -> list[MachineFacts]:
    return [each for each in reached.machines if each.vdu_id == vdu_id]


async def spoil(management: Management, labs: LabClusters, machine: MachineFacts, reached: ClusterReached) -> None:
    """Let the node of a Machine become NotReady; wait until the Machine says so."""
    # A node that was never ready would become so afterwards.
    await management.seen("NodeHealthy", "True", machine.name)
    host, _, port = reached.endpoint.removeprefix("https://").partition(":")
    workload = labs.find(host, int(port))
    assert workload is not None
    assert machine.node is not None

    def not_ready(node: Any) -> None:
        for condition in node["status"]["conditions"]:
            if condition["type"] == "Ready":
                condition.update(status="Unknown", reason="NodeStatusUnknown", message="kubelet stopped posting")

    workload.registry.change("nodes", Key("", machine.node), not_ready)
    await management.seen("NodeHealthy", "False", machine.name)


@pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1", "capi-workload-class"])
async def test_one_machine_is_replaced_by_one_new_one(management: Management, sample: str) -> None:
    """CR-113: a worker, in each form of package; the others stay, and a repeated command deletes nothing."""
    vdus = management.vdus_of(sample)
    before = await management.built(sample, vdus=vdus)
    worker = of_vdu(before, "worker")[0]
    checked = await management.check(worker, vdus=vdus)
    assert checked.chosen == (worker,)
    seen = management.deletions()
    after = await management.replace(worker, before.machines, vdus=vdus)
    names, left = {each.name for each in before.machines}, {each.name for each in after.machines}
    assert (names - left, len(left - names)) == ({worker.name}, 1)
    assert all(each.node and each.provider_id for each in after.machines)
    assert (await management.replace(worker, before.machines, vdus=vdus)).machines == after.machines
    assert set(seen) == {worker.name}


async def test_a_call_that_was_interrupted_deletes_no_second_machine(management: Management) -> None:
    """CR-113: the Machine is known by its uid."""
    before = await management.built()
    worker = of_vdu(before, "worker")[0]
    seen = management.deletions()
    # As a worker that was killed after the deletion: its successor begins at once, and again while the new one boots.
    management.handlers = management.with_wait(0.0)
    outcomes = [await management.replaced(worker, before.machines) for _ in range(3)]
    assert any(isinstance(each, NotYet) for each in outcomes)
    management.handlers = management.with_wait(5.0)
    after = await management.replace(worker, before.machines)
    assert len(of_vdu(after, "worker")) == 2
    assert set(seen) == {worker.name}


async def test_a_control_plane_keeps_its_majority_unless_that_is_forced(
    management: Management, labs: LabClusters
) -> None:
    """CR-114: 1 of 1; one of 3; one of 3 while another one is not healthy."""
    before = await management.built()
    (only,) = of_vdu(before, "controlPlane")
    with pytest.raises(QuorumAtRisk, match=r"0 of 0 members .* and 1 are needed .*force: true") as refused:
        await management.check(only)
    assert refused.value.status == 409
    with pytest.raises(QuorumAtRisk):
        await management.replaced(only, before.machines)
    assert (await management.check(only, is_forced=True)).chosen == (only,)

    await management.scale_control_plane(3)
    three = await management.wait("available", attempt=2, is_settled=True)
    first, second, third = of_vdu(three, "controlPlane")

    async def chosen(machine: MachineFacts) -> list[str] | None:
        # A control plane is available before all its Machines are healthy, and one can be so for a moment.
        with suppress(QuorumAtRisk):
            return [each.name for each in (await management.check(machine)).chosen]
        return None

    async def replaced() -> MachineReplaced | None:
        with suppress(QuorumAtRisk):
            return await management.replace(first, three.machines)
        return None

    assert await until(partial(chosen, first)) == [first.name]
    after = await until(replaced)
    assert len(of_vdu(after, "controlPlane")) == 3
    await spoil(management, labs, second, before)
    with pytest.raises(QuorumAtRisk, match=f"1 of 2 members .* and 2 are needed; not healthy: {second.name}"):
        await management.check(third)
    with pytest.raises(QuorumAtRisk):
        await management.replaced(third, after.machines)
    # The one that is not healthy may go: the two others are.
    assert await until(partial(chosen, second)) == [second.name]


async def test_a_majority_is_counted_by_what_is_stored_not_by_a_watch_that_lags(
    management: Management, labs: LabClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CR-114: both the choice and the deletion; a heal of a second member would lose the control plane."""
    before = await management.built()
    await management.scale_control_plane(3)
    three = await management.wait("available", attempt=2, is_settled=True)
    _, second, third = of_vdu(three, "controlPlane")
    for each in of_vdu(three, "controlPlane"):
        await management.seen("NodeHealthy", "True", each.name)
    async with management.watched():
        monkeypatch.setattr(Watch, "_line", lambda watch, change: None)
        await spoil(management, labs, second, before)
        with pytest.raises(QuorumAtRisk, match=f"not healthy: {second.name}"):
            await management.check(third)
        seen = management.deletions()
        with pytest.raises(QuorumAtRisk, match=f"not healthy: {second.name}"):
            await management.replaced(third, three.machines)
        assert not seen


async def test_a_health_check_is_asked_to_remediate(management: Management) -> None:
    """CR-115: only for the Machines that it selects; elsewhere the Machine is deleted."""
    before = await management.built()
    kept, other = of_vdu(before, "worker")
    await management.health_check({"matchLabels": {"cluster.x-k8s.io/deployment-name": "workload-md-0"}})
    annotated: list[str] = []

    def look(change: Any) -> None:
        annotations = change.obj["metadata"].get("annotations") or {}
        if change.resource == MACHINES and "cluster.x-k8s.io/remediate-machine" in annotations:
            annotated.append(change.key.name)

    management.lab.store.subscribe(look)
    after = await management.replace(kept, before.machines)
    assert set(annotated) == {kept.name}
    annotated.clear()
    key = ObjectKey("cluster.x-k8s.io/v1beta2", "Machine", "default", other.name)
    machines = Resource(key.api_version, "Machine", "machines", namespaced=True)
    async with management.site.cluster() as cluster:
        await cluster.patch(machines, key, {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}})
    await management.replace(other, after.machines)
    assert annotated == []


async def test_machines_that_do_not_exist_are_listed_before_anything_is_deleted(management: Management) -> None:
    """CR-118: an error of type 404, with all their names."""
    before = await management.built()
    worker = of_vdu(before, "worker")[0]
    gone = [worker.model_copy(update={"name": name, "uid": name}) for name in ("gone-1", "gone-2")]
    seen = management.deletions()
    with pytest.raises(MachinesMissing, match="the cluster has no Machines gone-1, gone-2") as refused:
        await management.check(worker, *gone)
    assert refused.value.status == 404
    assert seen == []


async def test_machines_that_are_not_healthy_are_found_workers_first(management: Management, labs: LabClusters) -> None:
    """CR-116: the healthy ones stay, and if all are healthy there is nothing to do."""
    before = await management.built()
    assert (await management.check()).chosen == ()
    assert any("there is nothing to do" in each for each in management.messages())
    (only,), (worker, _) = of_vdu(before, "controlPlane"), of_vdu(before, "worker")
    for each in (only, worker):
        await spoil(management, labs, each, before)
    chosen = (await management.check(is_forced=True)).chosen
    assert [each.name for each in chosen] == [worker.name, only.name]
    after = await management.replace(worker, before.machines)
    assert worker.name not in {each.name for each in after.machines}


async def test_a_machine_that_still_boots_is_no_reason_to_heal(management: Management, faults: FaultBook) -> None:
    """CR-116: until the time of its phase is over."""
    before = await management.built()
    worker = of_vdu(before, "worker")[0]
    faults.add(part="capi", verb="boot workload-md-0*", effect="fail", message="no host has room")
    management.handlers = management.with_wait(1.0)
    with pytest.raises(ClusterNotReady, match=r"not replaced in time: gone, Machine workload-md-0.*no host has room"):
        await management.replace(worker, before.machines, wait_timeout_s=2.0)
    assert (await management.check()).chosen == ()
    (booting,) = (await management.check(timeouts=ClusterTimeouts(workers=0.001))).chosen
    assert booting.node is None


async def test_a_new_machine_that_has_failed_for_good_ends_the_heal(management: Management, faults: FaultBook) -> None:
    """CR-113: the error names it."""
    before = await management.built("capi-workload-v1beta1")
    worker = of_vdu(before, "worker")[0]
    faults.add(part="capi", verb="boot workload-md-0*", effect="fail", status=422, message="flavor is gone")
    with pytest.raises(ClusterFailed, match=r"Machine default/workload-md-0.*flavor is gone"):
        await management.replace(worker, before.machines)
