"""Dry runs on the lab's cluster: what they say, and that nothing is made or stored (multicloud.md MC-033)."""

from __future__ import annotations

from typing import Any

from kubevnfm_clients.multicloud.dry_runs import (
    MOST_FIELDS,
    DryRunMode,
    DryRunOrder,
    DryRunReport,
    PlacedOrder,
)
from kubevnfm_csar.object_treatment import KEPT_FROM_ANNOTATION
from kubevnfm_events.objects import VduTarget
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.handlers.dry_runs import DryRunHandlers
from kubevnfm_lab.kubernetes.cluster import LabCluster
from packages.kubernetes_objects import a_job

WEB = ObjectKey("apps/v1", "Deployment", "default", "web")


async def run(
    site: Any, files: dict[str, Any], mode: DryRunMode = "diff", *, instance: str = "i1", **more: Any
) -> DryRunReport:
    package = site.packages.add(files, package_id=f"p-{instance}-other")
    listed = tuple(name for name in files if name != more.get("order_artifact"))
    order = DryRunOrder(vnf_instance_id=instance, package=package, vim=site.vim, def_files=listed, mode=mode, **more)
    return await DryRunHandlers(**vars(site.handlers)).run(order)


def actions(report: DryRunReport) -> dict[str, str | None]:
    return {f"{each.kind} {each.name}": each.action for each in report.objects}


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def present(cluster: Cluster, key: ObjectKey) -> Body:
    resource = await cluster.resource(*key.api_kind)
    assert resource is not None
    found = await cluster.get(resource, key)
    assert found is not None
    return found


async def test_a_dry_run_says_what_would_change(site: Any, cluster: Cluster, workload: Any) -> None:
    """MC-033: created, updated, deleted, or left alone; objects of others are named; nothing is made or stored."""
    web = workload()
    await site.apply({"a.yaml": web, "b.yaml": a_map("gone"), "c.yaml": a_map("same", a="b")})
    before, kept = await present(cluster, WEB), await site.handlers.releases.get("i1")
    changed = workload(image="nginx:2")
    changed["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s"})
    many = a_map("many", **{f"k{number}": "v" for number in range(MOST_FIELDS + 1)})
    files = {"a.yaml": changed, "c.yaml": a_map("same", a="b"), "d.yaml": many}
    report = await run(site, files)
    assert report.summary == {"update": 1, "unchanged": 1, "create": 1, "delete": 1}
    assert actions(report) == {
        "Deployment web": "update", "ConfigMap same": "unchanged", "ConfigMap many": "create", "ConfigMap gone": "delete",
    }  # fmt: skip
    deployment = report.objects[0]
    assert (deployment.restarts, deployment.checked, deployment.file) == (True, True, "a.yaml")
    image, side = deployment.fields
    assert (image.path, image.before, image.after) == (
        "/spec/template/spec/containers/0/image", "nginx:1.27", "nginx:2",
    )  # fmt: skip
    assert (side.path, side.before) == ("/spec/template/spec/containers/1", None)
    assert await present(cluster, WEB) == before
    assert await site.handlers.releases.get("i1") == kept
    assert actions(await run(site, {"c.yaml": a_map("same", a="b")}, instance="i2")) == {"ConfigMap same": "adopt"}

    await site.apply({"d.yaml": a_map("many", text="x")}, instance="i3")
    many["data"]["text"] = "x" * 5000
    (shown,) = (await run(site, {"d.yaml": many}, instance="i3")).objects
    assert (len(shown.fields), shown.truncated, shown.restarts) == (MOST_FIELDS, True, False)


async def test_rendered_objects_show_no_secret(site: Any) -> None:
    """MC-033: nor does the API server's own dry run of them; and nothing is looked up to render."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"code": "open-sesame"}}
    for mode in ("render", "server"):
        (shown,) = (await run(site, {"s.yaml": secret}, mode)).objects
        assert (shown.action, shown.checked, shown.fields) == (None, mode == "server", ())
        assert shown.object is not None
        assert (shown.object["stringData" if mode == "render" else "data"]) == {"code": "***"}
        assert "kubevnfm.io/vnf-instance-id" in shown.object["metadata"]["labels"]


async def test_the_hooks_that_an_operation_runs_are_at_their_points(site: Any, lab: LabCluster) -> None:
    """MC-141, MC-033: those of its occasion, in their order; nothing of them is made."""
    jobs = [a_job(name) for name in ("late", "early", "first", "upgrade", "failed", "removal")]
    order = """
artifacts:
- {file: late.yaml, hook: post-apply, hook_delete: [on-success]}
- {file: early.yaml, hook: pre-apply, priority: 2}
- {file: first.yaml, hook: pre-apply, priority: 1}
- {file: upgrade.yaml, hook: pre-apply, on: [update]}
- {file: failed.yaml, hook: on-failure}
- {file: removal.yaml, hook: pre-delete}
- {file: map.yaml}
"""
    files = {f"{each['metadata']['name']}.yaml": each for each in jobs} | {
        "map.yaml": a_map("map"),
        "order.yaml": order,
    }
    given: dict[str, Any] = {"order_artifact": "order.yaml", "namespace": "default"}
    report = await run(site, files, **given)
    shown = [(each.hook, each.name, each.action, each.checked) for each in report.objects]
    assert shown == [
        ("pre-apply", "first", "run", True), ("pre-apply", "early", "run", True), (None, "map", "create", True),
        ("post-apply", "late", "run", True),
    ]  # fmt: skip
    assert report.summary == {"run": 3, "create": 1}
    update = await run(site, files, "render", occasion="update", **given)
    assert [each.name for each in update.objects] == ["upgrade", "first", "early", "map", "late"]
    assert all(each.object is not None and each.action is None for each in update.objects)
    assert not lab.registry.store.list("jobs.batch")

    # An object of an earlier run is in the way unless it is deleted first; so is one of others.
    for name, owner in (("late", "i1"), ("early", "i1"), ("first", "i2")):
        left = a_job(name)
        left["metadata"]["labels"] = {INSTANCE_LABEL: owner}
        left["metadata"]["namespace"] = "default"
        resource = lab.registry.table.by_name("jobs.batch")
        assert resource is not None
        lab.registry.create(resource, left)
    errors = {each.name: each.error for each in (await run(site, files, "server", **given)).objects}
    assert errors == {
        "first": "Job default/first exists and belongs to another party", "early": None, "map": None,
        "late": "Job default/late exists from an earlier run, and its hook_delete has no before-creation",
    }  # fmt: skip


async def test_the_places_that_others_have_are_named_and_nothing_is_written(site: Any, lab: LabCluster) -> None:
    """MC-039: in the namespace of the VNF alone; not its own objects, what it only reads, and what it may take back."""
    await site.apply({"a.yaml": a_map("mine")}, instance="i1")
    await site.apply({"b.yaml": a_map("theirs"), "c.yaml": a_map("read")}, instance="i2")
    given_back = a_map("kept")
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-0"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    given_back["metadata"]["annotations"] = {KEPT_FROM_ANNOTATION: "i1"}
    claim["metadata"]["labels"] = {INSTANCE_LABEL: "i2"}
    for name, body in (("configmaps", given_back), ("persistentvolumeclaims", claim)):
        resource = lab.registry.table.by_name(name)
        assert resource is not None
        lab.registry.create(resource, {**body, "metadata": {**body["metadata"], "namespace": "default"}})
    db = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
    files: dict[str, Any] = {f"{name}.yaml": a_map(name) for name in ("mine", "theirs", "kept", "new", "read")}
    files["db.yaml"] = {**db, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}
    artifacts = [{"file": name, **({"apply": "read-only"} if name == "read.yaml" else {})} for name in files]
    # The chart is not rendered: nothing in it could be.
    files |= {"c.tgz": "no chart", "order.yaml": {"artifacts": [*artifacts, {"chart": "c.tgz"}]}}
    package = site.packages.add(files, package_id="p-taken")
    listed = tuple(str(each["file"]) for each in artifacts)
    asked = PlacedOrder(
        vnf_instance_id="i1", package=package, vim=site.vim, def_files=listed, order_artifact="order.yaml",
        namespace="default", vdus=(VduTarget(vdu_id="v", name="in-the-chart", kind="Deployment"),),
    )  # fmt: skip
    handlers, before = DryRunHandlers(**vars(site.handlers)), lab.registry.store.list("configmaps")
    taken = await handlers.taken_places(asked)
    claimed = "PersistentVolumeClaim default/data-db-0"
    assert (taken.count, taken.objects) == (2, ("ConfigMap default/theirs", claimed))
    # For another VNF, what i1 has and what it has kept are those of others.
    taken = await handlers.taken_places(asked.model_copy(update={"vnf_instance_id": "i3"}))
    assert set(taken.objects) == {*(f"ConfigMap default/{name}" for name in ("mine", "theirs", "kept")), claimed}
    assert (lab.registry.store.list("configmaps"), await site.handlers.releases.get("i3")) == (before, None)
    # Nothing is in an absent namespace. A fault of the order and a silent region are said by the step that applies it.
    absent, faulty = (
        asked.model_copy(update=each) for each in ({"namespace": "absent"}, {"order_artifact": "missing.yaml"})
    )
    late = DryRunHandlers(**vars(site.handlers), taken_places_s=0)
    for found in (handlers.taken_places(absent), handlers.taken_places(faulty), late.taken_places(asked)):
        assert (await found).count == 0
