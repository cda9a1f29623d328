"""Changing a CNF's configuration and images in place, on the lab's cluster."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectsApplied, VduTarget
from kubevnfm_infra_k8s.domain.errors import ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster

Make = Callable[..., dict[str, Any]]
VDUS = [VduTarget(vdu_id=name.upper(), name=name) for name in ("env", "volume", "plain", "set", "bare")]
DEF_FILES = ["config.yaml", "secret.yaml", "work.yaml"]


def with_env(kind: str, name: str) -> dict[str, Any]:
    reference = {"configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef": {"name": name, "key": "k"}}
    return {"containers": [{"name": "main", "image": "nginx:1", "env": [{"name": "K", "valueFrom": reference}]}]}


def a_cnf(make: Make, workload: Make, *, value: str = "old", image: str = "nginx:1") -> dict[str, Any]:
    """Return files: a ConfigMap, a Secret, and workloads of every kind of use."""
    volume = {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "settings"}}]}}]}
    from_secret = with_env("Secret", "key")
    bare = make("Pod", "bare", spec=from_secret)
    return {
        "config.yaml": make("ConfigMap", "settings", data={"k": value}),
        "secret.yaml": make("Secret", "key", stringData={"k": value}),
        "work.yaml": [
            workload(name="env", pod=with_env("ConfigMap", "settings")),
            workload("DaemonSet", "volume", image="nginx:1", pod=volume),
            workload("StatefulSet", "plain", image=image, replicas=1),
            workload("ReplicaSet", "set", replicas=2, pod=from_secret),
            bare,
        ],
    }


async def data(cluster: Cluster, kind: str, name: str) -> Any:
    resource = await cluster.resource("v1", kind)
    assert resource is not None
    body = await cluster.get(resource, ObjectKey("v1", kind, "default", name))
    assert body is not None
    return body["data"]


def pods(done: ObjectsApplied) -> dict[str, set[str]]:
    """Return the uids of the pods by VDU."""
    found: dict[str, set[str]] = {}
    for pod in done.pods:
        found.setdefault(pod.vdu_id, set()).add(pod.uid)
    return found


async def made(site: Any, make: Make, workload: Make) -> dict[str, set[str]]:
    return pods(await site.apply(a_cnf(make, workload), def_files=DEF_FILES, vdus=VDUS))


async def test_a_changed_config_map_restarts_the_pods_that_read_it_and_no_others(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    files = {**a_cnf(make, workload), "new/config.yaml": make("ConfigMap", "settings", data={"k": "new"})}
    del files["config.yaml"]
    done = await site.update(files, def_files=DEF_FILES, config_files=["new/config.yaml"], vdus=VDUS)
    assert done.def_files == ("new/config.yaml", "secret.yaml", "work.yaml")
    assert await data(cluster, "ConfigMap", "settings") == {"k": "new"}
    after = pods(done)
    assert {vdu for vdu in before if before[vdu].isdisjoint(after[vdu])} == {"ENV", "VOLUME"}
    assert {vdu for vdu in before if before[vdu] == after[vdu]} == {"PLAIN", "SET", "BARE"}
    assert {name: len(uids) for name, uids in after.items()} == {name: len(uids) for name, uids in before.items()}


async def test_a_changed_secret_restarts_replica_sets_and_bare_pods_too(
    site: Any, cluster: Cluster, make: Make, workload: Make, lab: LabCluster
) -> None:
    before = await made(site, make, workload)
    count = len(lab.inventory()["objects"])
    files = {**a_cnf(make, workload), "secret.yaml": make("Secret", "key", stringData={"k": "new"})}
    done = await site.update(files, def_files=DEF_FILES, config_files=["secret.yaml"], vdus=VDUS)
    assert base64.b64decode((await data(cluster, "Secret", "key"))["k"]) == b"new"
    after = pods(done)
    assert {vdu for vdu in before if before[vdu].isdisjoint(after[vdu])} == {"SET", "BARE"}
    assert len(lab.inventory()["objects"]) == count
    await site.delete()
    assert lab.inventory()["objects"] == {}


async def test_what_was_deleted_by_hand_is_made_again_by_a_change_and_by_its_reversal(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    for image in ("nginx:2", "nginx:1"):
        for api_version, kind, name in (("apps/v1", "Deployment", "env"), ("v1", "ConfigMap", "settings")):
            resource = await cluster.resource(api_version, kind)
            assert resource is not None
            await cluster.delete(resource, ObjectKey(api_version, kind, "default", name))
        done = await site.update(a_cnf(make, workload, image=image), def_files=DEF_FILES, vdus=VDUS, operation=image)
        assert {vdu: len(uids) for vdu, uids in pods(done).items()} == {vdu: len(uids) for vdu, uids in before.items()}
        assert await data(cluster, "ConfigMap", "settings") == {"k": "old"}


async def test_a_changed_image_is_set_and_nothing_else_of_the_workload(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    before = await made(site, make, workload)
    files = a_cnf(make, workload, image="nginx:2")
    files["work.yaml"][2]["spec"]["replicas"] = 5
    done = await site.update(files, def_files=DEF_FILES, vdus=VDUS)
    resource = await cluster.resource("apps/v1", "StatefulSet")
    assert resource is not None
    body = await cluster.get(resource, ObjectKey("apps/v1", "StatefulSet", "default", "plain"))
    assert body is not None
    assert body["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert body["spec"]["replicas"] == 1
    after = pods(done)
    assert {vdu for vdu in before if before[vdu] != after[vdu]} == {"PLAIN"}


async def test_the_earlier_package_brings_the_earlier_state_back(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """The compensation of the step: it also runs if only a part was changed."""
    await made(site, make, workload)
    changed = await site.update(a_cnf(make, workload, value="new", image="nginx:2"), def_files=DEF_FILES, vdus=VDUS)
    restored = await site.update({}, package_id="p-i1", def_files=DEF_FILES, vdus=VDUS)
    assert await data(cluster, "ConfigMap", "settings") == {"k": "old"}
    assert restored.def_files == tuple(DEF_FILES)
    assert all(pods(changed)[vdu].isdisjoint(uids) for vdu, uids in pods(restored).items())


async def test_a_change_that_was_cancelled_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    """Each pod is restarted once, whatever was done before the interruption."""
    before = await made(site, make, workload)
    files = a_cnf(make, workload, value="new", image="nginx:2")
    for after in range(0, 24, 4):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.update(files, def_files=DEF_FILES, vdus=VDUS))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    done = await site.update(files, def_files=DEF_FILES, vdus=VDUS)
    after_all = pods(done)
    assert all(before[vdu].isdisjoint(after_all[vdu]) for vdu in before)
    again = await site.update(files, def_files=DEF_FILES, vdus=VDUS)
    assert pods(again) == after_all


@pytest.mark.parametrize(
    ("name", "config", "says"),
    [
        ("work.yaml", None, "a ConfigMap or a Secret expected, found a Deployment"),
        ("other.yaml", "other", r"no file of the CNF has the same objects \(ConfigMap other\)"),
    ],
)
async def test_a_file_that_replaces_none_is_refused_by_name(
    site: Any, make: Make, workload: Make, name: str, config: str | None, says: str
) -> None:
    before = await made(site, make, workload)
    files = {**a_cnf(make, workload, value="new"), **({name: make("ConfigMap", config)} if config else {})}
    with pytest.raises(InvalidInput, match=says) as caught:
        await site.update(files, def_files=DEF_FILES, config_files=[name], vdus=VDUS)
    assert caught.value.field == "metadata.configmap_secret_paths"
    assert pods(await site.update(a_cnf(make, workload), def_files=DEF_FILES, vdus=VDUS)) == before


async def test_an_object_that_the_cnf_does_not_have_is_refused(site: Any, make: Make, workload: Make) -> None:
    await made(site, make, workload)
    files = a_cnf(make, workload)
    files["config.yaml"] = [files["config.yaml"], make("ConfigMap", "more")]
    with pytest.raises(InvalidInput, match=r"does not have ConfigMap default/more \(config\.yaml\)"):
        await site.update(files, def_files=DEF_FILES, vdus=VDUS)


async def test_an_image_that_does_not_start_names_the_workload_and_shows_what_runs(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    await made(site, make, workload)
    faults.add(part="program", verb="image nginx:2", effect="hang")
    impatient = site.with_changes(ready_timeout_s=2.0)
    with pytest.raises(ObjectsNotReady, match="StatefulSet default/plain") as caught:
        await impatient.update(a_cnf(make, workload, image="nginx:2"), def_files=DEF_FILES, vdus=VDUS)
    assert caught.value.remains is not None
    assert {pod.vdu_id for pod in caught.value.remains.pods} >= {"ENV", "VOLUME", "SET", "BARE"}


async def test_a_modification_leaves_the_number_of_an_autoscaler(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """MC-114: the workload is restarted with the number that it has; one that was deleted is created without ours."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "env"}
    scaler = make(
        "HorizontalPodAutoscaler", "env", api_version="autoscaling/v2",
        spec={"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
    )  # fmt: skip
    before = a_cnf(make, workload)
    before["work.yaml"].append(scaler)
    await site.apply(before, def_files=DEF_FILES, vdus=VDUS)
    resource, key = (
        await cluster.resource("apps/v1", "Deployment"),
        ObjectKey("apps/v1", "Deployment", "default", "env"),
    )
    assert resource is not None
    await cluster.scale(resource, key, replicas=3)
    after = a_cnf(make, workload, value="new")
    after["work.yaml"].append(scaler)
    done = await site.update(after, def_files=DEF_FILES, config_files=["config.yaml"], vdus=VDUS)
    assert len(pods(done)["ENV"]) == 3
    await cluster.delete(resource, key)
    done = await site.update(after, def_files=DEF_FILES, config_files=["config.yaml"], vdus=VDUS, operation="op3")
    assert len(pods(done)["ENV"]) == 1
