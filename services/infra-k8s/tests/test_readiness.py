"""The table of capi.md chapter 3, row by row."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubevnfm_events import Event
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.readiness import judge, lacks_status, last_condition
from kubevnfm_infra_k8s.domain.reading.starting_pods import standing_of_pod
from kubevnfm_infra_k8s.domain.removing.deletion_state import deletion_obstacle, deletion_progress, pod_obstacle
from kubevnfm_infra_k8s.domain.verdicts import Observation, Status, Verdict
from kubevnfm_infra_k8s.domain.watching.not_ready_report import describe, open_warnings
from kubevnfm_lab.kubernetes.pki import Authority

NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)
OK, WAIT, BAD, GOING = Status.CURRENT, Status.IN_PROGRESS, Status.FAILED, Status.TERMINATING

ON_NODE: dict[str, Any] = {"nodeName": "n"}
ENDED = {"name": "e", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}


def obj(
    kind: str,
    api_version: str = "v1",
    *,
    spec: dict[str, Any] | None = None,
    generation: int = 1,
    created_s_ago: float = 0,
    note: str = "",
    **status: Any,
) -> dict[str, Any]:
    created = (NOW - timedelta(seconds=created_s_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata: dict[str, Any] = {"name": "x", "generation": generation, "creationTimestamp": created}
    if note:
        metadata["annotations"] = {"kubevnfm.io/ready-when": note}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status}


def conditions(**by_type: str) -> list[dict[str, str]]:
    return [
        {"type": name, "status": value.partition(" ")[0], "reason": value.partition(" ")[2]}
        for name, value in by_type.items()
    ]


SERVICE = {"namespace": "n", "name": "hooks"}
BUNDLE = base64.b64encode(Authority().pem.encode()).decode()


def definition_of(config: dict[str, Any]) -> dict[str, Any]:
    """A definition whose conversion webhook is reached in this way."""
    spec = {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": config}}}
    established = conditions(Established="True")
    return obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec, conditions=established)


def hooks_of(*configs: dict[str, Any]) -> dict[str, Any]:
    """A webhook configuration whose webhooks are reached in these ways."""
    body = obj("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1")
    return {**body, "webhooks": [{"name": f"hook-{n}", "clientConfig": each} for n, each in enumerate(configs)]}


def deployment(wanted: int | None = 2, /, **status: Any) -> dict[str, Any]:
    spec = {} if wanted is None else {"replicas": wanted}
    return obj("Deployment", "apps/v1", spec=spec, **{"observedGeneration": 1, **status})


def all_of(count: int) -> dict[str, int]:
    return {"replicas": count, "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count}


def stateful(spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return obj("StatefulSet", "apps/v1", spec=spec, **{"observedGeneration": 1, **status})


def daemons(strategy: str = "RollingUpdate", **status: Any) -> dict[str, Any]:
    return obj("DaemonSet", "apps/v1", spec={"updateStrategy": {"type": strategy}}, observedGeneration=1, **status)


def waiting(reason: str) -> list[dict[str, Any]]:
    return [{"name": "main", "state": {"waiting": {"reason": reason, "message": "m"}}}]


UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}]
CR = "acme.example/v1"

TABLE: list[tuple[str, dict[str, Any] | None, Status]] = [
    ("nothing there", None, Status.NOT_FOUND),
    ("deleted", {"kind": "Pod", "apiVersion": "v1", "metadata": {"deletionTimestamp": "t"}}, GOING),
    ("old generation", deployment(1, **{**all_of(1), "observedGeneration": 1}) | {"metadata": {"generation": 2}}, WAIT),
    ("reconciling", obj("Thing", CR, conditions=conditions(Reconciling="True", Ready="True")), WAIT),
    ("stalled", obj("Thing", CR, conditions=conditions(Stalled="True")), BAD),
    ("deployment complete", deployment(2, **all_of(2)), OK),
    ("deployment without replicas means one", deployment(None, **all_of(1)), OK),
    ("deployment of zero", deployment(0), OK),
    ("deployment not seen by its controller", obj("Deployment", "apps/v1", spec={"replicas": 0}), WAIT),
    ("deployment with one missing", deployment(2, **{**all_of(2), "readyReplicas": 1, "availableReplicas": 1}), WAIT),
    ("deployment ready but not available", deployment(2, **{**all_of(2), "availableReplicas": 1}), WAIT),
    ("deployment not updated", deployment(2, **{**all_of(2), "updatedReplicas": 1}), WAIT),
    ("deployment with old ones left", deployment(2, **{**all_of(2), "replicas": 3}), WAIT),
    ("deployment past its deadline", deployment(conditions=conditions(Progressing="False ProgressDeadlineExceeded")), BAD),
    ("stateful set", stateful({"replicas": 2}, replicas=2, readyReplicas=2, updatedReplicas=2), OK),
    ("stateful set of zero", stateful({"replicas": 0}, replicas=0), OK),
    ("stateful set, one missing", stateful({"replicas": 2}, replicas=2, readyReplicas=1, updatedReplicas=2), WAIT),
    (
        "stateful set in an update",
        stateful({"replicas": 2}, replicas=2, readyReplicas=2, updatedReplicas=1, currentRevision="a", updateRevision="b"),
        WAIT,
    ),
    (
        "stateful set with a partition",
        stateful(
            {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            replicas=3, readyReplicas=3, updatedReplicas=1, currentRevision="a", updateRevision="b",
        ),
        OK,
    ),
    (
        "stateful set updated by deletion",
        stateful(
            {"replicas": 1, "updateStrategy": {"type": "OnDelete"}},
            replicas=1, readyReplicas=1, updatedReplicas=0, currentRevision="a", updateRevision="b",
        ),
        OK,
    ),
    ("replica set", obj("ReplicaSet", "apps/v1", spec={"replicas": 1}, observedGeneration=1, readyReplicas=1, availableReplicas=1), OK),
    ("replica set, none", obj("ReplicaSet", "apps/v1", spec={"replicas": 1}, observedGeneration=1), WAIT),
    ("daemon set", daemons(desiredNumberScheduled=2, updatedNumberScheduled=2, numberReady=2, numberAvailable=2), OK),
    ("daemon set without nodes", daemons(desiredNumberScheduled=0), OK),
    ("daemon set, one", daemons(desiredNumberScheduled=2, updatedNumberScheduled=2, numberReady=1, numberAvailable=1), WAIT),
    ("daemon set, old", daemons(desiredNumberScheduled=1, updatedNumberScheduled=0, numberReady=1, numberAvailable=1), WAIT),
    ("daemon set OnDelete", daemons("OnDelete", desiredNumberScheduled=1, numberReady=1, numberAvailable=1), OK),
    ("pod ready", obj("Pod", phase="Running", conditions=conditions(Ready="True")), OK),
    ("pod done", obj("Pod", phase="Succeeded", conditions=conditions(Ready="False")), OK),
    ("pod not ready", obj("Pod", phase="Running", conditions=conditions(Ready="False")), WAIT),
    ("pod failed", obj("Pod", phase="Failed"), BAD),
    ("pod that crashes, new", obj("Pod", phase="Running", containerStatuses=waiting("CrashLoopBackOff")), WAIT),
    ("pod that crashes", obj("Pod", created_s_ago=61, phase="Running", containerStatuses=waiting("CrashLoopBackOff")), BAD),
    ("pod without image", obj("Pod", created_s_ago=61, phase="Pending", containerStatuses=waiting("ImagePullBackOff")), BAD),
    ("pod without node", obj("Pod", created_s_ago=61, phase="Pending", conditions=UNSCHEDULABLE), BAD),
    ("pod starting", obj("Pod", created_s_ago=99, phase="Pending", containerStatuses=waiting("ContainerCreating")), WAIT),
    ("job complete", obj("Job", "batch/v1", conditions=conditions(Complete="True")), OK),
    ("job failed", obj("Job", "batch/v1", conditions=conditions(Failed="True BackoffLimitExceeded")), BAD),
    ("job running", obj("Job", "batch/v1", active=1), WAIT),
    ("service", obj("Service", spec={"type": "ClusterIP"}), OK),
    ("load balancer without address", obj("Service", spec={"type": "LoadBalancer"}, loadBalancer={}), WAIT),
    ("load balancer", obj("Service", spec={"type": "LoadBalancer"}, loadBalancer={"ingress": [{"ip": "1.1.1.1"}]}), OK),
    ("claim bound", obj("PersistentVolumeClaim", phase="Bound"), OK),
    ("claim pending", obj("PersistentVolumeClaim", spec={"storageClassName": "fast"}, phase="Pending"), WAIT),
    ("claim of a class that waits", obj("PersistentVolumeClaim", spec={"storageClassName": "late"}, phase="Pending"), OK),
    ("claim of the default class that waits", obj("PersistentVolumeClaim", phase="Pending"), OK),
    ("claim of no class", obj("PersistentVolumeClaim", spec={"storageClassName": ""}, phase="Pending"), WAIT),
    ("claim lost", obj("PersistentVolumeClaim", phase="Lost"), BAD),
    ("volume available", obj("PersistentVolume", phase="Available"), OK),
    ("volume bound", obj("PersistentVolume", phase="Bound"), OK),
    ("volume pending", obj("PersistentVolume", phase="Pending"), WAIT),
    ("volume failed", obj("PersistentVolume", phase="Failed"), BAD),
    ("namespace", obj("Namespace", phase="Active"), OK),
    ("namespace new", obj("Namespace"), WAIT),
    ("definition", obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", conditions=conditions(Established="True")), OK),
    ("definition new", obj("CustomResourceDefinition", "apiextensions.k8s.io/v1"), WAIT),
    (
        "definition of a taken name",
        obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", conditions=conditions(NamesAccepted="False")),
        BAD,
    ),
    ("definition without a CA bundle", definition_of({"service": SERVICE}), WAIT),
    ("definition with a placeholder", definition_of({"service": SERVICE, "caBundle": "Cg=="}), WAIT),
    ("definition with a CA bundle", definition_of({"service": SERVICE, "caBundle": BUNDLE}), OK),
    ("definition with the address of a webhook", definition_of({"url": "https://hooks.example"}), OK),
    ("webhook configuration without a CA bundle", hooks_of({"service": SERVICE, "caBundle": BUNDLE}, {"service": SERVICE}), WAIT),
    ("webhook configuration with other text", hooks_of({"service": SERVICE, "caBundle": "bm8gY2VydGlmaWNhdGU="}), WAIT),
    ("webhook configuration with no base64", hooks_of({"service": SERVICE, "caBundle": "%"}), WAIT),
    ("webhook configuration with CA bundles", hooks_of({"service": SERVICE, "caBundle": BUNDLE}, {"url": "https://h"}), OK),
    ("webhook configuration that is empty", hooks_of(), OK),
    ("certificate", obj("Certificate", "cert-manager.io/v1", conditions=conditions(Ready="True")), OK),
    ("certificate not issued", obj("Certificate", "cert-manager.io/v1", conditions=conditions(Ready="False")), WAIT),
    ("API service", obj("APIService", "apiregistration.k8s.io/v1", conditions=conditions(Available="True")), OK),
    ("API service away", obj("APIService", "apiregistration.k8s.io/v1", conditions=conditions(Available="False")), WAIT),
    ("budget", obj("PodDisruptionBudget", "policy/v1", observedGeneration=1), OK),
    ("budget not seen", obj("PodDisruptionBudget", "policy/v1"), WAIT),
    ("autoscaler", obj("HorizontalPodAutoscaler", "autoscaling/v2", conditions=conditions(AbleToScale="True")), OK),
    ("autoscaler new", obj("HorizontalPodAutoscaler", "autoscaling/v2"), OK),
    (
        "autoscaler without a target",
        obj("HorizontalPodAutoscaler", "autoscaling/v2", conditions=conditions(AbleToScale="False FailedGetScale")),
        WAIT,
    ),
    ("ingress", obj("Ingress", "networking.k8s.io/v1"), OK),
    ("anything else of Kubernetes", obj("ConfigMap"), OK),
    ("resource ready", obj("Thing", CR, conditions=conditions(Ready="True")), OK),
    ("resource not ready", obj("Thing", CR, conditions=conditions(Ready="False")), WAIT),
    ("resource in doubt", obj("Thing", CR, conditions=conditions(Ready="Unknown")), WAIT),
    ("resource with a status of its own", obj("Thing", CR, colour="blue"), OK),
    ("resource without status", obj("Thing", CR), WAIT),
    ("own word not yet", obj("Thing", CR, note="status.phase == Running", phase="Starting"), WAIT),
    ("own word", obj("Thing", CR, note="status.phase == Running", phase="Running"), OK),
    ("own word overrules Ready", obj("Thing", CR, note="condition=Up", conditions=conditions(Ready="False", Up="True")), OK),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_readiness(body: dict[str, Any] | None, status: Status) -> None:
    """MC-045, MC-046, CR-029, CR-040."""
    verdict = judge(body, Observation(now=NOW, waits_for_consumer=frozenset({"late", ""})))
    assert verdict.status is status
    assert verdict.is_current or verdict.message


@pytest.mark.parametrize("kind", ["Certificate", "Issuer", "ClusterIssuer"])
def test_a_certificate_without_status_is_never_ready(kind: str) -> None:
    """CR-040: also after the settling time of other custom resources."""
    assert judge(obj(kind, "cert-manager.io/v1"), Observation(now=NOW, unchanged_s=60.0)).status is WAIT


def test_a_definition_is_served_before_its_webhook_has_a_ca_bundle() -> None:
    """CR-012, CR-040: the pods of the webhook may belong to objects that are sent after the definition."""
    new = definition_of({"service": SERVICE})
    assert judge(new, Observation(now=NOW, only_served=True)).is_current
    assert judge(new, Observation(now=NOW)).message == "no CA bundle yet for webhook conversion"


def test_a_resource_without_status_is_ready_after_the_settling_time() -> None:
    """CR-027."""
    thing = obj("Thing", CR)
    early = judge(thing, Observation(now=NOW, unchanged_s=2.0, settle_s=5.0))
    assert (early.status, early.again_in_s) == (WAIT, 3.0)
    assert judge(thing, Observation(now=NOW, unchanged_s=5.0, settle_s=5.0)).is_current
    assert judge(thing, Observation(now=NOW, has_status=False)).is_current


@pytest.mark.parametrize(
    ("body", "is_awaited"),
    [
        (obj("Thing", CR), True),
        (obj("Thing", CR, phase="Up"), False),
        (obj("Thing", CR, note="status.phase == Up"), False),
        (obj("Certificate", "cert-manager.io/v1"), False),
        (obj("VirtualMachine", "kubevirt.io/v1"), False),
        (obj("Machine", "cluster.x-k8s.io/v1beta1"), False),
        (obj("ConfigMap"), False),
    ],
)
def test_only_kinds_without_a_rule_settle(body: dict[str, Any], *, is_awaited: bool) -> None:
    """CR-027."""
    assert lacks_status(body, has_status=True) is is_awaited
    assert not lacks_status(body, has_status=False)


@pytest.mark.parametrize("kind", [("Thing", CR), ("Certificate", "cert-manager.io/v1")])
def test_a_condition_of_an_earlier_generation_gives_no_verdict(kind: tuple[str, str]) -> None:
    """MC-011: without a word of ``status`` itself; neither good nor bad, by no form of a wait."""

    def seen(type: str, observed: int | None, note: str = "") -> dict[str, Any]:
        body = obj(*kind, note=note)
        body["metadata"]["generation"] = 2
        generation = {} if observed is None else {"observedGeneration": observed}
        body["status"]["conditions"] = [{"type": type, "status": "True", **generation}]
        return body

    def status(body: dict[str, Any]) -> Status:
        return judge(body, Observation(now=NOW)).status

    assert [status(seen("Ready", each)) for each in (None, 1, 2)] == [OK, WAIT, OK]
    assert [status(seen("Stalled", each)) for each in (1, 2)] == [WAIT if kind[0] == "Certificate" else OK, BAD]
    assert [status(seen("Up", each, note="condition=Up")) for each in (None, 1, 2)] == [OK, WAIT, OK]


def test_a_crashing_pod_is_no_final_failure() -> None:
    crashing = obj("Pod", created_s_ago=100, phase="Running", containerStatuses=waiting("CrashLoopBackOff"))
    assert not judge(crashing, Observation(now=NOW)).is_final
    young = judge(obj("Pod", created_s_ago=20, containerStatuses=waiting("ErrImagePull")), Observation(now=NOW))
    assert young.again_in_s == pytest.approx(40.0)
    assert "ErrImagePull: m" in young.message


def test_a_crashing_container_says_how_it_ended() -> None:
    """CR-025: kubelet's own message says only that it is not started again yet."""
    (status,) = waiting("CrashLoopBackOff")
    for ended, said in (
        ({"exitCode": 137, "reason": "OOMKilled"}, "CrashLoopBackOff: m; it last ended with exit code 137 (OOMKilled)"),
        ({"exitCode": 1}, "CrashLoopBackOff: m; it last ended with exit code 1"),
        ({"exitCode": 2, "message": "at\nmain: no file\n"}, "it last ended with exit code 2: main: no file"),
        ("nonsense", "CrashLoopBackOff: m"),
    ):
        pod = obj("Pod", phase="Running", containerStatuses=[{**status, "lastState": {"terminated": ended}}])
        assert judge(pod, Observation(now=NOW)).message.endswith(said)


@pytest.mark.parametrize(
    ("spec", "status", "said"),
    [
        ({"schedulingGates": [{"name": "acme/hold"}]}, {}, "SchedulingGated: acme/hold"),
        ({"schedulerName": "mine"}, {}, "Unscheduled: by mine"),
        ({"schedulerName": "mine"}, {"conditions": [{"type": "PodScheduled", "status": "False"}]}, ""),
        (ON_NODE, {}, ""),
        (ON_NODE, {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, "container c: ContainerCreating"),
        (ON_NODE, {"containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "t"}}}]}, "container c: RunningNotReady"),
        (
            ON_NODE,
            {"containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "t"}}}, ENDED]},
            "container e: Terminated; it last ended with exit code 137 (OOMKilled)",
        ),
        (ON_NODE, {"initContainerStatuses": [{"name": "i", "state": {"running": {"startedAt": "t"}}}]}, "container i: InitContainerRunning"),
        (
            {**ON_NODE, "initContainers": [{"name": "i", "restartPolicy": "Always"}], "readinessGates": [{"conditionType": "acme/lb"}]},
            {"initContainerStatuses": [{"name": "i", "state": {"running": {"startedAt": "t"}}}]},
            "ReadinessGate: acme/lb",
        ),
        ({**ON_NODE, "readinessGates": [{"conditionType": "a"}]}, {"conditions": [{"type": "a", "status": "True"}]}, ""),
        (ON_NODE, {"containerStatuses": [{"name": "c", "state": "nonsense"}, {}]}, ""),
    ],
)  # fmt: skip
def test_a_pod_that_starts_says_what_it_waits_for(spec: dict[str, Any], status: dict[str, Any], said: str) -> None:
    """CR-025: while nothing is wrong with it yet; a side-car among the init containers goes on."""
    assert standing_of_pod({"spec": spec, "status": status}) == said


async def test_each_report_of_progress_names_all_that_is_awaited() -> None:
    """A report replaces the one before, so that it would hide an object whose state has not changed since."""
    reports: list[TaskProgressed] = []

    async def publish(event: Event) -> None:
        assert isinstance(event, TaskProgressed)
        reports.append(event)

    progress = Progress("ready", publish)
    stuck, slow = {"Deployment d/web": "0 of 1 ready, pod web-1: no image"}, {"Service d/web": "no address"}
    await progress.on_all({**stuck, **slow}, done=0, total=2)
    await progress.on_all({**stuck, **slow}, done=0, total=2)
    assert len(reports) == 2
    assert reports[-1].message == "Service d/web: no address"
    assert reports[-1].obstacles == ("Deployment d/web: 0 of 1 ready, pod web-1: no image", "Service d/web: no address")
    await progress.on_all(slow, done=1, total=2)
    assert [(each.done, each.obstacles) for each in reports[2:]] == [(1, ("Service d/web: no address",))]
    await progress.on_all({str(number): "x" * 4000 for number in range(50)}, done=0, total=50)
    assert len(reports[-1].obstacles) == 10
    assert all(len(each) <= 1000 for each in reports[-1].obstacles)


def test_a_deployment_reports_its_progress() -> None:
    assert judge(deployment(2, **{**all_of(2), "readyReplicas": 1}), Observation(now=NOW)).message == "1 of 2 ready"


def test_a_namespace_that_cannot_end_shows_its_conditions() -> None:
    """CR-109: its finalizer is in the spec, so that the conditions alone say what holds it."""
    body = obj("Namespace", conditions=conditions(
        NamespaceDeletionDiscoveryFailure="True DiscoveryFailed",
        NamespaceDeletionContentFailure="False ContentDeleted",
        NamespaceContentRemaining="True SomeResourcesRemain",
    ))  # fmt: skip
    said = (
        "NamespaceDeletionDiscoveryFailure True, DiscoveryFailed; NamespaceContentRemaining True, SomeResourcesRemain"
    )
    key = ObjectKey("v1", "Namespace", "", "x")
    assert deletion_progress(key, body) == f"is being deleted, {said}"
    assert deletion_obstacle(key, body) == f"Namespace x: still exists, {said}"
    assert deletion_obstacle(key, obj("Namespace")) == "Namespace x: still exists"


def test_a_pod_that_does_not_end_says_what_holds_it() -> None:
    """CR-109: a finalizer, or a node that is silent; a finalizer of Kubernetes itself says only that something else holds it."""
    since = "2026-11-28T05:33:02Z"
    at = datetime.fromisoformat(since)

    def deleted(kind: str, *finalizers: str) -> dict[str, Any]:
        body = obj(kind, spec={"nodeName": "worker1"})
        body["metadata"] |= {"deletionTimestamp": since, "finalizers": list(finalizers)}
        return body

    key = ObjectKey("apps/v1", "Deployment", "d", "x")
    said = f"waits for what belongs to it, since {since}"
    assert deletion_progress(key, deleted("Deployment", "foregroundDeletion")) == f"is being deleted, {said}"
    assert pod_obstacle(obj("Pod"), at) == pod_obstacle(deleted("Pod"), at + timedelta(seconds=9)) == ""
    silent = pod_obstacle(deleted("Pod"), at + timedelta(seconds=11))
    assert silent == f"its node worker1 does not confirm its end since {since}"
    assert pod_obstacle(deleted("Pod", "acme.example/hold"), at) == f"held by acme.example/hold, since {since}"
    # Controllers that write finalizers and conditions cannot change the terminal of a reader.
    foreign = deleted("Namespace", "a/\x1b[31mb\r")
    foreign["status"] = {"conditions": [{"type": "A", "status": "True", "reason": "R", "message": "\x1b]0;t\x07m"}]}
    for say in (deletion_progress, deletion_obstacle):
        for place in (ObjectKey("v1", "Namespace", "", "x"), key):
            said = say(place, foreign)
            assert said.isprintable()
            assert "held by a/b\ufffd, since" in said
    assert pod_obstacle(deleted("Pod", "a/\x1b[31mb"), at) == f"held by a/b, since {since}"


def test_a_workload_that_can_make_no_pods_says_why() -> None:
    """CR-025: in its progress and in its failure; what is over is not said of one that is ready."""
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: q"}
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
    seen, cause = Observation(now=NOW), "ReplicaFailure True, FailedCreate: exceeded quota: q"
    assert judge(deployment(2, conditions=[failure]), seen).message == f"0 of 2 updated, {cause}"
    verdict = judge(deployment(2, conditions=[late, failure]), seen)
    assert (verdict.status, verdict.is_final) == (BAD, True)
    assert verdict.message == f"Progressing False, ProgressDeadlineExceeded: timed out, {cause}"
    replica_set = obj("ReplicaSet", "apps/v1", observedGeneration=1, conditions=[failure])
    assert judge(replica_set, seen).message == f"0 of 1 ready, {cause}"
    assert judge(deployment(2, **all_of(2), conditions=[failure]), seen).is_current


def test_the_condition_that_changed_last_is_reported() -> None:
    body = obj("Thing", CR)
    body["status"]["conditions"] = [
        {"type": "A", "status": "True", "lastTransitionTime": "2025-01-02T00:00:00Z", "reason": "R", "message": "m"},
        {"type": "B", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
    ]
    assert last_condition(body) == "A True, R: m"
    assert last_condition(obj("Thing", CR)) == ""


def test_a_report_shows_warnings_of_the_pods_of_the_object_only() -> None:
    """CR-025: `db-replica-0` is no pod of `db`, although its name begins so."""

    def warning(name: str, uid: str) -> dict[str, Any]:
        about = {"kind": "Pod", "name": name, "uid": uid}
        return {"type": "Warning", "reason": "BackOff", "message": f"about {name}", "involvedObject": about}

    key, verdict = ObjectKey("apps/v1", "StatefulSet", "n", "db"), Verdict(Status.IN_PROGRESS, "0 of 1 ready")
    events = [warning("db-replica-0", "p1"), warning("db-0", "p0")]
    body = {"metadata": {"uid": "s0"}}
    assert describe(key, verdict, body, events, {"p0"}) == "0 of 1 ready, warning BackOff: about db-0"
    assert describe(key, verdict, body, events[:1], {"p0"}) == "0 of 1 ready"


def test_a_warning_that_a_pod_has_got_over_is_none() -> None:
    """CR-025: a pod that was placed late and then pulls its image for minutes is not held up by the scheduler."""

    def event(reason: str, second: str, *, uid: str = "p0", type: str = "Warning") -> dict[str, Any]:
        return {
            "type": type,
            "reason": reason,
            "lastTimestamp": f"2026-11-20T12:00:{second}Z",
            "involvedObject": {"uid": uid},
        }

    scheduled = event("Scheduled", "05", type="Normal")
    pulling = event("Pulling", "08.123456", type="Normal")
    for warning, later, is_open in (
        (event("FailedScheduling", "04"), [], True),
        (event("FailedScheduling", "05.9"), [scheduled], False),
        (event("FailedScheduling", "04", uid="p1"), [scheduled], True),
        (event("FailedMount", "07"), [scheduled], True),
        (event("FailedMount", "07"), [scheduled, pulling], False),
        (event("FailedCreatePodSandBox", "09"), [scheduled, pulling], True),
        (event("Unhealthy", "07"), [scheduled, pulling], True),
    ):
        assert open_warnings([warning, *later]) == [warning] * is_open
