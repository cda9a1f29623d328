"""The table of capi.md chapter 8, row by row, for both contracts; conditions as the controllers write them."""

from __future__ import annotations

import json
from collections import defaultdict
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.capi import ClusterStage
from kubevnfm_infra_k8s.domain.capi.contract import Conditions, Contract, contract_of, is_paused
from kubevnfm_infra_k8s.domain.capi.readiness import RULES
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import Observation, Status
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import ClusterObjects, Goal, assess

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
OK, WAIT, BAD = Status.CURRENT, Status.IN_PROGRESS, Status.FAILED
CORE, KCP, INFRA = (f"{group}cluster.x-k8s.io" for group in ("", "controlplane.", "infrastructure."))
ENDPOINT = {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}}
Object = dict[str, Any]


def conditions(*true: str, **others: str) -> list[Object]:
    """Conditions: True by name, others as ``Type="False message"``."""
    return [{"type": name, "status": "True"} for name in true] + [
        {"type": name, "status": text.partition(" ")[0], "reason": "Why", "message": text.partition(" ")[2]}
        for name, text in others.items()
    ]


def an_object(group: str, kind: str, version: str, spec: Object, status: Object) -> Object:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "c1", "generation": 3},
        "spec": spec,
        "status": {"observedGeneration": 3, **status},
    }


NEW_CLUSTER = an_object(
    CORE, "Cluster", "v1beta2", ENDPOINT,
    {
        "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
        "conditions": conditions(
            "InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable",
            "RemoteConnectionProbe", "Available", RollingOut="False", ScalingUp="False", ScalingDown="False",
            Remediating="False", Deleting="False",
        ),
    },
)  # fmt: skip
OLD_CLUSTER = an_object(
    CORE, "Cluster", "v1beta1", ENDPOINT,
    {
        "infrastructureReady": True,
        "controlPlaneReady": True,
        "conditions": conditions("Ready", "InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneReady"),
    },
)  # fmt: skip
NEW_PLANE = an_object(
    KCP, "KubeadmControlPlane", "v1beta2", {"replicas": 3},
    {
        "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "upToDateReplicas": 3,
        "conditions": conditions(
            "Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "CertificatesAvailable", "MachinesUpToDate"
        ),
    },
)  # fmt: skip
OLD_PLANE = an_object(
    KCP, "KubeadmControlPlane", "v1beta1", {"replicas": 3},
    {
        "ready": True, "initialized": True, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3,
        "conditions": conditions("Ready", "Available", "CertificatesAvailable", "MachinesSpecUpToDate", "Resized"),
    },
)  # fmt: skip
NEW_WORKERS = an_object(
    CORE, "MachineDeployment", "v1beta2", {"replicas": 2},
    {
        "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 2,
        "conditions": conditions("Available", RollingOut="False"),
    },
)  # fmt: skip
OLD_WORKERS = an_object(
    CORE, "MachineDeployment", "v1beta1", {"replicas": 2},
    {
        "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2,
        "conditions": conditions("Available", "MachineSetReady"),
    },
)  # fmt: skip
POOL = an_object(
    CORE, "MachinePool", "v1beta2", {"replicas": 1}, {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
)
NEW_MACHINE = an_object(
    CORE, "Machine", "v1beta2", {},
    {"conditions": conditions(
        "Available", "Ready", "UpToDate", "NodeHealthy", "NodeReady", "BootstrapConfigReady", "InfrastructureReady")},
)  # fmt: skip
OLD_MACHINE = an_object(
    CORE, "Machine", "v1beta1", {},
    {"conditions": conditions("Ready", "BootstrapReady", "InfrastructureReady", "NodeHealthy")},
)  # fmt: skip
NEW_INFRA = an_object(
    INFRA, "OpenStackCluster", "v1beta2", {},
    {"initialization": {"provisioned": True}, "conditions": conditions("Ready", "NetworkReady", "RouterReady")},
)  # fmt: skip
OLD_INFRA = an_object(INFRA, "OpenStackCluster", "v1beta1", {}, {"ready": True})


def but(base: Object, *path: str, value: Any) -> Object:
    """The object with one field changed; None removes it."""
    changed = deepcopy(base)
    node = changed
    for name in path[:-1]:
        node = node.setdefault(name, {})
    if value is None:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value
    return changed


def with_condition(base: Object, type: str, status: str, **more: Any) -> Object:
    changed = deepcopy(base)
    others = [each for each in changed["status"].get("conditions", []) if each["type"] != type]
    changed["status"]["conditions"] = [
        *others,
        {"type": type, "status": status, "reason": "Why", "message": "m", **more},
    ]
    return changed


def without_condition(base: Object, type: str) -> Object:
    changed = deepcopy(base)
    changed["status"]["conditions"] = [each for each in changed["status"]["conditions"] if each["type"] != type]
    return changed


TABLE: list[tuple[str, Object, Status, str]] = [
    ("cluster", NEW_CLUSTER, OK, ""),
    ("cluster: infrastructure", but(NEW_CLUSTER, "status", "initialization", value={}), WAIT, "infrastructure: "),
    ("cluster: endpoint", but(NEW_CLUSTER, "spec", "controlPlaneEndpoint", value={"host": "", "port": 0}), WAIT, "endpoint"),
    (
        "cluster: not initialized",
        but(without_condition(NEW_CLUSTER, "ControlPlaneInitialized"), "status", "initialization", "controlPlaneInitialized",
            value=None),
        WAIT, "initialized: ",
    ),
    ("cluster: control plane", with_condition(NEW_CLUSTER, "ControlPlaneAvailable", "False"), WAIT, "control plane: "),
    ("cluster: workers", with_condition(NEW_CLUSTER, "WorkersAvailable", "False"), WAIT, "workers: "),
    ("cluster: connection", with_condition(NEW_CLUSTER, "RemoteConnectionProbe", "False"), WAIT, "connection: "),
    ("cluster: all", with_condition(NEW_CLUSTER, "Available", "Unknown"), WAIT, "all: "),
    ("cluster rolls out", with_condition(NEW_CLUSTER, "RollingOut", "True"), WAIT, "changes: RollingOut"),
    ("cluster scales up", with_condition(NEW_CLUSTER, "ScalingUp", "True"), WAIT, "changes: ScalingUp"),
    ("cluster scales down", with_condition(NEW_CLUSTER, "ScalingDown", "True"), WAIT, "changes: ScalingDown"),
    ("cluster remediates", with_condition(NEW_CLUSTER, "Remediating", "True"), WAIT, "changes: Remediating"),
    ("cluster of a class", but(NEW_CLUSTER, "spec", "topology", value={"version": "v1.33.1"}), WAIT, "class: "),
    (
        "cluster of a class, reconciled",
        with_condition(but(NEW_CLUSTER, "spec", "topology", value={"version": "v1.33.1"}), "TopologyReconciled", "True"),
        OK, "",
    ),
    ("cluster not observed", but(NEW_CLUSTER, "status", "observedGeneration", value=None), WAIT, "not observed"),
    ("cluster of an older generation", but(NEW_CLUSTER, "status", "observedGeneration", value=2), WAIT, "generation 2 of 3"),
    (
        "a condition of an older generation",
        with_condition(NEW_CLUSTER, "Available", "True", observedGeneration=2),
        WAIT, "all: Available unknown",
    ),
    ("cluster paused by its spec", but(NEW_CLUSTER, "spec", "paused", value=True), WAIT, "paused"),
    (
        "cluster paused by annotation",
        but(NEW_CLUSTER, "metadata", "annotations", value={"cluster.x-k8s.io/paused": ""}),
        WAIT, "paused",
    ),
    ("cluster paused by condition", with_condition(NEW_CLUSTER, "Paused", "True"), WAIT, "paused"),
    ("a failed phase decides nothing", but(NEW_CLUSTER, "status", "phase", value="Failed"), OK, ""),
    ("old cluster", OLD_CLUSTER, OK, ""),
    ("old cluster: infrastructure", but(OLD_CLUSTER, "status", "infrastructureReady", value=False), WAIT, "infrastructure: "),
    ("old cluster: initialized", without_condition(OLD_CLUSTER, "ControlPlaneInitialized"), WAIT, "initialized: "),
    (
        "old cluster: control plane",
        without_condition(but(OLD_CLUSTER, "status", "controlPlaneReady", value=False), "ControlPlaneReady"),
        WAIT, "control plane: ",
    ),
    ("old cluster: all", with_condition(OLD_CLUSTER, "Ready", "False", severity="Warning"), WAIT, "all: Ready False, Why: m"),
    ("old cluster failed", but(OLD_CLUSTER, "status", "failureReason", value="CreateError"), BAD, "CreateError"),
    ("control plane", NEW_PLANE, OK, ""),
    ("control plane, external etcd", without_condition(NEW_PLANE, "EtcdClusterHealthy"), OK, ""),
    ("control plane: etcd", with_condition(NEW_PLANE, "EtcdClusterHealthy", "False"), WAIT, "EtcdClusterHealthy"),
    (
        "control plane: components",
        with_condition(NEW_PLANE, "ControlPlaneComponentsHealthy", "Unknown"),
        WAIT, "ControlPlaneComponentsHealthy",
    ),
    ("control plane: certificates", with_condition(NEW_PLANE, "CertificatesAvailable", "False"), WAIT, "CertificatesAvail"),
    ("control plane: not available", with_condition(NEW_PLANE, "Available", "False"), WAIT, "Available False"),
    ("control plane: one not ready", but(NEW_PLANE, "status", "readyReplicas", value=2), WAIT, "2 of 3 ready"),
    ("control plane: one old", but(NEW_PLANE, "status", "upToDateReplicas", value=2), WAIT, "2 of 3 updated"),
    ("control plane: one too many", but(NEW_PLANE, "status", "replicas", value=4), WAIT, "4 of 3 there"),
    ("control plane rolls out", with_condition(NEW_PLANE, "RollingOut", "True"), WAIT, "RollingOut"),
    ("old control plane", OLD_PLANE, OK, ""),
    ("old control plane: not ready", but(OLD_PLANE, "status", "ready", value=False), WAIT, "not ready"),
    ("old control plane: resizing", with_condition(OLD_PLANE, "Resized", "False"), WAIT, "Resized"),
    ("old control plane: spec", with_condition(OLD_PLANE, "MachinesSpecUpToDate", "False"), WAIT, "MachinesSpecUpToDate"),
    ("old control plane: one old", but(OLD_PLANE, "status", "updatedReplicas", value=1), WAIT, "1 of 3 updated"),
    ("old control plane failed", but(OLD_PLANE, "status", "failureMessage", value="no quota"), BAD, "no quota"),
    ("workers", NEW_WORKERS, OK, ""),
    ("workers: one not available", but(NEW_WORKERS, "status", "availableReplicas", value=1), WAIT, "1 of 2 available"),
    ("workers: not available", with_condition(NEW_WORKERS, "Available", "False"), WAIT, "Available False"),
    ("workers of zero", but(NEW_WORKERS, "spec", "replicas", value=0), WAIT, "2 of 0 there"),
    ("old workers", OLD_WORKERS, OK, ""),
    ("old workers: one old", but(OLD_WORKERS, "status", "updatedReplicas", value=1), WAIT, "1 of 2 updated"),
    ("old workers: set", with_condition(OLD_WORKERS, "MachineSetReady", "False"), WAIT, "MachineSetReady"),
    ("machine set", but(NEW_WORKERS, "kind", value="MachineSet"), OK, ""),
    ("machine pool", POOL, OK, ""),
    ("machine pool: one missing", but(POOL, "spec", "replicas", value=2), WAIT, "1 of 2 there"),
    ("machine", NEW_MACHINE, OK, ""),
    *[
        (f"machine: {name}", with_condition(NEW_MACHINE, name, "False"), WAIT, name)
        for name in ("Available", "Ready", "UpToDate", "NodeHealthy", "NodeReady", "BootstrapConfigReady")
    ],
    ("old machine", OLD_MACHINE, OK, ""),
    *[
        (f"old machine: {name}", with_condition(OLD_MACHINE, name, "False"), WAIT, name)
        for name in ("Ready", "BootstrapReady", "InfrastructureReady", "NodeHealthy")
    ],
    ("old machine failed", but(OLD_MACHINE, "status", "failureReason", value="InvalidConfiguration"), BAD, "InvalidConf"),
    ("infrastructure", NEW_INFRA, OK, ""),
    (
        "infrastructure: network",
        with_condition(but(NEW_INFRA, "status", "initialization", value={}), "NetworkReady", "False"),
        WAIT, "NetworkReady: m",
    ),
    ("infrastructure: ready", with_condition(NEW_INFRA, "Ready", "False"), WAIT, "Ready False"),
    ("old infrastructure", OLD_INFRA, OK, ""),
    ("old infrastructure: not ready", but(OLD_INFRA, "status", "ready", value=False), WAIT, "not provisioned"),
    ("old infrastructure failed", but(OLD_INFRA, "status", "failureReason", value="CreateError"), BAD, "CreateError"),
    ("a template", an_object(INFRA, "OpenStackMachineTemplate", "v1beta2", {}, {}), OK, ""),
    ("infrastructure of another provider", {**NEW_INFRA, "kind": "DevCluster"}, OK, ""),
    ("infrastructure of another provider: not there", but({**NEW_INFRA, "kind": "DevCluster"}, "status", value={}), WAIT, "not prov"),
    ("a server of another provider", {**OLD_INFRA, "kind": "DevMachine"}, OK, ""),
    ("a template of another provider", an_object(INFRA, "DevClusterTemplate", "v1beta2", {}, {}), OK, ""),
    ("a class", an_object(CORE, "ClusterClass", "v1beta2", {}, {"conditions": conditions("VariablesReady")}), OK, ""),
    (
        "a class with wrong variables",
        an_object(CORE, "ClusterClass", "v1beta2", {}, {"conditions": conditions(VariablesReady="False bad")}),
        WAIT, "VariablesReady",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "said"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_every_row_of_the_table(body: Object, status: Status, said: str) -> None:
    """CR-054, CR-055: the verdict follows the conditions of the present generation, never the phase."""
    verdict = judge(body, Observation(now=NOW))
    assert (verdict.status, verdict.is_final) == (status, status is BAD), verdict
    assert said in verdict.message


@pytest.mark.parametrize(("since_s", "status"), [(10, WAIT), (61, BAD)])
def test_refused_credentials_of_the_cloud_are_permanent_after_a_minute(since_s: int, status: Status) -> None:
    """CR-057: `OpenStackAuthenticationSucceeded` False for 60 s."""
    since = (NOW - timedelta(seconds=since_s)).isoformat().replace("+00:00", "Z")
    body = with_condition(NEW_INFRA, "OpenStackAuthenticationSucceeded", "False", lastTransitionTime=since)
    verdict = judge(body, Observation(now=NOW))
    assert verdict.status is status
    assert verdict.again_in_s == (50.0 if status is WAIT else None)
    # A moment that is none in UTC says nothing about the age.
    body = with_condition(
        NEW_INFRA, "OpenStackAuthenticationSucceeded", "False", lastTransitionTime="0001-01-01T00:00:00+10:00"
    )
    assert judge(body, Observation(now=NOW)).again_in_s == 60.0


def test_one_reader_finds_the_conditions_of_both_contracts() -> None:
    """CR-053: the conditions of the other contract are found in their own place, after those of the object's own."""
    new = but(NEW_CLUSTER, "status", "deprecated", value={"v1beta1": {"conditions": conditions("ControlPlaneReady")}})
    old = but(OLD_CLUSTER, "status", "v1beta2", value={"conditions": conditions("WorkersAvailable", Ready="False")})
    assert Conditions(new).is_true("ControlPlaneReady")
    assert Conditions(old).is_true("WorkersAvailable")
    assert Conditions(old).is_true("Ready"), "the object's own conditions come first"
    assert not Conditions(new).is_true("NoSuchCondition")


@pytest.mark.parametrize(
    ("api_version", "labels", "contract"),
    [
        ("cluster.x-k8s.io/v1beta2", {}, Contract.V1BETA2),
        ("cluster.x-k8s.io/v1beta1", {}, Contract.V1BETA1),
        ("infrastructure.cluster.x-k8s.io/v1alpha7", {}, None),
        (
            "infrastructure.cluster.x-k8s.io/v1alpha7",
            {"cluster.x-k8s.io/v1beta1": "v1alpha6_v1alpha7"},
            Contract.V1BETA1,
        ),
        ("infrastructure.cluster.x-k8s.io/v1beta1", {"cluster.x-k8s.io/v1beta2": "v1beta1"}, Contract.V1BETA2),
    ],
)
def test_the_contract_is_read_from_the_version_and_the_labels(
    api_version: str, labels: dict[str, str], contract: Contract | None
) -> None:
    """CR-036: from the apiVersion and, where that is unclear, from the labels of the CRD."""
    assert contract_of(api_version, labels) is contract


def test_a_machine_that_is_being_deleted_is_awaited_after_a_scaling_alone() -> None:
    """CR-089: the counts of the owners need not include it."""
    leaving = {
        **NEW_WORKERS,
        "kind": "Machine",
        "metadata": {"name": "m1", "deletionTimestamp": "2026-06-01T12:00:00Z"},
    }
    objects = ClusterObjects(NEW_CLUSTER, None, NEW_PLANE, [NEW_WORKERS], [leaving])
    assert assess(objects, Goal("available"), Observation(now=NOW)).is_done
    settled = assess(objects, Goal("available", is_settled=True), Observation(now=NOW))
    assert (settled.is_done, settled.message) == (False, "being deleted: Machine m1")
    gone = replace(objects, machines=[])
    assert assess(gone, Goal("available", is_settled=True), Observation(now=NOW)).is_done


RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> ClusterObjects:
    """Return the objects of a workload cluster as real controllers wrote them (recorded/README.md)."""
    bodies = [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]
    kinds: dict[str, list[Object]] = defaultdict(list)
    for each in bodies:
        kinds[each["kind"]].append(each)
    return ClusterObjects(
        cluster=kinds["Cluster"][0],
        infrastructure=kinds["DevCluster"][0],
        control_plane=kinds["KubeadmControlPlane"][0],
        workers=kinds["MachineDeployment"],
        machines=kinds["Machine"],
        sets=kinds["MachineSet"],
    )


@pytest.mark.parametrize(
    ("name", "stage", "phase", "ready", "message"),
    [
        ("available.v1beta2", "available", "workers", 2, ""),
        ("available.v1beta1", "available", "workers", 2, ""),
        (
            "control-plane-machine-stuck.v1beta2", "initialized", "control_plane", 0,
            ("initialized: ControlPlaneInitialized False, NotInitialized: Control plane not yet initialized; "
            "Machine workload-control-plane-rlqht: Ready: InfrastructureReady: VMProvisioned: WaitingForStartupTimeout; "
            "NodeProvisioned: WaitingForVMProvisioned; "),
        ),
        (
            "worker-machine-stuck.v1beta1", "available", "workers", 1,
            ("MachineDeployment workload-md-0: 0 of 1 ready, MachineSetReady False, ScalingUp: Scaling up MachineSet to 1 replicas "
            "(actual 0); Machine workload-md-0-xdc65-pfhs2: Ready: InfrastructureReady: VMProvisioned: WaitingForStartupTimeout; "),
        ),
    ],
)  # fmt: skip
def test_what_real_controllers_write_is_understood(
    name: str, stage: ClusterStage, phase: str, ready: int, message: str
) -> None:
    """CR-053, CR-056: of both contracts, with the reason of the Machine that is stuck, as one line."""
    found = assess(recorded(name), Goal(stage, is_settled=True), Observation(now=NOW))
    assert (found.is_done, found.phase, found.wanted, found.ready) == (not message, phase, 2, ready)
    assert message in found.message


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_a_machine_of_an_earlier_template_is_to_be_replaced_before_cluster_api_says_so(version: str) -> None:
    """CR-100: the MachineDeployment is observed, and its counts are those of Machines that are not marked yet."""
    objects = recorded(f"available.{version}")
    goal, seen = Goal("available", is_settled=True), Observation(now=NOW)
    assert assess(objects, goal, seen).is_done
    for path, value in (
        (("version",), "v1.34.2"),
        (("infrastructureRef", "name"), "workload-md-0-1a2b3c4d"),
        (("bootstrap", "configRef", "name"), "workload-md-0-1a2b3c4d"),
    ):
        changed = but(dict(objects.workers[0]), "spec", "template", "spec", *path, value=value)
        found = assess(replace(objects, workers=[changed]), goal, seen)
        (worker,) = [each for each in objects.machines if "-md-0-" in each["metadata"]["name"]]
        expected = f"MachineDeployment workload-md-0: Machine {worker['metadata']['name']} is of its earlier template"
        assert (found.is_done, found.message) == (False, expected)


def test_an_update_that_waits_names_the_machine_that_does_not_come_up() -> None:
    """CR-056: not only the one that it is to replace."""
    objects = recorded("worker-machine-stuck.v1beta1")
    behind = with_condition(dict(objects.workers[0]), "MachinesUpToDate", "False")
    found = assess(replace(objects, workers=[behind]), Goal("available", is_settled=True), Observation(now=NOW))
    assert found.message.startswith(
        "MachineDeployment workload-md-0: MachinesUpToDate False, Why: m; Machine workload-md-0-"
    )
    assert "VMProvisioned: WaitingForStartupTimeout" in found.message


def test_what_blocks_the_first_machine_is_named() -> None:
    """CR-056: without a Machine, `ScalingUp` alone says why; without a control plane, the Cluster's own condition."""
    blocked = "Scaling up from 0 to 1 replicas is blocked because:\n* DevMachineTemplate does not exist"
    not_there = an_object(
        KCP, "KubeadmControlPlane", "v1beta2", {"replicas": 1},
        {"replicas": 0, "conditions": [
            *conditions(Available="False Control plane not yet initialized"),
            {"type": "ScalingUp", "status": "True", "reason": "ScalingUp", "message": blocked},
        ]},
    )  # fmt: skip
    cluster = with_condition(
        but(without_condition(NEW_CLUSTER, "ControlPlaneInitialized"), "status", "initialization",
            value={"infrastructureProvisioned": True}),
        "ControlPlaneAvailable", "False",
    )  # fmt: skip
    for plane, said in (
        (not_there, "ScalingUp: Scaling up from 0 to 1 replicas is blocked because: DevMachineTemplate does not exist"),
        (None, "control plane: ControlPlaneAvailable False, Why: m"),
    ):
        found = assess(ClusterObjects(cluster, NEW_INFRA, plane), Goal("initialized"), Observation(now=NOW))
        assert (found.is_done, said in found.message) == (False, True), found.message


def a_machine_made(minute: int, *, is_failed: bool = False) -> Object:
    failed = {"failureReason": "CreateError"} if is_failed else {}
    made = {"name": f"m{minute}", "creationTimestamp": f"2026-06-01T12:{minute:02d}:00Z"}
    return {"apiVersion": f"{CORE}/v1beta1", "kind": "Machine", "metadata": made, "status": failed}


def test_a_failed_machine_that_is_to_be_replaced_does_not_end_the_wait() -> None:
    """CR-117: it may be the reason for the roll-out; one that the roll-out has made ends it."""
    after = NOW + timedelta(minutes=10)
    for minute, failure in ((5, ""), (15, "Machine m15: CreateError")):
        objects = ClusterObjects(NEW_CLUSTER, machines=[a_machine_made(minute, is_failed=True)])
        found = assess(objects, Goal("available", is_settled=True, made_after=after), Observation(now=NOW))
        assert (found.failure, found.is_done) == (failure, minute > 10)


def test_an_earlier_cluster_of_the_same_name_is_not_the_one_that_is_awaited() -> None:
    """CR-117: a watch may still show the Cluster that was deleted."""
    earlier = but(NEW_CLUSTER, "metadata", "uid", value="u1")
    for uid, is_done in ((None, True), ("u1", True), ("u2", False)):
        goal = Goal("available", uid=uid)
        assert assess(ClusterObjects(earlier, None, NEW_PLANE), goal, Observation(now=NOW)).is_done is is_done


def test_malformed_status_is_no_error() -> None:
    """A controller of another version may write anything; the verdict is that nothing is ready."""
    for status in (
        {"conditions": "x"},
        {"conditions": ["x", {"type": 1}]},
        {"initialization": "x"},
        {"replicas": "two"},
    ):
        for group, kind in (*RULES, (INFRA, "DevCluster"), (INFRA, "DevMachine"), (INFRA, "DevMachineTemplate")):
            body = an_object(group, kind, "v1beta2", {"controlPlaneEndpoint": "x", "replicas": None}, status)
            assert judge(body, Observation(now=NOW)).status in (WAIT, OK)
    assert not is_paused({"metadata": {}, "status": {}})
