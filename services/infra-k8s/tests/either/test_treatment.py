"""Objects that an order has applied in another way: read alone, made once, with fields of others, or kept (multicloud.md MC-106a, c, d)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectsApplied, ObjectsReplaced
from kubevnfm_infra_k8s.domain.errors import FieldConflict, ForeignObjects, ObjectsNotReady, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey
from packages.kubernetes_objects import a_deployment, an_object

ORDER = "artifact-order.yaml"
LABEL = "kubevnfm.io/vnf-instance-id"


def a_map(name: str, annotations: Mapping[str, str] | None = None, **data: str) -> dict[str, Any]:
    body = an_object("ConfigMap", name, data=data)
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    return body


def packaged(order: str, files: Mapping[str, Any]) -> dict[str, Any]:
    return {ORDER: order, **files}


async def apply(ground: Any, order: str, files: Mapping[str, Any], *, instance: str = "") -> ObjectsApplied:
    ground.site.step = "apply"
    instance = instance or ground.namespace
    ground.instances.add(instance)
    done: ObjectsApplied = await ground.site.apply(
        packaged(order, files),
        def_files=list(files),
        order_artifact=ORDER,
        instance=instance,
        namespace=ground.namespace,
    )
    return done


async def replaced(
    ground: Any, order: str, files: Mapping[str, Any], *, operation: str, instance: str = "", **more: Any
) -> ObjectsReplaced:
    done: ObjectsReplaced = await ground.site.replace(
        packaged(order, files), def_files=list(files), order_artifact=ORDER, instance=instance or ground.namespace,
        namespace=ground.namespace, operation=operation, package_id=f"p-{instance or ground.namespace}", **more,
    )  # fmt: skip
    return done


async def repaired(ground: Any, files: Mapping[str, Any], *, operation: str) -> int:
    """Return how many objects a repair has applied."""
    ground.site.step = "repair"
    done = await ground.site.repair(
        def_files=list(files), order_artifact=ORDER, instance=ground.namespace, namespace=ground.namespace,
        operation=operation,
    )  # fmt: skip
    return int(done.repaired)


async def the(ground: Any, name: str, kind: str = "ConfigMap", api_version: str = "v1") -> Any:
    return await ground.shown(api_version, kind, name)


def image_of(deployment: Body) -> object:
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


WEB = """
artifacts:
- {file: web.yaml, wait: exists}
objects:
- {object: {kind: Deployment, name: web}, ignore_fields: [/spec/replicas, /spec/template/spec/containers/name=main/image]}
"""


async def test_ignored_fields_belong_to_others_once_the_object_exists(ground: Any) -> None:
    """MC-106c: a create has them; later neither a change, nor drift, nor a repair touches them, set by others or not."""
    web = {"web.yaml": a_deployment(replicas=3)}
    web["web.yaml"]["spec"]["template"]["spec"]["containers"][0] |= {"name": "main", "image": "nginx:1"}
    await apply(ground, WEB, web)
    found = await the(ground, "web", "Deployment", "apps/v1")
    assert (found["spec"]["replicas"], image_of(found)) == (3, "nginx:1")
    # No other manager has set them: what only we owned stays.
    changed = {"web.yaml": a_deployment(replicas=5)}
    changed["web.yaml"]["spec"]["template"]["spec"]["containers"][0] |= {"name": "main", "image": "nginx:2"}
    changed["web.yaml"]["spec"]["minReadySeconds"] = 1
    await replaced(ground, WEB, changed, operation="one")
    found = await the(ground, "web", "Deployment", "apps/v1")
    assert (found["spec"]["replicas"], image_of(found), found["spec"]["minReadySeconds"]) == (3, "nginx:1", 1)
    others = {"replicas": 4, "template": {"spec": {"containers": [{"name": "main", "image": "nginx:9"}]}}}
    await ground.as_other("apps/v1", "Deployment", "web", {"spec": others})
    assert await repaired(ground, changed, operation="quiet") == 0
    # Another field of theirs is drift, and its repair leaves these alone.
    await ground.as_other("apps/v1", "Deployment", "web", {"spec": {"minReadySeconds": 7}})
    assert await repaired(ground, changed, operation="loud") == 1
    found = await the(ground, "web", "Deployment", "apps/v1")
    assert (found["spec"]["replicas"], image_of(found), found["spec"]["minReadySeconds"]) == (4, "nginx:9", 1)
    # Without the rule, the fields are ours again.
    await replaced(ground, "artifacts: [{file: web.yaml, wait: exists}]", changed, operation="two")
    found = await the(ground, "web", "Deployment", "apps/v1")
    assert (found["spec"]["replicas"], image_of(found)) == (5, "nginx:2")


async def test_a_field_that_becomes_ignored_later_keeps_its_value(ground: Any) -> None:
    """MC-106c: the present value is handed over; labels of the manifest are left, those of kubevnfm stay."""
    one = a_map("a", x="1", other="1")
    one["metadata"]["labels"] = {"site": "north"}
    await apply(ground, "artifacts: [{file: a.yaml}]", {"a.yaml": one})
    two = a_map("a", {"kubevnfm.io/ignore-fields": "/data/x, /metadata/labels"}, x="2", other="2")
    two["metadata"]["labels"] = {"site": "south"}
    await replaced(ground, "artifacts: [{file: a.yaml, conflict: abort}]", {"a.yaml": two}, operation="one")
    found = await the(ground, "a")
    assert found["data"] == {"x": "1", "other": "2"}
    assert (found["metadata"]["labels"]["site"], found["metadata"]["labels"][LABEL]) == ("north", ground.namespace)
    # Ignored fields of others are no conflict; other ones are.
    await ground.as_other("v1", "ConfigMap", "a", {"data": {"x": "9"}})
    two["data"]["other"] = "3"
    await replaced(ground, "artifacts: [{file: a.yaml, conflict: abort}]", {"a.yaml": two}, operation="two")
    assert (await the(ground, "a"))["data"] == {"x": "9", "other": "3"}
    await ground.as_other("v1", "ConfigMap", "a", {"data": {"other": "9"}})
    two["data"]["other"] = "4"
    with pytest.raises((FieldConflict, ObjectsRefused)):
        await replaced(ground, "artifacts: [{file: a.yaml, conflict: abort}]", {"a.yaml": two}, operation="three")


async def test_a_change_that_gave_way_to_others_can_be_undone(ground: Any) -> None:
    """MC-106b: an object that the change has not reached stays as it is; one that it has changed, and others then, is an error."""
    order = "artifacts: [{file: a.yaml, conflict: abort}, {file: b.yaml}]"
    before = {"a.yaml": a_map("a", x="1"), "b.yaml": a_map("b", x="1")}
    await apply(ground, order, before)
    await ground.as_other("v1", "ConfigMap", "a", {"data": {"x": "9"}})
    after = {"a.yaml": a_map("a", x="2"), "b.yaml": a_map("b", x="2")}
    with pytest.raises((FieldConflict, ObjectsRefused)):
        await replaced(ground, order, after, operation="one")
    await replaced(ground, order, before, operation="one", attempt=2, is_rollback=True, is_undo=True)
    assert [(await the(ground, name))["data"]["x"] for name in "ab"] == ["9", "1"]
    # A return to an earlier revision undoes nothing of its own.
    with pytest.raises((FieldConflict, ObjectsRefused)):
        await replaced(ground, order, before, operation="two", is_rollback=True)
    alone = "artifacts: [{file: c.yaml, conflict: abort}]"
    await replaced(ground, alone, {"c.yaml": a_map("c", x="2")}, operation="three")
    await ground.as_other("v1", "ConfigMap", "c", {"data": {"x": "9"}})
    with pytest.raises((FieldConflict, ObjectsRefused)):
        await replaced(
            ground, alone, {"c.yaml": a_map("c", x="1")}, operation="three", attempt=2, is_rollback=True, is_undo=True
        )


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("/spec/template/spec/nodeSelector/disk", "one owner for all of /spec/template/spec/nodeSelector"),
        ("/spec/template/spec/containers/image=nginx/image", "one of its keys expected (name)"),
    ],
)
async def test_a_field_without_an_owner_of_its_own_cannot_be_ignored(ground: Any, field: str, reason: str) -> None:
    """MC-106c: said before anything is applied."""
    web = a_deployment(replicas=1)
    web["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx"
    order = f"artifacts: [{{file: web.yaml, wait: exists, ignore_fields: ['{field}']}}]"
    with pytest.raises(ObjectsRefused) as caught:
        await apply(ground, order, {"web.yaml": web})
    assert reason in str(caught.value)
    assert await the(ground, "web", "Deployment", "apps/v1") is None


ONCE = "artifacts: [{file: a.yaml, apply: create-only}, {file: z.yaml}]"


async def test_an_object_that_is_made_once_is_not_changed_afterwards(ground: Any) -> None:
    """MC-106a: neither by a change nor by a repair; what is gone is made again, and it goes with the instance."""
    await apply(ground, ONCE, {"a.yaml": a_map("a", x="1"), "z.yaml": a_map("z", x="1")})
    await ground.as_other("v1", "ConfigMap", "a", {"data": {"x": "theirs"}})
    files = {"a.yaml": a_map("a", x="2"), "z.yaml": a_map("z", x="2")}
    await replaced(ground, ONCE, files, operation="one")
    assert ((await the(ground, "a"))["data"], (await the(ground, "z"))["data"]) == ({"x": "theirs"}, {"x": "2"})
    assert await repaired(ground, files, operation="quiet") == 0
    await remove(ground, "a")
    assert await repaired(ground, files, operation="gone") == 1
    assert (await the(ground, "a"))["data"] == {"x": "2"}
    await ground.delete()
    assert await the(ground, "a") is None


READ = "artifacts: [{file: theirs.yaml, priority: 1, apply: read-only, timeout: 1}, {file: z.yaml, priority: 2}]"


async def test_an_object_that_is_only_read_is_awaited_and_never_touched(ground: Any) -> None:
    """MC-106a: it may be another owner's; nothing of the VNF's life writes, labels or deletes it."""
    files = {"theirs.yaml": a_map("theirs", x="wanted"), "z.yaml": a_map("z", x="1")}
    with pytest.raises(ObjectsNotReady, match=r"ConfigMap .*/theirs"):
        await apply(ground, READ, files)
    assert await the(ground, "z") is None
    await ground.create(a_map("theirs", x="theirs"))
    before = await the(ground, "theirs")
    ground.site.operation = "again"
    done = await apply(ground, READ, files)
    assert [each.name for each in done.objects] == ["z"]
    files["z.yaml"] = a_map("z", x="2")
    await replaced(ground, READ, files, operation="change")
    await ground.as_other("v1", "ConfigMap", "z", {"data": {"x": "9"}})
    assert await repaired(ground, files, operation="repair") == 1
    await ground.delete()
    assert await the(ground, "theirs") == before


async def test_an_object_that_is_only_read_from_now_on_is_given_back(ground: Any) -> None:
    """MC-106a, MC-106d: it stays at the end, and a rollback has it again."""
    files = {"theirs.yaml": a_map("theirs", x="1"), "z.yaml": a_map("z", x="1")}
    mine = "artifacts: [{file: theirs.yaml}, {file: z.yaml}]"
    await apply(ground, mine, files)
    await replaced(ground, READ, files, operation="read")
    assert "labels" not in (await the(ground, "theirs"))["metadata"]
    await replaced(ground, mine, files, operation="back")
    assert (await the(ground, "theirs"))["metadata"]["labels"][LABEL] == ground.namespace
    await replaced(ground, READ, files, operation="read again")
    await ground.delete()
    assert await the(ground, "theirs") is not None


KEEP = """
artifacts:
- {file: a.yaml, keep: [on-change]}
- {file: b.yaml}
- {file: c.yaml}
objects: [{object: {kind: ConfigMap, name: c}, keep: [on-delete]}]
"""


async def test_what_is_kept_is_named_and_has_no_owner(ground: Any) -> None:
    """MC-106, MC-106d: on a change, at the end, by the order and by annotations, Helm's included."""
    helm, all_of = {"helm.sh/resource-policy": "keep"}, {"kubevnfm.io/keep": "on-delete, on-change"}
    files = {
        "a.yaml": a_map("a", x="1"),
        "b.yaml": [a_map("b", helm), a_map("d", all_of), a_map("e", {"kubevnfm.io/keep": "on-delete"})],
        "c.yaml": a_map("c", x="1"),
    }
    await apply(ground, KEEP, files)
    left = {"b.yaml": a_map("d", all_of), "c.yaml": files["c.yaml"]}
    order = KEEP.replace("- {file: a.yaml, keep: [on-change]}\n", "")
    done = await replaced(ground, order, left, operation="fewer")
    assert {each.name for each in done.kept_objects} == {"a", "b"}
    assert await the(ground, "e") is None, "on-delete says nothing of a change"
    end = await ground.delete()
    assert {(each.name, each.reason) for each in end.left if each.kind == "ConfigMap"} == {
        (name, "it is kept, as keep: on-delete says") for name in "cd"
    }
    for name in "abcd":
        metadata = (await the(ground, name))["metadata"]
        assert "labels" not in metadata
        assert metadata["annotations"]["kubevnfm.io/kept-from"] == ground.namespace
        assert "kubevnfm.io/operation-id" not in metadata["annotations"]


async def test_a_kept_object_is_adopted_by_the_name_of_its_vnf_alone(ground: Any) -> None:
    """MC-106d: otherwise it is another owner's; the VNF itself has it back without a name, as after a rollback."""
    order, mine = "artifacts: [{file: a.yaml}, {file: z.yaml}]", f"{ground.namespace}-two"
    files = {"a.yaml": a_map("a", {"kubevnfm.io/keep": "true"}, x="1"), "z.yaml": a_map("z")}
    await apply(ground, order, files)
    await replaced(ground, "artifacts: [{file: z.yaml}]", {"z.yaml": a_map("z")}, operation="without")
    assert LABEL not in (await the(ground, "a"))["metadata"].get("labels", {})
    done = await replaced(ground, order, files, operation="back")
    assert (await the(ground, "a"))["metadata"]["labels"][LABEL] == ground.namespace
    assert done.kept_objects == ()
    await ground.delete()
    for said in ({}, {"kubevnfm.io/kept-from": "another"}):
        with pytest.raises(ForeignObjects):
            await apply(ground, "artifacts: [{file: a.yaml}]", {"a.yaml": a_map("a", said, x="2")}, instance=mine)
    ours = {"kubevnfm.io/kept-from": ground.namespace}
    await apply(ground, "artifacts: [{file: a.yaml}]", {"a.yaml": a_map("a", ours, x="2")}, instance=mine)
    found = await the(ground, "a")
    assert (found["data"], found["metadata"]["labels"][LABEL]) == ({"x": "2"}, mine)
    await ground.delete(instance=mine)
    assert await the(ground, "a") is None


async def test_a_kept_workload_runs_on_and_its_claims_have_no_owner(ground: Any) -> None:
    """MC-106d, MC-040: its pods lose the labels too, and are not waited for."""
    claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}
    claim |= {"storageClassName": ground.namespace}
    name = ground.own_name("disk")
    await ground.create(an_object("PersistentVolume", name, spec={**volume, "storageClassName": ground.namespace}))
    db = a_deployment(replicas=1, name="db") | {"kind": "StatefulSet"}
    db["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    web = a_deployment(replicas=1)
    bare = an_object("Pod", "bare", spec={"containers": [{"name": "main", "image": "nginx"}]})
    order = "artifacts: [{file: db.yaml, keep: [on-delete]}, {file: web.yaml, keep: [on-delete]}, {file: bare.yaml}]"
    await apply(ground, order, {"db.yaml": db, "web.yaml": web, "bare.yaml": bare})
    web_there = await the(ground, "web", "Deployment", "apps/v1")
    assert web_there["metadata"]["labels"]["k8splugin.io/rb-instance-id"] == ground.namespace
    end = await ground.delete()
    assert {each.name for each in end.left if each.kind != "Namespace"} == {"db", "web", "data-db-0"}
    claims = (await the(ground, "data-db-0", "PersistentVolumeClaim"))["metadata"]
    assert LABEL not in claims.get("labels", {})
    assert "kubevnfm.io/stateful-set" not in claims.get("annotations", {})
    after = await the(ground, "web", "Deployment", "apps/v1")
    assert after["spec"] == web_there["spec"], "its pods are not started again"
    pods = await ground.cluster.list(
        (await ground.cluster.resource("v1", "Pod")), namespace=ground.namespace, labels=LABEL
    )
    assert pods == []


async def remove(ground: Any, name: str) -> None:
    resource = await ground.cluster.resource("v1", "ConfigMap")
    await ground.cluster.delete(resource, ObjectKey("v1", "ConfigMap", ground.namespace, name))
