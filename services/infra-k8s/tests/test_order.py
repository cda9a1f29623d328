"""The order of applying and deleting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.order import Wave, deletion_stages, rank, waves

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
    assert names(waves(objects)) == [["n"], ["crd"], ["cr"], ["s1"], ["c1", "c2"], ["k1"]]


def test_a_webhook_waits_for_the_deployment_behind_its_service(make: Make, workload: Make) -> None:
    """CR-013."""
    hook = make(
        "ValidatingWebhookConfiguration",
        "hook",
        api_version="admissionregistration.k8s.io/v1",
        webhooks=[{"clientConfig": {"service": {"namespace": "n", "name": "svc"}}}],
    )
    deployment = workload(name="ctrl")
    deployment["metadata"]["namespace"] = "n"
    service = make("Service", "svc", namespace="n", spec={"selector": {"app": "ctrl"}})
    planned = waves([wanted(each) for each in (hook, service, deployment, make("ConfigMap", "last", namespace="n"))])
    assert names(planned) == [["svc"], ["ctrl"], ["hook"], ["last"]]
    assert {str(key) for key in planned[2].after_ready} == {"Deployment n/ctrl"}


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
