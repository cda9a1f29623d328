"""Cloud regions on a real API server: scenario 7 of chapter 17 of docs/specification/multicloud.md."""

from __future__ import annotations

import asyncio
import base64
import math
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from callers.user import User
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.leases import HeldTerm
from kubevnfm_infra_k8s.domain.inventory.feature_watch import FeatureWatch
from kubevnfm_kit.clock import SystemClock
from kubevnfm_secrets import KeyRing
from patience import until_true
from real.real_cluster import GIVEN, RealCluster
from real.real_regions import API, RealRegion, kubeconfig
from real.region_packages import PLAIN
from servers.vnf_networks import networks
from worlds.link_world import OneVim

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

_SITE: Final = {"name": "site", "value": "rack-4"}
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


async def test_a_region_by_token_request(user: User, cluster: RealCluster, tmp_path: Path) -> None:
    """MC-074, MC-082 (scenario 7): a token that the API server has withdrawn is replaced within the call."""
    name = f"region-{uuid4().hex[:8]}"
    rule = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}
    binding = f"{_RBAC}/clusterrolebindings/{name}"
    async with cluster.namespace() as place:
        accounts = f"/api/v1/namespaces/{place}/serviceaccounts"
        issuer = await cluster.account(place, [rule])
        order = {"namespace": place, "service_account": "kubevnfm", "expiration_s": 600}
        body = {
            "cloud_owner": "op", "cloud_region": name, "token_request": order, "kubeconfig": kubeconfig(cluster, issuer)
        }  # fmt: skip
        (refused,) = (await user.call("POST", f"{API}/cloud-regions", body)).must(422).json["errors"]
        assert refused["pointer"] == "/token_request/service_account"
        assert 'serviceaccounts "kubevnfm" not found' in refused["message"]

        account = {"metadata": {"name": "kubevnfm"}}
        await cluster.make(accounts, account)
        subject = {"kind": "ServiceAccount", "name": "kubevnfm", "namespace": place}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        bound = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
        await cluster.make(f"{_RBAC}/clusterrolebindings", bound)
        try:
            made = (await user.call("POST", f"{API}/cloud-regions", body)).must(201).json
            assert (made["auth"], made["missing_permissions"]) == ("token-request", [])
            region = RealRegion(user, cluster, made["id"], name, tmp_path)
            package, target = await region.onboard(PLAIN), region.place()
            vnf = await region.bring_up(package, namespace=target)
            # Another account of the same name: the tokens of the first are not accepted any more.
            await cluster.remove(f"{accounts}/kubevnfm")
            await cluster.make(accounts, account)
            await region.remove(vnf)
            assert await region.is_empty(target)
            (await region.call("DELETE", f"/cloud-regions/{made['id']}")).must(204)
        finally:
            await cluster.remove(binding)


async def test_a_region_by_a_cluster_profile(user: User, cluster: RealCluster) -> None:
    """MC-078: the definition is that of the project; the test writes what a cluster manager would write."""
    hub, name = f"hub-{uuid4().hex[:8]}", f"spoke-{uuid4().hex[:8]}"
    of_hub = {"cloud_owner": "op", "cloud_region": hub, "kubeconfig": kubeconfig(cluster)}
    (await user.call("POST", f"{API}/cloud-regions", of_hub)).must(201)
    async with cluster.namespace() as place:
        labels = {"x-k8s.io/cluster-inventory-consumer": name}
        await cluster.change(f"/api/v1/namespaces/{place}", {"metadata": {"labels": labels}})
        profiles = f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{place}/clusterprofiles"
        spec = {"clusterManager": {"name": "test"}, "displayName": name}
        profile = {"metadata": {"name": name, "labels": {"tier": "edge"}}, "spec": spec}
        kind = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile"}
        await cluster.make(profiles, {**kind, **profile})
        ca = base64.b64encode(cluster.ca.encode()).decode()
        entry = {"server": cluster.url, "certificate-authority-data": ca}
        status = {"accessProviders": [{"name": "secretreader", "cluster": entry}], "properties": [_SITE]}
        code, answer = await cluster.call(
            "PATCH", f"{profiles}/{name}/status", {"status": status}, kind="application/merge-patch+json"
        )
        assert code == 200, answer
        inventory = {"type": "cluster-profile", "cloud_region_id": f"op/{hub}", "namespace": place, "name": name}
        body = {"cloud_owner": "op", "cloud_region": name, "inventory": {**inventory, "consumer": name}}
        (refused,) = (await user.call("POST", f"{API}/cloud-regions", body)).must(422).json["errors"]
        assert (refused["pointer"], "the profile offers: secretreader" in refused["message"]) == (
            "/inventory/name", True
        )  # fmt: skip
        token = {"token": base64.b64encode(cluster.token.encode()).decode()}
        await cluster.make(f"/api/v1/namespaces/{place}/secrets", {"metadata": {"name": name}, "data": token})
        made = (await user.call("POST", f"{API}/cloud-regions", body)).must(201).json
        assert (made["endpoint"], made["labels"], made["kv"]) == (cluster.url, {"tier": "edge"}, {"site": "rack-4"})
        health = (await user.call("GET", f"{API}/cloud-regions/op/{name}/health")).must(200).json
        assert (health["reachable"], health["inventory"]["lost"]) == (True, False)
        for region in (name, hub):
            (await user.call("DELETE", f"{API}/cloud-regions/op/{region}")).must(204)


class Features:
    """`kubevnfm_infra_k8s.domain.inventory.ports.FeatureRecords` in memory."""

    def __init__(self) -> None:
        self.digests: list[str] = []

    async def last(self, vim_id: str) -> tuple[str, datetime | None]:
        return "", None

    async def found(self, vim_id: str, digest: str) -> None:
        self.digests.append(digest)

    async def forget(self, vim_id: str) -> None:
        """Nothing is stored."""


async def test_changes_of_nodes_and_devices_are_seen(cluster: RealCluster) -> None:
    """MC-119."""
    ring, records, name = KeyRing.from_text(KeyRing.new_key()), Features(), f"test-{uuid4().hex[:8]}"
    vim = VimConnection(
        interface_info={"endpoint": cluster.url, "ssl_ca_cert": cluster.ca}, access_info={"bearer_token": cluster.token}
    )
    node = f"/api/v1/nodes/{((await cluster.get('/api/v1/nodes')) or {})['items'][0]['metadata']['name']}"
    devices = "/apis/resource.k8s.io/v1"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    body = {"driver": "gpu.example.com", "pool": pool, "allNodes": True, "devices": [{"name": "gpu-0"}]}
    async with KubernetesClusters.open(ring, networks()) as clusters:
        term, vims = HeldTerm(1, math.inf), OneVim({"vim": vim})
        watch = FeatureWatch(records, vims, clusters, SystemClock(), term, "vim", apart_s=0.0)
        task = asyncio.create_task(watch.run())
        try:
            await _until(records, 1)
            label = f"feature.node.kubernetes.io/{name}"
            await cluster.change(node, {"metadata": {"labels": {label: "true"}}})
            await _until(records, 2)
            await cluster.make(f"{devices}/deviceclasses", {"metadata": {"name": name}, "spec": {}})
            await _until(records, 3)
            await cluster.make(f"{devices}/resourceslices", {"metadata": {"name": name}, "spec": body})
            await _until(records, 4)
            await cluster.change(node, {"metadata": {"labels": {label: None}}})
            await cluster.remove(f"{devices}/resourceslices/{name}")
            await cluster.remove(f"{devices}/deviceclasses/{name}")

            async def is_as_before() -> bool:
                return len(records.digests) > 4 and records.digests[-1] == records.digests[0]

            await until_true(is_as_before)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _until(records: Features, count: int) -> None:
    async def are_there() -> bool:
        return len(records.digests) >= count

    await until_true(are_there)
    assert len(records.digests) == count
