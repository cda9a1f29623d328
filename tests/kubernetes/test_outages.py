"""The API server of a real cluster is killed in the middle of operations, and started again: each completes.

Skipped unless the environment names a cluster and the commands that kill and start its API server.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from package_variants import variant
from patience import until
from real_cluster import GIVEN, RealCluster
from real_cnfs import VIM, request_on
from user import GRACEFUL, RESTING, User

pytestmark = pytest.mark.skipif(
    GIVEN is None or not (GIVEN.kill and GIVEN.start), reason="no cluster with kill and start: docs/real-kubernetes.md"
)

FILE = "Files/kubernetes/many.yaml"
DOWN_S = 4.0
"""The time without an API server: longer than the retries of one call, and so short that the nodes stay Ready."""
_MANY = 60


def manifests() -> str:
    """Return a Deployment whose pods need ten seconds, and many ConfigMaps."""
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"stage": "slow"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m-{n}"}} for n in range(_MANY)]
    return yaml.safe_dump_all([*maps, deployment])


async def outlived(user: User, cluster: RealCluster, cnf_id: str, task: str, body: dict[str, Any]) -> None:
    """Carry out an operation, during which the API server is killed and started again."""
    operation_id = await user.start(cnf_id, task, body)

    async def runs() -> bool | None:
        view = (await user.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
        assert view["state"] not in RESTING, view
        return any(step["state"] == "asked" for step in view["steps"]) or None

    await until(runs, timeout_s=60)
    # So that some of the objects are there, and others not yet.
    await asyncio.sleep(0.3)
    await cluster.power(is_on=False)
    try:
        await asyncio.sleep(DOWN_S)
    finally:
        await cluster.power(is_on=True)
    view = await user.rest(operation_id)
    assert view["state"] == "COMPLETED", view["error"]


async def test_each_operation_outlives_the_api_server(user: User, cluster: RealCluster, tmp_path: Path) -> None:
    """CR-019, CR-024, CR-033, CR-034: nothing exists twice, and nothing is left."""
    vnfd_id = str(uuid4())
    package = await user.upload(variant(tmp_path, vnfd_id=vnfd_id, files={FILE: manifests()}))
    assert package["onboardingState"] == "ONBOARDED", package
    async with cluster.namespace() as namespace:
        cnf_id = await user.create(vnfd_id)
        body = await request_on(user, VIM, {FILE: ""}, namespace=namespace)
        await outlived(user, cluster, cnf_id, "instantiate", body)
        await outlived(user, cluster, cnf_id, "scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"})
        vnfcs = (await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcInfo"]
        assert len(vnfcs) == 3
        await outlived(user, cluster, cnf_id, "heal", {"vnfcInstanceId": [vnfcs[0]["id"]]})
        assert len((await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcInfo"]) == 3
        await outlived(user, cluster, cnf_id, "heal", {})
        await outlived(user, cluster, cnf_id, "terminate", GRACEFUL)
        await user.delete(cnf_id)
        selector = f"labelSelector=kubevnfm.io/vnf-instance-id={cnf_id}"
        for kind in ("/api/v1/namespaces/{}/configmaps", "/apis/apps/v1/namespaces/{}/deployments"):
            found = await cluster.get(f"{kind.format(namespace)}?{selector}")
            assert found is not None
            assert not found["items"]
