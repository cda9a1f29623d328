"""A cluster per test, and a plain client that shows answers as they are on the wire."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from servers.loopback import next_address

APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; the body is JSON."""

    code: int
    body: Any
    headers: Mapping[str, str]


class Api:
    """A client of one cluster with one credential, which trusts the cluster's CA alone."""

    def __init__(self, session: aiohttp.ClientSession, cluster: LabCluster, token: str | None) -> None:
        self._session, self._cluster = session, cluster
        self._tls = ssl.create_default_context(cadata=cluster.ca_pem)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def as_(self, token: str | None) -> Api:
        return Api(self._session, self._cluster, token)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        headers = {**self._headers, "Content-Type": kind, "Accept": accept}
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        url = self._cluster.endpoint + path
        async with self._session.request(method, url, data=data, ssl=self._tls, headers=headers) as response:
            text = await response.text()
            is_json = "json" in response.headers.get("Content-Type", "")
            return Answer(response.status, json.loads(text) if is_json else text, dict(response.headers))

    async def get(self, path: str) -> Any:
        answer = await self.call("GET", path)
        assert answer.code == 200, answer.body
        return answer.body

    async def post(self, path: str, body: Any) -> Any:
        answer = await self.call("POST", path, body)
        assert answer.code == 201, answer.body
        return answer.body

    async def patch(self, path: str, body: Any, kind: str = "application/merge-patch+json") -> Any:
        answer = await self.call("PATCH", path, body, kind=kind)
        assert answer.code == 200, answer.body
        return answer.body

    async def delete(self, path: str, body: Any = None) -> Any:
        answer = await self.call("DELETE", path, body)
        assert answer.code == 200, answer.body
        return answer.body

    async def apply(self, path: str, body: Any, *, manager: str = "one", force: bool = False) -> Answer:
        query = f"?fieldManager={manager}&force={'true' if force else 'false'}"
        return await self.call("PATCH", path + query, body, kind=APPLY)

    async def watch(self, path: str) -> AsyncIterator[Any]:
        url = f"{self._cluster.endpoint}{path}{'&' if '?' in path else '?'}watch=true"
        timeout = aiohttp.ClientTimeout(total=20)
        async with self._session.get(url, ssl=self._tls, headers=self._headers, timeout=timeout) as response:
            assert response.status == 200
            async for line in response.content:
                yield json.loads(line)

    async def until(self, collection: str, name: str, holds: Callable[[Any], bool]) -> Any:
        """Return the object once ``holds`` is true; ``holds(None)`` is asked when it was deleted."""
        async for event in self.watch(f"{collection}?fieldSelector=metadata.name={name}"):
            obj = event["object"] if event["type"] != "DELETED" else None
            if holds(obj):
                return obj
        raise AssertionError(f"{collection}/{name} did not reach the expected state")

    async def until_gone(self, collection: str, name: str) -> None:
        found = await self.get(f"{collection}?fieldSelector=metadata.name={name}")
        if not found["items"]:
            return
        since = found["metadata"]["resourceVersion"]
        path = f"{collection}?fieldSelector=metadata.name={name}&resourceVersion={since}"
        async for event in self.watch(path):
            if event["type"] == "DELETED":
                return


@pytest.fixture
def faults() -> FaultBook:
    return FaultBook()


@pytest.fixture
def ledger() -> CallLedger:
    return CallLedger()


@pytest.fixture
async def clusters(faults: FaultBook, ledger: CallLedger) -> AsyncIterator[LabClusters]:
    clusters = LabClusters(faults=faults, ledger=ledger)
    await clusters.start()
    yield clusters
    await clusters.close()
    # A task that a test leaves running would outlive its cluster.
    mine = asyncio.current_task()
    left = [task for task in asyncio.all_tasks() if task is not mine and "kubevnfm_lab" in repr(task.get_coro())]
    assert left == []


@pytest.fixture
def address() -> str:
    """A loopback address that no other test uses."""
    return next_address()


@pytest.fixture
async def cluster(clusters: LabClusters, address: str) -> LabCluster:
    """One control plane and one worker."""
    cluster = await clusters.create(
        address=address, version="v1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12", san=("cluster.test",)
    )
    await cluster.add_node("master", address=address, control_plane=True)
    await cluster.add_node("worker", address="127.0.0.9", control_plane=False)
    return cluster


@pytest.fixture
async def api(cluster: LabCluster) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as session:
        yield Api(session, cluster, cluster.admin_token)


def _deployment(name: str = "web", *, replicas: int = 2, image: str = "nginx:1.25", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]},
            },
            **spec,
        },
    }


@pytest.fixture
def a_deployment() -> Callable[..., dict[str, Any]]:
    return _deployment
