"""Changing a CNF to the manifests of another package, and pruning what these lack, on the lab's cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectsApplied, VduTarget
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, ObjectsNotReady, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster

Make = Callable[..., dict[str, Any]]
KEEP = {"annotations": {"kubevnfm.io/keep": "true"}}


def vdus(replicas: int | None = None) -> list[VduTarget]:
    return [VduTarget(vdu_id="WEB", name="web", replicas=replicas), VduTarget(vdu_id="DB", name="db")]


def old_files(make: Make, workload: Make) -> dict[str, Any]:
    return {
        "config.yaml": make("ConfigMap", "settings", data={"k": "old"}),
        "work.yaml": [workload(name="web", replicas=2), workload("StatefulSet", "db", replicas=1)],
        "extra.yaml": [make("ConfigMap", "extra", data={"k": "v"}), make("Service", "outside", spec=_ports())],
    }


def new_files(make: Make, workload: Make, *, image: str = "nginx:2") -> dict[str, Any]:
    return {
        "config.yaml": make("ConfigMap", "settings", data={"k": "new"}),
        "work.yaml": [workload(name="web", replicas=1, image=image), workload("StatefulSet", "db", replicas=1)],
        "more.yaml": make("ConfigMap", "more", data={"k": "v"}),
    }


def _ports() -> dict[str, Any]:
    return {"selector": {"app": "web"}, "ports": [{"port": 80}]}


async def found(
    cluster: Cluster, kind: str, name: str, *, api_version: str = "v1", namespace: str = "default"
) -> Body | None:
    resource = await cluster.resource(api_version, kind)
    return None if resource is None else await cluster.get(resource, ObjectKey(api_version, kind, namespace, name))


def names(done: ObjectsApplied) -> set[str]:
    return {one.name for one in done.objects}


def uids(done: ObjectsApplied, vdu_id: str) -> set[str]:
    return {pod.uid for pod in done.pods if pod.vdu_id == vdu_id}


async def test_new_objects_are_applied_and_those_that_are_lacking_are_pruned(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-035, CR-022, CR-094: the number of replicas is that of the scale level, not that of the manifest."""
    before = await site.apply(old_files(make, workload), vdus=vdus(2))
    done = await site.replace(new_files(make, workload), vdus=vdus(4))
    assert names(done) == {"settings", "web", "db", "more"}
    config = await found(cluster, "ConfigMap", "settings")
    assert config is not None
    assert config["data"] == {"k": "new"}
    assert await found(cluster, "ConfigMap", "extra") is None
    assert await found(cluster, "Service", "outside") is None
    assert (len(uids(done, "WEB")), uids(done, "WEB") & uids(before, "WEB")) == (4, set())
    assert uids(done, "DB") == uids(before, "DB"), "nothing of it has changed"
    again = await site.replace(new_files(make, workload), vdus=vdus(4))
    assert (names(again), uids(again, "WEB")) == (names(done), uids(done, "WEB"))


async def test_the_earlier_package_brings_the_earlier_objects_back(
    site: Any, cluster: Cluster, make: Make, workload: Make, lab: LabCluster
) -> None:
    """The compensation of the step: what the new package brought is pruned."""
    before = await site.apply(old_files(make, workload), vdus=vdus(2))
    await site.replace(new_files(make, workload), vdus=vdus(2))
    back = await site.replace(old_files(make, workload), vdus=vdus(2), package_id="p-i1", operation="op3")
    assert names(back) == names(before)
    assert await found(cluster, "ConfigMap", "more") is None
    config = await found(cluster, "ConfigMap", "settings")
    assert config is not None
    assert config["data"] == {"k": "old"}
    await site.delete()
    assert lab.inventory()["objects"] == {}


async def test_a_replacement_that_was_interrupted_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    await site.apply(old_files(make, workload), vdus=vdus(2))
    for after in range(0, 60, 9):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.replace(new_files(make, workload), vdus=vdus(2)))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    done = await site.replace(new_files(make, workload), vdus=vdus(2))
    assert (names(done), len(uids(done, "WEB"))) == ({"settings", "web", "db", "more"}, 2)


async def test_nothing_is_pruned_before_the_new_objects_are_ready(
    site: Any, faults: FaultBook, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-022."""
    await site.apply(old_files(make, workload), vdus=vdus(2))
    faults.add(part="program", verb="image nginx:2", effect="hang")
    impatient = site.timed_out_once_said("1 of 2 updated")
    with pytest.raises(ObjectsNotReady, match="Deployment default/web") as caught:
        await impatient.replace(new_files(make, workload), vdus=vdus(2))
    assert await found(cluster, "ConfigMap", "extra") is not None
    assert caught.value.remains is not None
    assert names(caught.value.remains) >= {"extra", "more"}


async def test_what_others_need_or_holds_data_is_never_pruned(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-022: each stays in the inventory, so that the termination judges it again; one that is kept is named."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definitions = [
        make(
            "CustomResourceDefinition", f"{plural}.example.org", api_version="apiextensions.k8s.io/v1",
            spec={
                "group": "example.org", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        )
        for kind, plural in (("Used", "useds"), ("Free", "frees"))
    ]  # fmt: skip
    volume = make(
        "PersistentVolume", "disk",
        spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}},
    )  # fmt: skip
    stays = make("ConfigMap", "precious", metadata=KEEP, data={"k": "v"})
    namespaces = [make("Namespace", name) for name in ("with-guest", "empty")]
    settings = make("ConfigMap", "settings", data={"k": "v"})
    await site.apply({"all.yaml": [*namespaces, *definitions, volume, stays, settings]})
    for api_version, kind, namespace, name in (
        ("v1", "Secret", "with-guest", "guest"), ("example.org/v1", "Used", "default", "other"),
    ):  # fmt: skip
        resource = await cluster.resource(api_version, kind)
        assert resource is not None
        key = ObjectKey(api_version, kind, namespace, name)
        await cluster.apply(resource, key, make(kind, name, api_version=api_version, namespace=namespace))
    done = await site.replace({"all.yaml": settings})
    assert names(done) == {"settings", "with-guest", "useds.example.org", "disk"}
    assert [each.name for each in done.kept_objects] == ["precious"]
    assert await found(cluster, "Namespace", "with-guest", namespace="") is not None
    assert await found(cluster, "PersistentVolume", "disk", namespace="") is not None
    assert await found(cluster, "ConfigMap", "precious") is not None
    assert await found(cluster, "Namespace", "empty", namespace="") is None
    crd = "apiextensions.k8s.io/v1"
    for name, is_there in (("useds", True), ("frees", False)):
        one = await found(cluster, "CustomResourceDefinition", f"{name}.example.org", api_version=crd, namespace="")
        assert (one is not None) is is_there


async def test_a_shared_object_is_left_to_its_other_holders(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-021, CR-022."""
    shared = make("PriorityClass", "gold", api_version="scheduling.k8s.io/v1", value=5)
    settings = make("ConfigMap", "settings", data={"k": "v"})
    await site.apply({"all.yaml": [shared, settings]})
    await site.apply({"all.yaml": shared}, instance="i2", operation="op9")
    done = await site.replace({"all.yaml": settings})
    assert names(done) == {"settings"}
    api = "scheduling.k8s.io/v1"
    assert await found(cluster, "PriorityClass", "gold", api_version=api, namespace="") is not None
    await site.delete(instance="i2", operation="op10")
    assert await found(cluster, "PriorityClass", "gold", api_version=api, namespace="") is None


async def test_a_refused_or_foreign_object_leaves_everything_as_it_is(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-017, CR-020: a dry run checks the set before the first object is changed."""
    await site.apply(old_files(make, workload), vdus=vdus(2))
    wrong = new_files(make, workload)
    wrong["work.yaml"][0]["spec"]["selector"] = {"matchLabels": {"app": "web", "x": "y"}}
    with pytest.raises(ObjectsRefused, match="Deployment default/web"):
        await site.replace(wrong, vdus=vdus(2))
    await site.apply({"other.yaml": make("ConfigMap", "more")}, instance="i2", operation="op9")
    with pytest.raises(ForeignObjects, match="ConfigMap default/more"):
        await site.replace(new_files(make, workload), vdus=vdus(2), package_id="p-3", operation="op3")
    config = await found(cluster, "ConfigMap", "settings")
    assert config is not None
    assert config["data"] == {"k": "old"}
    assert await found(cluster, "ConfigMap", "extra") is not None


async def test_the_images_of_the_named_vdus_alone_change(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-035: replicas and all other objects stay; a file takes the place of the one with the same objects."""
    files = {
        "config.yaml": make("ConfigMap", "settings", data={"k": "old"}),
        "web.yaml": workload(name="web", replicas=3),
    }
    files["db.yaml"] = workload("StatefulSet", "db", replicas=1)
    before = await site.apply(files, vdus=vdus())
    after = {
        "config.yaml": make("ConfigMap", "settings", data={"k": "new"}),
        "new/web.yaml": workload(name="web", replicas=9, image="nginx:2"),
        "db.yaml": workload("StatefulSet", "db", replicas=1, image="nginx:2"),
    }
    done = await site.update(
        after, def_files=list(files), config_files=["new/web.yaml"], vdus=vdus(), images_of=("WEB",)
    )
    assert done.def_files == ("config.yaml", "new/web.yaml", "db.yaml")
    assert (len(uids(done, "WEB")), uids(done, "WEB") & uids(before, "WEB")) == (3, set())
    assert uids(done, "DB") == uids(before, "DB")
    config = await found(cluster, "ConfigMap", "settings")
    assert config is not None
    assert config["data"] == {"k": "old"}
    with pytest.raises(InvalidInput, match="no workload of the files implements X") as caught:
        await site.update({}, def_files=list(after), vdus=vdus(), images_of=("X",), operation="op3")
    assert caught.value.field == "additionalParams.vdu_params"
