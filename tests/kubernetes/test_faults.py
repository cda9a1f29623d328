"""Faults of a real cluster: each ends an operation in FAILED_TEMP with the cause; retry goes on, and rollback undoes.

Skipped unless KUBEVNFM_KUBERNETES_ENDPOINT names a cluster. Docstrings name the requirements of capi.md chapter 3.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from callers.user import FORCEFUL, GRACEFUL, User
from patience import until, until_true
from real.real_cluster import GIVEN, RealCluster
from real.real_cnfs import VIM, onboarded, request_on

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

FILE = "Files/kubernetes/case.yaml"
WAIT_S = 12
"""The time for objects to become ready: short, because these do not."""
ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    """Return a manifest."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def deployment(name: str, namespace: str, *, stage: str | None = None, app: str | None = None) -> dict[str, Any]:
    """Return a manifest. ``stage``: the fate of its pods on the cluster, by annotation."""
    labels = {"app": app or name}
    annotations = {"annotations": {"stage": stage}} if stage else {}
    template = {
        "metadata": {"labels": labels, **annotations},
        "spec": {"containers": [{"name": "c", "image": "nowhere"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


class Case:
    """A CNF of some manifests in a namespace of its own."""

    def __init__(self, user: User, cluster: RealCluster, folder: Path, namespace: str) -> None:
        self.user, self.cluster, self._folder, self.namespace = user, cluster, folder, namespace
        self.cnf_id = ""
        self.cause: dict[str, Any] = {}
        """That of the last failure."""

    async def fail(self, *manifests: Mapping[str, Any], vim: str = VIM, **parameters: Any) -> tuple[str, str]:
        """Instantiate the manifests, which must fail; return the occurrence's id and the error's detail."""
        files = {FILE: yaml.safe_dump_all(manifests)}
        self.cnf_id = await self.user.create(await onboarded(self.user, self._folder, files))
        body = await request_on(self.user, vim, files, wait_timeout=WAIT_S, **parameters)
        return await self.failed(await self.user.start(self.cnf_id, "instantiate", body))

    async def failed(self, operation_id: str) -> tuple[str, str]:
        """Return the id and the error's detail of an operation, which must rest in FAILED_TEMP."""
        view = await self.user.rest(operation_id)
        assert view["state"] == "FAILED_TEMP", view
        self.cause = view["cause"]
        error = (await self.user.occurrence(operation_id))["error"]
        assert error["status"] in {403, 409, 422, 503}, error
        return operation_id, str(error["detail"])

    def is_named(self, code: str, text: str, kind: str, name: str) -> None:
        """Check the cause of the last failure; ``text``: a regular expression for all of it, and ``name`` for the object's."""
        cause = self.cause
        assert cause["code"] == code, cause
        assert re.fullmatch(text, cause["text"]), cause
        assert cause["object"]["kind"] == kind, cause
        assert re.fullmatch(name, cause["object"]["name"]), cause
        assert cause["object"].get("vimId"), cause

    async def retried(self, operation_id: str) -> None:
        """Retry, which must succeed; then terminate."""
        view = await self.user.act(operation_id, "retry")
        assert view["state"] == "COMPLETED", json.dumps(view, indent=1)
        await self.user.do(self.cnf_id, "terminate", GRACEFUL)
        await self.user.delete(self.cnf_id)
        await self.is_empty()

    async def rolled_back(self, operation_id: str) -> None:
        """Roll back; nothing of the CNF may be left then."""
        view = await self.user.act(operation_id, "rollback")
        assert view["state"] == "ROLLED_BACK", json.dumps(view, indent=1)
        await self.user.delete(self.cnf_id)
        await self.is_empty()

    async def is_empty(self) -> None:
        """Return once no object of the instance is left in the namespace."""

        async def empty() -> bool | None:
            left = [place for place in await self._mine() if "/events/" not in place]
            return not left or None

        await until(empty, timeout_s=120, pause_s=0.5)

    async def _mine(self) -> list[str]:
        query = f"?labelSelector=kubevnfm.io/vnf-instance-id={self.cnf_id}"
        found = []
        for kind in (f"/api/v1/namespaces/{self.namespace}/configmaps", f"/api/v1/namespaces/{self.namespace}/pods"):
            found += [kind for _ in (await self.cluster.get(kind + query) or {})["items"]]
        kind = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        return [*found, *(kind for _ in (await self.cluster.get(kind + query) or {})["items"])]


@pytest.fixture
async def case(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[Case]:
    """A CNF in a new namespace."""
    async with cluster.namespace() as namespace:
        yield Case(user, cluster, tmp_path, namespace)


@asynccontextmanager
async def registered(user: User, cluster: RealCluster, token: str) -> AsyncIterator[str]:
    """Register the cluster once more as a VIM, with this token; yield the VIM's name."""
    name = f"limited-{uuid4().hex[:6]}"
    made = (await user.call("POST", "/v1.0/vims", {"vim": cluster.vim(name, token)})).must(201).json["vim"]
    try:
        yield name
    finally:
        (await user.call("DELETE", f"/v1.0/vims/{made['id']}")).must(204)


async def test_an_unknown_kind_is_named_with_its_file(case: Case) -> None:
    """CR-003: the kind, its version and the file are named; retry goes on once the kind exists."""
    group = f"{case.namespace}.example.com"
    gauge = {"apiVersion": f"{group}/v1", "kind": "Gauge", "metadata": {"name": "g", "namespace": case.namespace}}
    operation_id, detail = await case.fail(config_map("first", case.namespace), gauge)
    assert f"Gauge in {group}/v1" in detail
    assert FILE in detail
    said = rf"The cluster does not serve Gauge in {group}/v1 \({FILE}\): the definition \(CRD\) is not installed\."
    case.is_named("kind-not-served", said, "CustomResourceDefinition", "Gauge")
    names = {"kind": "Gauge", "plural": "gauges", "singular": "gauge", "listKind": "GaugeList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await case.cluster.make(crds, {"metadata": {"name": f"gauges.{group}"}, "spec": spec})

    async def is_served() -> bool:
        return await case.cluster.get(f"/apis/{group}/v1") is not None

    try:
        await until_true(is_served)
        await case.retried(operation_id)
    finally:
        await case.cluster.remove(f"{crds}/gauges.{group}")


async def test_an_unknown_field_is_a_refusal(case: Case) -> None:
    """CR-016: the API server answers an unknown field with 500; it is named, and nothing is made."""
    wrong = deployment("web", case.namespace)
    wrong["spec"]["replicass"] = 3
    operation_id, detail = await case.fail(config_map("first", case.namespace), wrong)
    assert "Deployment" in detail
    assert "replicass" in detail
    said = r"Deployment web has a field that the API does not know: \.spec\.replicass\."
    case.is_named("field-unknown", said, "Deployment", "web")
    await case.is_empty()
    await case.rolled_back(operation_id)


async def test_an_immutable_field_is_named(case: Case) -> None:
    """CR-017, CR-020: an adopted Deployment keeps its selector, and stays as it was after the rollback."""
    path = f"/apis/apps/v1/namespaces/{case.namespace}/deployments"
    other = deployment("web", case.namespace, app="other")
    made = await case.cluster.make(path, other)
    operation_id, detail = await case.fail(deployment("web", case.namespace), adopt=True)
    assert "Deployment web" in detail or "web" in detail
    assert "immutable" in detail
    case.is_named(
        "field-immutable",
        r"Deployment web cannot be changed as wanted: spec\.selector is immutable\.",
        "Deployment",
        "web",
    )
    await case.rolled_back(operation_id)
    after = await case.cluster.get(f"{path}/web")
    assert after is not None
    assert after["metadata"]["uid"] == made["metadata"]["uid"]
    assert after["spec"]["selector"] == other["spec"]["selector"]


async def test_an_object_of_others_is_not_touched(case: Case) -> None:
    """CR-020: an object without our label is named before anything is applied."""
    path = f"/api/v1/namespaces/{case.namespace}/configmaps"
    await case.cluster.make(path, config_map("theirs", case.namespace, of="others"))
    operation_id, detail = await case.fail(config_map("ours", case.namespace), config_map("theirs", case.namespace))
    assert "theirs" in detail
    assert case.cause["text"].endswith(f"are not its own: ConfigMap {case.namespace}/theirs."), case.cause
    assert await case.cluster.get(f"{path}/ours") is None
    await case.cluster.remove(f"{path}/theirs")
    await case.retried(operation_id)


async def test_an_image_that_cannot_be_pulled_is_named(case: Case) -> None:
    """CR-025: the pod's own reason is named; after the rollback nothing is left."""
    ready = deployment("good", case.namespace)
    operation_id, detail = await case.fail(ready, deployment("web", case.namespace, stage="image"))
    assert "web" in detail
    assert "ImagePullBackOff" in detail
    assert "Deployment good" not in detail
    case.is_named("image-not-pulled", r"An image of pod web-\S+ cannot be pulled\.", "Pod", r"web-\S+")
    await case.rolled_back(operation_id)


async def test_a_pod_that_cannot_be_placed_is_named_with_the_newest_warning(case: Case) -> None:
    """CR-025: the condition and the newest warning event are named; retry goes on once the pod fits."""
    wanted = deployment("web", case.namespace)
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"room": case.namespace}
    operation_id, detail = await case.fail(wanted)
    assert "web" in detail
    assert "FailedScheduling" in detail or "Unschedulable" in detail
    said = r"No node fits pod web-\S+: no node has the labels of its node selector or node affinity\."
    case.is_named("nodes-not-matching", said, "Pod", r"web-\S+")
    node = "/api/v1/nodes/node-1"
    await case.cluster.change(node, {"metadata": {"labels": {"room": case.namespace}}})
    try:
        await case.retried(operation_id)
    finally:
        await case.cluster.change(node, {"metadata": {"labels": {"room": None}}})


async def test_a_finalizer_that_holds_is_named(case: Case) -> None:
    """CR-023: terminate names the object and its finalizer; retry goes on once it is removed."""
    held = config_map("held", case.namespace)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    files = {FILE: yaml.safe_dump_all([held, config_map("free", case.namespace)])}
    user = case.user
    case.cnf_id = await user.create(await onboarded(user, case._folder, files))
    await user.do(case.cnf_id, "instantiate", await request_on(user, VIM, files))
    operation_id, detail = await case.failed(await user.start(case.cnf_id, "terminate", FORCEFUL))
    assert "held" in detail
    assert "example.com/hold" in detail
    said = r"ConfigMap held is not deleted: the finalizer example\.com/hold holds it, and its controller does not remove it\."
    case.is_named("finalizer-holds", said, "ConfigMap", "held")
    path = f"/api/v1/namespaces/{case.namespace}/configmaps/held"
    await case.cluster.change(path, {"metadata": {"finalizers": None}})
    view = await user.act(operation_id, "retry")
    assert view["state"] == "COMPLETED", view
    await user.delete(case.cnf_id)
    await case.is_empty()


async def test_a_token_that_is_revoked_in_the_middle(case: Case) -> None:
    """CR-007: the refusal names the cluster's answer; retry continues with another token of the VIM."""
    token = await case.cluster.account(case.namespace, ALL)
    async with registered(case.user, case.cluster, token) as vim:
        user, files = case.user, {FILE: yaml.safe_dump_all([deployment("web", case.namespace, stage="stuck")])}
        case.cnf_id = await user.create(await onboarded(user, case._folder, files))
        started = await user.start(case.cnf_id, "instantiate", await request_on(user, vim, files, wait_timeout=60))

        async def applied() -> bool | None:
            path = f"/apis/apps/v1/namespaces/{case.namespace}/deployments/web"
            return await case.cluster.get(path) is not None or None

        await until(applied, timeout_s=60)
        await case.cluster.remove(f"/api/v1/namespaces/{case.namespace}/secrets/limited")
        operation_id, detail = await case.failed(started)
        assert "credentials of the VIM are not accepted" in detail
        said = r"The Kubernetes API of the VIM does not accept its credentials\."
        case.is_named("vim-login-refused", said, "Vim", ".+")
        access = {"vim": {"auth_cred": {"bearer_token": case.cluster.token, "ssl_ca_cert": case.cluster.ca}}}
        (await user.call("PUT", f"/v1.0/vims/{(await user.vims())[vim]['id']}", access)).must(200)
        await case.rolled_back(operation_id)


async def test_a_kind_that_is_forbidden_is_named(case: Case) -> None:
    """A token that may not make ConfigMaps: the API server's answer names the kind; retry continues with the right."""
    rules = [
        {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
    ]
    token = await case.cluster.account(case.namespace, rules)
    async with registered(case.user, case.cluster, token) as vim:
        manifests = (deployment("web", case.namespace), config_map("pages", case.namespace))
        operation_id, detail = await case.fail(*manifests, vim=vim)
        assert "pages" in detail
        assert "forbidden" in detail
        assert "configmaps" in detail
        user = rf"system:serviceaccount:{case.namespace}:limited"
        said = rf"The account of the VIM \({user}\) may not \w+ configmaps in namespace {case.namespace}\."
        case.is_named("rbac-forbidden", said, "ConfigMap", "pages")
        role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{case.namespace}/roles/limited"
        await case.cluster.change(role, {"rules": ALL})
        await case.retried(operation_id)


async def test_a_webhook_that_does_not_answer_is_named(case: Case) -> None:
    """CR-016: a webhook that times out is tried again, then named; retry continues without it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        webhook = {
            "name": "silent.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "clientConfig": {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": case.namespace}},
            "rules": rules,
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await case.cluster.make(path, {"metadata": {"name": case.namespace}, "webhooks": [webhook]})
        try:
            # The API server uses a new webhook a moment after it has answered.
            await asyncio.sleep(2)
            operation_id, detail = await case.fail(config_map("pages", case.namespace))
            assert "pages" in detail
            assert "silent.example.com" in detail
            said = r"The webhook silent\.example\.com does not answer: the call timed out\."
            case.is_named("webhook-away", said, "Webhook", r"silent\.example\.com")
        finally:
            await case.cluster.remove(f"{path}/{case.namespace}")
    await case.retried(operation_id)


async def test_a_namespace_that_ends_is_named(case: Case) -> None:
    """CR-020: a namespace that is being deleted takes nothing; retry goes on in a new one of the same name."""
    name = f"{case.namespace}-ending"
    holder = config_map("holder", name)
    holder["metadata"]["finalizers"] = ["example.com/hold"]
    await case.cluster.make("/api/v1/namespaces", {"metadata": {"name": name}})
    await case.cluster.make(f"/api/v1/namespaces/{name}/configmaps", holder)
    await case.cluster.call("DELETE", f"/api/v1/namespaces/{name}")
    try:
        operation_id, detail = await case.fail(config_map("pages", name), namespace=name)
        assert f"nothing could take the place: Namespace {name}: still exists" in detail
        assert "NamespaceFinalizersRemaining True, SomeFinalizersRemain" in detail
        said = rf"The namespace {name} is not deleted: objects in it are held by the finalizer example\.com/hold\."
        case.is_named("finalizer-holds", said, "Namespace", name)
    finally:
        path = f"/api/v1/namespaces/{name}/configmaps/holder"
        await case.cluster.change(path, {"metadata": {"finalizers": None}})
        await case.cluster.remove(f"/api/v1/namespaces/{name}")
    await case.cluster.make("/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        await case.retried(operation_id)
    finally:
        await case.cluster.remove(f"/api/v1/namespaces/{name}")


POD = {"containers": [{"name": "c", "image": "nowhere"}]}


def pod_with(**more: Any) -> dict[str, Any]:
    """Return a Deployment whose pods have these members."""
    made = deployment("web", "")
    made["spec"]["template"]["spec"].update(more)
    return made


def container_with(**more: Any) -> dict[str, Any]:
    """Return a Deployment whose container has these members."""
    return pod_with(containers=[{**POD["containers"][0], **more}])


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"requests.cpu": "1"}},
}
RANGE = {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}
LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": RANGE}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "nosuch",
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": CLAIM_SPEC}
BALANCED = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "lb"},
    "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
}
FAILING = {"metadata": {"annotations": {"stage": "fail"}}, "spec": {**POD, "restartPolicy": "Never"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"backoffLimit": 0, "template": FAILING},
}
CRASHING = deployment("web", "", stage="crash")
CPU = {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("there", "manifest", "code", "said", "kind"),
    [
        (QUOTA, container_with(resources=CPU), "resource-quota", r"The ResourceQuota q allows no more: requested requests\.cpu=2, used requests\.cpu=0, limited to requests\.cpu=1\.", "ResourceQuota"),
        (QUOTA, container_with(), "resource-quota", r"The ResourceQuota q wants each container to say its requests\.cpu\.", "ResourceQuota"),
        (LIMITS, container_with(resources={"limits": {"memory": "1Gi"}}), "limit-range", r'A LimitRange of the namespace does not allow a pod of Deployment [a-z0-9-]+: "maximum memory usage per Container is 64Mi, but limit is 1Gi"\.', "Deployment"),
        (None, pod_with(serviceAccountName="missing"), "service-account-missing", r"The ServiceAccount missing does not exist, so no pod can be made\.", "ServiceAccount"),
        (None, pod_with(priorityClassName="gold"), "priority-class-missing", r"The PriorityClass gold does not exist, so no pod can be made\.", "PriorityClass"),
        (None, container_with(resources={"requests": {"memory": "900Ti"}}), "nodes-full", r"No node has room for pod web-\S+: not enough memory on \d+ of \d+ node\(s\)\.", "Pod"),
        (None, pod_with(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "nosuch"}}]), "volume-not-bound", r"Pod web-\S+ waits for a volume: its claim does not exist\.", "Pod"),
        (None, CLAIM, "storage-class-missing", r"The claim data is not bound: the storage class nosuch does not exist\.", "PersistentVolumeClaim"),
        (None, BALANCED, "load-balancer-pending", r"The Service lb gets no address: no load balancer has given it one\.", "Service"),
        (None, JOB, "job-failed", r"The Job j failed: its pods ended with errors as often as its back-off limit allows\.", "Job"),
        (None, CRASHING, "container-crashes", r"Container c of pod web-\S+ ends again and again \(CrashLoopBackOff\)\.", "Pod"),
        (None, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"x": "x" * 1_100_000}}, "object-too-large", r"ConfigMap big is too large: its data may have 1 MiB\.", "ConfigMap"),
    ],
    ids=["quota", "quota without a request", "limit range", "account", "priority", "memory", "no claim", "storage class", "load balancer", "job", "crash", "size"],
)  # fmt: skip
async def test_what_a_cluster_says_becomes_one_sentence(
    case: Case, there: dict[str, Any] | None, manifest: dict[str, Any], code: str, said: str, kind: str
) -> None:
    """CR-025: the cause of the operation, in the words of the real control plane."""
    if there is not None:
        plural = {"ResourceQuota": "resourcequotas", "LimitRange": "limitranges"}[there["kind"]]
        await case.cluster.make(f"/api/v1/namespaces/{case.namespace}/{plural}", there)
    own = {**manifest, "metadata": {**manifest["metadata"], "namespace": case.namespace}}
    operation_id, _ = await case.fail(own)
    case.is_named(code, said, kind, ".+")
    await case.rolled_back(operation_id)
