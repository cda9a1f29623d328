"""The repair of objects on the lab: interrupted, tried again, and of workload clusters. `either/test_drift.py` has the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kubevnfm_events.capi import UpdateCluster
from kubevnfm_infra_k8s.domain.errors import ClusterLost, ObjectMissing, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Propagation
from kubevnfm_infra_k8s.domain.watching.comparing import differences
from kubevnfm_infra_k8s.domain.watching.drift import is_compared
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_worker.outcome import Done
from patience import until_true
from worlds.capi_management import VDUS, Management, files_of, managed

Make = Callable[..., dict[str, Any]]
CORE, INFRASTRUCTURE = "cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta2"
PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
FILE = "f.yaml"


async def drifted(site: Any, *, instance: str = "i1") -> dict[str, str]:
    """Return what has happened to the objects of an instance, by kind and name."""
    release = await site.handlers.release_of(instance)
    async with site.cluster() as cluster:
        compared = [entry for entry in release.entries if is_compared(entry)]
        found = await differences(cluster, site.handlers.shared, release, compared)
    return {f"{key.kind} {key.name}": each.what for key, each in found.items()}


async def delete(site: Any, api_version: str, kind: str, name: str) -> None:
    """Delete an object as another party does, and wait until it is gone."""
    key = ObjectKey(api_version, kind, "default", name)
    async with site.cluster() as cluster:
        resource = await cluster.resource(api_version, kind)
        await cluster.delete(resource, key, propagation=Propagation.BACKGROUND)

        async def is_gone() -> bool:
            return await cluster.get(resource, key) is None

        await until_true(is_gone)


async def test_a_repair_that_was_interrupted_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    """CR-121: nothing is created twice, and the wait for all objects is not left out."""
    objects = [make("ConfigMap", f"c{number}", data={"k": "v"}) for number in range(3)]
    before = await site.apply({FILE: [*objects, workload()]})
    for number in range(3):
        await delete(site, "v1", "ConfigMap", f"c{number}")
    await delete(site, "apps/v1", "Deployment", "web")
    for after in range(0, 40, 5):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.repair(def_files=[FILE]))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    done = await site.repair(def_files=[FILE])
    assert done.repaired == 4
    assert [one.name for one in done.objects] == [one.name for one in before.objects]
    assert await drifted(site) == {}
    assert (await site.delete()).count == 4


async def test_a_repair_that_is_tried_again_waits_for_all_objects(site: Any, faults: FaultBook, workload: Make) -> None:
    """CR-121: nothing differs any more, and the operation has still something to wait for."""
    await site.apply({FILE: workload(image="nginx:9")})
    await delete(site, "apps/v1", "Deployment", "web")
    await until_true(lambda: _has_no_pods(site))
    hang = faults.add(part="program", verb="image nginx:9", effect="hang")
    with pytest.raises(ObjectsNotReady) as caught:
        await site.with_changes(ready_timeout_s=0.5).repair(def_files=[FILE])
    assert caught.value.remains is not None
    assert await drifted(site) == {}
    task = asyncio.create_task(site.repair(def_files=[FILE], attempt=2))
    await asyncio.wait({task}, timeout=0.5)
    assert not task.done()
    faults.remove(hang.fault_id)
    done = await task
    assert done.repaired == 1


async def _has_no_pods(site: Any) -> bool:
    async with site.cluster() as cluster:
        pods = await cluster.resource("v1", "Pod")
        return not await cluster.list(pods, namespace="default")


async def test_operations_on_objects_that_others_have_deleted_name_the_way_out_or_create_them(
    site: Any, make: Make, workload: Make
) -> None:
    """CR-121: scale names the repair; a modification creates a ConfigMap, and a termination finds nothing to delete."""
    config = make("ConfigMap", "settings", data={"k": "v"})
    files = {"config.yaml": config, "web.yaml": workload()}
    before = await site.apply(files)
    await delete(site, "apps/v1", "Deployment", "web")
    web = next(one for one in before.objects if one.name == "web")
    with pytest.raises(ObjectMissing, match=r"additionalParams\.repair: true applies it again"):
        await site.scale({web: 3})
    await site.repair(def_files=list(files), operation="op3")
    await delete(site, "v1", "ConfigMap", "settings")
    await site.update(files, def_files=list(files), operation="op4")
    assert await drifted(site) == {}
    await delete(site, "apps/v1", "Deployment", "web")
    assert (await site.delete(operation="op5")).count == 2
    async with site.cluster() as cluster:
        config_maps = await cluster.resource("v1", "ConfigMap")
        assert await cluster.get(config_maps, ObjectKey("v1", "ConfigMap", "default", "settings")) is None


async def test_what_no_manifest_has_any_more_leaves_the_inventory(site: Any, make: Make) -> None:
    """CR-022, CR-121: a Namespace that is never pruned stays, until others delete it."""
    extra = make("Namespace", "extra")
    guest = make("ConfigMap", "guest", namespace="extra")
    await site.apply({FILE: [extra, make("ConfigMap", "a")]}, multi_namespace=True)
    async with site.cluster() as cluster:
        config_maps = await cluster.resource("v1", "ConfigMap")
        await cluster.apply(config_maps, ObjectKey("v1", "ConfigMap", "extra", "guest"), guest)
    await site.replace({FILE: make("ConfigMap", "a")}, multi_namespace=True)
    assert [one.name for one in (await site.repair(def_files=[FILE], package_id="p-after")).objects] == ["extra", "a"]
    async with site.cluster() as cluster:
        namespaces = await cluster.resource("v1", "Namespace")
        await cluster.delete(namespaces, ObjectKey("v1", "Namespace", "", "extra"))
    done = await site.repair(def_files=[FILE], package_id="p-after", operation="op3")
    assert [one.name for one in done.objects] == ["a"]
    assert await drifted(site) == {}


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


async def mended(management: Management, files: dict[str, str], **more: Any) -> Any:
    return await management.site.repair(def_files=list(files), vdus=VDUS, cluster_apart=True, **more)


async def test_objects_of_a_workload_cluster_are_repaired_under_their_present_names(management: Management) -> None:
    """CR-095, CR-121: the copy of a changed template is created again, so that no machine is replaced; controllers of
    Cluster API change nothing that is compared."""
    site, files = management.site, files_of("capi-workload")
    before = await management.built()
    assert await drifted(site) == {}
    workers = "Files/kubernetes/workers.yaml"
    changed = {**files, workers: files[workers].replace("m1.medium", "m1.large")}
    handlers = site.handlers
    package = site.packages.add(changed, package_id="p-op2")
    parts: Any = ("control_plane", "all", "prune")
    for number, each in enumerate(parts):
        site.step = f"update/{each}"
        command = UpdateCluster(
            vnf_instance_id="i1", vim=site.vim, cluster=management.cluster_of(), package=package,
            def_files=tuple(changed), namespace="default", part=each, vdus=VDUS,
        )  # fmt: skip
        while not isinstance(await handlers.update_cluster(command, site.context(operation="op2")), Done):
            pass
        await management.wait("available", attempt=20 + number, is_settled=True)
    updated = await management.wait("available", attempt=30, is_settled=True)
    assert {each.uid for each in updated.machines} != {each.uid for each in before.machines}
    assert await drifted(site) == {}
    release = await site.handlers.release_of("i1")
    (copy,) = [entry for entry in release.entries if entry.manifest_name]
    await delete(site, INFRASTRUCTURE, copy.key.kind, copy.key.name)
    management.lab.registry.replace(
        *_with_label(management, "machinedeployments.cluster.x-k8s.io", "workload-md-0"), manager="kubectl-label"
    )
    assert await drifted(site) == {
        f"{copy.key.kind} {copy.key.name}": "missing", "MachineDeployment workload-md-0": "changed"
    }  # fmt: skip
    done = await mended(management, changed, package_id="p-op2", operation="op3")
    assert done.repaired == 2
    assert copy.key.name in {one.name for one in done.objects}
    assert await drifted(site) == {}
    after = await management.wait("available", attempt=40, is_settled=True)
    assert {each.uid for each in after.machines} == {each.uid for each in updated.machines}


def _with_label(management: Management, resource: str, name: str) -> tuple[Any, dict[str, Any]]:
    """Return an object of the lab without our label."""
    found = management.lab.store.get(resource, Key("default", name))
    assert found is not None
    labels = {key: value for key, value in found["metadata"]["labels"].items() if "managed-by" not in key}
    body = {**found, "metadata": {**found["metadata"], "labels": labels}}
    return management.lab.registry.table.by_name(resource), body


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [(CORE, "Cluster", "workload"), (PLANE, "KubeadmControlPlane", "workload-control-plane")],
)
async def test_a_cluster_whose_machines_are_gone_is_not_built_again(
    management: Management, api_version: str, kind: str, name: str
) -> None:
    """CR-121: its VIM, and what runs on it, would not know the new one."""
    files = files_of("capi-workload")
    await management.built()
    # Its deletion has begun.
    async with management.site.cluster() as cluster:
        resource = await cluster.resource(api_version, kind)
        await cluster.delete(resource, ObjectKey(api_version, kind, "default", name))
    with pytest.raises(ClusterLost, match=f"{kind} default/{name}.*: deleted by another party.*capi.recreate: true"):
        await mended(management, files)
