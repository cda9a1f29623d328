"""Applying a CNF to the lab's cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.objects import ApplyObjects, ObjectsOrder, VduTarget
from kubevnfm_infra_k8s.domain.errors import (
    ForeignObjects,
    ObjectFailed,
    ObjectRefused,
    ObjectsNotReady,
    ObjectsRefused,
    UnknownKinds,
)
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_secrets import Secret
from kubevnfm_worker.outcome import Done, NotYet
from patience import until_true

Make = Callable[..., dict[str, Any]]


async def shown(cluster: Cluster, api_version: str, kind: str, name: str, namespace: str = "default") -> Any:
    resource = await cluster.resource(api_version, kind)
    assert resource is not None
    key = ObjectKey(api_version, kind, namespace if resource.namespaced else "", name)
    return await cluster.get(resource, key)


def a_definition(make: Make, *, plural: str = "things", kind: str = "Thing", status: bool = True) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        **({"subresources": {"status": {}}} if status else {}),
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": "acme.example", "scope": "Namespaced", "names": names, "versions": [version]}
    name = f"{plural}.acme.example"
    return make("CustomResourceDefinition", name, api_version="apiextensions.k8s.io/v1", spec=spec)


async def test_applied_objects_are_reported_with_their_pods(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-032."""
    service = make("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
    done = await site.apply(
        {
            "Files/one.yaml": [make("ConfigMap", "c", data={"a": "b"}), workload(replicas=1)],
            "Files/two.yaml": [service, workload("DaemonSet", "agent")],
        },
        vdus=[VduTarget(vdu_id="VDU1", name="web", replicas=3), VduTarget(vdu_id="VDU2", name="agent")],
        namespace="default",
    )
    assert done.namespace == "default"
    assert [(each.kind, each.name, each.vdu_id) for each in done.objects] == [
        ("ConfigMap", "c", None),
        ("Deployment", "web", "VDU1"),
        ("Service", "web", None),
        ("DaemonSet", "agent", "VDU2"),
    ]
    assert all(each.uid for each in done.objects)
    web = [pod for pod in done.pods if pod.vdu_id == "VDU1"]
    assert len(web) == 3
    assert {pod.owner_kind for pod in web} == {"Deployment"}
    assert {pod.namespace for pod in web} == {"default"}
    assert all(pod.addresses and pod.node and pod.uid for pod in web)
    assert {pod.owner_kind for pod in done.pods if pod.vdu_id == "VDU2"} == {"DaemonSet"}
    deployment = await shown(cluster, "apps/v1", "Deployment", "web")
    assert deployment["metadata"]["labels"]["tacker_vnf_instance_id"] == "i1"
    assert deployment["metadata"]["annotations"]["kubevnfm.io/operation-id"] == "op1"
    assert deployment["metadata"]["managedFields"][0]["manager"] == "kubevnfm"
    news = [(each.task, each.state) for each in site.progress]
    assert news[0] == ("apply", "started")
    assert news[-1] == ("ready", "finished")


async def test_node_ports_are_reported_with_those_that_the_cluster_chose(site: Any, make: Make) -> None:
    ports = [{"name": "http", "port": 80, "nodePort": 30080}, {"name": "https", "port": 443}]
    done = await site.apply(
        {
            "f.yaml": [
                make("Service", "web", spec={"type": "NodePort", "selector": {"app": "web"}, "ports": ports}),
                make("Service", "inner", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
            ]
        }
    )
    ((name, found),) = [(each.name, each.node_ports) for each in done.services]
    assert name == "web"
    assert found[0] == 30080
    assert len(found) == 2
    assert found[1] > 0


async def test_progress_is_published_as_text(site: Any, faults: FaultBook, workload: Make) -> None:
    faults.add(part="program", verb="image *", effect="slow", seconds=0.2)
    await site.apply({"f.yaml": workload(replicas=2)})
    messages = [each.message for each in site.progress]
    assert "Deployment default/web: 0 of 2 ready" in messages


async def test_a_repeated_command_adopts_existing_objects_and_creates_no_duplicates(
    site: Any, make: Make, workload: Make, ledger: CallLedger, lab: LabCluster
) -> None:
    files = {"f.yaml": [make("ConfigMap", "c"), workload("StatefulSet", "db")]}
    first = await site.apply(files)
    ledger.clear()
    again = await site.apply(files)
    assert again == first
    verbs = {call["verb"].split()[0] for call in ledger.calls() if call["part"] == "kubernetes"}
    assert verbs <= {"get", "list", "watch"}  # this attempt has applied everything, so it sends nothing again
    retried = await site.apply(files, attempt=2)
    assert retried == first
    assert len(lab.inventory()["objects"]) == 2


async def test_a_call_that_was_cancelled_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make, lab: LabCluster
) -> None:
    files = {"f.yaml": [make("ConfigMap", "c"), workload(), make("Secret", "s"), make("ServiceAccount", "a")]}
    for after in range(0, 30, 3):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.apply(files))
        await asyncio.wait({task}, timeout=0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    final = await site.apply(files)
    assert [each.name for each in final.objects] == ["c", "web", "s", "a"]
    assert len(lab.inventory()["objects"]) == 4


async def test_a_long_wait_occupies_no_worker(site: Any, faults: FaultBook, workload: Make) -> None:
    hang = faults.add(part="program", verb="image *", effect="hang")
    quick = site.with_changes(wait_s=0.05)
    package = quick.packages.add({"f.yaml": workload()})
    command = ApplyObjects(vnf_instance_id="i1", package=package, vim=quick.vim, def_files=("f.yaml",))
    outcome = await quick.handlers.apply_objects(command, quick.context())
    assert isinstance(outcome, NotYet)
    assert outcome.again_in_s <= 1.0
    faults.remove(hang.fault_id)
    while isinstance(outcome, NotYet):
        outcome = await quick.handlers.apply_objects(command, quick.context())
    assert isinstance(outcome, Done)


async def test_a_resource_that_changes_all_the_time_occupies_no_worker(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-027: without a status it counts as ready once it has not changed for a time."""
    quick = site.with_changes(wait_s=0.05)
    await quick.apply({"f.yaml": [a_definition(make)]}, instance="definition")
    package = quick.packages.add({"f.yaml": [make("Thing", "busy", api_version="acme.example/v1")]})
    command = ApplyObjects(vnf_instance_id="i1", package=package, vim=quick.vim, def_files=("f.yaml",))
    things = await cluster.resource("acme.example/v1", "Thing")
    assert things is not None

    async def beat() -> None:
        for number in count():
            note = {"metadata": {"annotations": {"beat": str(number)}}}
            await cluster.patch(things, ObjectKey("acme.example/v1", "Thing", "default", "busy"), note)
            await asyncio.sleep(0.02)

    beating = asyncio.create_task(beat())
    outcome = await asyncio.wait_for(quick.handlers.apply_objects(command, quick.context()), 10)
    assert isinstance(outcome, NotYet)
    beating.cancel()
    while isinstance(outcome, NotYet):
        outcome = await quick.handlers.apply_objects(command, quick.context())
    assert isinstance(outcome, Done)


async def test_a_custom_resource_may_precede_its_definition_and_namespace(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """MC-044, CR-011, CR-012: namespaces and definitions of the whole set come first, and are served before the rest."""
    thing = make("Thing", "t", api_version="acme.example/v1", namespace="lab", spec={"size": 3})
    done = await site.apply(
        {"a.yaml": thing, "b.yaml": [a_definition(make), make("Namespace", "lab")]}, multi_namespace=True
    )
    assert [each.kind for each in done.objects] == ["Thing", "CustomResourceDefinition", "Namespace"]
    found = await shown(cluster, "acme.example/v1", "Thing", "t", "lab")
    assert found["spec"] == {"size": 3}


async def test_the_order_is_that_of_the_files(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-011, CR-014: the order of creation is read from the objects' versions."""
    kinds = ["Secret", "ConfigMap", "ServiceAccount", "Secret", "ConfigMap"]
    files = {f"{n}.yaml": make(kind, f"o{n}") for n, kind in enumerate(kinds)}
    await site.apply(files)
    versions = []
    for n, kind in enumerate(kinds):
        found = await shown(cluster, "v1", kind, f"o{n}")
        versions.append(int(found["metadata"]["resourceVersion"]))
    assert versions == sorted(versions)


async def test_all_unknown_kinds_are_named(site: Any, make: Make, lab: LabCluster) -> None:
    """CR-003: with file, group, version and kind."""
    files = {
        "a.yaml": [make("ConfigMap", "c"), make("Gadget", "g", api_version="acme.example/v1")],
        "b.yaml": make("Deployment", "d", api_version="apps/v9"),
    }
    with pytest.raises(UnknownKinds) as caught:
        await site.apply(files)
    assert "Gadget in acme.example/v1 (a.yaml)" in str(caught.value)
    assert "Deployment in apps/v9 (b.yaml)" in str(caught.value)
    assert lab.inventory()["objects"] == {}


async def test_all_rejections_are_reported_before_anything_is_created(
    site: Any, make: Make, workload: Make, lab: LabCluster
) -> None:
    """CR-017: by a dry run of all objects."""
    broken = workload(name="w1")
    del broken["spec"]["selector"]
    files = {"f.yaml": [make("ConfigMap", "c"), broken, make("ConfigMap", "Not_A_Name")]}
    with pytest.raises(ObjectsRefused) as caught:
        await site.apply(files)
    assert caught.value.status == 422
    assert len(caught.value.refusals) == 2
    assert "Deployment default/w1" in str(caught.value)
    assert "Not_A_Name" in str(caught.value)
    assert lab.inventory()["objects"] == {}


async def test_foreign_objects_are_named_and_not_changed_unless_adopted(
    site: Any, cluster: Cluster, make: Make, lab: LabCluster
) -> None:
    """MC-039, CR-020: 409 with their names, before anything is applied."""
    resource = await cluster.resource("v1", "ConfigMap")
    assert resource is not None
    foreign = make("ConfigMap", "c", namespace="default", data={"x": "theirs"})
    await cluster.apply(resource, ObjectKey("v1", "ConfigMap", "default", "c"), foreign)
    files = {"f.yaml": [make("Secret", "s"), make("ConfigMap", "c", data={"x": "ours"})]}
    with pytest.raises(ForeignObjects, match="ConfigMap default/c") as caught:
        await site.apply(files)
    assert caught.value.status == 409
    assert set(lab.inventory()["objects"]) == {"ConfigMap/default/c"}
    await site.delete()
    assert (await shown(cluster, "v1", "ConfigMap", "c"))["data"] == {"x": "theirs"}
    site.step = "apply"
    await site.apply(files, operation="op3", adopt=True)
    assert (await shown(cluster, "v1", "ConfigMap", "c"))["data"] == {"x": "ours"}


async def test_objects_of_another_instance_are_foreign(site: Any, make: Make) -> None:
    """CR-020: the label of another instance makes an object foreign."""
    await site.apply({"f.yaml": make("ConfigMap", "c")}, instance="i1")
    with pytest.raises(ForeignObjects, match="ConfigMap default/c"):
        await site.apply({"f.yaml": make("ConfigMap", "c")}, instance="i2", operation="op2")


async def test_a_timeout_names_each_object_its_condition_and_its_warning(
    site: Any, faults: FaultBook, make: Make, workload: Make
) -> None:
    """CR-025: with the reason of a pod and the newest warning event."""
    faults.add(part="program", verb="image *", effect="fail", status=404, message="not found: nginx:none")
    with pytest.raises(ObjectsNotReady) as caught:
        await site.timed_out_once_said("ImagePull").apply(
            {"f.yaml": [workload(image="nginx:none"), make("ConfigMap", "c")]}, wait_timeout_s=600.0
        )
    text = str(caught.value)
    assert text.startswith("Deployment default/web: 0 of 2 ready, pod web-")
    assert "ImagePull" in text.partition("warning ")[0]
    assert "warning " in text
    assert "nginx:none" in text
    assert "ConfigMap" not in text
    assert caught.value.status == 422
    assert caught.value.remains is not None
    assert [each.name for each in caught.value.remains.objects] == ["web", "c"]


async def test_the_deadline_counts_from_the_first_call(site: Any, faults: FaultBook, workload: Make) -> None:
    """CR-024: one deadline for the step."""
    faults.add(part="program", verb="image *", effect="hang")
    quick = site.with_changes(wait_s=0.1)
    # Each call ends before the limit: it would never be reached if it counted from each of them.
    async with asyncio.timeout(300):
        with pytest.raises(ObjectsNotReady):
            await quick.apply({"f.yaml": workload()}, wait_timeout_s=0.6)


async def test_the_wait_ends_in_time_to_name_the_objects_before_the_commands_deadline(
    site: Any, faults: FaultBook, workload: Make
) -> None:
    faults.add(part="program", verb="image *", effect="hang")
    site.deadline = datetime.now(UTC) + timedelta(seconds=6)
    with pytest.raises(ObjectsNotReady, match="Deployment default/web: 0 of 2 ready"):
        await site.apply({"f.yaml": workload()}, wait_timeout_s=3600.0)
    assert datetime.now(UTC) < site.deadline


async def test_an_object_that_cannot_become_ready_fails_at_once(site: Any, make: Make) -> None:
    """CR-025."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i", "command": ["sh", "-c", "exit 3"]}]}
    job = make("Job", "j", api_version="batch/v1", spec={"backoffLimit": 0, "template": {"spec": pod}})
    with pytest.raises(ObjectFailed, match="Job default/j: Failed True"):
        await site.apply({"f.yaml": job})


async def test_apply_waits_for_jobs_claims_and_stateful_sets(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-029."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
        "storageClassName": "",
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i", "command": ["true"]}]}
    await site.apply(
        {
            "f.yaml": [
                make("PersistentVolume", "v", spec=volume),
                make("PersistentVolumeClaim", "data", spec={**claim, "storageClassName": ""}),
                make("Job", "j", api_version="batch/v1", spec={"template": {"spec": pod}}),
                workload("StatefulSet", "db", serviceName="db"),
            ]
        }
    )
    assert (await shown(cluster, "v1", "PersistentVolumeClaim", "data"))["status"]["phase"] == "Bound"
    assert (await shown(cluster, "batch/v1", "Job", "j"))["status"]["succeeded"] == 1
    assert (await shown(cluster, "apps/v1", "StatefulSet", "db"))["status"]["readyReplicas"] == 2


async def test_the_readiness_annotation_decides(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-028: an object is ready when its own rule holds."""
    note = {"annotations": {"kubevnfm.io/ready-when": "spec.size == 2"}}
    thing = make("Thing", "t", api_version="acme.example/v1", metadata=note, spec={"size": 1})
    task = asyncio.create_task(site.apply({"f.yaml": [a_definition(make), thing]}))

    async def is_awaited() -> bool:
        return any("waits for spec.size == 2" in each.message for each in site.progress)

    await until_true(is_awaited)
    assert not task.done()
    resource = await cluster.resource("acme.example/v1", "Thing")
    assert resource is not None
    bigger = {**thing, "spec": {"size": 2}, "metadata": {"name": "t", "namespace": "default", **note}}
    bigger["metadata"]["labels"] = {"kubevnfm.io/vnf-instance-id": "i1"}
    await cluster.apply(resource, ObjectKey("acme.example/v1", "Thing", "default", "t"), bigger)
    await asyncio.wait_for(task, 60)


async def test_requests_to_a_busy_api_server_are_retried(site: Any, faults: FaultBook, make: Make) -> None:
    faults.add(part="kubernetes", verb="patch *", status=429, message="slow down", times=1)
    faults.add(part="kubernetes", verb="get *", status=503, message="starting", times=1)
    faults.add(part="kubernetes", verb="list *", effect="drop", times=1)
    done = await site.apply({"f.yaml": make("ConfigMap", "c")})
    assert done.objects[0].name == "c"


@pytest.mark.parametrize(
    "message",
    [
        'Internal error occurred: failed calling webhook "w.acme.example": connection refused',
        "conversion webhook for acme.example/v1, Kind=Thing failed: Post: x509: certificate signed by unknown authority",
    ],
)
async def test_apply_waits_for_a_webhook_that_does_not_answer_yet(
    site: Any, faults: FaultBook, make: Make, message: str
) -> None:
    """CR-016: the webhook, for admission or conversion, may belong to the same set."""
    faults.add(part="kubernetes", verb="patch configmaps", status=500, message=message, times=2)
    await site.apply({"f.yaml": make("ConfigMap", "c")})
    assert any("for a webhook" in each.message for each in site.progress)


DENIED = 'admission webhook "limits.acme.example" denied the request: '


@pytest.mark.parametrize("reason", ["no limits", "Secret default/s has no owner"])
async def test_the_denial_of_a_webhook_of_others_is_reported_before_anything_is_applied(
    site: Any, faults: FaultBook, make: Make, reason: str
) -> None:
    """CR-016, CR-017: it exists and answers, and the object that it names is the one that it denies."""
    faults.add(part="kubernetes", verb="patch secrets", status=422, message=f"{DENIED}{reason}", times=1)
    with pytest.raises(ObjectsRefused, match=f"Secret default/s: .*{reason}"):
        await site.apply({"f.yaml": [make("ConfigMap", "first"), make("Secret", "s"), make("ServiceAccount", "s")]})
    async with site.cluster() as cluster:
        assert await shown(cluster, "v1", "ConfigMap", "first") is None


async def test_the_denial_of_a_webhook_of_the_set_is_left_to_the_real_apply(
    site: Any, faults: FaultBook, make: Make
) -> None:
    """CR-017: its new version may permit what the present one denies."""
    hook = make(
        "ValidatingWebhookConfiguration", "limits", api_version="admissionregistration.k8s.io/v1",
        webhooks=[{
            "name": "limits.acme.example", "clientConfig": {"url": "https://192.0.2.1"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        }],
    )  # fmt: skip
    faults.add(part="kubernetes", verb="patch secrets", status=422, message=f"{DENIED}no limits", times=1)
    done = await site.apply({"f.yaml": [make("Secret", "s"), hook]})
    assert [each.name for each in done.objects] == ["s", "limits"]


async def test_a_denial_that_names_another_object_of_the_set_is_left_to_the_real_apply(
    site: Any, faults: FaultBook, make: Make
) -> None:
    """CR-017: a policy that the set changes, for example."""
    faults.add(part="kubernetes", verb="patch secrets", status=403, message=f"{DENIED}[policy] no limits", times=1)
    done = await site.apply({"f.yaml": [make("ConfigMap", "policy"), make("Secret", "s")]})
    assert len(done.objects) == 2


async def test_what_pods_say_shows_no_value_of_a_variable(site: Any, faults: FaultBook, workload: Make) -> None:
    """CR-042: the image that cannot be pulled was filled in."""
    faults.add(part="program", verb="image *", effect="fail", status=404, message="not found: sword-fish-42")
    short = site.timed_out_once_said("***")
    with pytest.raises(ObjectsNotReady) as caught:
        await short.apply({"f.yaml": workload(image="${IMAGE}")}, variables={"IMAGE": Secret("sword-fish-42")})
    assert "Deployment default/web" in str(caught.value)
    assert "***" in str(caught.value)
    assert "sword" not in str(caught.value)
    assert "sword" not in str(site.progress)


async def test_a_rejection_is_reported_at_once_with_its_object(site: Any, faults: FaultBook, make: Make) -> None:
    faults.add(part="kubernetes", verb="patch secrets", status=403, message="quota exceeded", after=1)
    with pytest.raises(ObjectRefused, match=r"Secret default/s: .*quota exceeded"):
        await site.apply({"f.yaml": make("Secret", "s")})


async def test_readiness_is_watched_not_polled(
    site: Any, faults: FaultBook, ledger: CallLedger, workload: Make
) -> None:
    """CR-024: one list and one watch for a kind."""
    faults.add(part="program", verb="image *", effect="slow", seconds=1.0)
    await site.apply({"f.yaml": workload()})
    calls = {call["verb"]: call["count"] for call in ledger.calls() if call["part"] == "kubernetes"}
    assert calls["watch deployments"] == 1
    assert calls["list deployments"] == 1
    assert calls["get deployments"] == 1


async def test_between_priorities_nothing_is_read_that_the_answers_show(
    site: Any, ledger: CallLedger, make: Make
) -> None:
    """MC-013: each list would cost the API server more than the write before it, and what exists is ready."""
    names = [f"{number}.yaml" for number in range(4)]
    order = "artifacts:\n" + "".join(f"- {{file: {name}, priority: {name[0]}}}\n" for name in names)
    files = {name: [make("ConfigMap", f"c{name[0]}"), make("Secret", f"s{name[0]}")] for name in names}
    await site.apply({"order.yaml": order, **files}, def_files=names, order_artifact="order.yaml", namespace="shop")
    calls = {call["verb"]: call["count"] for call in ledger.calls() if call["part"] == "kubernetes"}
    assert calls["patch configmaps"] == len(names)
    # The Namespace is absent, so there is nothing in it, and its apply says what a dry run would.
    assert calls["patch namespaces"] == 1
    assert not [
        verb for verb in calls if verb.split()[0] in ("list", "watch") or verb in ("get configmaps", "get secrets")
    ]
    ledger.clear()
    assert (await site.delete()).count == 2 * len(names) + 1
    assert not {"watch configmaps", "watch secrets"} & {call["verb"] for call in ledger.calls()}


async def test_a_broken_watch_is_started_again(site: Any, faults: FaultBook, workload: Make) -> None:
    faults.add(part="program", verb="image *", effect="slow", seconds=0.5)
    faults.add(part="kubernetes", verb="watch *", effect="drop", times=2)
    done = await site.apply({"f.yaml": workload()})
    assert done.objects[0].name == "web"


@pytest.mark.parametrize(
    ("files", "def_files", "says"),
    [
        ({"f.yaml": "x"}, [], "at least one file"),
        ({"f.yaml": "x"}, ["g.yaml"], "g.yaml: no such file"),
        ({"f.yaml": "x"}, ["../../etc/passwd"], "no such file"),
        ({"f.yaml": "x"}, None, "apiVersion expected"),
    ],
)
async def test_unusable_files_are_rejected(
    site: Any, files: dict[str, str], def_files: list[str] | None, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        await site.apply(files, def_files=def_files)
    assert caught.value.field == "additionalParams.lcm-kubernetes-def-files"


async def test_questions_to_the_cluster_need_no_name_and_get_no_labels(site: Any, make: Make, lab: LabCluster) -> None:
    """The API server refuses an access review with metadata; a local one has its namespace."""
    access = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    reviews = [
        {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        for kind, spec in [
            ("SubjectAccessReview", {"user": "u", **access}),
            ("SubjectAccessReview", {"user": "v", **access}),
            ("SelfSubjectAccessReview", access),
            ("LocalSubjectAccessReview", {"user": "u", **access}),
            ("SelfSubjectRulesReview", {"namespace": "default"}),
        ]
    ]
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": "t"}}
    done = await site.apply({"r.yaml": [*reviews, token], "f.yaml": make("ConfigMap", "c")})
    assert [each.name for each in done.objects] == ["c"]
    assert len(lab.inventory()["objects"]) == 1
    await site.delete()
    assert lab.inventory()["objects"] == {}


async def test_an_object_that_is_stored_needs_a_name(site: Any, workload: Make) -> None:
    pod = workload()
    pod["metadata"] = {"generateName": "web-"}
    with pytest.raises(InvalidInput, match=r"f\.yaml, document 1: metadata\.name expected in a Deployment"):
        await site.apply({"f.yaml": pod})


async def test_vdus_without_a_workload_in_the_named_files_have_no_vnfcs(site: Any, workload: Make) -> None:
    files = {"web.yaml": workload(), "db.yaml": workload("StatefulSet", "db")}
    vdus = [VduTarget(vdu_id="VDU1", name="web", replicas=2), VduTarget(vdu_id="VDU2", name="db", replicas=1)]
    done = await site.apply(files, def_files=["web.yaml"], vdus=vdus)
    assert {pod.vdu_id for pod in done.pods} == {"VDU1"}
    said = "VDU VDU2: no workload named db in the files, so it has no VNFC"
    assert said in [each.message for each in site.progress]


async def test_the_request_maps_a_vdu_to_a_workload(site: Any, workload: Make) -> None:
    mapped = VduTarget(vdu_id="VDU1", name="vdu1-web", kind="Deployment", replicas=3)
    done = await site.apply({"f.yaml": workload(name="vdu1-web", replicas=1)}, vdus=[mapped])
    assert [pod.vdu_id for pod in done.pods] == ["VDU1"] * 3


def an_order(package: PackageRef, *files: str) -> ObjectsOrder:
    return ObjectsOrder(package=package, vim=VimConnection(), def_files=files)


async def test_a_package_whose_copy_lacks_a_listed_image_is_read(site: Any, make: Make) -> None:
    """The unpacked copies of packages have no images; TOSCA.meta lists them all the same."""
    files = {"f.yaml": make("ConfigMap", "c"), "Files/images/disk.img": "an image"}
    package = site.packages.add(files)
    (site.packages.root / "p1" / "Files/images/disk.img").unlink()
    read = await site.handlers.sources.read(an_order(package, "f.yaml"), vnf_instance_id="i1", operation_id="op")
    assert [name for name, _ in read] == ["f.yaml"]
    with pytest.raises(InvalidInput, match=r"disk\.img: no such file in the package"):
        await site.handlers.sources.read(
            an_order(package, "Files/images/disk.img"), vnf_instance_id="i1", operation_id="op"
        )


async def test_a_file_changed_since_onboarding_is_rejected(site: Any, make: Make) -> None:
    package = site.packages.add({"f.yaml": make("ConfigMap", "c")})
    file = site.packages.root / "p1" / "f.yaml"
    file.write_text(file.read_text().replace("name: c", "name: d"))
    with pytest.raises(InvalidInput, match=r"f\.yaml: modified, its SHA-256 digest differs"):
        await site.handlers.sources.read(an_order(package, "f.yaml"), vnf_instance_id="i1", operation_id="op")


async def test_ten_instances_at_once_take_about_the_time_of_one(site: Any, workload: Make) -> None:
    async with asyncio.timeout(300):
        done = await asyncio.gather(
            *(site.apply({"f.yaml": workload(name=f"w{n}")}, instance=f"i{n}", operation=f"op{n}") for n in range(10))
        )
    assert sorted(each.objects[0].name for each in done) == [f"w{n}" for n in range(10)]
