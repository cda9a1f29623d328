"""Replacing pods of a CNF, on the lab's cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectsApplied, PodFacts, VduTarget
from kubevnfm_infra_k8s.domain.errors import ObjectMissing, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_lab.faults import FaultBook

Make = Callable[..., dict[str, Any]]
VDUS = [VduTarget(vdu_id=name.upper(), name=name) for name in ("web", "set", "db", "agent", "bare")]
FILES = ["work.yaml"]


async def made(site: Any, make: Make, workload: Make) -> ObjectsApplied:
    """Deploy a workload of each kind that can implement a VDU."""
    work = [
        workload(name="web", replicas=3),
        workload("ReplicaSet", "set", replicas=2),
        workload("StatefulSet", "db", replicas=2),
        workload("DaemonSet", "agent"),
        make("Pod", "bare", spec={"containers": [{"name": "main", "image": "nginx:1.27"}]}),
    ]
    done: ObjectsApplied = await site.apply({"work.yaml": work}, vdus=VDUS)
    return done


def chosen(done: ObjectsApplied, counts: dict[str, int]) -> list[PodFacts]:
    """Return the first pods of each VDU."""
    return [pod for vdu, count in counts.items() for pod in [p for p in done.pods if p.vdu_id == vdu][:count]]


def uids(pods: Collection[PodFacts]) -> set[str]:
    return {pod.uid for pod in pods}


async def test_pods_of_each_kind_are_replaced_and_the_others_stay(site: Any, make: Make, workload: Make) -> None:
    """CR-034: as many new ones; a pod without a workload is created again from its manifest."""
    before = await made(site, make, workload)
    ill = chosen(before, {"WEB": 2, "SET": 1, "DB": 1, "AGENT": 1, "BARE": 1})
    after = await site.heal(ill, def_files=FILES, vdus=VDUS)
    assert uids(before.pods) - uids(after.pods) == uids(ill)
    count = {vdu.vdu_id: sum(pod.vdu_id == vdu.vdu_id for pod in before.pods) for vdu in VDUS}
    assert count == {vdu.vdu_id: sum(pod.vdu_id == vdu.vdu_id for pod in after.pods) for vdu in VDUS}
    assert {one.name: one.uid for one in after.objects}["bare"] in uids(after.pods)
    # The inventory knows the new pod, so that a termination deletes it.
    await site.delete()
    async with site.cluster() as cluster:
        pods = await cluster.resource("v1", "Pod")
        assert await cluster.get(pods, ObjectKey("v1", "Pod", "default", "bare")) is None


async def test_a_repeated_heal_replaces_no_pod_twice(site: Any, make: Make, workload: Make) -> None:
    before = await made(site, make, workload)
    ill = chosen(before, {"WEB": 1, "DB": 1, "BARE": 1})
    first = await site.heal(ill, def_files=FILES, vdus=VDUS)
    assert uids((await site.heal(ill, def_files=FILES, vdus=VDUS)).pods) == uids(first.pods)


async def test_a_heal_that_was_interrupted_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    ill = chosen(before, {"WEB": 3, "SET": 1, "BARE": 1})
    for after in range(0, 16, 4):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.heal(ill, def_files=FILES, vdus=VDUS))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    healed = await site.heal(ill, def_files=FILES, vdus=VDUS)
    assert uids(before.pods) - uids(healed.pods) == uids(ill)
    assert len(healed.pods) == len(before.pods)


async def test_pods_that_are_gone_already_count_as_replaced(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    (bare,) = chosen(before, {"BARE": 1})
    pods = await cluster.resource("v1", "Pod")
    assert pods is not None
    await cluster.delete(pods, ObjectKey("v1", "Pod", "default", "bare"), uid=bare.uid)
    after = await site.heal([bare], def_files=FILES, vdus=VDUS)
    assert bare.uid not in uids(after.pods)
    assert [pod.name for pod in after.pods if pod.vdu_id == "BARE"] == ["bare"]


async def test_a_pod_that_no_manifest_has_is_not_deleted(site: Any, make: Make, workload: Make) -> None:
    before = await made(site, make, workload)
    site.packages.add({"work.yaml": workload(name="web", replicas=3)}, package_id="p-i1")
    with pytest.raises(ObjectMissing, match="Pod default/bare"):
        await site.heal(chosen(before, {"WEB": 1, "BARE": 1}), def_files=FILES, vdus=VDUS)
    site.packages.add({"work.yaml": []}, package_id="p-i1")
    after = await site.heal(chosen(before, {"WEB": 1}), def_files=FILES, vdus=VDUS, operation="op3")
    assert uids(chosen(before, {"BARE": 1})) < uids(after.pods)


async def test_a_new_pod_that_does_not_start_is_named_with_what_exists(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    faults.add(part="program", verb="image nginx:1.27", effect="hang")
    impatient = site.with_changes(ready_timeout_s=3.0)
    with pytest.raises(ObjectsNotReady, match="Deployment default/web") as caught:
        await impatient.heal(chosen(before, {"WEB": 1}), def_files=FILES, vdus=VDUS)
    assert caught.value.remains is not None
    assert len(caught.value.remains.pods) == len(before.pods)
