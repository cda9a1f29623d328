"""The server's edge: TLS, credentials, discovery, faults."""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import yaml
from kubernetes_asyncio import client, config
from kubernetes_asyncio.dynamic import DynamicClient
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters

PODS = "/api/v1/namespaces/default/pods"


async def test_the_serving_certificate_is_of_the_clusters_ca_and_names_its_address(cluster: LabCluster) -> None:
    async with aiohttp.ClientSession() as session:
        tls = ssl.create_default_context(cadata=cluster.ca_pem)
        async with session.get(f"{cluster.endpoint}/version", ssl=tls) as response:
            assert (await response.json())["gitVersion"] == "v1.31.4"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{cluster.endpoint}/version", ssl=ssl.create_default_context())


async def test_no_or_a_wrong_token_is_unauthorized(api: Any) -> None:
    for token in (None, "made-up"):
        answer = await api.as_(token).call("GET", PODS)
        assert (answer.code, answer.body["reason"]) == (401, "Unauthorized")


async def test_kubernetes_asyncio_works_with_the_admins_kubeconfig(
    cluster: LabCluster, a_deployment: Callable[..., Any]
) -> None:
    settings = client.Configuration()
    await config.load_kube_config_from_dict(yaml.safe_load(cluster.kubeconfig_admin()), client_configuration=settings)
    assert settings.verify_ssl
    async with client.ApiClient(settings) as connection:
        with tempfile.TemporaryDirectory() as folder:
            dynamic = await DynamicClient(connection, cache_file=f"{folder}/discovery.json")
        deployments = await dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        await dynamic.server_side_apply(
            deployments, body=a_deployment(), namespace="default", field_manager="kubevnfm", force_conflicts=True
        )
        found = await client.AppsV1Api(connection).read_namespaced_deployment("web", "default")
        assert found.spec.replicas == 2
        assert found.metadata.managed_fields[0].manager == "kubevnfm"


async def test_kubernetes_asyncio_reads_endpoint_slices_of_every_fill(api: Any, cluster: LabCluster) -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    bare = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]}
    await api.post(slices, {"metadata": {"name": "bare"}, **bare})
    ready = {"addresses": ["192.0.2.2"], "conditions": {"ready": True}}
    await api.post(slices, {"metadata": {"name": "ready"}, "addressType": "IPv4", "endpoints": [ready]})
    await api.post(slices, {"metadata": {"name": "empty"}, "addressType": "IPv4", "endpoints": []})
    configuration = client.Configuration(host=cluster.endpoint, ssl_ca_cert=None)
    configuration.verify_ssl = False
    configuration.api_key = {"BearerToken": f"Bearer {cluster.admin_token}"}
    async with client.ApiClient(configuration) as connection:
        listed = await client.DiscoveryV1Api(connection).list_namespaced_endpoint_slice("default")
    by_name = {one.metadata.name: one for one in listed.items}
    (endpoint,) = by_name["bare"].endpoints
    assert endpoint.addresses == ["192.0.2.1"]
    assert endpoint.conditions.to_dict() == {"ready": None, "serving": None, "terminating": None}
    assert [(port.name, port.port, port.protocol) for port in by_name["bare"].ports] == [("", 80, "TCP")]
    assert by_name["empty"].endpoints == []
    assert [endpoint.conditions.ready for endpoint in by_name["ready"].endpoints] == [True]


async def test_kubernetes_asyncio_works_with_a_bearer_token(cluster: LabCluster) -> None:
    settings = client.Configuration(host=cluster.endpoint)
    settings.api_key = {"BearerToken": f"Bearer {cluster.admin_token}"}
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as ca:
        ca.write(cluster.ca_pem)
        ca.flush()
        settings.ssl_ca_cert = ca.name
        async with client.ApiClient(settings) as connection:
            nodes = await client.CoreV1Api(connection).list_node()
    assert sorted(node.metadata.name for node in nodes.items) == ["master", "worker"]


async def test_a_service_account_may_do_what_is_bound_to_it_and_nothing_else(api: Any) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(accounts, {"metadata": {"name": "vnfm"}})
    too_short = await api.call("POST", f"{accounts}/vnfm/token", {"spec": {"expirationSeconds": 60}})
    assert too_short.code == 422
    assert too_short.body["message"] == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: '
        "may not specify a duration less than 10 minutes"
    )
    request = await api.post(f"{accounts}/vnfm/token", {"spec": {"expirationSeconds": 600}})
    mine = api.as_(request["status"]["token"])
    refused = await mine.call("GET", PODS)
    assert refused.code == 403
    assert refused.body["message"] == (
        'pods is forbidden: User "system:serviceaccount:default:vnfm" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    question = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}}
    assert (await mine.post(review, question))["status"]["allowed"] is False
    await api.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "vnfm"},
            "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "vnfm", "namespace": "default"}],
        },
    )
    assert (await mine.get(PODS))["items"] == []
    assert (await mine.post(review, question))["status"]["allowed"] is True
    await api.delete(f"{accounts}/vnfm")
    assert (await mine.call("GET", PODS)).code == 401


async def test_a_role_grants_in_its_namespace_only(api: Any) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    await api.post(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    await api.post(
        f"{rbac}/rolebindings",
        {"metadata": {"name": "r"}, "roleRef": {"kind": "Role", "name": "reader"}, "subjects": subjects},
    )
    token = (await api.post("/api/v1/namespaces/default/serviceaccounts/default/token", {}))["status"]["token"]
    mine = api.as_(token)
    assert (await mine.call("GET", PODS)).code == 200
    assert (await mine.call("GET", "/api/v1/namespaces/other/pods")).code == 403
    assert (await mine.call("POST", PODS, {})).code == 403


async def test_a_token_secret_is_filled_and_ends_with_the_secret(api: Any, cluster: LabCluster) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    annotations = {"kubernetes.io/service-account.name": "default"}
    kind = "kubernetes.io/service-account-token"
    await api.post(secrets, {"metadata": {"name": "long", "annotations": annotations}, "type": kind})
    secret = await api.until(secrets, "long", lambda obj: "token" in obj.get("data", {}))
    data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert (data["namespace"], data["ca.crt"]) == ("default", cluster.ca_pem)
    mine = api.as_(data["token"])
    assert (await mine.call("GET", PODS)).code == 403  # known, but not permitted
    await api.delete(f"{secrets}/long")
    assert (await mine.call("GET", PODS)).code == 401


async def test_old_and_aggregated_discovery_list_the_same_resources(api: Any) -> None:
    for path, groups in (("/api", None), ("/apis", (await api.get("/apis"))["groups"])):
        for version in ("v2", "v2beta1"):
            accept = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json"
            answer = await api.call("GET", path, accept=accept)
            assert answer.headers["Content-Type"].endswith(f"v={version};as=APIGroupDiscoveryList")
            assert answer.body["apiVersion"] == f"apidiscovery.k8s.io/{version}"
            for group in answer.body["items"]:
                for entry in group["versions"]:
                    name = group["metadata"].get("name", "")
                    place = f"/apis/{name}/{entry['version']}" if name else f"/api/{entry['version']}"
                    old = await api.get(place)
                    plain = {r["name"] for r in old["resources"] if "/" not in r["name"]}
                    assert plain == {r["resource"] for r in entry["resources"]}
            if groups is not None:
                assert [g["name"] for g in groups] == [g["metadata"]["name"] for g in answer.body["items"]]


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("v1", "PersistentVolumeClaim", True),
        ("v1", "PodTemplate", True),
        ("v1", "ComponentStatus", False),
        ("apps/v1", "ControllerRevision", True),
        ("batch/v1", "CronJob", True),
        ("autoscaling/v2", "HorizontalPodAutoscaler", True),
        ("policy/v1", "PodDisruptionBudget", True),
        ("networking.k8s.io/v1", "Ingress", True),
        ("networking.k8s.io/v1", "NetworkPolicy", True),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", False),
        ("storage.k8s.io/v1", "VolumeAttachment", False),
        ("scheduling.k8s.io/v1", "PriorityClass", False),
        ("coordination.k8s.io/v1", "Lease", True),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", False),
        ("apiregistration.k8s.io/v1", "APIService", False),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", False),
        ("authentication.k8s.io/v1", "TokenReview", False),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview", True),
        ("discovery.k8s.io/v1", "EndpointSlice", True),
        ("resource.k8s.io/v1", "DeviceClass", False),
        ("resource.k8s.io/v1", "ResourceClaimTemplate", True),
    ],
)
async def test_the_kinds_that_packages_use_are_served(api: Any, api_version: str, kind: str, namespaced: bool) -> None:
    place = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    entry = next(r for r in (await api.get(place))["resources"] if r["kind"] == kind and "/" not in r["name"])
    assert entry["namespaced"] is namespaced


async def test_an_unserved_kind_is_not_found(api: Any) -> None:
    answer = await api.call("GET", "/apis/apps/v1/namespaces/default/widgets")
    assert (answer.code, answer.body["message"]) == (404, "the server could not find the requested resource")
    for path in ("/apis/example.com/v1/namespaces/default/widgets", "/apis/example.com/v1"):
        answer = await api.call("GET", path)
        assert (answer.code, answer.body) == (404, "404 page not found\n")


async def test_a_fault_refuses_with_its_code_and_is_counted(api: Any, faults: FaultBook, ledger: CallLedger) -> None:
    faults.add(part="kubernetes", verb="list pods", status=503, message="etcd is away", times=1)
    answer = await api.call("GET", PODS)
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (503, "ServiceUnavailable", "etcd is away")
    assert answer.headers["Retry-After"] == "1"
    assert (await api.call("GET", PODS)).code == 200
    calls = {call["verb"]: call["count"] for call in ledger.calls() if call["part"] == "kubernetes"}
    assert calls["list pods"] == 2


async def test_a_dropped_connection_ends_without_an_answer(api: Any, faults: FaultBook) -> None:
    faults.add(part="kubernetes", verb="create pods", effect="drop", times=1)
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.call("POST", PODS, {"metadata": {"name": "a"}})


async def test_two_clusters_do_not_share_an_address(clusters: LabClusters, cluster: LabCluster) -> None:
    with pytest.raises(OSError):
        await clusters.create(
            address=cluster.address, version="v1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
        )
    assert clusters.find(cluster.address, 6443) is cluster


async def test_a_closed_cluster_ends_its_watches_and_frees_its_address(
    clusters: LabClusters, cluster: LabCluster, api: Any
) -> None:
    watch = api.watch("/api/v1/nodes")
    assert (await anext(watch))["type"] == "ADDED"
    await clusters.close_at(cluster.address)
    async with asyncio.timeout(300):
        async for _ in watch:
            pass
    assert clusters.find(cluster.address, 6443) is None
    await clusters.create(
        address=cluster.address, version="v1.30.0", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )


async def test_a_suspended_cluster_comes_back_with_all_objects(
    clusters: LabClusters, cluster: LabCluster, api: Any
) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "kept"}})
    await clusters.suspend_at(cluster.address)
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.get("/version")
    assert clusters.find(cluster.address, 6443) is cluster
    await clusters.resume_at(cluster.address)
    await clusters.resume_at(cluster.address)
    assert (await api.get("/api/v1/namespaces/kept"))["metadata"]["name"] == "kept"


async def test_bootstrap_tokens_are_valid_until_they_expire_or_are_deleted(cluster: LabCluster) -> None:
    token, over = cluster.create_bootstrap_token(ttl_s=60), cluster.create_bootstrap_token(ttl_s=-1)
    assert cluster.bootstrap_token_is_valid(token)
    assert not cluster.bootstrap_token_is_valid(over)
    assert not cluster.bootstrap_token_is_valid(token[:7] + "x" * 16)
    cluster.delete_bootstrap_token(token)
    assert not cluster.bootstrap_token_is_valid(token)


async def test_the_inventory_has_joins_and_only_user_objects(
    clusters: LabClusters, cluster: LabCluster, api: Any, a_deployment: Callable[..., Any]
) -> None:
    await cluster.add_node("worker", address="127.0.0.9", control_plane=False)
    await api.post("/apis/apps/v1/namespaces/default/deployments", a_deployment())
    await api.until(
        "/apis/apps/v1/namespaces/default/deployments", "web", lambda d: d["status"].get("availableReplicas") == 2
    )
    (shown,) = clusters.inventory()
    assert shown["joins"] == {"master": 1, "worker": 2}
    assert list(shown["objects"]) == ["Deployment/default/web"]


async def test_a_node_has_the_fields_that_clients_read(api: Any) -> None:
    node = await api.until("/api/v1/nodes", "master", lambda n: bool(n["status"].get("conditions")))
    assert node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] == ""
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "master"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.4"
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
