"""Outputs of a VNF on a real API server (multicloud.md MC-138)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, RealCluster
from real.real_regions import RealRegion, registered

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

FILES: Final = {
    "artifact-order.yaml": "artifacts: [{file: service.yaml, wait: exists}]\n"
    "outputs: {port: {object: {kind: Service, name: web}, jsonpath: 'spec.ports[0].port'}}\n",
    "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    "spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}\n",
}
ADDRESS: Final = {"object": {"kind": "Service", "name": "web"}, "jsonpath": "{.status.loadBalancer.ingress[0].ip}"}
CHANGED: Final = "kubevnfm.lcm.outputs.changed.v1"


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


async def test_the_address_of_a_load_balancer_comes_late_changes_and_goes(region: RealRegion, user: User) -> None:
    """MC-138 (scenario 18): in the instance, in SOL003 and in the stream of events, each change once."""
    place = region.place()
    vnf = await region.bring_up(await region.onboard(FILES), namespace=place, outputs={"address": ADDRESS})
    assert vnf["outputs"] == {"port": 80, "address": None}
    service = f"/api/v1/namespaces/{place}/services/web"
    stream = user.events(instance=vnf["vnf_id"])
    assert await anext(stream) is None
    for address in ("203.0.113.7", "203.0.113.8", None):
        expected: dict[str, Any] = {"port": 80, "address": address}
        await region.write_status(service, {"loadBalancer": {"ingress": [{"ip": address}] if address else []}})

        async def is_shown(expected: dict[str, Any] = expected) -> bool | None:
            shown = (await region.call("GET", f"/vnf_instances/{vnf['vnf_id']}")).must(200).json["outputs"]
            return shown == expected or None

        await until(is_shown, timeout_s=2)
        assert (await user.instance(vnf["vnf_id"]))["metadata"]["kubevnfm_outputs"] == expected
        event = await anext(stream)
        while event is None or event["type"] != CHANGED:
            event = await anext(stream)
        assert (event["data"]["outputs"], event["data"]["changed"]) == (expected, ["address"])
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator that is typed as an AsyncIterator
    await region.remove(vnf)
    assert await region.is_empty(place)
