"""The stand-in for Cluster API: from the sample's CRDs and objects to a cluster that answers, and back to nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabClusters

SAMPLES = Path(__file__).parents[3] / "samples"
NAMESPACE = "/namespaces/default"
CORE = f"/apis/cluster.x-k8s.io/v1beta2{NAMESPACE}"
OLD_CORE = f"/apis/cluster.x-k8s.io/v1beta1{NAMESPACE}"
PLANES = f"/apis/controlplane.cluster.x-k8s.io/v1beta2{NAMESPACE}/kubeadmcontrolplanes"
INFRA = f"/apis/infrastructure.cluster.x-k8s.io/v1beta2{NAMESPACE}"
PROVIDERS = ("core", "bootstrap", "control-plane", "infrastructure")


def documents(sample: str, *files: str) -> Sequence[dict[str, Any]]:
    folder = SAMPLES / sample / "Files" / "kubernetes"
    return [each for name in files for each in yaml.safe_load_all((folder / f"{name}.yaml").read_text())]


def path_of(obj: Mapping[str, Any]) -> str:
    group = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
    plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("Class") else "s")
    is_cluster_scoped = obj["kind"] == "CustomResourceDefinition"
    return f"{group}{'' if is_cluster_scoped else NAMESPACE}/{plural}/{obj['metadata']['name']}"


@pytest.fixture
async def management(api: Any) -> Any:
    """A cluster that serves the kinds of Cluster API."""
    for each in documents("capi-management", *PROVIDERS):
        if each["kind"] == "CustomResourceDefinition":
            path = path_of(each)
            assert (await api.apply(path, each)).code == 201
            await api.until(path.rpartition("/")[0], each["metadata"]["name"], is_established)
    return api


def is_established(obj: Any) -> bool:
    return conditions(obj).get("Established") == "True"


def conditions(obj: Any) -> dict[str, str]:
    return {each["type"]: each["status"] for each in ((obj or {}).get("status") or {}).get("conditions") or []}


async def apply_workload(api: Any) -> None:
    for each in documents("capi-workload", "cloud-config", "cluster", "control-plane", "workers"):
        answer = await api.apply(path_of(each), each)
        assert answer.code == 201, answer.body


async def scale(api: Any, path: str, replicas: int) -> Any:
    return await api.call(
        "PATCH", f"{path}/scale", {"spec": {"replicas": replicas}}, kind="application/merge-patch+json"
    )


async def test_a_cluster_comes_up_scales_and_goes(management: Any, clusters: LabClusters) -> None:
    """From provisioned infrastructure over an API that answers to available workers; deletion leaves nothing."""
    before = len(clusters.inventory())
    await apply_workload(management)
    cluster = await management.until(f"{CORE}/clusters", "workload", initialized)
    # Without a network no node is ready, and so nothing is available.
    assert (conditions(cluster)["Available"], conditions(cluster)["WorkersAvailable"]) == ("False", "False")
    endpoint = cluster["spec"]["controlPlaneEndpoint"]
    secret = await management.get(f"/api/v1{NAMESPACE}/secrets/workload-kubeconfig")
    kubeconfig = yaml.safe_load(base64.b64decode(secret["data"]["value"]))
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert kubeconfig["clusters"][0]["cluster"]["server"] == f"https://{endpoint['host']}:{endpoint['port']}"
    assert kubeconfig["users"][0]["name"] == "workload-admin"

    lab = clusters.find(endpoint["host"], endpoint["port"])
    assert lab is not None
    lab.plane.create("daemonsets.apps", a_network())
    await management.until(f"{CORE}/clusters", "workload", lambda obj: conditions(obj).get("Available") == "True")
    old = await management.get(f"{OLD_CORE}/clusters/workload")
    assert (conditions(old)["Ready"], old["status"]["infrastructureReady"]) == ("True", True)

    workers = f"{CORE}/machinedeployments"
    assert (await scale(management, f"{workers}/workload-md-0", 3)).code == 200
    await management.until(workers, "workload-md-0", lambda obj: obj["status"].get("availableReplicas") == 3)
    assert (await scale(management, f"{PLANES}/workload-control-plane", 2)).code == 422
    assert (await scale(management, f"{PLANES}/workload-control-plane", 3)).code == 200
    await management.until(PLANES, "workload-control-plane", lambda obj: obj["status"].get("availableReplicas") == 3)
    machines = (await management.get(f"{CORE}/machines"))["items"]
    assert sorted(each["status"]["nodeRef"]["name"] for each in machines) == sorted(
        each["name"] for each in lab.inventory()["nodes"]
    )
    assert (await scale(management, f"{workers}/workload-md-0", 1)).code == 200
    await management.until(workers, "workload-md-0", lambda obj: obj["status"]["replicas"] == 1)

    await management.delete(f"{CORE}/clusters/workload", {"propagationPolicy": "Background"})
    await management.until_gone(f"{CORE}/clusters", "workload")
    for path in (f"{CORE}/machines", workers, PLANES, f"{INFRA}/openstackclusters"):
        assert (await management.get(path))["items"] == []
    assert len(clusters.inventory()) == before


def initialized(obj: Any) -> bool:
    return bool(obj.get("status", {}).get("initialization", {}).get("controlPlaneInitialized"))


def a_network() -> dict[str, Any]:
    documents = yaml.safe_load_all((SAMPLES / "capi-workload" / "Files" / "addons" / "cni.yaml").read_text())
    network: dict[str, Any] = next(each for each in documents if each["kind"] == "DaemonSet")
    network["spec"]["template"]["spec"]["serviceAccountName"] = "default"
    return network


@pytest.mark.parametrize(
    ("sample", "files", "contract"),
    [
        ("capi-workload-v1beta1", ("cloud-config", "cluster", "control-plane", "workers"), "v1beta1"),
        ("capi-workload-class", ("cloud-config", "class", "cluster"), "v1beta2"),
    ],
)
async def test_clusters_of_the_other_forms_come_up(
    management: Any, sample: str, files: Sequence[str], contract: str
) -> None:
    """A cluster of contract v1beta1 shows its status in that form; a ClusterClass makes the objects of its clusters."""
    for each in documents(sample, *files):
        answer = await management.apply(path_of(each), each)
        assert answer.code == 201, answer.body
    path = CORE.replace("v1beta2", contract)
    cluster = await management.until(
        f"{path}/clusters", "workload", lambda obj: conditions(obj).get("ControlPlaneInitialized") == "True"
    )
    assert ("initialization" in cluster["status"]) == (contract == "v1beta2")
    workers = (await management.get(f"{path}/machinedeployments"))["items"]
    assert [each["metadata"]["name"].startswith("workload-md-0") for each in workers] == [True]
    # The same objects in another version are the same clusters.
    for each in documents(sample, *files):
        answer = await management.apply(path_of(each), each)
        assert answer.code == 200, answer.body


async def test_machines_stay_while_the_credentials_of_the_cloud_are_gone(management: Any) -> None:
    await apply_workload(management)
    await management.until(f"{CORE}/clusters", "workload", initialized)
    secret = f"/api/v1{NAMESPACE}/secrets/workload-cloud-config"
    await management.delete(secret)
    await management.delete(f"{CORE}/clusters/workload")
    cluster = await management.until(
        f"{CORE}/clusters", "workload", lambda obj: conditions(obj).get("Deleting") == "True"
    )
    assert "cluster.cluster.x-k8s.io" in cluster["metadata"]["finalizers"]
    assert (await management.get(f"{CORE}/machines"))["items"]
    await management.apply(secret, documents("capi-workload", "cloud-config")[0])
    await management.until_gone(f"{CORE}/clusters", "workload")


async def test_faults_fail_infrastructure_and_machines(management: Any, faults: FaultBook) -> None:
    fault = faults.add(part="capi", verb="provision workload", effect="fail", message="no quota for routers")
    await apply_workload(management)
    stuck = await management.until(f"{CORE}/clusters", "workload", lambda obj: "no quota" in str(obj.get("status")))
    assert conditions(stuck)["InfrastructureReady"] == "False"
    faults.add(part="capi", verb="boot workload-md-0-*", effect="fail", status=422, message="no such flavor")
    faults.remove(fault.fault_id)
    async for event in management.watch(f"{OLD_CORE}/machines"):
        status = event["object"].get("status") or {}
        if status.get("failureMessage") == "no such flavor":
            assert status["infrastructureReady"] is False
            return


async def test_a_paused_cluster_is_left_alone(management: Any) -> None:
    paused = documents("capi-workload", "cluster")[0]
    paused["spec"]["paused"] = True
    await management.apply(path_of(paused), paused)
    await apply_rest(management)
    await management.until(f"{CORE}/clusters", "workload", lambda obj: conditions(obj).get("Paused") == "True")
    assert (await management.get(f"{INFRA}/openstackclusters/workload")).get("status") is None
    await management.patch(f"{CORE}/clusters/workload", {"spec": {"paused": None}})
    await management.until(f"{CORE}/clusters", "workload", initialized)


async def apply_rest(api: Any) -> None:
    for each in documents("capi-workload", "cloud-config", "cluster", "control-plane", "workers"):
        if each["kind"] != "Cluster":
            await api.apply(path_of(each), each)


async def test_webhooks_deny_what_real_ones_deny(management: Any) -> None:
    await apply_workload(management)
    template = next(each for each in documents("capi-workload", "workers") if each["kind"].endswith("MachineTemplate"))
    template["spec"]["template"]["spec"]["sshKeyName"] = "other"
    answer = await management.apply(path_of(template), template, force=True)
    assert (answer.code, "immutable" in answer.body["message"]) == (422, True)
    long = documents("capi-workload", "cluster")[0]
    long["metadata"]["name"] = "x" * 64
    answer = await management.apply(f"{path_of(long)}", long)
    assert (answer.code, "denied the request" in answer.body["message"]) == (422, True)
