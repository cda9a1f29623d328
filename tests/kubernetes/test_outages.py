"""The API server of a real cluster is killed in the middle of operations, and started again: each completes.

Skipped unless the environment names a cluster and the commands that kill and start its API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from callers.user import GRACEFUL, RESTING, User
from patience import until_true
from real.real_cluster import GIVEN, RealCluster
from real.real_cnfs import VIM, onboarded, request_on, user_of
from servers.installations import Installation

pytestmark = pytest.mark.skipif(
    GIVEN is None or not (GIVEN.kill and GIVEN.start), reason="no cluster with kill and start: docs/real-kubernetes.md"
)

FILE = "Files/kubernetes/many.yaml"
DOWN_S = 4.0
"""The time without an API server: longer than the retries of one call, and so short that the nodes stay Ready."""
REST_S = 900.0
"""The limit of an operation. A garbage collector of a restarted control plane has been seen to take 75 s for a deletion in the foreground."""
_MANY = 60


@pytest.fixture
async def user(single: Installation, cluster: RealCluster) -> AsyncIterator[User]:
    """A user of an installation with the usual limits: those of deletions count the time without an API server."""
    async with user_of(single, cluster) as caller:
        yield caller


def manifests(*, version: int = 1) -> str:
    """Return a Deployment whose pods need ten seconds, and many ConfigMaps; in version 2 all differ, and one half is gone."""
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"stage": "slow"}},
        "spec": {"containers": [{"name": "c", "image": f"nginx:{version}"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m-{n}"}, "data": {"version": str(version)}}
        for n in range(_MANY // version)
    ]
    return yaml.safe_dump_all([*maps, deployment])


async def outlived(
    user: User, cluster: RealCluster, cnf_id: str, task: str, body: dict[str, Any], *, held: str = ""
) -> None:
    """Carry out an operation, during which the API server is killed and started again.

    ``held``: the path of an object that a finalizer keeps until the API server is back.
    """
    if held:
        await cluster.change(held, {"metadata": {"finalizers": ["tests.kubevnfm.io/held"]}})
    operation_id = await user.start(cnf_id, task, body)

    async def view() -> dict[str, Any]:
        answer = await user.call("GET", f"/kubevnfm/v1/operations/{operation_id}")
        found: dict[str, Any] = answer.must(200).json
        assert found["state"] not in RESTING, found
        return found

    async def runs() -> bool:
        return any(step["state"] == "asked" for step in (await view())["steps"])

    await until_true(runs, timeout_s=60)
    # So that some of the objects are there, and others not yet.
    await asyncio.sleep(0.3)
    await cluster.power(is_on=False)
    try:
        await view()
        await asyncio.sleep(DOWN_S)
    finally:
        await cluster.power(is_on=True)
    if held:
        await cluster.change(held, {"metadata": {"finalizers": None}})
    done = await user.rest(operation_id, timeout_s=REST_S)
    assert done["state"] == "COMPLETED", done["error"]


async def _listed(cluster: RealCluster, path: str) -> list[dict[str, Any]]:
    found = await cluster.get(path)
    assert found is not None
    items: list[dict[str, Any]] = found["items"]
    return items


async def test_each_operation_outlives_the_api_server(user: User, cluster: RealCluster, tmp_path: Path) -> None:
    """CR-019, CR-022, CR-024, CR-033, CR-034: nothing exists twice, and nothing is left."""
    async with cluster.namespace() as namespace:
        maps = f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=kubevnfm.io/vnf-instance-id"
        cnf_id = await user.create(await onboarded(user, tmp_path, {FILE: manifests()}))
        body = await request_on(user, VIM, {FILE: ""}, namespace=namespace)
        await outlived(user, cluster, cnf_id, "instantiate", body)
        assert {each["data"]["version"] for each in await _listed(cluster, maps)} == {"1"}
        await outlived(user, cluster, cnf_id, "scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"})
        vnfcs = (await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcInfo"]
        assert len(vnfcs) == 3
        changed = await onboarded(user, tmp_path, {FILE: manifests(version=2)})
        parameters = {"lcm-kubernetes-def-files": [FILE]}
        await outlived(user, cluster, cnf_id, "change_vnfpkg", {"vnfdId": changed, "additionalParams": parameters})
        found = await _listed(cluster, maps)
        assert {each["data"]["version"] for each in found} == {"2"}
        assert len(found) == _MANY // 2
        vnfcs = (await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcInfo"]
        assert len(vnfcs) == 3
        await outlived(user, cluster, cnf_id, "heal", {"vnfcInstanceId": [vnfcs[0]["id"]]})
        assert len((await user.instance(cnf_id))["instantiatedVnfInfo"]["vnfcInfo"]) == 3
        await outlived(user, cluster, cnf_id, "heal", {})
        # It would be over before the power is cut.
        held = f"/api/v1/namespaces/{namespace}/configmaps/m-0"
        await outlived(user, cluster, cnf_id, "terminate", GRACEFUL, held=held)
        assert await _listed(cluster, maps) == []
