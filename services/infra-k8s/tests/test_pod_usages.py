"""The usage of pods, read from metrics.k8s.io of a cluster (API-216, API-219)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from clusters.metrics_server import api_service, server
from kubevnfm_clients.multicloud.errors import RegionUnavailable, ResourceMetricsUnavailable
from kubevnfm_clients.pod_usages import HttpPodUsages, PodsInUse, PodUsage
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.http_resource_metrics import resource_metrics_routes
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, NODES, ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.quantities import number_of
from kubevnfm_infra_k8s.domain.reading.pod_usages import ClusterPodUsages
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_lab.kubernetes.podmetrics import CPU_ANNOTATION, MEMORY_ANNOTATION
from kubevnfm_secrets import KeyRing, Secret
from patience import until
from servers.vnf_networks import networks
from worlds.given_vims import GivenVims

RING = KeyRing.from_text(KeyRing.new_key())
MIB = 2.0**20
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"


@asynccontextmanager
async def reading(vim: VimConnection) -> AsyncIterator[Callable[..., Any]]:
    """Yield a function that asks for the usage of pods over the internal API."""
    async with (
        KubernetesClusters.open(RING, networks()) as clusters,
        serving(
            internal_app(resource_metrics_routes(ClusterPodUsages(clusters, GivenVims())), token="token"),
            host="127.0.0.1",
            port=0,
        ) as port,
        aiohttp.ClientSession() as session,
    ):
        client = HttpPodUsages(f"http://127.0.0.1:{port}", "token", session, ring=RING)

        async def read(*pods: str, namespace: str = "default") -> Sequence[PodUsage]:
            # The connection as a request gives it, with its access data: they are sealed on the way.
            return await client.read(PodsInUse(vim=vim, vnf_instance_id="i1", namespace=namespace, pods=pods))

        yield read


def a_pod(name: str, *limits: dict[str, str], instance: str = "i1", **used: str) -> dict[str, Any]:
    """Return a pod with a container for each of the limits."""
    annotations = {{"cpu": CPU_ANNOTATION, "memory": MEMORY_ANNOTATION}[each]: value for each, value in used.items()}
    containers = [
        {"name": f"c{n}", "image": "nginx:1", "resources": {"limits": limit}} for n, limit in enumerate(limits)
    ]
    metadata = {"name": name, "namespace": "default", "labels": {INSTANCE_LABEL: instance}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


async def make(cluster: Cluster, *bodies: dict[str, Any]) -> None:
    for body in bodies:
        resource = await cluster.resource(body["apiVersion"], body["kind"])
        assert resource is not None
        of = body["metadata"]
        await cluster.apply(
            resource, ObjectKey(body["apiVersion"], body["kind"], of.get("namespace", ""), of["name"]), body
        )


async def test_the_usage_of_pods_is_read_with_their_limits(vim: VimConnection, cluster: Cluster) -> None:
    """API-216, API-219: without metrics-server, with one that is away, and with one."""
    half = {"cpu": "250m", "memory": "128Mi"}
    pods = [
        a_pod("two", half, half, cpu="125000000n", memory="64Mi"),
        a_pod("free", {}, cpu="1500u", memory="1Gi"),
        a_pod("other", {}, instance="i2"),
    ]
    await make(cluster, *pods)
    none = r"the cluster has no metrics\.k8s\.io \(metrics-server\)"
    async with reading(vim) as read:
        with pytest.raises(ResourceMetricsUnavailable, match=none):
            await read("two")
        await make(cluster, api_service())
        missing = f'{none}: .*ServiceNotFound: service/metrics-server in "kube-system" is not present'

        async def away() -> bool | None:
            try:
                await read("two")
            except VnfmError as error:
                return "ServiceNotFound" in str(error) or None
            return None

        assert await until(away)
        with pytest.raises(ResourceMetricsUnavailable, match=missing):
            await read("two")
        await make(cluster, *server())

        async def all_found() -> Sequence[PodUsage] | None:
            try:
                found: Sequence[PodUsage] = await read("free", "two", "other", "none")
            except ResourceMetricsUnavailable:
                return None
            return found if len(found) == 2 else None

        free, two = await until(all_found)
        now = datetime.now(UTC)
        assert all(now - timedelta(minutes=2) < each.at <= now and each.window_s == 15.021 for each in (free, two))
        assert (two.pod, two.cpu, two.memory, two.cpu_limit, two.memory_limit) == (
            "two",
            0.25,
            128 * MIB,
            0.5,
            256 * MIB,
        )
        running = await cluster.get(NODES, ObjectKey("v1", "Node", "", "worker1"))
        assert running is not None
        of_node = float(number_of(running["status"]["capacity"]["memory"]))
        assert (free.cpu, free.memory, free.cpu_limit, free.memory_limit) == (0.0015, 1024 * MIB, None, of_node)
        assert await read("other") == [], "it has another label"
        assert await read("two", namespace="kube-system") == []


@asynccontextmanager
async def a_server(paths: dict[str, Any]) -> AsyncIterator[VimConnection]:
    """Serve an API server by these answers; a number is a status."""
    paths.setdefault("/api", {"kind": "APIVersions", "versions": ["v1"]})
    paths.setdefault("/apis", {"kind": "APIGroupList", "groups": []})
    pods = {"name": "pods", "kind": "PodMetrics", "namespaced": True, "verbs": ["get", "list"]}
    paths.setdefault("/apis/metrics.k8s.io/v1beta1", {"resources": [pods]})

    async def answer(request: web.Request) -> web.Response:
        found = paths.get(request.path, 404)
        if isinstance(found, int):
            status = {"kind": "Status", "message": "refused", "code": found}
            return web.json_response(status, status=found)
        return web.json_response(found)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with serving(app, host="127.0.0.1", port=0) as port:
        access = {"bearer_token": Secret("t")}
        yield VimConnection(
            interface_info={"endpoint": f"http://127.0.0.1:{port}", "ssl_ca_cert": ""}, access_info=access
        )


def measured(name: str = "p", **changes: Any) -> dict[str, Any]:
    containers = [{"name": "c", "usage": {"cpu": "10m", "memory": "1Ki"}}]
    body = {
        "metadata": {"name": name},
        "timestamp": "2026-11-28T12:47:55Z",
        "window": "1m2.5s",
        "containers": containers,
    }
    return {**body, **changes}


async def test_what_cannot_be_read_of_a_hostile_answer_is_left_out() -> None:
    """API-219: quantities, times and shapes; a pod that is not shown has no limits."""
    table: list[tuple[dict[str, Any], tuple[float | None, float | None, float] | None]] = [
        (measured(), (0.01, 1024.0, 62.5)),
        (measured(window="soon"), (0.01, 1024.0, 0.0)),
        (measured(window={}), (0.01, 1024.0, 0.0)),
        (measured(timestamp="yesterday"), None),
        (measured(timestamp="2026-11-28T12:47:55"), None),
        (measured(timestamp="0001-01-01T00:00:00+23:59"), None),
        (measured(timestamp="9" * 1000), None),
        (measured(timestamp=5), None),
        (measured(containers=[]), None),
        (measured(containers={}), None),
        (measured(containers=[5, None, {"usage": 7}]), None),
        (measured(containers=[{"usage": {"cpu": "-1"}}]), None),
        (measured(containers=[{"usage": {"cpu": "1e99", "memory": "nan"}}]), None),
        (measured(containers=[{"usage": {"cpu": "9" * 30}}, {"usage": {"memory": "2k"}}]), (None, 2000.0, 62.5)),
    ]
    paths: dict[str, Any] = {"/api/v1/namespaces/default/pods": 403}
    async with a_server(paths) as vim, reading(vim) as read:
        for body, expected in table:
            paths[METRICS] = {"kind": "PodMetricsList", "metadata": {}, "items": [body]}
            found = [(each.cpu, each.memory, each.window_s) for each in await read("p")]
            assert found == ([] if expected is None else [expected]), body
        paths[METRICS] = {"items": [measured()]}
        (usage,) = await read("p")
        assert (usage.cpu_limit, usage.memory_limit) == (None, None)
        shown = {
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": 5}}]},
        }
        paths["/api/v1/namespaces/default/pods"] = {"items": [shown]}
        paths["/api/v1/nodes/n"] = 403
        (usage,) = await read("p")
        assert (usage.cpu_limit, usage.memory_limit) == (None, None)
        wrong: Any
        for wrong in ({"items": 5}, {"items": [5]}, {"items": [{}]}, 500):
            paths[METRICS] = wrong
            with pytest.raises(RegionUnavailable):
                await read("p")
        paths[METRICS] = 503
        with pytest.raises(RegionUnavailable):
            await read("p")
        # It was available when it was last tested.
        known = {"spec": {"service": {"name": "metrics-server"}}, "status": {"conditions": []}}
        paths["/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"] = known
        with pytest.raises(
            ResourceMetricsUnavailable, match=r"the server of API group metrics\.k8s\.io does not answer"
        ):
            await read("p")
        paths[METRICS] = 403
        with pytest.raises(VnfmError, match="list of pods: refused"):
            await read("p")


def test_quantities_of_use_are_numbers() -> None:
    """API-216."""
    expected: Any
    for text, expected in {
        "0": "0",
        "124996189n": "0.124996189",
        "1500u": "0.0015",
        "125m": "0.125",
        "64Mi": 2**26,
    }.items():
        assert number_of(text) == Decimal(expected)
