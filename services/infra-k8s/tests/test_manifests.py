"""Reading and preparing manifests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from kubevnfm_events.objects import VduTarget
from kubevnfm_infra_k8s.domain.autoscalers import Limits
from kubevnfm_infra_k8s.domain.changing.room_making import make_room
from kubevnfm_infra_k8s.domain.changing.unchangeable import Replacing, unchangeable_fields
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.planning.preparing import placed, prepared
from kubevnfm_infra_k8s.domain.reading.claims import asks_for
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest, defined_kinds, namespace_of_all, read_manifests
from kubevnfm_infra_k8s.domain.reading.vdus import replicas_of, vdus_without_workload, workload_of_vdus
from kubevnfm_kit.errors import InvalidInput

Make = Callable[..., dict[str, Any]]


_documents = itertools.count(1)


def one(body: dict[str, Any]) -> Manifest:
    return Manifest("f.yaml", next(_documents), body)


def test_documents_keep_their_order_and_lists_are_flattened() -> None:
    text = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {made: 2025-01-01T00:00:00Z}}
---
# nothing here
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: v1, kind: Secret, metadata: {name: c}}
"""
    found = read_manifests([("one.yaml", text), ("two.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: d}}")])
    assert [(each.file, each.document, each.kind, each.name) for each in found] == [
        ("one.yaml", 1, "ConfigMap", "a"),
        ("one.yaml", 2, "Secret", "b"),
        ("one.yaml", 3, "Secret", "c"),
        ("two.yaml", 1, "Pod", "d"),
    ]
    assert found[0].body["metadata"]["annotations"] == {"made": "2025-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "f.yaml: invalid YAML"),
        ("just text", "f.yaml, document 1: apiVersion expected"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{uid: u}]}}",
            "f.yaml, document 1: metadata.ownerReferences: not expected",
        ),
        ("{apiVersion: v1, metadata: {name: a}}", "kind expected"),
        ("{apiVersion: v1, kind: Pod, metadata: [a]}", "metadata: an object expected"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: 5}}", r"metadata\.name expected"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: ..}}", r"f.yaml, document 1: metadata\.name"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: a/pods}}", r"metadata\.namespace"),
        ("", "no Kubernetes object"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {kubevnfm.io/ready-when: what}}}", "ready-when"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}",
            "defined in both",
        ),
        ("!!python/object/apply:os.system [ls]", "invalid YAML"),
    ],
)
def test_an_invalid_manifest_is_rejected_with_its_position(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_manifests([("f.yaml", text)])


def test_the_kinds_of_the_sets_own_definitions_are_known(make: Make) -> None:
    definition = make(
        "CustomResourceDefinition",
        "things.acme.example",
        api_version="apiextensions.k8s.io/v1",
        spec={
            "group": "acme.example",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "subresources": {"status": {}}}, {"name": "v1alpha1"}],
        },
    )
    kinds = defined_kinds([one(definition)])
    thing = kinds["acme.example/v1", "Thing"]
    assert (thing.plural, thing.namespaced, thing.has_status) == ("things", True, True)
    assert not kinds["acme.example/v1alpha1", "Thing"].has_status


@pytest.mark.parametrize(
    ("own", "asked", "multi", "wanted"),
    [
        ([None, None], None, False, "default"),
        (["a", "a"], None, False, "a"),
        (["a", "b"], "c", False, "c"),
        (["a", "b", None], None, True, "default"),
        (["a", None], "c", True, "c"),
        (["default", None], None, False, "default"),
    ],
)
def test_the_namespace_is_the_requests_or_the_manifests_own(
    make: Make, own: list[str | None], asked: str | None, *, multi: bool, wanted: str
) -> None:
    manifests = [one(make("ConfigMap", f"c{n}", namespace=name)) for n, name in enumerate(own)]
    assert namespace_of_all(manifests, asked=asked, multi=multi) == wanted


@pytest.mark.parametrize("own", [["a", "b"], ["a", None]])
def test_several_namespaces_need_to_be_allowed(make: Make, own: list[str | None]) -> None:
    """CR-006."""
    manifests = [one(make("ConfigMap", f"c{n}", namespace=name)) for n, name in enumerate(own)]
    with pytest.raises(InvalidInput, match="multi_namespace"):
        namespace_of_all(manifests, asked=None, multi=False)


def test_objects_and_pod_templates_are_labelled_but_selectors_and_specs_are_not_changed(
    make: Make, workload: Make
) -> None:
    deployment = workload(replicas=1)
    body = prepared(one(deployment), namespace="n", vnf_instance_id="i1", operation_id="op", replicas=3)
    assert body["metadata"]["namespace"] == "n"
    assert body["metadata"]["labels"] == {
        "kubevnfm.io/vnf-instance-id": "i1",
        "tacker_vnf_instance_id": "i1",
        "app.kubernetes.io/managed-by": "kubevnfm",
    }
    assert body["metadata"]["annotations"] == {"kubevnfm.io/operation-id": "op"}
    assert body["spec"]["template"]["metadata"]["labels"] == {
        "app": "web",
        "kubevnfm.io/vnf-instance-id": "i1",
        "tacker_vnf_instance_id": "i1",
    }
    assert body["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert body["spec"]["replicas"] == 3
    assert deployment["spec"]["replicas"] == 1
    custom = make("Thing", "t", api_version="acme.example/v1", spec={"template": {"metadata": {}}}, status={"x": 1})
    dressed_custom = prepared(one(custom), namespace="", vnf_instance_id="i1", operation_id="op")
    assert dressed_custom["spec"] == {"template": {"metadata": {}}}
    assert "status" not in dressed_custom
    assert "namespace" not in dressed_custom["metadata"]


def test_what_only_the_api_server_writes_is_left_out_of_an_exported_manifest(make: Make) -> None:
    """CR-018: also of a kind that is not stored; each of them alone would make the API server refuse the object."""
    exported = {
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0, "deletionTimestamp": None,
        "generation": 3, "managedFields": [{"manager": "kubectl"}], "resourceVersion": "4711",
        "selfLink": "/api/v1/x", "uid": "11111111-2222-3333-4444-555555555555",
    }  # fmt: skip
    body = {**make("ConfigMap", "c", data={"a": "b"}, metadata=exported), "status": {"phase": "Active"}}
    manifest = one(body)
    written = prepared(manifest, namespace="n", vnf_instance_id="i", operation_id="o")
    assert written.keys() == {"apiVersion", "kind", "metadata", "data"}
    assert written["metadata"].keys() == {"name", "namespace", "labels", "annotations"}
    assert placed(manifest, namespace="n")["metadata"] == {"name": "c", "namespace": "n"}


def test_the_pods_of_a_cron_job_are_labelled(make: Make) -> None:
    """CR-018."""
    job = make("CronJob", "c", api_version="batch/v1", spec={"jobTemplate": {"spec": {"template": {"spec": {}}}}})
    body = prepared(one(job), namespace="n", vnf_instance_id="i1", operation_id="op")
    labels = body["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert labels["kubevnfm.io/vnf-instance-id"] == "i1"


def test_the_machines_of_kubevirt_are_labelled(make: Make) -> None:
    """MC-107: the VirtualMachineInstance, which has node and addresses, gets the labels of the template."""
    spec = {"template": {"metadata": {"labels": {"app": "fw"}}, "spec": {"domain": {}}}}
    machine = make("VirtualMachine", "fw", api_version="kubevirt.io/v1", spec=spec)
    body = prepared(one(machine), namespace="n", vnf_instance_id="i1", operation_id="op")
    labels = {"app": "fw", "kubevnfm.io/vnf-instance-id": "i1", "tacker_vnf_instance_id": "i1"}
    assert body["spec"]["template"] == {"metadata": {"labels": labels}, "spec": {"domain": {}}}


def test_a_vdu_is_implemented_by_the_workload_of_its_name(make: Make, workload: Make) -> None:
    web, agent = one(workload(name="web")), one(workload("DaemonSet", "agent"))
    vdus = [VduTarget(vdu_id="V1", name="web", replicas=3), VduTarget(vdu_id="V2", name="agent", replicas=3)]
    found = workload_of_vdus([one(make("Service", "web")), web, agent], vdus)
    assert {each.name: vdu.vdu_id for each, vdu in found.items()} == {"web": "V1", "agent": "V2"}
    assert replicas_of(web, found[web]) == 3
    assert replicas_of(agent, found[agent]) is None
    assert replicas_of(web, None) is None


def test_a_custom_kind_with_the_name_of_a_workload_is_none(make: Make, workload: Make) -> None:
    """CR-030: it would take the place of the real one, and its replicas would be changed."""
    custom = one({**make("Deployment", "web", spec={"replicas": 7}), "apiVersion": "acme.example/v1"})
    real, vdu = one(workload(name="web")), VduTarget(vdu_id="VDU1", name="web", replicas=2)
    assert workload_of_vdus([custom, real], [vdu]) == {real: vdu}
    assert replicas_of(custom, vdu) is None
    assert replicas_of(real, vdu) == 2
    mapped = VduTarget(vdu_id="VDU1", name="web", kind="Deployment")
    with pytest.raises(InvalidInput, match="Deployment web expected in the files, found no workload"):
        workload_of_vdus([custom], [mapped])


def test_a_vdu_that_no_named_file_implements_has_no_workload(workload: Make) -> None:
    web, absent = one(workload(name="web")), VduTarget(vdu_id="V9", name="db")
    found = workload_of_vdus([web], [absent, VduTarget(vdu_id="V1", name="web")])
    assert [vdu.vdu_id for vdu in found.values()] == ["V1"]
    assert vdus_without_workload(found.values(), [absent]) == [absent]


def test_the_request_may_map_a_vdu_to_a_workload_of_another_name(workload: Make) -> None:
    """CR-030."""
    web, agent = one(workload(name="web")), one(workload("DaemonSet", "web"))
    mapped = VduTarget(vdu_id="V1", name="web", kind="DaemonSet")
    assert workload_of_vdus([web, agent], [mapped]) == {agent: mapped}
    with pytest.raises(InvalidInput, match="DaemonSet web expected in the files, found Deployment web") as caught:
        workload_of_vdus([web], [mapped])
    assert caught.value.field == "additionalParams.vdu_mapping.V1"


def test_the_list_of_one_kind_is_taken_apart() -> None:
    """CR-011: as kubectl does; its items have neither kind nor version of their own."""
    text = """
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: a}
- metadata: {name: b}
"""
    found = read_manifests([("f.yaml", text)])
    assert [(each.api_version, each.kind, each.name) for each in found] == [
        ("v1", "ConfigMap", "a"),
        ("v1", "ConfigMap", "b"),
    ]


def test_in_a_chart_the_whole_name_goes_before_a_part_of_it(workload: Make) -> None:
    """CR-030: `db-replica` is the workload of that VDU, and not of `db`, whatever the order of the files."""
    vdus = [VduTarget(vdu_id=name, name=name, is_in_chart=True) for name in ("db", "db-replica", "db-replica-1")]
    names = ["db-replica", "db-replica-1", "db-vnf1"]
    found = workload_of_vdus([one(workload(name=name)) for name in names], vdus)
    assert {vdu.vdu_id: each.name for each, vdu in found.items()} == {
        "db": "db-vnf1", "db-replica": "db-replica", "db-replica-1": "db-replica-1",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="one of Deployment db-a, Deployment db-b expected") as caught:
        workload_of_vdus([one(workload(name=name)) for name in ("db-a", "db-b")], vdus[:1])
    assert caught.value.field == "additionalParams.vdu_mapping.db"


@pytest.mark.parametrize(
    ("claim", "is_asked_for"),
    [
        ("data-db-0", False), ("data-db-5", True), ("data-db-2147483651", True), ("data-db-2147483652", False),
        ("data-db-05", False), ("data-db-²", False), ("data-db", False), ("data-db-x-5", False), ("logs-db-5", False),
        (f"data-db-{'9' * 5000}", False),
    ],
)  # fmt: skip
def test_the_claims_of_a_new_set_are_not_counted_one_by_one(make: Make, claim: str, *, is_asked_for: bool) -> None:
    """The number of replicas is the package's: a list of the names would take all memory."""
    body = make("StatefulSet", "db", spec={"replicas": 2**31 - 1, "ordinals": {"start": 5}})
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    resource = Resource("apps/v1", "StatefulSet", "statefulsets", namespaced=True)
    wanted = Wanted(ObjectKey("apps/v1", "StatefulSet", "default", "db"), body, resource, "f.yaml", "")
    assert asks_for(wanted, claim) is is_asked_for


@pytest.mark.parametrize(
    ("kind", "part", "says"),
    [
        ("v1/ConfigMap", {"metadata": {"name": "a", "labels": ["a"]}}, "metadata.labels: an object expected"),
        ("v1/ConfigMap", {"metadata": {"name": "a", "annotations": "a"}}, "metadata.annotations: an object expected"),
        ("v1/ConfigMap", {"metadata": {"name": "a", "labels": {"a": 1}}}, "metadata.labels.a: a text expected"),
        ("apps/v1/Deployment", {"spec": {"template": []}}, "spec.template: an object expected"),
        ("apps/v1/Deployment", {"spec": {"template": {"metadata": 5}}}, "spec.template.metadata: an object expected"),
        ("batch/v1/CronJob", {"spec": {"jobTemplate": {"spec": 1}}}, "spec.jobTemplate.spec: an object expected"),
        ("v1/Pod", {"spec": "x"}, "spec: an object expected"),
        ("v1/Service", {"spec": {"selector": ["a"]}}, "spec.selector: an object expected"),
        ("apps/v1/StatefulSet", {"spec": {"volumeClaimTemplates": 5}}, "spec.volumeClaimTemplates: a list expected"),
        (
            "apps/v1/StatefulSet",
            {"spec": {"volumeClaimTemplates": [{"metadata": {"labels": "x"}}]}},
            r"spec.volumeClaimTemplates\[0\].metadata.labels: an object expected",
        ),
        (
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            {"spec": {"versions": ["v1"]}},
            r"spec.versions\[0\]: an object expected",
        ),
        (
            "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
            {"webhooks": [{"clientConfig": {"service": "s"}}]},
            r"webhooks\[0\].clientConfig.service: an object expected",
        ),
        (
            "cluster.x-k8s.io/v1beta1/Cluster",
            {"spec": {"topology": {"workers": {"machineDeployments": [{"name": []}]}}}},
            r"machineDeployments\[0\].name: a text expected",
        ),
        ("cluster.x-k8s.io/v1beta1/MachineDeployment", {"spec": "x"}, "spec: an object expected"),
    ],
)
def test_a_form_that_no_api_server_takes_is_refused_by_its_field(kind: str, part: dict[str, Any], says: str) -> None:
    api_version, _, name = kind.rpartition("/")
    body = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}, **part}
    with pytest.raises(InvalidInput, match=f"f.yaml, document 1: .*{says}"):
        read_manifests([("f.yaml", yaml.safe_dump(body))])


@pytest.mark.parametrize("value", ["9" * 5000, "²", "-1", ""])
def test_an_annotation_of_the_autoscaler_that_is_no_number_is_none(value: str) -> None:
    assert Limits.from_annotations({"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": value}) == Limits()


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            'Job.batch "j" is invalid: spec.template: Invalid value: {"labels":{"app":"x"},"Spec":{"Volumes":null}}: field is immutable',
            "spec.template",
        ),
        (
            (
                "StatefulSet.apps \"s\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                "'template' and 'minReadySeconds' are forbidden"
            ),
            "spec",
        ),
        (
            'RoleBinding.rbac.authorization.k8s.io "rb" is invalid: roleRef: Invalid value: {"Kind":"Role","Name":"r2"}: cannot change roleRef',
            "roleRef",
        ),
        (
            (
                'PersistentVolumeClaim "pvc" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests\n'
                '@@ -10,7 +10,7 @@\n- "StorageClassName": "no1",'
            ),
            "spec",
        ),
        (
            (
                'Service "s" is invalid: [spec.clusterIPs[0]: Invalid value: ["10.0.0.7"]: may not change once set, '
                'spec.type: Invalid value: "x": field is immutable]'
            ),
            "spec.clusterIPs[0], spec.type",
        ),
        ('PriorityClass.scheduling.k8s.io "p" is invalid: value: Forbidden: may not be changed in an update.', "value"),
        (
            'StorageClass.storage.k8s.io "s" is invalid: provisioner: Forbidden: updates to provisioner are forbidden.',
            "provisioner",
        ),
        (
            'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.tolerations`',
            "spec",
        ),
        ('Thing.acme.example "t" is invalid: <nil>: Invalid value: "object": the name is immutable', "a field of it"),
        ('ConfigMap "c" is invalid: data: Too long: may not be more than 1048576 bytes', ""),
    ],
)
def test_the_fields_that_cannot_be_changed_are_read_from_a_refusal(message: str, fields: str) -> None:
    """CR-035: as Kubernetes 1.34 writes them; the rest of the message is Go's form of the object."""
    assert unchangeable_fields(ObjectRefused("x", message, http_status=422)) == fields
    assert unchangeable_fields(ObjectRefused("x", message, http_status=403)) == ""


def test_what_takes_data_machines_or_others_with_it_is_never_replaced(make: Make) -> None:
    """CR-035: whatever the request and the manifest allow, and also when a change is taken back."""
    labels = {"labels": {"kubevnfm.io/vnf-instance-id": "i"}}
    made = {"annotations": {"kubevnfm.io/operation-id": "op", "kubevnfm.io/replace": "true"}}

    def obstacle(kind: str, version: str, spec: Any = None, *, is_undo: bool = False) -> str:
        body = make(kind, "a", api_version=version, metadata=made)
        there = make(
            kind,
            "a",
            api_version=version,
            spec=spec or {},
            metadata={**labels, "annotations": {"kubevnfm.io/operation-id": "op"}},
        )
        resource = Resource(version, kind, kind.lower(), namespaced=True)
        wanted = Wanted(ObjectKey(version, kind, "n", "a"), body, resource, "f", "d")
        return Replacing("i", (kind,), is_undo).obstacle(wanted, there)

    for kind, version, what in (
        ("Namespace", "v1", "all that is in it"), ("CustomResourceDefinition", "apiextensions.k8s.io/v1", "all resources of its kind"),
        ("PersistentVolume", "v1", "its data"), ("PersistentVolumeClaim", "v1", "its data"),
        ("DataVolume", "cdi.kubevirt.io/v1beta1", "its data"), ("Cluster", "cluster.x-k8s.io/v1beta1", "its machines"),
    ):  # fmt: skip
        assert obstacle(kind, version, is_undo=True) == f"{what} would go with it; give the new one another name"
    machine = ("VirtualMachine", "kubevirt.io/v1")
    assert obstacle(*machine, {"dataVolumeTemplates": [{}]}).startswith("its data would go")
    assert not obstacle(*machine)
    plain = {"metadata": {"name": "a", "annotations": {"kubevnfm.io/operation-id": "op"}}}
    replacing = Replacing("i", is_undo=True)
    wanted = Wanted(
        ObjectKey("v1", "Secret", "n", "a"), plain, Resource("v1", "Secret", "secrets", namespaced=True), "f", "d"
    )
    # Only what the same change has made.
    assert not replacing.obstacle(wanted, {"metadata": {**labels, **plain["metadata"]}})
    assert replacing.obstacle(wanted, {"metadata": {**labels, "annotations": {"kubevnfm.io/operation-id": "other"}}})


async def test_what_another_party_has_put_in_the_place_is_not_deleted(make: Make) -> None:
    """CR-035: the object that was examined before has another uid."""
    key = ObjectKey("apps/v1", "Deployment", "n", "web")
    wanted = Wanted(
        key, make("Deployment", "web"), Resource("apps/v1", "Deployment", "deployments", namespaced=True), "f", "d"
    )
    there: Any = {"metadata": {"uid": "theirs"}}

    async def get(*_: Any) -> Any:
        return there

    wait: Any = SimpleNamespace(cluster=SimpleNamespace(get=get), vnf_instance_id="i")
    with pytest.raises(ForeignObjects, match="Deployment n/web"):
        await make_room(wait, cast("Any", None), wanted, "ours")
    there["metadata"]["labels"] = {"kubevnfm.io/vnf-instance-id": "i"}
    assert await make_room(wait, cast("Any", None), wanted, "ours") == (wanted.body, there)


async def test_the_number_of_an_autoscaler_outlives_a_replacement(make: Make) -> None:
    """CR-035, MC-114: without it the new object begins with one pod."""
    key = ObjectKey("apps/v1", "Deployment", "n", "web")
    body = make("Deployment", "web", spec={"selector": {}})
    wanted = Wanted(
        key,
        body,
        Resource("apps/v1", "Deployment", "deployments", namespaced=True),
        "f",
        "d",
        autoscaled_at=("spec", "replicas"),
    )
    found = [{"metadata": {"uid": "u"}, "spec": {"replicas": 7}}, None]

    async def get(*_: Any) -> Any:
        return found.pop(0)

    async def ignored(*_: Any, **__: Any) -> None:
        return None

    wait: Any = SimpleNamespace(
        cluster=SimpleNamespace(get=get, delete=ignored), vnf_instance_id="i", left_s=lambda: 9.0
    )
    sent, there = await make_room(wait, cast("Any", SimpleNamespace(on=ignored)), wanted, "u")
    assert there is None
    assert sent["spec"] == {"selector": {}, "replicas": 7}
