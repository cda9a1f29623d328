"""Scaling objects of any kind by the subresource ``scale``, on the lab's cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectFacts, ObjectsApplied, VduTarget
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, NotScalable, ObjectMissing, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_lab.faults import FaultBook

Make = Callable[..., dict[str, Any]]
VDUS = [VduTarget(vdu_id=name.upper(), name=name) for name in ("web", "set", "db", "agent", "bare")]


async def made(site: Any, make: Make, workload: Make) -> ObjectsApplied:
    """Deploy a workload of each kind that can implement a VDU."""
    files = {
        "work.yaml": [
            workload(name="web", replicas=2),
            workload("ReplicaSet", "set", replicas=2),
            workload("StatefulSet", "db", replicas=2),
            workload("DaemonSet", "agent"),
            make("Pod", "bare", spec={"containers": [{"name": "main", "image": "nginx:1.27"}]}),
        ]
    }
    done: ObjectsApplied = await site.apply(files, vdus=VDUS)
    return done


def named(done: ObjectsApplied, name: str) -> ObjectFacts:
    return next(one for one in done.objects if one.name == name)


def pods(done: ObjectsApplied, vdu_id: str) -> set[str]:
    return {pod.uid for pod in done.pods if pod.vdu_id == vdu_id}


async def test_each_kind_with_replicas_is_scaled_out_and_in(site: Any, make: Make, workload: Make) -> None:
    """CR-033, CR-026: pods that are not concerned stay, and 0 replicas are ready without a pod."""
    before = await made(site, make, workload)
    scalable = {name: named(before, name) for name in ("web", "set", "db")}
    out = await site.scale({scalable["web"]: 4, scalable["set"]: 3, scalable["db"]: 3})
    assert {name: len(pods(out, name.upper())) for name in scalable} == {"web": 4, "set": 3, "db": 3}
    for name in ("WEB", "SET", "DB"):
        assert pods(before, name) < pods(out, name)
    assert (pods(out, "AGENT"), pods(out, "BARE")) == (pods(before, "AGENT"), pods(before, "BARE"))
    less = await site.scale({scalable["web"]: 1, scalable["db"]: 0}, operation="op3")
    assert {name: len(pods(less, name.upper())) for name in scalable} == {"web": 1, "set": 3, "db": 0}
    assert pods(less, "WEB") < pods(out, "WEB")
    assert any(event.message == "Deployment default/web: 1 replicas wanted" for event in site.progress)


async def test_a_repeated_scaling_does_not_scale_twice(site: Any, make: Make, workload: Make) -> None:
    web = named(await made(site, make, workload), "web")
    first = await site.scale({web: 4})
    assert pods(await site.scale({web: 4}), "WEB") == pods(first, "WEB")


async def test_a_scaling_that_was_interrupted_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    done = await made(site, make, workload)
    counts = {named(done, "web"): 4, named(done, "set"): 1}
    for after in range(0, 10, 3):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.scale(counts))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    scaled = await site.scale(counts)
    assert (len(pods(scaled, "WEB")), len(pods(scaled, "SET"))) == (4, 1)


async def test_a_workload_with_a_volume_of_one_pod_is_not_scaled_above_one(
    site: Any, make: Make, workload: Make
) -> None:
    """MC-103: refused by name before anything is scaled; 0 and 1 are possible."""
    disks = []
    for mode in ("ReadWriteOncePod", "ReadWriteMany"):
        spec = {"accessModes": [mode], "storageClassName": "manual"}
        disk = {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
        disks.append(make("PersistentVolume", mode.lower(), spec=disk))
        claim = {**spec, "resources": {"requests": {"storage": "1Gi"}}}
        disks.append(make("PersistentVolumeClaim", mode.lower(), spec=claim))
    alone, shared = workload(name="alone", replicas=1), workload(name="shared", replicas=1)
    for each, name in ((alone, "readwriteoncepod"), (shared, "readwritemany")):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        each["spec"]["template"]["spec"]["volumes"] = [volume]
    done = await site.apply({"all.yaml": [*disks, alone, shared]})
    match = "Deployment default/alone: up to 1 replica expected, found 2: it mounts the claim readwriteoncepod"
    with pytest.raises(Unprocessable, match=match):
        await site.scale({named(done, "shared"): 2, named(done, "alone"): 2})
    await site.scale({named(done, "shared"): 2, named(done, "alone"): 0}, operation="op3")


@pytest.mark.parametrize(("name", "kind"), [("agent", "DaemonSet"), ("bare", "Pod")])
async def test_a_kind_without_scale_is_refused_by_name_before_anything_is_scaled(
    site: Any, make: Make, workload: Make, name: str, kind: str
) -> None:
    """CR-086."""
    done = await made(site, make, workload)
    with pytest.raises(NotScalable, match=f"{kind} default/{name}: kind {kind}") as caught:
        await site.scale({named(done, "web"): 4, named(done, name): 2})
    assert caught.value.status == 422
    assert len(pods(await site.scale({named(done, "web"): 2}, operation="op3"), "WEB")) == 2


async def test_a_custom_resource_with_a_scale_subresource_is_scaled(site: Any, cluster: Cluster, make: Make) -> None:
    """MC-044, CR-086: any kind; its controller, here the test, reports the count in its status."""
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": paths},
    }  # fmt: skip
    definition = make(
        "CustomResourceDefinition", "pools.example.org", api_version="apiextensions.k8s.io/v1",
        spec={
            "group": "example.org", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Pool", "plural": "pools", "singular": "pool", "listKind": "PoolList"},
        },
    )  # fmt: skip
    pool = make("Pool", "p", api_version="example.org/v1", spec={"size": 1})
    done = await site.apply({"all.yaml": [definition, pool]})
    resource, key = (
        await cluster.resource("example.org/v1", "Pool"),
        ObjectKey("example.org/v1", "Pool", "default", "p"),
    )
    assert resource is not None
    assert resource.is_scalable
    scaling = asyncio.create_task(site.scale({named(done, "p"): 3}))
    async with asyncio.timeout(60), aclosing(cluster.follow(resource, namespace="default", name="p")) as following:
        async for seen in following:
            if seen.found and seen.found["p"]["spec"]["size"] == 3:
                break
    assert not scaling.done()
    await cluster.patch(resource, key, {"status": {"size": 3}})
    await scaling


async def test_an_object_that_does_not_exist_or_is_of_others_is_refused_by_name(
    site: Any, make: Make, workload: Make
) -> None:
    done = await made(site, make, workload)
    web = named(done, "web")
    with pytest.raises(ObjectMissing, match="Deployment default/gone: does not exist"):
        await site.scale({web.model_copy(update={"name": "gone"}): 1})
    await site.apply({"other.yaml": workload(name="other")}, instance="i2")
    with pytest.raises(ForeignObjects, match="Deployment default/other"):
        await site.scale({web.model_copy(update={"name": "other"}): 1})
    with pytest.raises(NotFound, match="i3"):
        await site.scale({web: 1}, instance="i3")


async def test_pods_that_do_not_start_are_named_with_what_exists(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    web = named(await made(site, make, workload), "web")
    faults.add(part="program", verb="image nginx:1.27", effect="hang")
    impatient = site.with_changes(ready_timeout_s=2.0)
    with pytest.raises(ObjectsNotReady, match="Deployment default/web") as caught:
        await impatient.scale({web: 3})
    assert caught.value.remains is not None
    assert len(pods(caught.value.remains, "WEB")) == 3
