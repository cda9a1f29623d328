"""Manifests of which any part has another form: they are refused by name, or planned, judged and ordered as others are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final, cast

import pytest
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.objects import ObjectsOrder, VduTarget
from kubevnfm_infra_k8s.domain.changing.dry_run import webhooks_of
from kubevnfm_infra_k8s.domain.charts import templates_of
from kubevnfm_infra_k8s.domain.objects import Resource
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Rules, findings, namespaces_of
from kubevnfm_infra_k8s.domain.planning.order import waves
from kubevnfm_infra_k8s.domain.planning.plan import plan
from kubevnfm_infra_k8s.domain.planning.pod_security import Level
from kubevnfm_infra_k8s.domain.planning.policy_report import described
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.manifests import read_charts
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_kit.errors import VnfmError

_META: Final = {"name": "web", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"a": "b"}}
_POD: Final = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {
        "securityContext": {
            "seccompProfile": {"type": "x"},
            "sysctls": [{"name": "a"}],
            "seLinuxOptions": {"type": "a"},
        },
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        "containers": [{"name": "c", "ports": [{"hostPort": 1}], "securityContext": {"capabilities": {"add": ["X"]}}}],
    },
}
_CLIENT: Final = {"caBundle": "Cg==", "service": {"name": "s", "namespace": "ns"}}
_SIZE: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
_PART: Final = {"name": "web", "replicas": 1, "metadata": {"annotations": {_SIZE: "1"}}}
_VERSION: Final = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
_CLAIM: Final = {"metadata": {"name": "data", "labels": {"a": "b"}, "annotations": {"a": "b"}}, "spec": {}}
_RULE: Final = {"verbs": ["*"], "resources": ["*"], "apiGroups": ["*"], "resourceNames": ["x"]}
OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "apps/v1/Deployment": {"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": _POD}},
    "apps/v1/StatefulSet": {"spec": {"replicas": 1, "template": _POD, "volumeClaimTemplates": [_CLAIM]}},
    "batch/v1/CronJob": {"spec": {"jobTemplate": {"spec": {"template": _POD}}}},
    "v1/Pod": _POD,
    "v1/Service": {"spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"nodePort": 1}]}},
    "v1/Secret": {"type": "Opaque", "data": {"a": "YQ=="}, "stringData": {"clouds.yaml": "x"}},
    "v1/Namespace": {},
    "v1/PersistentVolume": {"spec": {"hostPath": {"path": "/"}, "claimRef": {"name": "a", "namespace": "b"}}},
    "v1/List": {"items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": _META}]},
    "rbac.authorization.k8s.io/v1/ClusterRole": {"rules": [_RULE], "aggregationRule": {"a": [{}]}},
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}},
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": {
        "webhooks": [{"name": "n", "clientConfig": _CLIENT, "rules": [{"apiGroups": ["*"], "resources": ["pods"]}]}]
    },
    "apiextensions.k8s.io/v1/CustomResourceDefinition": {
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"kind": "Foo", "plural": "foos"},
            "versions": [_VERSION],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": _CLIENT}},
        }
    },
    "cluster.x-k8s.io/v1beta1/Cluster": {
        "spec": {"topology": {"controlPlane": {"replicas": 1}, "workers": {"machineDeployments": [_PART]}}}
    },
    "cluster.x-k8s.io/v1beta1/MachineDeployment": {"spec": {"replicas": 1}},
}
OTHER_FORMS: Final[tuple[Any, ...]] = (None, [], "x", 5, [None], ["x"], {"a": [1]}, "9" * 5000)
_CLUSTER_SCOPED: Final = ("Namespace", "PersistentVolume", "CustomResourceDefinition")


class Serving:
    """A cluster that serves every kind, and has no object."""

    endpoint = "https://192.0.2.1:6443"

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        namespaced = kind not in _CLUSTER_SCOPED and not kind.startswith(("ClusterRole", "Mutating"))
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced)

    async def get(self, *_: object) -> None:
        return None


ORDER = ObjectsOrder(
    package=PackageRef(package_id="p", vnfd_id="d"),
    vim=VimConnection(),
    def_files=(),
    multi_namespace=True,
    vdus=(VduTarget(vdu_id="V", name="web", replicas=2),),
)


def with_other_forms(node: Any) -> Iterator[Any]:
    """Yield the tree with each of its parts in each other form."""
    yield from OTHER_FORMS
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in list(parts):
        for changed in with_other_forms(part):
            whole = deepcopy(node)
            whole[name] = changed
            yield whole


async def _used(text: str) -> None:
    manifests = read_charts([("release", templates_of("chart", text))])
    planned = await plan(ORDER, manifests, cast("Cluster", Serving()), vnf_instance_id="i", operation_id="op")
    for level in Level:
        rules = Rules(pod_security=level)
        described(findings([*planned.objects, *planned.hook_objects], rules, {}))
        namespaces_of(planned.objects, rules)
    Release("i", Serving.endpoint).planned(planned.objects, namespace="ns")
    waves(planned.objects)
    webhooks_of(planned.objects)


@pytest.mark.parametrize("kind", OBJECTS)
async def test_a_part_of_another_form_is_refused_by_name_or_does_no_harm(kind: str) -> None:
    api_version, _, name = kind.rpartition("/")
    whole = {"metadata": _META, **OBJECTS[kind]}
    if "metadata" in OBJECTS[kind]:
        whole["metadata"] = {**_META, **OBJECTS[kind]["metadata"]}
    await _used(json.dumps({"apiVersion": api_version, "kind": name, **whole}))
    for changed in with_other_forms(whole):
        document = {"apiVersion": api_version, "kind": name, **changed} if isinstance(changed, dict) else changed
        with suppress(VnfmError):
            await _used(json.dumps(document))
