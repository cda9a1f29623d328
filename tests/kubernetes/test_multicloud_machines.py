"""Virtual machines as the workload of a VDU, on a real API server: the test makes the instances that KubeVirt would make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered
from real.region_packages import MACHINE_SET

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

OUT: Body = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
READY: Body = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-11-26T10:00:00Z"}


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


async def test_a_set_of_virtual_machines_is_scaled_and_healed_by_sol003(region: RealRegion) -> None:
    """MC-001, MC-062 (scenario 3)."""
    user, place = region.user, region.place()
    vnf = await region.start(await region.onboard(MACHINE_SET), namespace=place)
    path = f"/apis/kubevirt.io/v1/namespaces/{place}"
    web, instances = f"{path}/virtualmachineinstancereplicasets/web", f"{path}/virtualmachineinstances"

    async def wants(count: int) -> Body:
        async def found() -> Body | None:
            body = await region.cluster.get(web)
            return body if body is not None and body["spec"]["replicas"] == count else None

        return dict(await until(found, timeout_s=60))

    async def run(owner: Body, name: str) -> None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "web"}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True}
        labels = owner["spec"]["template"]["metadata"]["labels"]
        made: Body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
            "spec": owner["spec"]["template"]["spec"],
        }
        await region.cluster.make(instances, made)
        interface = {"name": "default", "ipAddress": "10.66.1.5"}
        status = {"phase": "Running", "nodeName": "node-1", "interfaces": [interface], "conditions": [READY]}
        await region.write_status(f"{instances}/{name}", status)

    async def count(number: int) -> None:
        await region.write_status(web, {"replicas": number, "readyReplicas": number, "labelSelector": "app=web"})

    async def vnfcs() -> dict[str, str]:
        listed = (await user.instance(vnf["vnf_id"]))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return {each["id"]: each["computeResource"]["vimLevelResourceType"] for each in listed}

    # The instantiation level, not the manifest, says how many.
    owner = await wants(2)
    for name in ("web-a", "web-b"):
        await run(owner, name)
    await count(2)
    await region.settled(vnf)
    assert await vnfcs() == dict.fromkeys(("web-a", "web-b"), "VirtualMachineInstanceReplicaSet")

    operation = await user.start(vnf["vnf_id"], "scale", OUT)
    await run(await wants(3), "web-c")
    await count(3)
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert set(await vnfcs()) == {"web-a", "web-b", "web-c"}

    operation = await user.start(vnf["vnf_id"], "heal", {"vnfcInstanceId": ["web-a"]})

    async def is_gone() -> bool | None:
        return await region.cluster.get(f"{instances}/web-a") is None or None

    await until(is_gone, timeout_s=60)
    await run(owner, "web-d")
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert set(await vnfcs()) == {"web-b", "web-c", "web-d"}
    await region.remove(vnf)
    assert await region.is_empty(place)
