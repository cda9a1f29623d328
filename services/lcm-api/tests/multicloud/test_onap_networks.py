"""The networks of ONAP's ncm (multicloud.md MC-097)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from callers.documented import onap_documented
from kubevnfm_lab.kubernetes.cluster import LabCluster
from worlds.lcm_world import Answer
from worlds.link_gateway import LINKS, LinkGateway, link_gateway
from worlds.vim_world import cluster, lab, make_cluster, settings

__all__ = ["cluster", "lab", "make_cluster", "settings"]

CLUSTER = "/v2/cluster-providers/op/clusters/one"
SUBNET = {
    "name": "a",
    "subnet": "10.44.0.0/24",
    "gateway": "10.44.0.1/24",
    "excludeIps": "10.44.0.2 10.44.0.5..10.44.0.9",
}
NETWORK: Any = {"metadata": {"name": "east", "userData1": "x"}, "spec": {"cniType": "ovn4nfv", "ipv4Subnets": [SUBNET]}}
VLAN = {"vlanID": "100", "providerInterfaceName": "eth1", "logicalInterfaceName": "eth1.100", "vlanNodeSelector": "any"}
PROVIDER: Any = {
    "metadata": {"name": "west"},
    "spec": {
        "cniType": "ovn4nfv", "providerNetType": "VLAN", "vlan": VLAN,
        "ipv4Subnets": [{"name": "b", "subnet": "10.45.0.0/24"}],
    },
}  # fmt: skip


async def call(gateway: LinkGateway, method: str, path: str, body: Any = None) -> Answer:
    """Call as a client of ncm."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    headers = {"Prefer": "wait=0"}
    async with gateway.session.request(method, f"{gateway.url}{path}", data=data, headers=headers) as response:
        answer = Answer(response.status, response.headers, await response.read())
    onap_documented().check(method, path, answer.status, answer.headers, answer.raw)
    if answer.status >= 400:
        assert answer.headers["Content-Type"].startswith("text/plain")
    return answer


@pytest.mark.parametrize("mount", ["", "/api/multicloud-k8s/v1"])
async def test_networks_of_ncm_are_links_that_it_holds(cluster: LabCluster, tmp_path: Path, mount: str) -> None:
    """MC-097, MC-133: a cluster is a region; apply takes the reference ``ncm``, terminate gives it back."""
    async with link_gateway(cluster, tmp_path, "NetworkAttachmentDefinition", "Network", "ProviderNetwork") as gateway:
        here = f"{mount}{CLUSTER}"
        assert (await call(gateway, "POST", f"{here}/networks", NETWORK)).must(201).json == NETWORK
        (await call(gateway, "POST", f"{here}/networks", NETWORK)).must(409)
        (await call(gateway, "POST", f"{here}/provider-networks", PROVIDER)).must(201)
        for kind, body in (("networks", NETWORK), ("provider-networks", PROVIDER)):
            name = body["metadata"]["name"]
            assert (await call(gateway, "GET", f"{here}/{kind}")).must(200).json == [body]
            assert (await call(gateway, "GET", f"{here}/{kind}/{name}")).must(200).json == body
            (await call(gateway, "GET", f"{here}/{kind}/none")).must(404)
        (await call(gateway, "GET", f"{here}/networks/west")).must(404)
        assert (await gateway.call("GET", LINKS)).must(200).json == []
        large = {**NETWORK, "spec": {**NETWORK["spec"], "note": "x" * 2**20}}
        (await call(gateway, "POST", f"{here}/networks", large)).must(422)
        for bad in (
            {},
            {**NETWORK, "colour": 1},
            {**NETWORK, "spec": {"cniType": "calico"}},
            {"spec": NETWORK["spec"]},
        ):
            (await call(gateway, "POST", f"{here}/networks", bad)).must(422)
        (await call(gateway, "POST", f"{here}/networks", b"")).must(400)
        (await call(gateway, "POST", "/v2/cluster-providers/op/clusters/none/networks", NETWORK)).must(404)
        other = {**NETWORK, "metadata": {"name": "other"}}
        (await call(gateway, "PUT", f"{here}/networks/east", other)).must(422)
        changed = {**NETWORK, "metadata": {"name": "east", "description": "d"}}
        # MC-009: none of them names a state.
        puts = [call(gateway, "PUT", f"{here}/networks/east", changed) for _ in range(6)]
        assert [each.must(201).json for each in await asyncio.gather(*puts)] == [changed] * 6

        for _ in range(2):
            (await call(gateway, "POST", f"{here}/apply")).must(204)
        links = {each["name"]: each for each in (await gateway.call("GET", LINKS)).must(200).json}
        assert {name: each["type"] for name, each in links.items()} == {"east": "ovn4nfv", "west": "ovn4nfv-provider"}
        assert all(each["references"] == ["ncm"] for each in links.values())
        # Another user keeps its network.
        held = f"{LINKS}/{links['west']['id']}/references/so"
        assert (await gateway.call("PUT", held, headers={"Prefer": "wait=0"})).status in {200, 202}
        (await call(gateway, "PUT", f"{here}/networks/east", changed)).must(409)
        (await call(gateway, "DELETE", f"{here}/networks/east")).must(409)
        for _ in range(2):
            (await call(gateway, "POST", f"{here}/terminate")).must(204)
        left = {each["name"]: each for each in (await gateway.call("GET", LINKS)).must(200).json}
        assert left["west"]["references"] == ["so"]
        assert left.get("east", {"status": "REMOVING"})["status"] == "REMOVING"
        for kind, name in (("networks", "east"), ("provider-networks", "west")):
            (await call(gateway, "DELETE", f"{here}/{kind}/{name}")).must(204)
            (await call(gateway, "DELETE", f"{here}/{kind}/{name}")).must(404)
        # Deleted while it is applied: no link stays that no network names.
        (await call(gateway, "POST", f"{here}/networks", NETWORK)).must(201)
        sent = (call(gateway, "POST", f"{here}/apply"), call(gateway, "DELETE", f"{here}/networks/east"))
        applied, deleted = await asyncio.gather(*sent)
        assert (applied.status, deleted.status) in {(204, 204), (204, 409)}
        taken = [
            each["name"] for each in (await gateway.call("GET", LINKS)).must(200).json if "ncm" in each["references"]
        ]
        assert taken == ([] if deleted.status == 204 else ["east"])
        if deleted.status == 409:
            (await call(gateway, "POST", f"{here}/terminate")).must(204)
            (await call(gateway, "DELETE", f"{here}/networks/east")).must(204)
        wrong = {**NETWORK, "spec": {"cniType": "ovn4nfv", "ipv4Subnets": [{"name": "a", "subnet": "10.44.0.1/24"}]}}
        (await call(gateway, "POST", f"{here}/networks", wrong)).must(201)
        assert b"east/spec" in (await call(gateway, "POST", f"{here}/apply")).must(422).raw
