"""Which autoscaler owns the number of replicas of which object, as tables (multicloud.md MC-114)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kubevnfm_infra_k8s.domain.autoscalers import Autoscalers, Limits, autoscaler_of, target_of
from kubevnfm_infra_k8s.domain.changing.taking_back import freed
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.ports import Cluster

DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "default", "web")
HPA = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "default", "a")
OLD_HPA = ObjectKey("autoscaling/v1", "HorizontalPodAutoscaler", "default", "a")
SCALED = ObjectKey("keda.sh/v1alpha1", "ScaledObject", "default", "a")
MACHINES = ObjectKey("cluster.x-k8s.io/v1beta2", "MachinePool", "default", "md-0")
MANAGED_BY = "cluster.x-k8s.io/replicas-managed-by"
LIMIT = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"


def aiming(api_version: Any = "apps/v1", kind: Any = "Deployment", name: Any = "web") -> dict[str, Any]:
    reference = {"apiVersion": api_version, "kind": kind, "name": name}
    return {"scaleTargetRef": {key: each for key, each in reference.items() if each is not None}}


TARGETS: list[tuple[ObjectKey, Any, tuple[str, str, str, str] | None]] = [
    (HPA, aiming(), DEPLOYMENT.identity),
    (OLD_HPA, aiming("apps/v1beta2"), DEPLOYMENT.identity),
    (HPA, aiming("example.org/v1", "Pool"), ("example.org", "Pool", "default", "web")),
    # Without a version it is a kind of the core, and there is no Deployment among those.
    (HPA, aiming(None), ("", "Deployment", "default", "web")),
    (SCALED, aiming(None, None), DEPLOYMENT.identity),
    (SCALED, aiming("apps/v1", "StatefulSet"), ("apps", "StatefulSet", "default", "web")),
    (HPA, aiming(name=None), None),
    (HPA, aiming(name=["x"]), None),
    (HPA, {"scaleTargetRef": "web"}, None),
    (HPA, None, None),
    (DEPLOYMENT, aiming(), None),
]


@pytest.mark.parametrize(("key", "spec", "target"), TARGETS)
def test_an_autoscaler_names_its_target_by_group_kind_and_name(
    key: ObjectKey, spec: Any, target: tuple[str, str, str, str] | None
) -> None:
    assert target_of(key, {"spec": spec}) == target


@pytest.mark.parametrize(
    ("key", "spec", "limits"),
    [
        (HPA, {"minReplicas": 2, "maxReplicas": 9}, "2 to 9"),
        (HPA, {"maxReplicas": 9}, "1 to 9"),
        (HPA, {"maxReplicas": "nine"}, "at least 1"),
        (SCALED, {}, "0 to 100"),
        (SCALED, {"minReplicaCount": 1, "maxReplicaCount": True}, "1 to 100"),
    ],
)
def test_an_autoscaler_is_named_with_its_limits(key: ObjectKey, spec: Any, limits: str) -> None:
    found = autoscaler_of(key, {"spec": spec})
    assert (found.name, found.limits.in_words, found.keeps_given_numbers) == (f"{key.kind} default/a", limits, False)


def machines(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {"annotations": {name.replace("__", "."): each for name, each in annotations.items()}},
    }


def test_annotations_of_cluster_api_own_the_number_of_machines_alone() -> None:
    """CR-091: one limit is no owner, and a Deployment has no such annotations."""
    both = {LIMIT.format("min"): "1", LIMIT.format("max"): "5"}
    owner = Autoscalers().owner_of(MACHINES, machines(**both))
    assert owner is not None
    assert (owner.keeps_given_numbers, owner.limits) == (True, Limits(1, 5))
    assert Autoscalers().owner_of(MACHINES, machines(**{LIMIT.format("min"): "1"})) is None
    assert Autoscalers().owner_of(DEPLOYMENT, {**machines(**both), "kind": "Deployment"}) is None
    outside = Autoscalers().owner_of(MACHINES, machines(**{MANAGED_BY: "external-autoscaler"}))
    assert outside is not None
    assert not outside.keeps_given_numbers
    assert Autoscalers().owner_of(MACHINES, machines(**{MANAGED_BY: "false"})) is None


def test_a_trace_is_proof_only_where_autoscalers_cannot_be_read() -> None:
    """An entry of managedFields stays when its autoscaler has gone; one of a person is none."""

    def scaled_by(manager: str) -> dict[str, Any]:
        entry = {
            "manager": manager,
            "operation": "Update",
            "subresource": "scale",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }
        return {"metadata": {"managedFields": [entry, "x", None]}}

    unread = Autoscalers(unread=frozenset({"default"}))
    for manager in ("kube-controller-manager", "cluster-autoscaler", "keda"):
        assert unread.owner_of(DEPLOYMENT, {}, scaled_by(manager)) is not None
        assert Autoscalers().owner_of(DEPLOYMENT, {}, scaled_by(manager)) is None
    assert unread.owner_of(DEPLOYMENT, {}, scaled_by("kubectl")) is None
    assert unread.owner_of(DEPLOYMENT, {}, {"metadata": {"managedFields": "x"}}) is None
    assert unread.owner_of(DEPLOYMENT, {}) is None


class WithoutOwners:
    """A cluster whose API server records no owners of fields: it has no server-side apply."""

    async def get_metadata(self, _: Resource, key: ObjectKey) -> dict[str, Any]:
        return {"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name, "uid": "u"}}


async def test_without_a_record_of_owners_no_number_is_taken_back() -> None:
    """MC-114, CR-015: else a change of package would apply the object again and again until its time limit."""
    resource = Resource("apps/v1", "Deployment", "deployments", namespaced=True, subresources=frozenset({"scale"}))
    wanted = Wanted(DEPLOYMENT, {"spec": {"replicas": 2}}, resource, "f.yaml", "digest")
    assert resource.is_scalable
    assert await freed(cast("Cluster", WithoutOwners()), [wanted]) == frozenset()
