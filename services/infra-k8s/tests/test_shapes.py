"""Objects with wrong types: refused when they arrive, or harmless to the code that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from kubevnfm_infra_k8s.adapters.shapes import Malformed, checked, named, version_of
from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_version
from kubevnfm_infra_k8s.domain.changing.healing import _wanted
from kubevnfm_infra_k8s.domain.changing.scaling import _replicas
from kubevnfm_infra_k8s.domain.changing.updating import _configs_of, _content, _pod_spec
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted, annotations_of, labels_of, uid_of
from kubevnfm_infra_k8s.domain.reading.claims import with_own_marks
from kubevnfm_infra_k8s.domain.reading.instance_facts import node_ports_of
from kubevnfm_infra_k8s.domain.reading.readiness import judge, last_condition
from kubevnfm_infra_k8s.domain.reading.starting_pods import standing_of_pod
from kubevnfm_infra_k8s.domain.removing.propagation import propagation_of
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.watching.stuck_pods import last_end_of

SETS = Resource("apps/v1", "StatefulSet", "statefulsets", namespaced=True)
OURS = Wanted(
    ObjectKey("apps/v1", "StatefulSet", "default", "a"),
    {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}},
    SETS,
    "sets.yaml",
    "",
)
SEEN = Observation(now=datetime(2026, 1, 1, tzinfo=UTC))
METADATA = {
    "name": "a",
    "namespace": "default",
    "uid": "1",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"app": "a"},
    "annotations": {"note": "b"},
    "ownerReferences": [{"controller": True, "uid": "2"}],
    "finalizers": ["x"],
    "managedFields": [{"manager": "kubevnfm", "operation": "Apply", "apiVersion": "v1"}],
}
POD_SPEC = {
    "containers": [
        {
            "name": "c",
            "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m"}}}],
            "envFrom": [{"secretRef": {"name": "s"}}],
        }
    ],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "nodeName": "worker1",
    "readinessGates": [{"conditionType": "open"}],
    "volumes": [{"configMap": {"name": "m"}}, {"projected": {"sources": [{"secret": {"name": "s"}}]}}],
}
CONDITIONS = [{"type": "Ready", "status": "False", "reason": "r", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
POD_STATUS = {
    "phase": "Pending",
    "conditions": CONDITIONS,
    "containerStatuses": [
        {"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}}
    ],
    "podIPs": [{"ip": "10.0.0.1"}],
}
SET_SPEC = {"replicas": 2, "template": {"metadata": {"annotations": {"a": "b"}}, "spec": POD_SPEC}}
SET_STATUS = {"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}
GATED = {**POD_SPEC, "schedulingGates": [{"name": "quota"}]}
TEMPLATES = {"volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"a": "b"}}}]}
STRATEGY = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": POD_SPEC, "status": POD_STATUS},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": METADATA, "spec": SET_SPEC | STRATEGY | TEMPLATES, "status": SET_STATUS},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": METADATA, "spec": {}, "status": {"desiredNumberScheduled": 2}},
    {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": METADATA, "spec": {"replicas": 2}, "status": {"replicas": 1}},
    {"apiVersion": "v1", "kind": "Service", "metadata": METADATA, "spec": {"type": "NodePort", "ports": [{"nodePort": 30001}]}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": GATED, "status": {}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": METADATA, "spec": SET_SPEC, "status": SET_STATUS},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": METADATA, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": METADATA, "spec": {"storageClassName": "fast"}},
    {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": METADATA, "spec": {}, "status": {"conditions": CONDITIONS}},
]  # fmt: skip


def variants(node: Any) -> Iterator[Any]:
    """Yield copies of the object in each of which one member has another type."""
    yield from (7, -1.5, "x", True, None, [], {}, [7], ["x"], [None], [{}], {"x": 7}, {"x": [{}]})
    if isinstance(node, dict):
        for name, value in node.items():
            yield from ({**node, name: other} for other in variants(value))
    if isinstance(node, list):
        for index, value in enumerate(node):
            yield from ([*node[:index], other, *node[index + 1 :]] for other in variants(value))


def read(body: Any) -> None:
    """Read the object as the handlers do."""
    found = named(body)
    judge(found, SEEN)
    last_condition(found)
    labels_of(found).get("app")
    annotations_of(found).get("note")
    uid_of(found)
    version_of(found)
    _content(found)
    key = ObjectKey(str(found.get("apiVersion")), str(found.get("kind")), "default", "a")
    applied_version(found)
    propagation_of(key, found)
    if key.group_kind == ("", "Pod"):
        standing_of_pod(found)
        last_end_of(found)
    if key.group_kind == ("", "Service"):
        node_ports_of(found)
    if key.group_kind == ("autoscaling", "Scale"):
        _replicas(found, "spec")
        _replicas(found, "status")
    if key.group == "apps":
        _wanted(found)
    if key.group_kind == ("apps", "StatefulSet"):
        with_own_marks(OURS, found)
    list(_configs_of(_pod_spec(key, found)))


def refusal(body: Any) -> str | None:
    """Return why the object is refused when it arrives, None if it is read."""
    try:
        read(body)
    except Malformed as error:
        return str(error)
    return None


@pytest.mark.parametrize("body", OBJECTS, ids=lambda body: body["kind"])
def test_an_object_with_a_wrong_type_is_refused_or_read(body: dict[str, Any]) -> None:
    read(body)
    reasons = [reason for other in variants(body) if (reason := refusal(other)) is not None]
    assert len(reasons) > 20
    assert all(" expected" in reason for reason in reasons)
    # Ages are reckoned from them in UTC, in which these moments are none.
    for moment in ("0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"):
        for name in ("creationTimestamp", "deletionTimestamp"):
            refused = refusal({**body, "metadata": {**METADATA, name: moment}})
            assert refused is not None
            assert refused.endswith("a time expected")


def test_what_the_api_defines_is_accepted() -> None:
    assert checked({"kind": "Status", "status": "Success"})["status"] == "Success"
    assert checked({"apiVersion": "example.com/v1", "kind": "Thing", "spec": [1], "status": "fine"})
    assert named({"metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Pod"})["kind"] == "Pod"
