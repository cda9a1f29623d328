"""Deletion at the pace of the API server: only owners are deleted in the foreground."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import ObjectsNotGone, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.removing import ending_pods
from packages.kubernetes_objects import a_deployment, an_object, things_of
from patience import until_true

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
SERVICES = Resource("v1", "Service", "services", namespaced=True)
PODS = Resource("v1", "Pod", "pods", namespaced=True)


async def test_what_owns_no_pods_is_deleted_in_the_background(ground: Any) -> None:
    """CR-023: in the foreground the garbage collector takes each in turn, 16 s for 200."""
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    await ground.apply(
        *(an_object("ConfigMap", f"c{n}", data={"n": str(n)}) for n in range(160)),
        *(an_object("Service", f"s{n}", spec=spec) for n in range(40)),
    )
    seen: set[str] = set()

    async def watch(resource: Resource) -> None:
        async for news in ground.cluster.follow(resource, namespace=ground.namespace):
            seen.update(each for body in news.found.values() for each in body["metadata"].get("finalizers") or [])

    watching = [asyncio.create_task(watch(each)) for each in (CONFIG_MAPS, SERVICES)]
    assert (await ground.delete()).count == 200
    for each in watching:
        each.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    assert seen == set()


async def test_the_pods_of_a_deployment_are_gone_when_it_is(ground: Any) -> None:
    """CR-023: an owner is deleted in the foreground, after what it owns."""
    await ground.apply(
        a_deployment(), an_object("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
    )
    await ground.delete()
    assert not await ground.cluster.list(PODS, namespace=ground.namespace)


async def test_an_untouched_custom_resource_is_deleted_with_its_definition(ground: Any) -> None:
    """CR-023: the garbage collector does not know a kind that is a few seconds old."""
    group = f"{ground.namespace}.example"
    await ground.apply(things_of(group), an_object("Thing", "t", api_version=f"{group}/v1", spec={}))
    started = asyncio.get_running_loop().time()
    assert (await ground.delete()).count == 2
    assert asyncio.get_running_loop().time() - started < 100.0

    async def is_gone() -> bool:
        ground.cluster.forget_kinds()
        return await ground.cluster.resource(f"{group}/v1", "Thing") is None

    await until_true(is_gone)


async def test_an_adopted_object_stays_without_our_labels(ground: Any) -> None:
    """CR-020: termination gives back what existed before the VNF."""
    await ground.create(an_object("ConfigMap", "theirs", data={"x": "1"}))
    # By a patch, so that an apply without the label does not remove it.
    key = ObjectKey("v1", "ConfigMap", ground.namespace, "theirs")
    await ground.cluster.patch(CONFIG_MAPS, key, {"metadata": {"labels": {"team": "a"}}})
    objects = [an_object("ConfigMap", "theirs", data={"x": "2"}), an_object("ConfigMap", "ours")]
    await ground.apply(*objects, adopt=True)
    adopted = await ground.shown("v1", "ConfigMap", "theirs")
    assert adopted["metadata"]["labels"]["kubevnfm.io/vnf-instance-id"] == ground.namespace
    # A retry finds our label there, and must not forget where the object came from.
    await ground.apply(*objects, adopt=True, attempt=2)
    await ground.delete()
    left = await ground.shown("v1", "ConfigMap", "theirs")
    assert left["metadata"]["labels"] == {"team": "a"}
    assert not left["metadata"].get("annotations")
    assert await ground.shown("v1", "ConfigMap", "ours") is None


async def test_the_progress_names_the_finalizers_that_hold_a_deletion(ground: Any, monkeypatch: Any) -> None:
    """CR-109: while the deletion waits, with the time since when, also that of a workload's pod; it ends once they are removed."""
    monkeypatch.setattr(ending_pods, "LOOK_EVERY_S", 0.1)
    await ground.apply(
        an_object("ConfigMap", "held", metadata={"finalizers": ["acme.example/hold"]}), a_deployment("web", replicas=1)
    )
    pod = name_of((await ground.cluster.list(PODS, namespace=ground.namespace))[0])
    holders = [
        (CONFIG_MAPS, ObjectKey("v1", "ConfigMap", ground.namespace, "held")),
        (PODS, ObjectKey("v1", "Pod", ground.namespace, pod)),
    ]
    await ground.cluster.patch(*holders[1], {"metadata": {"finalizers": ["acme.example/pod"]}})
    deletion = asyncio.create_task(ground.delete())
    said = [
        rf"ConfigMap {ground.namespace}/held: is being deleted, held by acme\.example/hold, since 20",
        rf"Deployment {ground.namespace}/web: .*, pod {pod}: held by acme\.example/pod, since 20",
    ]

    async def is_said() -> bool:
        newest = ground.site.progress[-1].obstacles if ground.site.progress else ()
        return all(any(re.match(each, one) for one in newest) for each in said)

    try:
        await until_true(is_said)
    finally:
        for holder in holders:
            await ground.cluster.patch(*holder, {"metadata": {"finalizers": None}})
    assert (await deletion).count == 2


async def test_what_is_being_deleted_is_waited_for_and_not_adopted(ground: Any) -> None:
    """CR-020: an object, its own Namespace, and one that no file has; each may be anyone's."""
    held = {"finalizers": ["acme.example/hold"]}
    spaces = [ground.own_name("declared"), ground.own_name("used")]
    resource = Resource("v1", "Namespace", "namespaces", namespaced=False)
    places = [(resource, ObjectKey("v1", "Namespace", "", name)) for name in spaces]
    places.append((CONFIG_MAPS, ObjectKey("v1", "ConfigMap", ground.namespace, "theirs")))
    for kind, key in places:
        await ground.cluster.apply(kind, key, an_object(key.kind, key.name, metadata=held))
        await ground.cluster.delete(kind, key)
    objects = [
        an_object("Namespace", spaces[0]),
        *(an_object("ConfigMap", "c", metadata={"namespace": name}) for name in spaces),
        an_object("ConfigMap", "theirs", metadata={"namespace": ground.namespace}, data={"a": "ours"}),
    ]
    hurried = replace(ground, site=ground.site.with_changes(ready_timeout_s=0.1))
    with pytest.raises(ObjectsNotReady, match=rf"Namespace {spaces[1]}: held by acme\.example/hold, since 20"):
        await hurried.apply(*objects, multi_namespace=True)
    applying = asyncio.create_task(ground.apply(*objects, multi_namespace=True, attempt=2))
    try:
        for _, key in places:
            said = f"{key}: is being deleted, held by acme.example/hold"

            async def is_said(said: str = said) -> bool:
                return any(each.task == "apply" and said in each.message for each in ground.site.progress)

            await until_true(is_said)
        # No file has it: a new one is made as another party does, or the API server would refuse what is in it.
        await ground.cluster.patch(*places[1], {"metadata": {"finalizers": None}})
        await until_true(lambda: _is_gone(ground.cluster, *places[1]))
        await ground.cluster.apply(*places[1], an_object("Namespace", spaces[1]))
    finally:
        for kind, key in (places[0], places[2]):
            await ground.cluster.patch(kind, key, {"metadata": {"finalizers": None}})
    assert len((await applying).objects) == 4
    assert (await ground.shown("v1", "ConfigMap", "theirs"))["data"] == {"a": "ours"}
    await ground.delete()
    await ground.cluster.delete(*places[1])


async def _is_gone(cluster: Cluster, resource: Resource, key: ObjectKey) -> bool:
    return await cluster.get(resource, key) is None


async def test_finalizers_are_removed_only_near_the_limit_and_only_if_asked(ground: Any) -> None:
    """CR-109: each of them is in the progress and in the reply; what is not held is deleted as always."""
    await ground.apply(
        an_object("ConfigMap", "held", metadata={"finalizers": ["acme.example/hold"]}), an_object("ConfigMap", "free")
    )
    short = replace(ground, site=ground.site.with_changes(gone_timeout_s=4.0))
    with pytest.raises(ObjectsNotGone, match=r"held: held by acme\.example/hold, since 20"):
        await short.delete()
    assert (await ground.shown("v1", "ConfigMap", "held"))["metadata"]["finalizers"] == ["acme.example/hold"]
    done = await short.delete(force_remove_finalizers=True)
    assert done.count == 2
    (left,) = done.left
    assert (left.kind, left.name, left.finalizers) == ("ConfigMap", "held", ("acme.example/hold",))
    assert await ground.shown("v1", "ConfigMap", "held") is None
    said = f"ConfigMap {ground.namespace}/held: finalizers removed, as force_remove_finalizers asks: acme.example/hold"
    assert said in [each.message for each in ground.site.progress]


async def test_what_carries_the_label_at_the_end_goes_too(ground: Any) -> None:
    """CR-111: of the kinds of the inventory; what is to be kept, and what has the label of others, stays."""
    await ground.apply(an_object("ConfigMap", "c", data={"k": "v"}))
    mine = {"kubevnfm.io/vnf-instance-id": ground.namespace}
    for name, labels, notes in (
        ("late", mine, {}),
        ("kept", mine, {"kubevnfm.io/keep": "true"}),
        ("others", {"kubevnfm.io/vnf-instance-id": "another"}, {}),
    ):
        metadata = {"labels": labels, "annotations": notes}
        await ground.create(an_object("ConfigMap", name, metadata=metadata))
    owner = await ground.shown("v1", "ConfigMap", "late")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "late", "uid": owner["metadata"]["uid"]}
    # The garbage collector deletes it after its owner.
    await ground.create(an_object("ConfigMap", "owned", metadata={"labels": mine, "ownerReferences": [reference]}))
    assert (await ground.delete()).count == 1
    found = [await ground.shown("v1", "ConfigMap", name) for name in ("c", "late", "owned", "kept", "others")]
    assert [each is not None for each in found] == [False, False, False, True, True]
    said = f"ConfigMap {ground.namespace}/late: still has the label of this VNF"
    assert said in [each.message for each in ground.site.progress]


async def test_what_has_the_label_and_does_not_go_is_named(ground: Any) -> None:
    """CR-111: the operation does not end as if nothing were left."""
    await ground.apply(an_object("ConfigMap", "c", data={"k": "v"}))
    metadata = {"labels": {"kubevnfm.io/vnf-instance-id": ground.namespace}, "finalizers": ["acme.example/hold"]}
    await ground.create(an_object("ConfigMap", "late", metadata=metadata))
    short = replace(ground, site=ground.site.with_changes(gone_timeout_s=3.0))
    with pytest.raises(ObjectsNotGone, match=r"/late: held by acme\.example/hold"):
        await short.delete()
    key = ObjectKey("v1", "ConfigMap", ground.namespace, "late")
    await ground.cluster.patch(CONFIG_MAPS, key, {"metadata": {"finalizers": None}})
    assert (await ground.delete()).count == 1
