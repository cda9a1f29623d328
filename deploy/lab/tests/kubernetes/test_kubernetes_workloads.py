"""The controllers: workloads, pods and their images, volumes, services, budgets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
PODS = f"{CORE}/pods"
EVENTS = f"{CORE}/events"


def conditions(obj: Any) -> dict[str, tuple[str, str]]:
    listed = (obj.get("status") or {}).get("conditions") or []
    return {c["type"]: (c["status"], c.get("reason", "")) for c in listed}


def waiting_for(pod: Any) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(next((s["state"]["waiting"]["reason"] for s in statuses if "waiting" in s["state"]), ""))


def a_pod(name: str = "p", image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def rolled_out(deployment: Any) -> bool:
    spec, status = deployment["spec"], deployment["status"]
    counts = {status.get(f"{kind}Replicas", 0) for kind in ("updated", "ready", "available")}
    current = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return current and counts | {status.get("replicas", 0)} == {spec["replicas"]}


async def test_a_deployment_comes_up_and_says_so(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments", a_deployment(replicas=3))
    done = await api.until(f"{APPS}/deployments", "web", rolled_out)
    assert conditions(done) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    pods = (await api.get(f"{PODS}?labelSelector=app%3Dweb"))["items"]
    assert {p["metadata"]["ownerReferences"][0]["kind"] for p in pods} == {"ReplicaSet"}
    assert {p["spec"]["nodeName"] for p in pods} == {"worker"}
    assert len({p["status"]["podIP"] for p in pods}) == 3


async def test_a_new_image_rolls_out_and_keeps_enough_pods_available(
    api: Any, a_deployment: Callable[..., Any]
) -> None:
    await api.post(f"{APPS}/deployments", a_deployment(replicas=4))
    before = await api.until(f"{APPS}/deployments", "web", rolled_out)
    since = before["metadata"]["resourceVersion"]
    containers = {"containers": [{"name": "main", "image": "nginx:2"}]}
    patch = {"spec": {"template": {"spec": containers}}}
    await api.patch(f"{APPS}/deployments/web", patch, "application/strategic-merge-patch+json")
    available = []
    async for event in api.watch(f"{APPS}/deployments?resourceVersion={since}"):
        available.append(event["object"]["status"].get("availableReplicas", 0))
        if rolled_out(event["object"]) and event["object"]["status"]["observedGeneration"] == 2:
            break
    assert min(available) >= 3
    live = [p for p in (await api.get(PODS))["items"] if "deletionTimestamp" not in p["metadata"]]
    assert {p["spec"]["containers"][0]["image"] for p in live} == {"nginx:2"}


async def test_going_back_to_an_old_template_takes_its_replica_set_again(
    api: Any, a_deployment: Callable[..., Any]
) -> None:
    for image in ("nginx:1", "nginx:2", "nginx:1"):
        await api.apply(f"{APPS}/deployments/web", a_deployment(image=image))
        await api.until(f"{APPS}/deployments", "web", rolled_out)
    sets = (await api.get(f"{APPS}/replicasets"))["items"]
    revision = "deployment.kubernetes.io/revision"
    listed = {
        s["spec"]["template"]["spec"]["containers"][0]["image"]: (s["spec"]["replicas"], s["metadata"]["annotations"])
        for s in sets
    }
    assert {image: (count, notes[revision]) for image, (count, notes) in listed.items()} == {
        "nginx:1": (2, "3"),
        "nginx:2": (0, "2"),
    }


async def test_no_replicas_is_ready_with_none(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments", a_deployment(replicas=0))
    done = await api.until(f"{APPS}/deployments", "web", lambda d: d["status"].get("observedGeneration") == 1)
    assert conditions(done)["Available"][0] == "True"


async def test_a_deleted_pod_is_replaced(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments", a_deployment(replicas=1))
    await api.until(f"{APPS}/deployments", "web", rolled_out)
    (pod,) = (await api.get(PODS))["items"]
    leaving = await api.delete(f"{PODS}/{pod['metadata']['name']}")
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.until_gone(PODS, pod["metadata"]["name"])
    await api.until(f"{APPS}/deployments", "web", rolled_out)
    (other,) = (await api.get(PODS))["items"]
    assert other["metadata"]["uid"] != pod["metadata"]["uid"]


@pytest.mark.parametrize("image", ["registry/does-not-exist:1", "nginx:missing"])
async def test_an_image_that_is_not_there_shows_as_real_kubelets_show_it(api: Any, image: str) -> None:
    await api.post(PODS, a_pod(image=image))
    pod = await api.until(PODS, "p", lambda p: waiting_for(p) == "ImagePullBackOff")
    assert pod["status"]["phase"] == "Pending"
    assert conditions(pod)["Ready"] == ("False", "ContainersNotReady")
    warnings = (await api.get(f"{EVENTS}?fieldSelector=involvedObject.name%3Dp,type%3DWarning"))["items"]
    assert any(f'Failed to pull image "{image}"' in event["message"] for event in warnings)


async def test_an_image_fault_ends_when_the_fault_does(api: Any, faults: FaultBook) -> None:
    fault = faults.add(part="program", verb="image nginx:1", message="registry is down")
    await api.post(PODS, a_pod())
    await api.until(PODS, "p", lambda p: waiting_for(p) == "ImagePullBackOff")
    faults.remove(fault.fault_id)
    await api.until(PODS, "p", lambda p: p["status"]["phase"] == "Running")


async def test_a_deployment_without_progress_misses_its_deadline(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments", a_deployment(image="x:missing", progressDeadlineSeconds=1))
    overdue = ("False", "ProgressDeadlineExceeded")
    await api.until(f"{APPS}/deployments", "web", lambda d: conditions(d).get("Progressing") == overdue)


async def test_a_pod_that_no_node_accepts_stays_pending_and_says_why(api: Any, cluster: LabCluster) -> None:
    await api.post(PODS, a_pod(nodeSelector={"disk": "fast"}))
    pod = await api.until(PODS, "p", lambda p: conditions(p).get("PodScheduled") == ("False", "Unschedulable"))
    message = pod["status"]["conditions"][0]["message"]
    assert message.startswith(
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had"
    )
    await api.patch("/api/v1/nodes/worker", {"metadata": {"labels": {"disk": "fast"}}})
    await api.until(PODS, "p", lambda p: p["status"]["phase"] == "Running")


async def test_a_cordoned_node_accepts_no_pod(api: Any) -> None:
    await api.patch("/api/v1/nodes/worker", {"spec": {"unschedulable": True}})
    await api.post(PODS, a_pod())
    await api.until(PODS, "p", lambda p: conditions(p).get("PodScheduled") == ("False", "Unschedulable"))
    await api.patch("/api/v1/nodes/worker", {"spec": {"unschedulable": None}})
    await api.until(PODS, "p", lambda p: p["status"]["phase"] == "Running")


async def test_a_removed_node_loses_its_pods(api: Any) -> None:
    await api.post(PODS, a_pod())
    await api.until(PODS, "p", lambda p: p["status"]["phase"] == "Running")
    await api.delete("/api/v1/nodes/worker")
    await api.until_gone(PODS, "p")


async def test_a_stateful_set_numbers_its_pods_and_keeps_their_claims(api: Any) -> None:
    await api.post(
        "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    )
    template = a_pod()
    template["metadata"] = {"labels": {"app": "db"}}
    claim = {
        "metadata": {"name": "data", "labels": {"of": "me"}, "annotations": {"set": "db"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    sets = f"{APPS}/statefulsets"
    await api.post(sets, {"metadata": {"name": "db"}, "spec": {**spec, "volumeClaimTemplates": [claim]}})
    await api.until(sets, "db", lambda s: s["status"].get("readyReplicas") == 2)
    assert [p["metadata"]["name"] for p in (await api.get(PODS))["items"]] == ["db-0", "db-1"]
    claims = (await api.get(f"{CORE}/persistentvolumeclaims"))["items"]
    assert {c["metadata"]["name"]: c["status"]["phase"] for c in claims} == {"data-db-0": "Bound", "data-db-1": "Bound"}
    assert [c["metadata"]["labels"] for c in claims] == [{"of": "me", "app": "db"}] * 2
    assert [c["metadata"]["annotations"].get("set") for c in claims] == ["db", "db"]
    await api.patch(f"{sets}/db", {"spec": {"replicas": 1}})
    await api.until_gone(PODS, "db-1")
    assert len((await api.get(f"{CORE}/persistentvolumeclaims"))["items"]) == 2


async def test_a_stateful_set_mounts_the_volumes_of_its_claim_templates(api: Any) -> None:
    await api.post(
        "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    )
    mounts = [{"name": "data", "mountPath": "/var/lib/db"}, {"name": "scratch", "mountPath": "/tmp"}]
    main = {"name": "main", "image": "db:1", "volumeMounts": mounts}
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [main], "volumes": [{"name": "scratch", "emptyDir": {}}]},
    }
    wanted = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
    claim = {"metadata": {"name": "data"}, "spec": {**wanted, "resources": {"requests": {"storage": "1Gi"}}}}
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    sets = f"{APPS}/statefulsets"
    await api.post(sets, {"metadata": {"name": "db"}, "spec": {**spec, "volumeClaimTemplates": [claim]}})
    await api.until(sets, "db", lambda s: s["status"].get("readyReplicas") == 2)
    pod = await api.get(f"{PODS}/db-1")
    assert {v["name"]: v.get("persistentVolumeClaim") for v in pod["spec"]["volumes"]} == {
        "scratch": None,
        "data": {"claimName": "data-db-1"},
    }
    assert (await api.get(f"{CORE}/persistentvolumeclaims/data-db-1"))["status"]["phase"] == "Bound"


async def test_a_stateful_set_that_mounts_what_nothing_defines_is_refused(api: Any) -> None:
    main = {"name": "main", "image": "db:1", "volumeMounts": [{"name": "dta", "mountPath": "/var/lib/db"}]}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [main]}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = {"selector": {"matchLabels": {"app": "db"}}, "template": template, "volumeClaimTemplates": [claim]}
    answer = await api.call("POST", f"{APPS}/statefulsets", {"metadata": {"name": "db"}, "spec": spec})
    assert answer.code == 422
    assert 'volumeMounts[0].name: Not found: "dta"' in answer.body["message"]


async def test_a_daemon_set_follows_the_nodes(api: Any, cluster: LabCluster) -> None:
    template = a_pod(tolerations=[{"operator": "Exists"}])
    template["metadata"] = {"labels": {"app": "agent"}}
    sets = f"{APPS}/daemonsets"
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    await api.post(sets, {"metadata": {"name": "agent"}, "spec": spec})
    await api.until(sets, "agent", lambda s: s["status"].get("numberAvailable") == 2)
    await cluster.add_node("late", address="127.0.0.10", control_plane=False)
    await api.until(sets, "agent", lambda s: s["status"].get("numberAvailable") == 3)
    pods = (await api.get(PODS))["items"]
    assert {p["spec"]["nodeName"] for p in pods} == {"master", "worker", "late"}


async def test_pods_left_behind_are_taken_over_by_a_new_owner(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments", a_deployment())
    await api.until(f"{APPS}/deployments", "web", rolled_out)
    before = {p["metadata"]["uid"] for p in (await api.get(PODS))["items"]}
    await api.delete(f"{APPS}/deployments/web", {"propagationPolicy": "Orphan"})
    await api.until_gone(f"{APPS}/deployments", "web")
    await api.post(f"{APPS}/deployments", a_deployment())
    await api.until(f"{APPS}/deployments", "web", rolled_out)
    assert {p["metadata"]["uid"] for p in (await api.get(PODS))["items"]} == before


async def test_slow_controllers_take_the_configured_delay(faults: FaultBook, ledger: CallLedger, address: str) -> None:
    clusters = LabClusters(faults=faults, ledger=ledger, controller_delay_s=3600.0)
    cluster = await clusters.create(
        address=address, version="1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )
    await cluster.add_node("worker", address="127.0.0.9", control_plane=False)
    async with aiohttp.ClientSession() as session:
        tls = ssl.create_default_context(cadata=cluster.ca_pem)
        headers = {"Authorization": f"Bearer {cluster.admin_token}"}
        async with session.get(f"{cluster.endpoint}/api/v1/nodes/worker", ssl=tls, headers=headers) as response:
            assert "conditions" not in (await response.json())["status"]
    await clusters.close()


async def test_a_job_completes(api: Any) -> None:
    template = a_pod(restartPolicy="Never")
    del template["metadata"]
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await api.post(
        jobs, {"metadata": {"name": "j"}, "spec": {"completions": 3, "parallelism": 2, "template": template}}
    )
    done = await api.until(jobs, "j", lambda j: "Complete" in conditions(j))
    assert (done["status"]["succeeded"], "completionTime" in done["status"]) == (3, True)


async def test_a_job_whose_command_fails_gives_up(api: Any) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "b:1", "command": ["false"]}]}}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await api.post(jobs, {"metadata": {"name": "j"}, "spec": {"backoffLimit": 1, "template": template}})
    done = await api.until(jobs, "j", lambda j: "Failed" in conditions(j))
    assert conditions(done)["Failed"] == ("True", "BackoffLimitExceeded")
    assert done["status"]["failed"] == 2


async def test_a_claim_takes_the_smallest_volume_that_is_enough(api: Any) -> None:
    for name, size in (("small", "1Gi"), ("right", "5Gi"), ("large", "50Gi")):
        spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        await api.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": ""}
    claims = f"{CORE}/persistentvolumeclaims"
    await api.post(claims, {"metadata": {"name": "c"}, "spec": claim})
    bound = await api.until(claims, "c", lambda c: c["status"]["phase"] == "Bound")
    assert bound["spec"]["volumeName"] == "right"
    await api.delete(f"{claims}/c")
    await api.until("/api/v1/persistentvolumes", "right", lambda v: v["status"]["phase"] == "Released")


async def test_a_claim_in_use_outlives_its_deletion(api: Any) -> None:
    await api.post(
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "late"}, "provisioner": "example.com/d", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "late",
    }
    claims = f"{CORE}/persistentvolumeclaims"
    await api.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    await api.post(PODS, a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    bound = await api.until(claims, "c", lambda c: c["status"]["phase"] == "Bound")
    await api.until(PODS, "p", lambda p: p["status"]["phase"] == "Running")
    assert (await api.delete(f"{claims}/c"))["metadata"]["deletionTimestamp"]
    await api.delete(f"{PODS}/p")
    await api.until_gone(claims, "c")
    await api.until_gone("/api/v1/persistentvolumes", bound["spec"]["volumeName"])


async def test_a_service_gets_an_address_and_the_pods_it_selects(api: Any, a_deployment: Callable[..., Any]) -> None:
    ports = [{"port": 80}]
    spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": ports}
    made = await api.post(f"{CORE}/services", {"metadata": {"name": "s"}, "spec": spec})
    assert made["spec"]["clusterIP"].startswith("10.96.")
    assert made["spec"]["ports"][0]["nodePort"] >= 30000
    await api.until(f"{CORE}/services", "s", lambda s: bool(s["status"]["loadBalancer"].get("ingress")))
    given = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}
    of_others = {"metadata": {"name": "o"}, "spec": {**spec, "loadBalancerClass": "example.com/other"}}
    assert (await api.post(f"{CORE}/services", of_others))["status"] == {"loadBalancer": {}}
    await api.patch(f"{CORE}/services/o/status", given)
    await api.post(f"{CORE}/services", {"metadata": {"name": "i"}, "spec": {**spec, "type": "ClusterIP"}})
    merge = "application/merge-patch+json"
    refused = await api.call("PATCH", f"{CORE}/services/i/status", given, kind=merge)
    assert (refused.code, "status.loadBalancer.ingress: Forbidden" in refused.body["message"]) == (422, True)
    await api.post(f"{APPS}/deployments", a_deployment())
    ready = await api.until(
        f"{CORE}/endpoints", "s", lambda e: len((e.get("subsets") or [{}])[0].get("addresses") or []) == 2
    )
    assert ready["subsets"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]


async def test_an_eviction_respects_the_disruption_budget(api: Any, a_deployment: Callable[..., Any]) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    await api.post(budgets, {"metadata": {"name": "b"}, "spec": spec})
    await api.post(f"{APPS}/deployments", a_deployment(replicas=2))
    await api.until(budgets, "b", lambda b: (b.get("status") or {}).get("currentHealthy") == 2)
    name = (await api.get(PODS))["items"][0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    refused = await api.call("POST", f"{PODS}/{name}/eviction", eviction)
    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.body["details"]["causes"][0]["message"] == (
        "The disruption budget b needs 2 healthy pods and has 2 currently"
    )
    await api.patch(f"{budgets}/b", {"spec": {"minAvailable": 1}})
    await api.until(budgets, "b", lambda b: b["status"]["disruptionsAllowed"] == 1)
    await api.post(f"{PODS}/{name}/eviction", eviction)
    await api.until_gone(PODS, name)


async def test_an_autoscaler_keeps_replicas_inside_its_bounds(api: Any, a_deployment: Callable[..., Any]) -> None:
    await api.post(f"{APPS}/deployments?fieldManager=someone", a_deployment(replicas=1))
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    spec = {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 4}
    await api.post(scalers, {"metadata": {"name": "h"}, "spec": spec})
    scaled = await api.until(scalers, "h", lambda h: (h.get("status") or {}).get("currentReplicas") == 2)
    assert conditions(scaled)["AbleToScale"][0] == "True"
    owners = (await api.get(f"{APPS}/deployments/web"))["metadata"]["managedFields"]
    assert ("kube-controller-manager", "scale") in {(each["manager"], each.get("subresource")) for each in owners}


async def test_an_api_service_is_available_when_its_service_is(api: Any, a_deployment: Callable[..., Any]) -> None:
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    spec = {"group": "m.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    aim = {"service": {"namespace": "default", "name": "web"}}
    await api.post(services, {"metadata": {"name": "v1.m.example.com"}, "spec": {**spec, **aim}})
    missing = ("False", "ServiceNotFound")
    await api.until(services, "v1.m.example.com", lambda s: conditions(s).get("Available") == missing)
    await api.post(
        f"{CORE}/services",
        {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 443}]}},
    )
    await api.post(f"{APPS}/deployments", a_deployment())
    await api.until(services, "v1.m.example.com", lambda s: conditions(s).get("Available") == ("True", "Passed"))


async def test_a_hundred_deployments_are_rolled_out_quickly(api: Any, a_deployment: Callable[..., Any]) -> None:
    async with asyncio.timeout(300):
        await asyncio.gather(
            *(api.apply(f"{APPS}/deployments/d{n}", a_deployment(f"d{n}", replicas=2)) for n in range(100))
        )
        left = {f"d{n}" for n in range(100)}
        async for event in api.watch(f"{APPS}/deployments"):
            if rolled_out(event["object"]):
                left.discard(event["object"]["metadata"]["name"])
            if not left:
                break
