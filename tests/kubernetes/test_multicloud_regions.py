"""Cloud regions on a real API server: scenario 7 of chapter 17 of docs/specification/multicloud.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from callers.user import User
from real.real_cluster import GIVEN, RealCluster
from real.real_regions import API, RealRegion, kubeconfig
from real.region_packages import PLAIN

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

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
