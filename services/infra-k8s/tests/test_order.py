"""The order of applying and deleting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kubevnfm_csar.artifact_order import OrderedArtifact
from kubevnfm_csar.order_graph import Place
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.planning.order import Wave, deletion_stages, rank, waves
from kubevnfm_infra_k8s.domain.planning.priorities import bring_down_stages, stages

Make = Callable[..., dict[str, Any]]


def wanted(body: dict[str, Any]) -> Wanted:
    namespace = body["metadata"].get("namespace", "")
    key = ObjectKey(body["apiVersion"], body["kind"], namespace, body["metadata"]["name"])
    return Wanted(key, body, Resource(body["apiVersion"], body["kind"], "x", bool(namespace)), "f", "d")


def names(planned: Sequence[Wave]) -> list[list[str]]:
    return [[each.key.name for each in wave.objects] for wave in planned]


def test_namespaces_and_definitions_are_first_and_the_others_as_written(make: Make) -> None:
    objects = [
        wanted(make("Thing", "cr", api_version="acme.example/v1", namespace="n")),
        wanted(make("Service", "s1", namespace="n")),
        wanted(make("ConfigMap", "c1", namespace="n")),
        wanted(make("ConfigMap", "c2", namespace="n")),
        wanted(make("CustomResourceDefinition", "crd", api_version="apiextensions.k8s.io/v1")),
        wanted(make("Secret", "k1", namespace="n")),
        wanted(make("Namespace", "n")),
    ]
    assert names(waves(objects)) == [["n"], ["crd"], ["cr"], ["s1", "c1", "c2", "k1"]]


def test_what_pods_need_is_sent_at_once_but_not_a_token_with_its_account(make: Make, workload: Make) -> None:
    """CR-011: Kubernetes deletes the Secret of an account that it does not know."""
    token = make("Secret", "token", namespace="n", type="kubernetes.io/service-account-token")
    objects = [
        make("ConfigMap", "c", namespace="n"), make("ServiceAccount", "a", namespace="n"), token, workload(name="w"),
        make("Secret", "s", namespace="n"), make("Service", "own", api_version="serving.example/v1", namespace="n"),
    ]  # fmt: skip
    assert names(waves([wanted(each) for each in objects])) == [["c", "a"], ["token"], ["w"], ["s"], ["own"]]


def hook(make: Make, name: str, *, service: str, group: str = "", resources: str = "none") -> dict[str, Any]:
    """A webhook configuration that judges objects of a group."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resources]}
    webhook = {"name": name, "clientConfig": {"service": {"namespace": "n", "name": service}}, "rules": [rule]}
    kind = "ValidatingWebhookConfiguration"
    return make(kind, name, api_version="admissionregistration.k8s.io/v1", webhooks=[webhook])


def controller(make: Make, workload: Make, name: str) -> list[dict[str, Any]]:
    """A Service and the Deployment behind it."""
    deployment = workload(name=name)
    deployment["metadata"]["namespace"] = "n"
    return [make("Service", name, namespace="n", spec={"selector": {"app": name}}), deployment]


def custom(make: Make, name: str, group: str) -> Wanted:
    body = make("Thing", name, api_version=f"{group}/v1", namespace="n")
    key = ObjectKey(body["apiVersion"], "Thing", "n", name)
    return Wanted(key, body, Resource(body["apiVersion"], "Thing", "things", namespaced=True), "f", "d")


def test_a_webhook_waits_for_the_deployment_behind_its_service(make: Make, workload: Make) -> None:
    """CR-013: what it does not judge comes before it, because its pods may need that."""
    objects = [hook(make, "hook", service="ctrl"), *controller(make, workload, "ctrl")]
    planned = waves([*(wanted(each) for each in objects), wanted(make("Secret", "keys", namespace="n"))])
    assert names(planned) == [["ctrl"], ["ctrl"], ["keys"], ["hook"]]
    assert {str(key) for key in planned[3].after_ready} == {"Deployment n/ctrl"}


def test_what_a_webhook_judges_comes_after_it_and_what_its_pods_need_before(make: Make, workload: Make) -> None:
    """CR-013, CR-039: the pods of Cluster API need the Secret of a Certificate, which cert-manager's webhook judges."""
    objects = [
        *(wanted(each) for each in controller(make, workload, "cert-manager")),
        wanted(hook(make, "of-certificates", service="cert-manager", group="certs.example", resources="things")),
        *(wanted(each) for each in controller(make, workload, "capi")),
        custom(make, "cluster", "capi.example"),
        wanted(hook(make, "of-clusters", service="capi", group="capi.example", resources="*")),
        custom(make, "certificate", "certs.example"),
    ]
    planned = waves(objects)
    assert [each for wave in names(planned) for each in wave] == [
        "cert-manager", "cert-manager", "capi", "capi", "of-certificates", "certificate", "of-clusters", "cluster"
    ]  # fmt: skip
    assert [{key.name for key in wave.after_ready} for wave in planned if wave.after_ready] == [
        {"cert-manager"}, {"capi"}
    ]  # fmt: skip


def test_pods_that_a_webhook_changes_come_after_it(make: Make, workload: Make) -> None:
    """CR-013: a rule for pods stands for the workloads that make them, except those behind the webhook itself."""
    changed = workload(name="changed")
    changed["metadata"]["namespace"] = "n"
    objects = [
        *controller(make, workload, "injector"),
        changed,
        hook(make, "hook", service="injector", resources="pods"),
    ]
    assert names(waves([wanted(each) for each in objects])) == [["injector"], ["injector"], ["hook"], ["changed"]]


def test_a_webhook_of_a_service_outside_the_set_does_not_wait(make: Make) -> None:
    hook = make(
        "MutatingWebhookConfiguration",
        "h",
        api_version="admissionregistration.k8s.io/v1",
        webhooks=[{"clientConfig": {"url": "u"}}],
    )
    assert names(waves([wanted(hook), wanted(make("ConfigMap", "c", namespace="n"))])) == [["h"], ["c"]]


def test_the_built_in_order_of_kinds() -> None:
    """CR-011."""
    kinds = [
        ("v1", "Namespace"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("scheduling.k8s.io/v1", "PriorityClass"),
        ("storage.k8s.io/v1", "StorageClass"), ("v1", "PersistentVolume"), ("v1", "ResourceQuota"), ("v1", "LimitRange"),
        ("networking.k8s.io/v1", "NetworkPolicy"), ("v1", "ServiceAccount"), ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "Role"), ("v1", "Secret"), ("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"),
        ("v1", "Service"), ("v1", "Endpoints"), ("apps/v1", "Deployment"), ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"), ("networking.k8s.io/v1", "Ingress"), ("acme.example/v1", "Thing"),
        ("apiregistration.k8s.io/v1", "APIService"), ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ]  # fmt: skip
    ranks = [rank(ObjectKey(api_version, kind, "", "x")) for api_version, kind in kinds]
    assert ranks == sorted(set(ranks))


def test_deletion_is_in_reverse_order_with_custom_resources_first_and_namespaces_last() -> None:
    keys = [
        ObjectKey("v1", "Namespace", "", "n"),
        ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crd"),
        ObjectKey("v1", "PersistentVolume", "", "v"),
        ObjectKey("v1", "ConfigMap", "n", "c"),
        ObjectKey("apps/v1", "Deployment", "n", "d"),
        ObjectKey("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w"),
        ObjectKey("acme.example/v1", "Thing", "n", "t1"),
        ObjectKey("acme.example/v1", "Thing", "n", "t2"),
    ]
    stages = [[key.name for key in stage] for stage in deletion_stages(keys)]
    assert stages == [["t2", "t1"], ["w"], ["d", "c"], ["v"], ["crd"], ["n"]]


def test_stages_after_one_large_file_share_its_objects() -> None:
    """MC-013: a thousand stages, each with a set of its own of ten thousand objects, are more than a service has memory for."""
    place = OrderedArtifact("large.yaml")

    def placed(file: str, document: int, after: frozenset[Place] | None = None) -> Wanted:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{file}-{document}", "namespace": "n"}}
        return replace(wanted(body), file=file, document=document, artifact=place, after=after)

    large = [placed("large.yaml", number) for number in range(1, 51)]
    others = [placed("others.yaml", 1, frozenset({("large.yaml", 0)}))]
    others += [placed("others.yaml", n, frozenset({("large.yaml", 0), ("others.yaml", n - 1)})) for n in range(2, 51)]
    apart = [each for each in stages([*large, *others]) if each.is_apart]
    assert len(apart) == 50
    whole = {id(each) for stage in apart for each in stage.needs if len(each) == 50}
    assert len(whole) == 1
    assert [sum(map(len, each.needs)) for each in apart] == [50] + [51] * 49


def test_objects_go_by_priority_and_what_holds_data_after_all() -> None:
    """MC-014, MC-057: also of a release with some objects from before its package had an order."""
    places = {("ConfigMap", "a"): 1, ("PersistentVolumeClaim", "b"): 7, ("Secret", "c"): 7, ("ConfigMap", "d"): None}
    keys = {ObjectKey("v1", kind, "n", name): place for (kind, name), place in places.items()}
    keys[ObjectKey("v1", "Namespace", "", "n")] = 9
    assert [[key.name for key in stage] for stage in bring_down_stages(keys)] == [["c"], ["a"], ["d"], ["b"], ["n"]]
