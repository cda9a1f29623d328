"""Virtual machines of KubeVirt as workloads of VDUs, on the lab's cluster (multicloud.md MC-062, MC-063)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectFacts, ObjectsApplied, PodFacts, VduTarget
from kubevnfm_infra_k8s.domain.errors import Autoscaled, MachineAtRest, NotScalable
from kubevnfm_infra_k8s.domain.objects import MACHINE_INSTANCES, VIRTUAL_MACHINES, ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.faults import CallLedger
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from packages.kubernetes_objects import an_object
from packages.kubevirt import a_machine, a_pool, an_instance, an_instance_set, kubevirt_definitions

FILES = ["definitions.yaml", "machines.yaml"]
KINDS = {
    "vm": "VirtualMachine", "manual": "VirtualMachine", "rerun": "VirtualMachine", "halted": "VirtualMachine",
    "bare": "VirtualMachineInstance", "set": "VirtualMachineInstanceReplicaSet", "pool": "VirtualMachinePool",
}  # fmt: skip
VDUS = [VduTarget(vdu_id=name.upper(), name=name) for name in KINDS]


async def made(site: Any, **replicas: int) -> ObjectsApplied:
    """Deploy a machine of each kind and run strategy; ``replicas``: of the instantiation level, by name."""
    machines = [
        a_machine("vm"), a_machine("manual", run_strategy="Manual"), a_machine("rerun", run_strategy="RerunOnFailure"),
        a_machine("halted", run_strategy="Halted"), an_instance("bare"), an_instance_set("set"), a_pool("pool"),
    ]  # fmt: skip
    vdus = [vdu.model_copy(update={"replicas": replicas.get(vdu.name)}) for vdu in VDUS]
    files = {"definitions.yaml": kubevirt_definitions(), "machines.yaml": machines}
    done: ObjectsApplied = await site.apply(files, vdus=vdus)
    return done


def of_vdus(done: ObjectsApplied) -> Mapping[str, Collection[PodFacts]]:
    return {name: [each for each in done.pods if each.vdu_id == name.upper()] for name in KINDS}


def counts(done: ObjectsApplied) -> Mapping[str, int]:
    return {name: len(found) for name, found in of_vdus(done).items()}


def named(done: ObjectsApplied, name: str) -> ObjectFacts:
    return next(one for one in done.objects if one.name == name)


async def start(cluster: Cluster, lab: LabCluster, name: str) -> None:
    """Start a machine as ``virtctl start`` does, and wait until it runs."""
    lab.registry.change(
        "virtualmachines.kubevirt.io",
        Key("default", name),
        lambda machine: machine["status"].update(stateChangeRequests=[{"action": "Start"}]),
    )
    async with (
        asyncio.timeout(60),
        aclosing(cluster.follow(VIRTUAL_MACHINES, namespace="default", name=name)) as following,
    ):
        async for seen in following:
            if seen.found and seen.found[name]["status"].get("printableStatus") == "Running":
                return


async def test_machines_are_vnfcs_and_scale_and_heal_as_their_kinds_allow(
    site: Any, cluster: Cluster, lab: LabCluster, ledger: CallLedger
) -> None:
    """MC-062, MC-063, CR-030 to CR-034: the whole life of one VNF."""
    first = await made(site, set=1)
    assert counts(first) == {"vm": 1, "manual": 0, "rerun": 1, "halted": 0, "bare": 1, "set": 1, "pool": 2}
    for name, found in of_vdus(first).items():
        # The instance of a VirtualMachine has its name; a pod in which one runs is no VNFC.
        assert {each.owner_kind for each in found} <= {KINDS[name]}
        assert all(each.node and each.addresses for each in found)
    assert [each.name for each in of_vdus(first)["vm"]] == ["vm"]
    assert [each.name for each in of_vdus(first)["pool"]] == ["pool-0", "pool-1"]

    # A number of replicas is set by the subresource; a machine has none.
    with pytest.raises(NotScalable, match="VirtualMachine default/vm"):
        await site.scale({named(first, "set"): 3, named(first, "vm"): 2})
    out = await site.scale({named(first, "set"): 3, named(first, "pool"): 1}, operation="op3")
    assert {name: counts(out)[name] for name in ("set", "pool")} == {"set": 3, "pool": 1}
    assert {each.uid for each in of_vdus(first)["set"]} < {each.uid for each in of_vdus(out)["set"]}

    # One that KubeVirt does not start again is refused, and nothing is ended.
    [vm] = of_vdus(out)["vm"]
    stopped = vm.model_copy(update={"vdu_id": "HALTED", "name": "halted", "uid": "gone"})
    with pytest.raises(MachineAtRest, match="VirtualMachine default/halted: its run strategy is Halted") as caught:
        await site.heal([vm, stopped], def_files=FILES, vdus=VDUS, operation="op5")
    assert caught.value.status == 409
    manual = vm.model_copy(update={"vdu_id": "MANUAL", "name": "manual", "uid": "gone"})
    with pytest.raises(MachineAtRest, match="VirtualMachine default/manual: it is stopped"):
        await site.heal([vm, manual], def_files=FILES, vdus=VDUS, operation="op6")
    # A paused set makes no instance in place of one that ends.
    sets, place = "virtualmachineinstancereplicasets.kubevirt.io", Key("default", "set")
    lab.registry.change(sets, place, lambda body: body["spec"].update(paused=True))
    with pytest.raises(MachineAtRest, match="VirtualMachineInstanceReplicaSet default/set: it is paused"):
        await site.heal([vm, *of_vdus(out)["set"]], def_files=FILES, vdus=VDUS, operation="op11")
    lab.registry.change(sets, place, lambda body: body["spec"].pop("paused"))
    there = await cluster.get(MACHINE_INSTANCES, ObjectKey("kubevirt.io/v1", "VirtualMachineInstance", "default", "vm"))
    assert there is not None
    assert there["metadata"]["uid"] == vm.uid

    # Each instance is another one afterwards, and no other one has changed.
    await start(cluster, lab, "manual")
    out = await site.scale({named(first, "pool"): 1}, operation="op9")
    ill = [next(iter(of_vdus(out)[name])) for name in ("vm", "manual", "rerun", "bare", "set", "pool")]
    healed = await site.heal(ill, def_files=FILES, vdus=VDUS, operation="op4")
    assert {each.uid for each in out.pods} - {each.uid for each in healed.pods} == {each.uid for each in ill}
    assert counts(healed) == counts(out)
    assert counts(out)["manual"] == 1
    # KubeVirt starts a deleted instance of these two strategies no more.
    restarts = [each["count"] for each in ledger.calls() if each["verb"] == "update virtualmachines/restart"]
    assert restarts == [2]
    again = await site.heal(ill, def_files=FILES, vdus=VDUS, operation="op4")
    assert {each.uid for each in again.pods} == {each.uid for each in healed.pods}

    # A change that a running machine does not take yet is shown, and holds nothing.
    assert not any(one.restart_required for one in healed.objects)
    lab.registry.change(
        "virtualmachines.kubevirt.io",
        Key("default", "vm"),
        lambda machine: machine["spec"]["template"]["spec"]["domain"].update(memory={"guest": "2Gi"}),
    )
    shown = await site.scale({named(first, "pool"): 2}, operation="op10")
    assert [one.name for one in shown.objects if one.restart_required] == ["vm"]

    # A repair brings back an object that others have deleted.
    pool = lab.registry.store.get("virtualmachinepools.pool.kubevirt.io", Key("default", "pool"))
    assert pool is not None
    key = ObjectKey("pool.kubevirt.io/v1beta1", "VirtualMachinePool", "default", "pool")
    resource = await cluster.resource(*key.api_kind)
    assert resource is not None
    await cluster.delete(resource, key, uid=pool["metadata"]["uid"])
    repaired = await site.repair(def_files=FILES, vdus=VDUS, operation="op7")
    assert repaired.repaired == 1
    await site.delete(operation="op8")
    assert not lab.registry.store.list("virtualmachineinstances.kubevirt.io")


async def test_a_machine_is_one_and_the_level_has_to_say_so(site: Any) -> None:
    """MC-062: refused before anything is applied."""
    with pytest.raises(InvalidInput, match="VDU VM expected, found 2: the VirtualMachine vm is one machine"):
        await made(site, vm=2)


async def test_an_autoscaler_owns_the_number_of_a_set(site: Any) -> None:
    """MC-114: any kind with a scale subresource."""
    target = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceReplicaSet", "name": "set"}
    autoscaler = an_object(
        "HorizontalPodAutoscaler", "set", api_version="autoscaling/v2",
        spec={"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4},
    )  # fmt: skip
    files = {"definitions.yaml": kubevirt_definitions(), "machines.yaml": [an_instance_set("set"), autoscaler]}
    done = await site.apply(files, vdus=VDUS)
    with pytest.raises(Autoscaled, match="HorizontalPodAutoscaler default/set"):
        await site.scale({next(one for one in done.objects if one.kind == target["kind"]): 3})


async def test_a_modification_cannot_change_the_images_of_a_machine(site: Any) -> None:
    """Nothing is said to be done that is not: the disks of a machine are no images of containers."""
    files = {"definitions.yaml": kubevirt_definitions(), "machines.yaml": a_machine("vm")}
    await site.apply(files, vdus=VDUS)
    with pytest.raises(InvalidInput, match="VirtualMachine default/vm are no images of containers"):
        await site.update(files, def_files=FILES, vdus=VDUS, images_of=("VM",))
