"""Workload clusters that the real controllers of Cluster API build, with machines in memory; docs/real-cluster-api.md."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from callers.user import DRIFT, FORCEFUL, User
from clusters.memory_clusters import NEVER, MemoryCluster
from patience import until
from real.cluster_api.presence import ABSENT, is_there
from real.real_cluster import GIVEN, RealCluster
from real.real_workloads import OUT, Body, Workload

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-cluster-api.md")

CONTRACTS = pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1"])
ROLL_OUT = {"capi": {"rollout": True}}
HOLD = "test.example/hold"
"""A finalizer that no controller removes."""
Make = Callable[..., Workload]


@pytest.fixture
async def make(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[Make]:
    """A function that returns a workload cluster of a package, in a namespace of its own for each test."""
    if not await is_there(cluster):
        warnings.warn(f"NOT JUDGED BY CLUSTER API: {ABSENT}", stacklevel=1)  # pytest shows warnings, but not skips
        pytest.skip(ABSENT)
    async with cluster.namespace() as namespace:

        def workload(package: MemoryCluster, **parameters: Any) -> Workload:
            return Workload(user, cluster, package, namespace, tmp_path, parameters=parameters)

        yield workload
        await remove_clusters(cluster, namespace)


async def remove_clusters(cluster: RealCluster, namespace: str) -> None:
    """Delete what a failed test has left: the deletion of the namespace would wait for it without end."""
    groups = {"devclusters": "infrastructure.cluster.x-k8s.io", "clusters": "cluster.x-k8s.io"}
    for kind, group in groups.items():
        collection = f"/apis/{group}/v1beta2/namespaces/{namespace}/{kind}"
        for each in (await cluster.get(collection) or {}).get("items", []):
            path = f"{collection}/{each['metadata']['name']}"
            others = [name for name in each["metadata"].get("finalizers", []) if name != HOLD]
            await cluster.change(path, {"metadata": {"finalizers": others}})
            if kind == "clusters":
                await cluster.change(path, {"spec": {"paused": None}})
                await cluster.remove(path)


@CONTRACTS
async def test_a_cluster_lives_its_whole_life(make: Make, sample: str) -> None:
    """CR-002, CR-036, CR-048, CR-050, CR-059, CR-062, CR-079, CR-083, CR-089, CR-106, CR-111, CR-113, CR-116, CR-117, CR-121: from one request to nothing."""
    workload = make(MemoryCluster(sample))
    view = await workload.built()
    assert [step["name"] for step in view["steps"]] == [
        "apply_cluster_objects", "await_cluster/initialized", "apply_addons", "await_cluster/available",
        "send_credentials", "register_workload_vim",
    ]  # fmt: skip
    instance = await workload.instance()
    connection = instance["vimConnectionInfo"]["workload"]
    vim = next(each for each in (await workload.user.vims()).values() if each["id"] == connection["vimId"])
    assert (vim["auth_url"], vim["status"]) == (connection["interfaceInfo"]["endpoint"], "ACTIVE")
    for vnfc in instance["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        assert vnfc["metadata"]["providerId"] == f"in-memory://{vnfc['id']}"
    async with workload.inside() as (session, url), session.get(f"{url}/apis/apps/v1/daemonsets") as answer:
        assert [
            each["metadata"]["name"] for each in (await answer.json())["items"] if each["metadata"]["name"] == "cni"
        ]

    await scale_and_heal(workload)
    await repair(workload)
    assert (await workload.instance())["vimConnectionInfo"]["workload"] == connection
    await recreate(workload)

    order = asyncio.create_task(order_of_deletion(workload))
    await workload.terminate()
    assert await order == ["workers", "control plane", "infrastructure"]
    assert connection["vimId"] not in {each["id"] for each in (await workload.user.vims()).values()}


async def scale_and_heal(workload: Workload) -> None:
    """Scale the workers 1, 3, 1 and the control plane 1, 3, 1; heal a worker, a machine of the control plane, and the whole."""
    control_plane = {**OUT, "aspectId": "control_plane"}
    for body, workers, planes in (({**OUT, "numberOfSteps": 2}, 3, 1), (control_plane, 3, 3)):
        await workload.do("scale", body)
        assert counts(await workload.vnfcs()) == (workers, planes)
        assert set(await workload.vnfcs()) == set(await workload.machines())

    before = await workload.vnfcs()
    worker = next(name for name, vdu in before.items() if vdu == "worker")
    plane = next(name for name, vdu in before.items() if vdu == "controlPlane")
    view = await workload.do("heal", {"vnfcInstanceId": [f"controlPlane-{plane}", f"worker-{worker}"]})
    assert [step["name"] for step in view["steps"]] == [
        "check_machines", f"replace_machine/{worker}", f"replace_machine/{plane}"
    ]  # fmt: skip
    after = await workload.vnfcs()
    assert (before.keys() - after.keys(), counts(after)) == ({worker, plane}, (3, 3))
    assert [step["name"] for step in (await workload.do("heal", {}))["steps"]] == ["check_machines"]

    for body, workers, planes in (({**OUT, "numberOfSteps": 2}, 1, 3), (control_plane, 1, 1)):
        await workload.do("scale", {**body, "type": "SCALE_IN"})
        assert counts(await workload.vnfcs()) == (workers, planes)
    await workload.do("heal", {"additionalParams": {"all": True}})
    assert counts(await workload.vnfcs()) == (1, 1)
    assert not after.keys() & (await workload.vnfcs()).keys()


async def repair(workload: Workload) -> None:
    """Have a person delete the MachineDeployment; only it is marked, although Cluster API has written into all objects."""
    before = await workload.vnfcs()
    await workload.management.remove(workload.path("machinedeployments", "workload-md-0"))
    mark = await workload.user.drifted(workload.instance_id, "INCOMPLETE")
    assert [(one["kind"], one["what"]) for one in mark["objects"]] == [("MachineDeployment", "missing")]
    await workload.do("heal", {"additionalParams": {"repair": True}})
    after = await workload.vnfcs()
    assert (counts(after), names_of(after, "controlPlane")) == ((1, 1), names_of(before, "controlPlane"))
    assert DRIFT not in (await workload.instance())["metadata"]


async def recreate(workload: Workload) -> None:
    """Build the cluster again: other machines, the same VIM with other access data."""
    before, vim = await workload.vnfcs(), (await workload.instance())["vimConnectionInfo"]["workload"]
    await workload.do("heal", {"additionalParams": {"capi": {"recreate": True}}})
    after, now = await workload.vnfcs(), (await workload.instance())["vimConnectionInfo"]["workload"]
    assert (counts(after), after.keys() & before.keys()) == ((1, 1), set())
    assert now["vimId"] == vim["vimId"]
    shown = next(each for each in (await workload.user.vims()).values() if each["id"] == vim["vimId"])
    assert (shown["auth_url"], shown["status"]) == (now["interfaceInfo"]["endpoint"], "ACTIVE")


def counts(vnfcs: dict[str, str]) -> tuple[int, int]:
    """Return the number of workers and of control plane machines."""
    return [*vnfcs.values()].count("worker"), [*vnfcs.values()].count("controlPlane")


async def order_of_deletion(workload: Workload) -> list[str]:
    """Return what of the cluster was gone first, once all is."""
    gone: list[str] = []

    async def look() -> bool | None:
        # The reads begin with what is gone last: a change between two of them does not turn the order round.
        infrastructure = await workload.objects("devclusters", "infrastructure.cluster.x-k8s.io")
        planes = await workload.objects("kubeadmcontrolplanes", "controlplane.cluster.x-k8s.io")
        machines = await workload.objects("machines")
        workers = [each for each in machines if "cluster.x-k8s.io/control-plane" not in each["metadata"]["labels"]]
        if any(each["metadata"].get("deletionTimestamp") for each in infrastructure):
            assert not machines, "the infrastructure is deleted before the Machines"
        for name, left in (("workers", workers), ("control plane", planes), ("infrastructure", infrastructure)):
            if not left and name not in gone:
                gone.append(name)
        return len(gone) == 3 or None

    await until(look, timeout_s=300, pause_s=0.1)
    return gone


@CONTRACTS
async def test_another_package_replaces_templates_and_versions_and_is_rolled_back(make: Make, sample: str) -> None:
    """CR-094 to CR-100, CR-102, CR-103: control plane first, then the workers; a stuck one leads back."""
    package = MemoryCluster(sample)
    workload = make(package, timeouts={"workers": 60})
    await workload.built()
    first = await workload.vnfcs()
    other = package.but(startup={"worker/vm": "2s"})
    await completed(await workload.change(other))
    assert names_of(first, "controlPlane") == names_of(await workload.vnfcs(), "controlPlane")
    assert not names_of(first, "worker") & names_of(await workload.vnfcs(), "worker")

    newer = other.but(startup={"worker/vm": "2s", "controlPlane/vm": "2s"}, version="v1.34.2")
    await completed(await workload.change(newer))
    await of_version(workload, "v1.34.2")
    assert not first.keys() & (await workload.vnfcs()).keys()
    # One new template each; those of the first package are gone.
    used = await workload.used_templates()
    assert {name.rpartition("-")[0] for name in used} == {"workload-control-plane", "workload-md-0"}
    assert not {"workload-control-plane", "workload-md-0"} & await workload.templates()

    kcp = ("KubeadmControlPlane", "spec", "kubeadmConfigSpec", "clusterConfiguration", "certificatesDir")
    for wrong, said in (
        (newer.but(version="v1.36.0"), "v1.36.0 is more than one minor version above v1.34.2"),
        (newer.but(version="v1.33.1"), "v1.33.1 is below v1.34.2"),
        (newer.but(edits={kcp: "/etc/other"}), "certificatesDir"),
    ):
        view = await workload.change(wrong)
        assert (view["state"], view["error"]["status"]) == ("FAILED_TEMP", 422)
        assert said in view["error"]["detail"]
        assert (await workload.user.act(view["id"], "rollback"))["state"] == "ROLLED_BACK"

    before = await workload.vnfcs()
    view = await workload.change(newer.but(startup={"worker/vm": NEVER, "controlPlane/vm": "2s"}))
    assert (view["state"], view["error"]["type"]) == ("FAILED_TEMP", "cluster-not-ready")
    # The error is about the Machine that does not come up, not only about the one that it is to replace.
    assert "InfrastructureReady: VMProvisioned: WaitingForStartupTimeout" in view["error"]["detail"]
    assert (await workload.user.act(view["id"], "rollback"))["state"] == "ROLLED_BACK"
    assert (await workload.vnfcs(), await workload.used_templates()) == (before, used)
    # The MachineSet of the stuck one goes a moment after the rollback, and may hold its template until the next change.
    assert len(await workload.templates() - used) <= 1
    await workload.terminate()


async def test_a_cluster_of_a_class_is_rolled_out_updated_and_removed(make: Make) -> None:
    """CR-050, CR-098, CR-103, CR-106: the topology is scaled, and Cluster API orders the version step."""
    package = MemoryCluster("capi-workload-class")
    workload = make(package)
    await workload.built()
    for body, workers, planes in (({**OUT, "numberOfSteps": 2}, 3, 1), ({**OUT, "aspectId": "control_plane"}, 3, 3)):
        await workload.do("scale", body)
        assert counts(await workload.vnfcs()) == (workers, planes)

    first = await workload.vnfcs()
    vnfd_id = (await workload.instance())["vnfdId"]
    await workload.do("change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": ROLL_OUT})
    second = await workload.vnfcs()
    assert (counts(second), first.keys() & second.keys()) == ((3, 3), set())

    other = package.but(startup={"worker/vm": "2s"})
    await completed(await workload.change(other))
    third = await workload.vnfcs()
    assert (names_of(third, "controlPlane"), counts(third)) == (names_of(second, "controlPlane"), (3, 3))
    assert not names_of(second, "worker") & names_of(third, "worker")

    await completed(await workload.change(other.but(version="v1.34.2")))
    await of_version(workload, "v1.34.2")
    await workload.do("scale", {**OUT, "numberOfSteps": 2, "type": "SCALE_IN"})
    assert counts(await workload.vnfcs()) == (1, 3)
    assert DRIFT not in (await workload.instance())["metadata"]
    await workload.terminate()


async def of_version(workload: Workload, version: str) -> None:
    """Check that all Machines have the version, and that those of the control plane were made first."""
    machines = await workload.machines()
    assert {each["spec"]["version"] for each in machines.values()} == {version}
    assert set(machines) == set(await workload.vnfcs())
    made: dict[bool, list[str]] = {True: [], False: []}
    for each in machines.values():
        is_plane = "cluster.x-k8s.io/control-plane" in each["metadata"]["labels"]
        made[is_plane].append(each["metadata"]["creationTimestamp"])
    assert max(made[True]) < min(made[False])


def names_of(vnfcs: dict[str, str], vdu_id: str) -> set[str]:
    """Return the names of the Machines of a VDU."""
    return {name for name, vdu in vnfcs.items() if vdu == vdu_id}


async def completed(view: Body) -> None:
    """Check that an operation has completed."""
    assert view["state"] == "COMPLETED", json.dumps(view.get("error", view), indent=1)


def referring(of: str, *path: str, **fields: str) -> MemoryCluster:
    """Return a package with another reference."""
    return MemoryCluster(edits={(of, *path, name): value for name, value in fields.items()})


WORKERS = ("spec", "template", "spec", "infrastructureRef")
CIDRS = ("spec", "clusterNetwork", "pods", "cidrBlocks")
LIMITS = {"control_plane": 90, "workers": 30}


@pytest.mark.parametrize(
    ("package", "status", "said"),
    [
        (referring("Cluster", "spec", "infrastructureRef", kind="NoCluster"), 422, "serves no kind NoCluster of infrastructure."),
        (referring("Cluster", "spec", "controlPlaneRef", name="none"), 422, "have KubeadmControlPlane"),
        (referring("MachineDeployment", *WORKERS, name="none"), 422, "have DevMachineTemplate"),
        (MemoryCluster(name="a.b"), 400, "at most 63 lower-case letters, digits and - expected"),
        (MemoryCluster(version="v1.33"), 422, "must be a valid semantic version"),
        (MemoryCluster(edits={("Cluster", *CIDRS): ["10.0.0.0/99"]}), 422, "invalid CIDR address"),
        (MemoryCluster(startup={"controlPlane/vm": NEVER}), 422, "VMProvisioned: WaitingForStartupTimeout"),
        (MemoryCluster(startup={"worker/node": NEVER}), 422, "Waiting for a Node with spec.providerID"),
        (
            MemoryCluster("capi-workload-v1beta1", startup={"worker/node": NEVER}), 422,
            "Waiting for a Node with spec.providerID",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
async def test_what_cannot_come_up_is_named_and_rolled_back(
    make: Make, package: MemoryCluster, status: int, said: str
) -> None:
    """CR-003, CR-052, CR-056, CR-112: references, denials, machines that never start or never join; nothing of it is left."""
    workload = make(package, timeouts=LIMITS)
    view = await workload.instantiate()
    assert (view["state"], view["error"]["status"]) == ("FAILED_TEMP", status)
    assert said in view["error"]["detail"], view["error"]["detail"]
    assert (await workload.user.act(view["id"], "rollback"))["state"] == "ROLLED_BACK"
    await workload.is_gone()


async def test_a_name_is_taken_once_and_a_paused_cluster_waits(make: Make) -> None:
    """CR-052, CR-057, CR-110: 409 for the second one, whose rollback touches nothing; the deletion removes the pause."""
    workload, second = make(MemoryCluster()), make(MemoryCluster())
    await workload.built()
    view = await second.instantiate()
    assert (view["state"], view["error"]["status"]) == ("FAILED_TEMP", 409)
    assert f"Cluster {workload.namespace}/workload" in view["error"]["detail"]
    assert (await second.user.act(view["id"], "rollback"))["state"] == "ROLLED_BACK"

    cluster = workload.path("clusters", "workload")
    await workload.management.change(cluster, {"spec": {"paused": True}})
    operation_id = await workload.start("scale", OUT)
    await said(workload, operation_id, "paused: Cluster API leaves the cluster alone")
    assert counts(await workload.vnfcs()) == (1, 1)
    await workload.management.change(cluster, {"spec": {"paused": None}})
    await completed(await workload.user.rest(operation_id))
    assert counts(await workload.vnfcs()) == (2, 1)

    await workload.management.change(cluster, {"spec": {"paused": True}})
    await workload.do("terminate", FORCEFUL)
    await workload.is_gone()


async def said(workload: Workload, operation_id: str, text: str) -> None:
    """Wait until the operation's progress says this."""

    async def shown() -> bool | None:
        view = (await workload.user.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        return text in json.dumps(view) or None

    await until(shown, timeout_s=120)


async def test_a_deletion_that_is_held_names_what_holds_it_and_is_forced(make: Make) -> None:
    """CR-107 to CR-109: a finalizer that no controller removes; the retry removes those of the Cluster and lists what may be left."""
    workload = make(MemoryCluster(), timeouts={"delete": 60})
    await workload.built()
    infrastructure = workload.path("devclusters", "workload", "infrastructure.cluster.x-k8s.io")
    found = await workload.management.get(infrastructure)
    assert found is not None
    finalizers = [*found["metadata"]["finalizers"], HOLD]
    await workload.management.change(infrastructure, {"metadata": {"finalizers": finalizers}})
    view = await workload.user.rest(await workload.start("terminate", {"terminationType": "GRACEFUL"}))
    assert (view["state"], view.get("error", view).get("type")) == ("FAILED_TEMP", "objects-not-gone"), view
    assert "held by cluster.cluster.x-k8s.io" in view["error"]["detail"]
    assert "Deleting True, WaitingForInfrastructureDeletion" in view["error"]["detail"]
    retry = {"additionalParams": {"capi": {"force_remove_finalizers": True}}}
    (await workload.user.lcm("POST", f"/vnf_lcm_op_occs/{view['id']}/retry", retry)).must(202)
    await completed(await workload.user.rest(view["id"]))
    left = (await workload.user.occurrence(view["id"]))["resourceChanges"]["metadata"]["kubevnfm_left"]
    assert "workload" in json.dumps(left)
    await workload.is_gone()


async def test_a_machine_that_its_health_check_replaces_becomes_a_vnfc(make: Make) -> None:
    """CR-115, CR-119, CR-120: by the health of its node, without an operation; a heal asks the MachineHealthCheck."""
    check = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "workers"},
        "spec": {
            "clusterName": "workload",
            "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "workload-md-0"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 1}]},
        },
    }
    workload = make(MemoryCluster(more=(check,)))
    await workload.built()
    (worker,) = names_of(await workload.vnfcs(), "worker")
    node = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    async with workload.inside() as (session, url):
        kind = {"Content-Type": "application/merge-patch+json"}
        patch = session.patch(f"{url}/api/v1/nodes/{worker}", data=json.dumps({"status": node}), headers=kind)
        async with patch as answer:
            assert answer.status == 200

    async def replaced() -> bool | None:
        shown = await workload.vnfcs()
        return (worker not in shown and counts(shown) == (1, 1)) or None

    await until(replaced, timeout_s=120, pause_s=0.5)
    (second,) = names_of(await workload.vnfcs(), "worker")

    view = await workload.do("heal", {"vnfcInstanceId": [f"worker-{second}"]})
    assert view["state"] == "COMPLETED"
    assert second not in await workload.vnfcs()
    await workload.terminate()
