"""One call to several regions on a real API server, which is two of them (multicloud.md MC-140)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import registered
from real.region_packages import PLAIN

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

GROUPS: Final = "/group-operations"


async def test_one_call_brings_a_vnf_up_in_two_regions(user: User, cluster: RealCluster, tmp_path: Path) -> None:
    """MC-140 (scenario 14): values for each; the VNFs are ordinary ones afterwards."""
    async with registered(user, cluster, tmp_path) as one, registered(user, cluster, tmp_path) as other:
        package = await one.onboard(PLAIN)
        regions = [
            {"cloud_region_id": each.id, "values": {"tag": tag}} for each, tag in ((one, "1.28"), (other, "1.29"))
        ]
        begun = (await one.call("POST", "/vnf_instances", {"csar_id": package, "regions": regions})).must(202).json

        async def ended() -> Body | None:
            shown: Body = (await one.call("GET", f"{GROUPS}/{begun['id']}")).must(200).json
            return shown if shown["status"] != "RUNNING" else None

        group = await until(ended, timeout_s=120)
        assert group["status"] == "COMPLETED", group
        vnfs = (await one.call("GET", f"/vnf_instances?group_operation={begun['id']}")).must(200).json
        found = {each["cloud_region_id"]: each for each in vnfs}
        assert set(found) == {one.id, other.id}
        for region, tag in ((one, "1.28"), (other, "1.29")):
            vnf = found[region.id]
            region.namespaces.append(vnf["namespace"])
            (web,) = await region.read("apps/v1", "Deployment", namespace=vnf["namespace"], name="web")
            assert web["spec"]["template"]["spec"]["containers"][0]["image"] == f"nginx:{tag}"
            await region.remove(vnf)
            assert await region.is_empty(vnf["namespace"])
