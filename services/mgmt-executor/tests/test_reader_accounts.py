"""The account of a script in the management cluster: on the lab, and on a real API server where one is given.

With ``KUBEVNFM_KUBERNETES_ENDPOINT`` and the other variables of docs/real-kubernetes.md it is that one, which then keeps the
definition of Cluster if it has none.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import pytest
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.cluster_errors import ApiUnavailable
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.errors import VnfmError
from kubevnfm_mgmt_executor.domain.capi.errors import ReaderRefused
from kubevnfm_mgmt_executor.domain.capi.reader_accounts import make_reader, remove_reader
from kubevnfm_secrets import KeyRing, Secret
from patience import until_true
from real.real_kubernetes import RealKubernetes
from worlds.workload_credentials import CapiSite, a_crd

RING = KeyRing.from_text(KeyRing.new_key())
REAL = RealKubernetes.from_environment()
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class Ground:
    """A namespace with a Cluster object and two Secrets, and its API server."""

    vim: VimConnection
    session: aiohttp.ClientSession
    namespace: str
    uid: str = ""

    @property
    def cluster(self) -> WorkloadCluster:
        return WorkloadCluster(name="edge", namespace=self.namespace, api_version="cluster.x-k8s.io/v1beta2")

    def api(self, token: str | None = None) -> ClusterApi:
        vim = self.vim
        if token is not None:
            vim = vim.model_copy(update={"access_info": {"bearer_token": Secret(token)}})
        return ClusterApi(self.session, vim, RING, timeout_s=30.0)

    @property
    def core(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def clusters(self) -> str:
        return f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{self.namespace}/clusters"

    async def make(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self.api().call("POST", path, body=body)
        assert answer.is_success, answer.message
        return answer.body

    async def status(self, token: str, path: str) -> int:
        """Return the status of GET with a token; 401 if the token is not valid."""
        try:
            return (await self.api(token).get(path)).status
        except VnfmError:
            return 401

    async def names(self) -> list[str]:
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        paths = (f"{self.core}/serviceaccounts", f"{rbac}/roles", f"{rbac}/rolebindings")
        listed = [(await self.api().get(path)).body["items"] for path in paths]
        found = [one["metadata"]["name"] for items in listed for one in items]
        return [name for name in found if name.startswith("kubevnfm-reader-")]


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    namespace = f"t{secrets.token_hex(5)}"
    async with aiohttp.ClientSession() as session:
        if REAL is None:
            async with CapiSite.start(RING) as capi:
                one = Ground(capi.vim, session, namespace)
                await _furnish(one)
                yield one
            return
        one = Ground(REAL.vim(), session, namespace)
        try:
            await _furnish(one)
            yield one
        finally:
            await one.api().call("DELETE", f"/api/v1/namespaces/{namespace}")


async def _furnish(ground: Ground) -> None:
    api = ground.api()
    if not (await api.get(f"{_CRD}/clusters.cluster.x-k8s.io")).is_success:
        crd = a_crd("v1beta2")
        # Kubernetes keeps the group for approved definitions.
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
        await ground.make(_CRD, crd)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ground.namespace}}
    await ground.make("/api/v1/namespaces", namespace)
    for name in ("edge-kubeconfig", "edge-ca"):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"value": "x"}}
        await ground.make(f"{ground.core}/secrets", body)
    body = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "edge"}, "spec": {}}

    async def is_made() -> bool:
        # A real API server answers 404 and 429 while it begins to serve a definition.
        with suppress(ApiUnavailable):
            answer = await api.call("POST", ground.clusters, body=body)
            ground.uid = (answer.body.get("metadata") or {}).get("uid", "")
        return bool(ground.uid)

    await until_true(is_made)


async def test_the_account_reads_one_secret_and_one_cluster_for_a_time(ground: Ground) -> None:
    """CR-009: nothing else, and nothing once it is removed."""
    api = ground.api()
    reader = await make_reader(api, ground.cluster, cluster_uid=ground.uid, life_s=1.0, owner="inst-1")
    own = f"{ground.core}/secrets/edge-kubeconfig"

    async def may_read() -> bool:
        return await ground.status(reader.token, own) == 200

    await until_true(may_read)
    assert await ground.status(reader.token, f"{ground.clusters}/edge") == 200
    for path in (
        f"{ground.core}/secrets", f"{ground.core}/secrets/edge-ca", ground.clusters, f"{ground.core}/serviceaccounts",
        "/api/v1/namespaces",
    ):  # fmt: skip
        assert await ground.status(reader.token, path) == 403, path
    assert reader.token not in repr(reader)
    await remove_reader(api, reader)
    assert await ground.names() == []

    async def is_invalid() -> bool:
        return await ground.status(reader.token, own) == 401

    # A real API server keeps the outcome of an authentication for ten seconds.
    await until_true(is_invalid)


async def test_a_second_call_replaces_the_account_and_the_first_cannot_remove_it(ground: Ground) -> None:
    """CR-078: a worker that was taken for dead ends late; its clean-up must not end the script of the next one."""
    api = ground.api()
    first = await make_reader(api, ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-1")
    second = await make_reader(api, ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-1")
    assert first.token != second.token
    await remove_reader(api, first)
    assert await ground.names() == ["kubevnfm-reader-inst-1"] * 3
    await remove_reader(api, second)
    assert await ground.names() == []


async def test_the_account_goes_with_its_cluster(ground: Ground) -> None:
    """If the process that made it is killed, Kubernetes collects it at the latest when the Cluster is deleted."""
    api = ground.api()
    await make_reader(api, ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-1")
    await api.call("DELETE", f"{ground.clusters}/edge")

    async def is_gone() -> bool:
        return not await ground.names()

    await until_true(is_gone)


async def test_an_account_that_may_not_make_one_is_refused_by_name(ground: Ground) -> None:
    api = ground.api()
    reader = await make_reader(api, ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-1")
    with pytest.raises(ReaderRefused, match=r"ServiceAccount: .*kubevnfm-reader-inst-1.* sender_access"):
        await make_reader(
            ground.api(reader.token), ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-2"
        )
    with pytest.raises(ReaderRefused, match="TokenRequest: "):
        await make_reader(_WithoutTokens(api), ground.cluster, cluster_uid=ground.uid, life_s=600.0, owner="inst-3")


@dataclass
class _WithoutTokens:
    """An API server that issues no tokens for accounts."""

    api: ClusterApi

    async def get(self, path: str) -> Any:
        return await self.api.get(path)

    async def call(self, method: str, path: str, *, body: Any = None) -> Any:
        answer = await self.api.call(method, path, body=body)
        if path.endswith("/token"):
            return replace(answer, status=403, body={"message": "no tokens here"})
        return answer
