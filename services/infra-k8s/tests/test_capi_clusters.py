"""Workload clusters on the lab's stand-in for Cluster API: applied, awaited stage by stage, with addons inside."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import yaml
from kubevnfm_events.capi import ClusterTimeouts
from kubevnfm_events.objects import ObjectFacts
from kubevnfm_infra_k8s.domain.errors import (
    ClusterFailed,
    ClusterNotReady,
    ForeignObjects,
    KubeconfigInvalid,
    ObjectsNotGone,
)
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.release import ADDONS
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Key, is_terminating
from kubevnfm_lab.kubernetes.store import Change
from patience import until_true
from worlds.capi_management import CLASS_VDUS, MACHINES, VDUS, Management, files_of, managed

WORKERS = "Files/kubernetes/workers.yaml"
NO_KIND = "the cluster serves no kind NoCluster of infrastructure.cluster.x-k8s.io"
NO_TEMPLATE = "neither the files nor the cluster have OpenStackMachineTemplate default/none"
NO_CLASS = "neither the files nor the cluster have ClusterClass default/none"


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


@pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1", "capi-workload-class"])
async def test_a_cluster_is_initialized_gets_its_addons_and_becomes_available(
    management: Management, labs: LabClusters, sample: str
) -> None:
    """CR-036, CR-037, CR-048, CR-050, CR-051, CR-056, CR-123: the stages of a cluster in each form of package."""
    await management.apply(sample)
    vdus = CLASS_VDUS if sample.endswith("class") else VDUS
    initialized = await management.wait("initialized", vdus=vdus)
    assert (await management.addons()).count == 2
    reached = await management.wait("available", vdus=vdus)
    assert initialized.uid == reached.uid
    assert Counter(each.vdu_id for each in reached.machines) == {"controlPlane": 1, "worker": 2}
    assert all(each.node == each.name and each.provider_id and each.addresses for each in reached.machines)
    assert {each.owner_kind for each in reached.machines} == {"KubeadmControlPlane", "MachineDeployment"}
    host, _, port = reached.endpoint.removeprefix("https://").partition(":")
    workload = labs.find(host, int(port))
    assert workload is not None
    assert "DaemonSet/kube-system/cni" in workload.inventory()["objects"]
    # The addons have an inventory of their own, which the deletion of the cluster takes with it.
    releases = management.site.handlers.releases
    assert [entry.key.name for entry in (await releases.get("i1", ADDONS)).entries] == ["cni", "cni"]
    await management.site.delete()
    assert await releases.get("i1", ADDONS) is None
    assert labs.find(host, int(port)) is None


async def test_workers_are_scaled_and_awaited_until_no_machine_is_being_deleted(management: Management) -> None:
    """CR-086, CR-089: the count of a MachineDeployment, out and in; the Machines that stay are the same."""
    await management.apply()
    await management.wait("initialized")
    await management.addons()
    before = await management.wait("available")
    workers = ObjectFacts(
        api_version="cluster.x-k8s.io/v1beta2",
        kind="MachineDeployment",
        namespace="default",
        name="workload-md-0",
        uid="",
    )
    names = {each.name for each in before.machines}
    await management.site.scale({workers: 4})
    more = await management.wait("available", attempt=2, is_settled=True)
    assert Counter(each.vdu_id for each in more.machines) == {"controlPlane": 1, "worker": 4}
    assert names < {each.name for each in more.machines}
    await management.site.scale({workers: 1}, operation="op3")
    less = await management.wait("available", attempt=3, is_settled=True)
    assert Counter(each.vdu_id for each in less.machines) == {"controlPlane": 1, "worker": 1}
    assert {each.name for each in less.machines} < {each.name for each in more.machines}


@pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1", "capi-workload-class"])
async def test_a_roll_out_replaces_every_machine(management: Management, faults: FaultBook, sample: str) -> None:
    """CR-103: control plane and workers, in both forms of the field; a repeat of the command changes nothing."""
    vdus = CLASS_VDUS if sample.endswith("class") else VDUS
    await management.apply(sample)
    await management.wait("initialized", vdus=vdus)
    await management.addons()
    before = await management.wait("available", vdus=vdus)
    # Kubernetes counts the age of objects in seconds: a Machine of this second would not be older than now.
    second = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    await asyncio.sleep((second - datetime.now(UTC)).total_seconds())
    after = second.strftime("%Y-%m-%dT%H:%M:%SZ")
    # New Machines boot only after the progress was seen.
    faults.add(part="capi", verb="boot *", effect="hang")
    begun = [await management.roll_out(after), await management.roll_out(after)]
    assert begun[0] == begun[1]
    assert [name.partition(" ")[0] for name in begun[0]] == ["KubeadmControlPlane", "MachineDeployment"]
    waiting = asyncio.create_task(
        management.wait("available", attempt=2, vdus=vdus, is_settled=True, made_after=after), name="wait"
    )
    await until_true(partial(names_machines_to_replace, management), timeout_s=60)
    faults.clear()
    reached = await waiting
    assert Counter(each.vdu_id for each in reached.machines) == {"controlPlane": 1, "worker": 2}
    assert {each.uid for each in reached.machines}.isdisjoint(each.uid for each in before.machines)


async def names_machines_to_replace(management: Management) -> bool:
    return any("to be replaced: Machine" in message for message in management.messages())


async def test_addons_may_be_applied_twice(management: Management) -> None:
    """CR-048: a repeat finds what an earlier delivery made."""
    await management.apply()
    await management.wait("initialized")
    assert [(await management.addons()).count, (await management.addons()).count] == [2, 2]


async def test_a_cluster_without_network_says_so_at_its_time_limit(management: Management) -> None:
    """CR-047, CR-024: each phase has its own limit; nodes that are not Ready lead to the hint at addons."""
    await management.apply()
    await management.wait("initialized")
    with pytest.raises(ClusterNotReady, match="addon-def-files") as late:
        await management.wait("available", timeouts=ClusterTimeouts(control_plane=0.5, workers=0.5))
    assert "ready: initialized" in str(late.value)


async def test_a_slow_infrastructure_ends_with_its_own_limit_and_message(
    management: Management, faults: FaultBook
) -> None:
    """CR-056: the failure names the phase and the message of the first False condition."""
    faults.add(part="capi", verb="provision workload", effect="fail", message="no quota for routers")
    await management.apply()
    with pytest.raises(ClusterNotReady, match=r"phase infrastructure not done in 0\.5 s.*no quota for routers"):
        await management.wait("initialized", timeouts=ClusterTimeouts(infrastructure=0.5))
    assert any("no quota for routers" in message for message in management.messages())
    faults.clear()
    # A retry is another attempt, with limits of its own.
    await management.wait("initialized", attempt=2)


async def test_a_permanent_failure_ends_the_wait_early(management: Management, faults: FaultBook) -> None:
    """CR-057: v1beta1's failureReason of a Machine, long before the limit."""
    faults.add(part="capi", verb="boot workload-control-plane-*", effect="fail", status=422, message="no such flavor")
    await management.apply("capi-workload-v1beta1")
    with pytest.raises(ClusterFailed, match=r"Machine workload-control-plane-.*CreateError: no such flavor"):
        await management.wait("initialized")


async def test_a_paused_cluster_is_reported_and_awaited(management: Management) -> None:
    """CR-057: the step waits, and its progress says that the cluster is paused."""
    files = files_of("capi-workload")
    paused = files["Files/kubernetes/cluster.yaml"].replace(
        "spec:\n  clusterNetwork", "spec:\n  paused: true\n  clusterNetwork", 1
    )
    await management.apply(files={**files, "Files/kubernetes/cluster.yaml": paused})
    waiting = asyncio.create_task(management.wait("initialized"))
    try:
        async with asyncio.timeout(30):
            while not any("paused" in message for message in management.messages()):
                assert not waiting.done()
                await asyncio.sleep(0.02)
        resource = Resource("cluster.x-k8s.io/v1beta2", "Cluster", "clusters", namespaced=True)
        key = ObjectKey(resource.api_version, "Cluster", "default", "workload")
        async with management.site.cluster() as cluster:
            await cluster.patch(resource, key, {"spec": {"paused": None}})
        await waiting
    finally:
        waiting.cancel()


async def test_many_clusters_share_one_watch_of_each_kind(management: Management, ledger: CallLedger) -> None:
    """CR-058: three waits for clusters of two instances in two namespaces list and watch each kind once."""
    await management.apply(instance="i1")
    management.lab.plane.create("namespaces", {"metadata": {"name": "other"}})
    await management.apply(instance="i2", namespace="other", operation="op-i2")
    other = management.cluster_of(namespace="other")
    first, second = await asyncio.gather(
        management.wait("initialized", instance="i1"), management.wait("initialized", instance="i2", cluster=other)
    )
    assert first.uid != second.uid
    await management.wait("initialized", instance="i1", attempt=2)
    lists = {each["verb"]: each["count"] for each in ledger.calls() if each["part"] == "kubernetes"}
    kinds = ("clusters", "machines", "machinedeployments", "kubeadmcontrolplanes", "openstackclusters")
    assert [lists[f"list {plural}"] for plural in kinds] == [1] * len(kinds)


async def test_two_instances_cannot_have_the_same_cluster(management: Management) -> None:
    """CR-052: same name, same namespace, same management cluster."""
    await management.apply(instance="i1")
    with pytest.raises(ForeignObjects, match="Cluster default/workload"):
        await management.apply(instance="i2", operation="op-i2")


@pytest.mark.parametrize(
    ("name", "wanted", "said"),
    [
        ("x" * 64, None, "at most 63"),
        ("a.b", None, "RFC 1123"),
        ("workload", "another", "no Cluster another"),
    ],
)
async def test_unclear_names_are_refused_before_anything_is_applied(
    management: Management, name: str, wanted: str | None, said: str
) -> None:
    """CR-052: the Cluster's name is an RFC 1123 label of at most 63 characters, and in the package."""
    files = files_of("capi-workload")
    cluster = files["Files/kubernetes/cluster.yaml"].replace(
        "name: workload\nspec:\n  clusterNetwork", f"name: {name}\nspec:\n  clusterNetwork", 1
    )
    with pytest.raises(InvalidInput, match=said):
        await management.apply(files={**files, "Files/kubernetes/cluster.yaml": cluster}, cluster_name=wanted)
    async with management.site.cluster() as api:
        secret = ObjectKey("v1", "Secret", "default", "workload-cloud-config")
        assert await api.get(Resource("v1", "Secret", "secrets", namespaced=True), secret) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"type": "Opaque"}, "type cluster.x-k8s.io/secret"),
        ({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "other"}}}, "label cluster.x-k8s.io/cluster-name"),
        ({"data": {"value": "%%"}}, "base64 of a kubeconfig"),
        ({"server": "https://192.0.2.99:6443"}, "of the Cluster expected"),
        ({"user": {"exec": {"command": "sh"}}}, "exec"),
    ],
)
async def test_a_secret_that_is_not_as_cluster_api_writes_it_is_refused(
    management: Management, change: dict[str, Any], said: str
) -> None:
    """CR-059, CR-063: type, label, content and server of the kubeconfig are checked before anything is sent."""
    await management.apply()
    await management.wait("initialized")
    secret = management.lab.store.get("secrets", Key("default", "workload-kubeconfig"))
    assert secret is not None
    kubeconfig = yaml.safe_load(base64.b64decode(secret["data"]["value"]))
    if "server" in change:
        kubeconfig["clusters"][0]["cluster"]["server"] = change["server"]
    if "user" in change:
        kubeconfig["users"][0]["user"] = change["user"]

    def write(obj: dict[str, Any]) -> None:
        obj["data"] = {"value": base64.b64encode(yaml.safe_dump(kubeconfig).encode()).decode()}
        for name in ("type", "data"):
            obj[name] = change.get(name, obj[name])
        obj["metadata"]["labels"] = {**obj["metadata"]["labels"], **change.get("metadata", {}).get("labels", {})}

    management.lab.registry.change("secrets", Key("default", "workload-kubeconfig"), write)
    with pytest.raises(KubeconfigInvalid, match=said):
        await management.addons()


@pytest.mark.parametrize(
    ("sample", "file", "old", "new", "said"),
    [
        (
            "capi-workload", "cluster.yaml", "kind: OpenStackCluster\n    name", "kind: NoCluster\n    name",
            f"spec.infrastructureRef of Cluster default/workload (Files/kubernetes/cluster.yaml): {NO_KIND}",
        ),
        (
            "capi-workload-v1beta1", "workers.yaml", "Template\n        name: workload-md-0", "Template\n        name: none",
            f"spec.template.spec.infrastructureRef of MachineDeployment default/workload-md-0 ({WORKERS}): {NO_TEMPLATE}",
        ),
        (
            "capi-workload-class", "cluster.yaml", "name: workload-class", "name: none",
            f"spec.topology.classRef of Cluster default/workload (Files/kubernetes/cluster.yaml): {NO_CLASS}",
        ),
    ],
)  # fmt: skip
async def test_a_reference_that_leads_nowhere_is_refused_before_anything_is_applied(
    management: Management, sample: str, file: str, old: str, new: str, said: str
) -> None:
    """CR-003: a Cluster with a kind that has no definition breaks the conversion of all Clusters, and is never deleted."""
    files = files_of(sample)
    path = f"Files/kubernetes/{file}"
    assert old in files[path]
    with pytest.raises(Unprocessable) as refused:
        await management.apply(sample, files={**files, path: files[path].replace(old, new)})
    assert said in str(refused.value)
    assert management.lab.store.list("clusters.cluster.x-k8s.io") == []
    # Templates and classes can be there already.
    rest = {name: text for name, text in files.items() if name != "Files/kubernetes/class.yaml"}
    if len(rest) < len(files):
        await management.site.apply(
            {"class.yaml": files["Files/kubernetes/class.yaml"]}, instance="shared", operation="op8"
        )
        await management.apply(sample, files=rest)
        await management.wait("initialized", vdus=CLASS_VDUS)


async def test_a_deletion_takes_the_cluster_first_and_its_credentials_last(
    management: Management, ledger: CallLedger
) -> None:
    """CR-106, CR-107, CR-108, CR-111: without the identity Secret the machines would stay for ever.

    Nor does the garbage collector delete what Machines need: it would take the kubeconfig and the infrastructure from them.
    """
    await management.apply()
    await management.wait("initialized")
    store = management.lab.store
    with_machines: set[str] = set()

    def remember(change: Change) -> None:
        if is_terminating(change.obj) and store.list(MACHINES):
            with_machines.add(str(change.obj["kind"]))

    unsubscribe = store.subscribe(remember)
    management.lab.plane.delay_s = 0.2
    await management.site.delete()
    unsubscribe()
    # The control plane waits by itself until the workers are gone.
    assert with_machines <= {"Cluster", "MachineDeployment", "MachineSet", "Machine", "KubeadmControlPlane"}
    assert "Machine" in with_machines
    left = [name for name in store.resources_with_objects() if "cluster.x-k8s.io" in name]
    assert left == []
    assert store.get("secrets", Key("default", "workload-cloud-config")) is None
    assert any("Deleting True, WaitingFor" in message for message in management.messages())


@pytest.mark.parametrize(
    ("lost", "name"),
    [
        ("", ""),
        ("clusters.cluster.x-k8s.io", "workload"),
        ("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "workload-control-plane"),
    ],
)
async def test_a_cluster_that_is_built_again_is_a_new_one(management: Management, lost: str, name: str) -> None:
    """CR-117: deleted and applied in one operation; the wait finds the new Cluster, and no uid of the earlier one is left.

    ``lost``: what another party has deleted before.
    """
    first = await management.built()
    if lost:
        found = management.lab.store.get(lost, Key("default", name))
        assert found is not None
        management.lab.plane.delete(lost, found)
    assert (await management.site.delete(operation="op2")).left == ()
    applied = await management.apply(operation="op2")
    uid = next(each.uid for each in applied.objects if each.kind == "Cluster")
    assert (await management.wait("initialized", attempt=2, uid=uid)).uid == uid
    await management.addons(operation="op2")
    second = await management.wait("available", attempt=2, uid=uid)
    assert second.uid != first.uid
    assert {each.uid for each in second.machines}.isdisjoint(each.uid for each in first.machines)
    assert Counter(each.vdu_id for each in second.machines) == Counter(each.vdu_id for each in first.machines)


async def test_a_new_cluster_waits_for_the_end_of_the_secrets_of_an_earlier_one(management: Management) -> None:
    """CR-117: its control plane would find the CA of the earlier one, which the garbage collector deletes a moment later."""
    plane = management.lab.plane.create(
        "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
        {"metadata": {"name": "earlier", "namespace": "default"}, "spec": {"version": "v1.33.1", "replicas": 1}},
    )
    owner = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "earlier",
        "uid": plane["metadata"]["uid"],
    }  # fmt: skip
    labels = {"cluster.x-k8s.io/cluster-name": "workload"}
    for name, owners in (("workload-ca", [owner]), ("workload-of-a-user", [])):
        metadata = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": owners}
        management.lab.plane.create("secrets", {"metadata": metadata})
    applying = asyncio.create_task(management.apply(), name="apply")
    try:
        await until_true(partial(names_an_earlier_secret, management), timeout_s=60)
    except BaseException:
        applying.cancel()
        raise
    assert management.lab.store.get("clusters.cluster.x-k8s.io", Key("default", "workload")) is None
    management.lab.plane.delete("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", plane)
    await applying


async def names_an_earlier_secret(management: Management) -> bool:
    text = "waits until those of an earlier Cluster are deleted: Secret default/workload-ca"
    return any(message.endswith(text) for message in management.messages())


async def test_a_deletion_that_is_given_up_names_the_addons_too(management: Management, labs: LabClusters) -> None:
    """CR-023, CR-048: each object with the API server that may still have it."""
    await management.apply()
    endpoint = (await management.wait("initialized")).endpoint
    await management.addons()
    await labs.close_at(management.lab.address)
    left = (await management.site.delete(force=True)).left
    assert {each.name for each in left if each.cluster == endpoint} == {"cni"}
    assert ("Cluster", "workload") in {(each.kind, each.name) for each in left if each.cluster != endpoint}
    assert f"and at {endpoint} ServiceAccount kube-system/cni" in management.messages()[-1]
    assert await management.site.handlers.releases.get("i1", ADDONS) is None


async def test_a_paused_cluster_is_deleted_too(management: Management) -> None:
    """CR-110: the pause is removed first, and this is reported; CR-112: also if nothing was provisioned."""
    files = files_of("capi-workload")
    paused = files["Files/kubernetes/cluster.yaml"].replace(
        "spec:\n  clusterNetwork", "spec:\n  paused: true\n  clusterNetwork", 1
    )
    await management.apply(files={**files, "Files/kubernetes/cluster.yaml": paused})
    await management.site.delete()
    assert any("was paused" in message for message in management.messages())


async def test_a_deletion_that_does_not_end_names_the_finalizer(management: Management) -> None:
    """CR-109: the failure names the object, its finalizer and what its controller says; a retry continues."""
    await management.apply()
    await management.wait("initialized")
    management.lab.plane.delete("secrets", management.lab.store.get("secrets", Key("default", "workload-cloud-config")))  # type: ignore[arg-type]
    with pytest.raises(ObjectsNotGone, match=r"Cluster default/workload: held by .*cluster\.cluster\.x-k8s\.io"):
        await management.site.delete(cluster_gone_timeout_s=0.5)
    secret = yaml.safe_load(files_of("capi-workload")["Files/kubernetes/cloud-config.yaml"])
    secret["metadata"] |= {"namespace": "default", "labels": {"kubevnfm.io/vnf-instance-id": "i1"}}
    management.lab.plane.create("secrets", secret)
    await management.site.delete(operation="op3")


async def test_a_retry_removes_the_finalizers_that_an_earlier_attempt_waited_for(management: Management) -> None:
    """CR-109: at once, also of what only the Cluster's controllers would end; the machines that may be left are listed."""
    await management.apply()
    machines = (await management.wait("initialized")).machines
    management.hold("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "workload-control-plane", "test.example/hold")
    management.lab.plane.delete("secrets", management.lab.store.get("secrets", Key("default", "workload-cloud-config")))  # type: ignore[arg-type]
    with pytest.raises(ObjectsNotGone):
        await management.site.delete(cluster_gone_timeout_s=0.5)
    patient = management.site.with_changes(finalizer_patience_s=0.0)
    left = (await patient.delete(operation="op3", force_remove_finalizers=True)).left
    held = [finalizer for each in left if each.kind == "KubeadmControlPlane" for finalizer in each.finalizers]
    assert "test.example/hold" in held
    assert any("cluster.cluster.x-k8s.io" in each.finalizers for each in left if each.kind == "Cluster")
    servers = {each.provider_id for each in left if each.kind == "Machine"}
    assert servers
    assert servers <= {each.provider_id for each in machines}
    line = next(each for each in management.messages() if each.startswith("Cluster default/workload: finalizers rem"))
    assert all(str(each) in line for each in servers)
    assert await management.site.handlers.releases.get("i1") is None
