"""Create, read, update, patch, delete, list and watch, as for any kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_lab.kubernetes import LabCluster

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_new_object_gets_its_metadata_from_the_server(api: Any) -> None:
    made = await api.post(MAPS, a_map("a", x="1"))
    assert made["metadata"].keys() >= {"uid", "resourceVersion", "creationTimestamp", "namespace", "managedFields"}
    assert await api.get(f"{MAPS}/a") == made
    named = await api.post(MAPS, {"metadata": {"generateName": "part-"}})
    assert named["metadata"]["name"].startswith("part-")
    assert len(named["metadata"]["name"]) == 10


async def test_a_taken_name_a_missing_object_and_a_missing_namespace_are_reported(api: Any) -> None:
    await api.post(MAPS, a_map("a"))
    taken = await api.call("POST", MAPS, a_map("a"))
    assert (taken.code, taken.body["reason"]) == (409, "AlreadyExists")
    assert taken.body["message"] == 'configmaps "a" already exists'
    gone = await api.call("GET", f"{DEPLOYMENTS}/web")
    assert (gone.code, gone.body["message"]) == (404, 'deployments.apps "web" not found')
    assert gone.body["details"] == {"name": "web", "group": "apps", "kind": "deployments"}
    nowhere = await api.call("POST", "/api/v1/namespaces/nope/configmaps", a_map("a"))
    assert (nowhere.code, nowhere.body["message"]) == (404, 'namespaces "nope" not found')


async def test_an_update_of_an_old_version_is_a_conflict(api: Any) -> None:
    made = await api.post(MAPS, a_map("a", x="1"))
    newer = {**made, "data": {"x": "2"}}
    assert (await api.call("PUT", f"{MAPS}/a", newer)).code == 200
    late = await api.call("PUT", f"{MAPS}/a", {**made, "data": {"x": "3"}})
    assert (late.code, late.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.body["message"]


async def test_an_update_without_a_change_writes_nothing(api: Any) -> None:
    made = await api.post(MAPS, a_map("a", x="1"))
    again = await api.call("PUT", f"{MAPS}/a", a_map("a", x="1"))
    assert again.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_the_generation_counts_changes_of_the_spec_only(api: Any, a_deployment: Callable[..., Any]) -> None:
    made = await api.post(DEPLOYMENTS, a_deployment())
    labelled = await api.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}})
    scaled = await api.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 3}})
    assert [o["metadata"]["generation"] for o in (made, labelled, scaled)] == [1, 1, 2]
    # A Deployment counts its annotations too.
    noted = await api.patch(f"{DEPLOYMENTS}/web", {"metadata": {"annotations": {"a": "b"}, "labels": {"a": None}}})
    assert (noted["metadata"]["generation"], "labels" in noted["metadata"]) == (3, False)


async def test_status_is_written_through_its_subresource_only(api: Any) -> None:
    await api.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {
        "metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    })  # fmt: skip
    place = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/i"
    assert "status" not in await api.get(place)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}]}}}
    assert "status" not in await api.patch(place, status)
    written = await api.patch(f"{place}/status", {**status, "spec": {"ingressClassName": "x"}})
    assert written["status"] == status["status"]
    assert "ingressClassName" not in written["spec"]
    assert written["metadata"]["generation"] == 1


async def test_json_patch_adds_replaces_removes_and_tests(api: Any) -> None:
    await api.post(MAPS, a_map("a", x="1", y="2"))
    kind = "application/json-patch+json"
    patched = await api.patch(
        f"{MAPS}/a",
        [
            {"op": "test", "path": "/data/x", "value": "1"},
            {"op": "replace", "path": "/data/x", "value": "9"},
            {"op": "remove", "path": "/data/y"},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/example.com~1a", "value": "c"},
        ],
        kind,
    )
    assert (patched["data"], patched["metadata"]["annotations"]) == ({"x": "9"}, {"example.com/a": "c"})
    failed = await api.call("PATCH", f"{MAPS}/a", [{"op": "test", "path": "/data/x", "value": "1"}], kind=kind)
    assert failed.code == 422


async def test_a_strategic_merge_patch_merges_containers_by_name(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(DEPLOYMENTS, a_deployment())
    containers = [{"name": "main", "image": "nginx:2"}, {"name": "side", "image": "busybox:1"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    kind = "application/strategic-merge-patch+json"
    merged = (await api.patch(f"{DEPLOYMENTS}/web", patch, kind))["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in merged] == [("main", "nginx:2"), ("side", "busybox:1")]
    assert merged[0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    away = {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}
    left = (await api.patch(f"{DEPLOYMENTS}/web", away, kind))["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in left] == ["main"]


async def test_an_unknown_patch_format_is_refused(api: Any) -> None:
    await api.post(MAPS, a_map("a"))
    assert (await api.call("PATCH", f"{MAPS}/a", {}, kind="text/plain")).code == 415


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"metadata": {"name": "Not_A_Name"}}, "metadata.name", "RFC 1123 subdomain"),
        ({"metadata": {}}, "metadata.name", "name or generateName is required"),
        ({"spec.template.metadata": {"labels": {"app": "no"}}}, "spec.template.metadata.labels", "`selector` does not"),
        ({"spec.template.spec": {"containers": []}}, "spec.template.spec.containers", "Required value"),
        ({"spec.template.spec": {"containers": [{"name": "a"}]}}, "spec.template.spec.containers[0].image", "Required"),
    ],
)
async def test_an_invalid_deployment_is_reported_field_by_field(
    api: Any, a_deployment: Callable[..., Any], change: dict[str, Any], field: str, words: str
) -> None:
    body = a_deployment()
    for path, value in change.items():
        *parents, last = path.split(".")
        node = body
        for name in parents:
            node = node[name]
        node[last] = value
    answer = await api.call("POST", DEPLOYMENTS, body)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert any(c["field"] == field and words in c["message"] for c in answer.body["details"]["causes"])
    assert answer.body["message"].startswith("Deployment.apps ")


async def test_a_value_of_the_wrong_type_is_a_bad_request(api: Any, a_deployment: Callable[..., Any]) -> None:
    answer = await api.call("POST", DEPLOYMENTS, a_deployment() | {"spec": {"replicas": "two"}})
    assert answer.code == 400
    assert (
        "cannot unmarshal string into Go struct field Deployment.spec.replicas of type int32" in answer.body["message"]
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels", {"a": 1}),
        ("metadata.labels", "a"),
        ("metadata.ownerReferences", {}),
        ("spec", []),
        ("spec.template", "x"),
        ("spec.template.spec.containers", {"name": "a"}),
        ("spec.template.spec.containers", ["a"]),
        ("spec.selector", []),
        ("spec.strategy", "RollingUpdate"),
    ],
)
async def test_a_body_of_the_wrong_form_is_refused_and_harms_nothing(
    api: Any, a_deployment: Callable[..., Any], path: str, value: Any
) -> None:
    body = a_deployment()
    *parents, last = path.split(".")
    node = body
    for name in parents:
        node = node[name]
    node[last] = value
    assert (await api.call("POST", DEPLOYMENTS, body)).code == 400
    # Server-side apply answers 500 without a reason (Kubernetes 1.34).
    assert (await api.apply(f"{DEPLOYMENTS}/web", body)).code == 500
    assert (await api.get(DEPLOYMENTS))["items"] == []


async def test_fields_that_are_null_count_as_left_out(api: Any, a_deployment: Callable[..., Any]) -> None:
    body = a_deployment()
    body["metadata"]["creationTimestamp"] = None
    body["spec"]["template"]["metadata"]["creationTimestamp"] = None
    made = (await api.apply(f"{DEPLOYMENTS}/web", body)).body
    assert made["metadata"]["creationTimestamp"]
    assert "creationTimestamp" not in made["spec"]["template"]["metadata"]


async def test_a_client_that_hangs_up_leaves_no_watch_behind(api: Any, cluster: LabCluster) -> None:
    before = cluster.open_watches
    watch = api.watch(MAPS)
    await anext(watch)  # kube-root-ca.crt
    assert cluster.open_watches == before + 1
    await watch.aclose()
    async with asyncio.timeout(300):
        while cluster.open_watches != before:
            await api.get("/version")  # gives the server its turn


async def test_an_immutable_field_stays(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(DEPLOYMENTS, a_deployment())
    body = a_deployment()
    body["spec"]["selector"] = {"matchLabels": {"app": "web", "tier": "x"}}
    body["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    answer = await api.call("PUT", f"{DEPLOYMENTS}/web", body)
    assert answer.code == 422
    assert "spec.selector" in answer.body["message"]
    assert "field is immutable" in answer.body["message"]


async def test_a_dry_run_checks_everything_and_keeps_nothing(api: Any) -> None:
    dry = await api.call("POST", f"{MAPS}?dryRun=All", a_map("a"))
    assert (dry.code, dry.body["metadata"]["name"]) == (201, "a")
    assert (await api.call("GET", f"{MAPS}/a")).code == 404
    await api.post(MAPS, a_map("a", x="1"))
    assert (await api.call("DELETE", f"{MAPS}/a?dryRun=All")).code == 200
    config, kind = a_map("a", x="2"), "application/apply-patch+yaml"
    applied = await api.call("PATCH", f"{MAPS}/a?dryRun=All&fieldManager=one&force=true", config, kind=kind)
    assert applied.body["data"] == {"x": "2"}
    assert (await api.get(f"{MAPS}/a"))["data"] == {"x": "1"}


async def test_lists_select_by_labels_and_fields_and_come_in_pages(api: Any) -> None:
    for number in range(5):
        labels = {"tier": "web" if number % 2 else "db", "n": str(number)}
        await api.post(MAPS, {"metadata": {"name": f"m{number}", "labels": labels}})

    async def names(query: str) -> list[str]:
        return [item["metadata"]["name"] for item in (await api.get(f"{MAPS}?{query}"))["items"]]

    assert await names("labelSelector=tier%3Dweb") == ["m1", "m3"]
    assert await names("labelSelector=tier+in+(db),n!%3D0") == ["m2", "m4"]
    assert await names("fieldSelector=metadata.name%3Dm4") == ["m4"]
    assert (await api.call("GET", f"{MAPS}?fieldSelector=data.x%3D1")).code == 400
    page = await api.get(f"{MAPS}?limit=4&labelSelector=tier")
    rest = await api.get(f"{MAPS}?limit=4&labelSelector=tier&continue={page['metadata']['continue']}")
    assert len(page["items"]) == 4
    assert page["metadata"]["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in rest["items"]] == ["m4"]


async def test_a_watch_continues_from_a_list(api: Any) -> None:
    await api.post(MAPS, a_map("before"))
    since = (await api.get(MAPS))["metadata"]["resourceVersion"]
    await api.post(MAPS, a_map("a", x="1"))
    await api.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    await api.delete(f"{MAPS}/a")
    seen = []
    async for event in api.watch(f"{MAPS}?resourceVersion={since}"):
        seen.append((event["type"], event["object"]["metadata"]["name"], event["object"]["data"]["x"]))
        if event["type"] == "DELETED":
            break
    assert seen == [("ADDED", "a", "1"), ("MODIFIED", "a", "2"), ("DELETED", "a", "2")]


async def test_a_watch_sees_objects_enter_and_leave_its_selector(api: Any) -> None:
    await api.post(MAPS, a_map("a"))
    since = (await api.get(MAPS))["metadata"]["resourceVersion"]
    await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "yes"}}})
    await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": None}}})
    seen = []
    async for event in api.watch(f"{MAPS}?labelSelector=on&resourceVersion={since}"):
        seen.append(event["type"])
        if len(seen) == 2:
            break
    assert seen == ["ADDED", "DELETED"]


async def test_a_watch_from_too_long_ago_must_list_again(api: Any) -> None:
    since = (await api.get(MAPS))["metadata"]["resourceVersion"]
    await api.post(MAPS, a_map("a"))
    for number in range(1002):
        await api.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
    event = await anext(aiter(api.watch(f"{MAPS}?resourceVersion={since}")))
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_ends_after_its_time_and_marks_its_place(api: Any) -> None:
    query = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    await api.post(MAPS, a_map("a"))
    events = [event async for event in api.watch(f"{MAPS}?{query}")]
    bookmarks = [event["object"]["metadata"] for event in events if event["type"] == "BOOKMARK"]
    assert bookmarks[0]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert "annotations" not in bookmarks[-1]


async def test_finalizers_hold_an_object_that_is_deleted(api: Any) -> None:
    await api.post(MAPS, {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
    held = await api.delete(f"{MAPS}/a")
    assert held["metadata"]["deletionTimestamp"]
    await api.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
    assert (await api.call("GET", f"{MAPS}/a")).code == 404


async def test_a_deletion_spares_an_object_of_another_uid(api: Any) -> None:
    await api.post(MAPS, a_map("a"))
    answer = await api.call("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "another"}})
    assert answer.code == 409
    assert "the UID in the precondition (another) does not match" in answer.body["message"]


async def test_a_collection_is_deleted_by_its_selector(api: Any) -> None:
    for name, tier in (("a", "x"), ("b", "y")):
        await api.post(MAPS, {"metadata": {"name": name, "labels": {"tier": tier}}})
    await api.delete(f"{MAPS}?labelSelector=tier%3Dx")
    assert [i["metadata"]["name"] for i in (await api.get(f"{MAPS}?labelSelector=tier"))["items"]] == ["b"]


async def test_a_namespace_takes_its_content_along_and_takes_nothing_new(api: Any) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "vnf"}})
    maps = "/api/v1/namespaces/vnf/configmaps"
    await api.post(maps, {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
    gone = await api.delete("/api/v1/namespaces/vnf")
    assert gone["status"]["phase"] == "Terminating"
    late = await api.call("POST", maps, a_map("b"))
    assert late.code == 403
    assert late.body["message"] == (
        'configmaps "b" is forbidden: unable to create new content in namespace vnf because it is being terminated'
    )
    await api.until(maps, "a", lambda obj: "deletionTimestamp" in obj["metadata"])
    await api.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    await api.until_gone("/api/v1/namespaces", "vnf")


async def test_a_foreground_deletion_goes_after_its_dependents(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(DEPLOYMENTS, a_deployment())
    await api.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 2)
    held = await api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Foreground"})
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until_gone(DEPLOYMENTS, "web")
    assert (await api.get(PODS))["items"] == []


async def test_an_orphaning_deletion_leaves_dependents_alone(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(DEPLOYMENTS, a_deployment())
    await api.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 2)
    await api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Orphan"})
    await api.until_gone(DEPLOYMENTS, "web")
    (left,) = (await api.get("/apis/apps/v1/namespaces/default/replicasets"))["items"]
    assert not left["metadata"].get("ownerReferences")
    assert len((await api.get(PODS))["items"]) == 2


async def test_replicas_are_read_and_set_through_scale(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(DEPLOYMENTS, a_deployment())
    scale = await api.get(f"{DEPLOYMENTS}/web/scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    assert scale["status"]["selector"] == "app=web"
    set_to = await api.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 4}})
    assert set_to["spec"] == {"replicas": 4}
    await api.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 4)


async def test_an_autoscaler_is_the_same_in_both_versions(api: Any) -> None:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": ref, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60},
    }
    await api.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", body)
    newer = await api.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h")
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
    older = await api.get("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h")
    assert older["spec"]["targetCPUUtilizationPercentage"] == 60


async def test_the_limits_of_a_limit_range_are_a_list(api: Any) -> None:
    """Those of a container are a map of the same name."""
    path = "/api/v1/namespaces/default/limitranges"
    limits = [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}}
    assert (await api.apply(f"{path}/small", body)).body["spec"]["limits"] == limits
    assert (await api.call("POST", path, {**body, "spec": {"limits": limits[0]}})).code == 400
