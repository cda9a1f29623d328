"""``/kubevnfm/v1/topology``: networks with the machines and pods on them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_events.stacks import NetworkFacts, PortFacts, ResourcesCreated
from kubevnfm_lcm_api.lifecycle.machines.addresses import FLOATING_IP
from kubevnfm_lcm_api.views.topology_graph import Graph, TopologyNode
from worlds.cnf_world import deployed
from worlds.lcm_builders import LINK, NETWORK, RESOURCES
from worlds.lcm_world import World

TOPOLOGY = "/kubevnfm/v1/topology"


async def graph(
    world: World, query: str
) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str, str]], dict[str, Any]]:
    """Return the nodes by id, the edges by what they connect, and the whole view."""
    view = (await world.call("GET", f"{TOPOLOGY}?{query}")).must(200).json
    edges = {(each["source"], each["kind"], each["target"]) for each in view["edges"]}
    nodes = {each["id"]: each for each in view["nodes"]}
    assert all(source in nodes and target in nodes for source, _, target in edges)
    return nodes, edges, view


async def test_the_networks_of_a_vnf_and_of_a_vim_are_graphs(world: World) -> None:
    """A part that cannot be read is named, and a graph has no more nodes than are asked for."""
    port = PortFacts(
        name="CP1", resource_id="port-1", addresses=("10.10.0.4",), floating_address="192.0.2.4", mac="fa:16:3e:00:00:01",
        network_id="net-1",
    )  # fmt: skip
    outside = PortFacts(name="CP2", resource_id="port-2", addresses=("10.20.0.4",), network_id="net-outside")
    shared = PortFacts(name="VIP", resource_id="port-vip", addresses=("10.10.0.9",), network_id="net-1")
    floating = PortFacts(name="FIP", resource_id="fip", resource_type=FLOATING_IP, addresses=("192.0.2.4",))
    first = RESOURCES.servers[0].model_copy(update={"ports": (port, outside), "server_name": "web-1"})
    network = NetworkFacts(name="internal", resource_id="net-1")
    stack = RESOURCES.model_copy(update={"servers": (first,), "networks": (network,), "ports": (shared, floating)})
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=stack)
    await world.sample()
    vm = await world.create(vnfInstanceName="vm")
    await world.reached(await world.instantiate(vm), "COMPLETED")
    nodes, edges, view = await graph(world, f"instance={vm}")
    assert (view["truncated"], view["away"]) == (False, [])
    machine, point = "machine:server-m1", "connection-point:port-1"
    assert (nodes[machine]["name"], nodes[machine]["role"]) == ("web-1", "masterNode")
    assert (nodes[point]["addresses"], nodes[point]["floatingAddress"]) == (["10.10.0.4"], "192.0.2.4")
    assert nodes["network:vim-1/net-1"]["name"] == "internal"
    assert edges >= {
        (f"vnf:{vm}", "on", "vim:vim-1"), (f"vnf:{vm}", "has", machine), (machine, "has", point),
        (point, "connects", "network:vim-1/net-1"), ("network:vim-1/net-1", "on", "vim:vim-1"),
        ("connection-point:port-2", "connects", "network:vim-1/net-outside"),
        (f"vnf:{vm}", "has", "connection-point:port-vip"),
    }  # fmt: skip
    assert "connection-point:fip" not in nodes, "it is an address of another one"
    assert nodes["network:vim-1/net-outside"]["name"] == "net-outside"
    on_it = {"id": "p", "resourceHandle": {"resourceId": "port-2"}}
    by_name = {"id": "external", "resourceHandle": {"resourceId": "public"}, "extLinkPorts": [on_it]}
    await world.store.update("vnf_instances", vm, {"instantiatedVnfInfo/extVirtualLinkInfo": [by_name]})
    named = (await graph(world, f"instance={vm}"))[0]
    assert named["network:vim-1/net-outside"]["name"] == "public", "as the request has named it"

    cnf = await deployed(world)
    attached = NETWORK.model_copy(update={"vdu_id": "VDU1"}).model_dump(mode="json")
    await world.store.update("vnf_instances", cnf, {"internal/networks": [attached]})
    link = {**LINK, "references": (f"vnf:{cnf}",)}
    world.links.by_id["link-1"] = world.links.by_vim["k8s"] = VirtualLink.model_validate(link)
    networks = (
        NetworkAddresses(addresses=("10.244.0.7",)),
        NetworkAddresses(network="default/protected", interface="net1", addresses=("10.9.0.7", "fd00::7")),
    )
    pod = {
        "id": "web-1", "vim_id": "k8s", "vnf_id": cnf, "api_version": "v1", "kind": "Pod", "namespace": "default",
        "name": "web-1", "uid": "uid-1", "node": "worker-1", "phase": "Running", "vdu_id": "VDU1", "networks": networks,
        "created_at": "2026-11-26T10:00:00Z", "changed_at": "2026-11-26T10:00:00Z", "watch": "current",
    }  # fmt: skip
    world.inventory.resources = [InventoryResource.model_validate(pod)]
    for query in (f"instance={cnf}", "vim=k8s"):
        nodes, edges, view = await graph(world, query)
        assert nodes["connection-point:uid-1/1"]["addresses"] == ["10.9.0.7", "fd00::7"], query
        assert nodes["pod:uid-1"]["place"] == "worker-1"
        assert edges == {
            (f"vnf:{cnf}", "on", "vim:k8s"), (f"vnf:{cnf}", "has", "pod:uid-1"),
            ("pod:uid-1", "has", "connection-point:uid-1/0"), ("pod:uid-1", "has", "connection-point:uid-1/1"),
            ("connection-point:uid-1/0", "connects", "network:k8s/cluster network"),
            ("connection-point:uid-1/1", "connects", "virtual-link:link-1"),
            ("network:k8s/cluster network", "on", "vim:k8s"), ("virtual-link:link-1", "on", "vim:k8s"),
        }, query  # fmt: skip
        assert not view["truncated"]
    await _marks_problems(world, cnf, link, pod)
    await _shows_users(world, cnf, link)
    await _joins_definitions_of_a_namespace(world, cnf, attached, pod)
    nodes, _, view = await graph(world, "vim=vim-1&limit=3")
    assert (len(nodes), view["truncated"]) == (3, True)

    await _names_what_is_away(world, cnf)
    for query in ("", f"instance={cnf}&vim=k8s", "vim=k8s&limit=0", "vim=k8s&limit=2001", "network=a"):
        (await world.call("GET", f"{TOPOLOGY}?{query}")).problem(400)
    for query in ("instance=00000000-0000-4000-8000-000000000000", "vim=none"):
        (await world.call("GET", f"{TOPOLOGY}?{query}")).problem(404)


async def _marks_problems(world: World, cnf: str, link: dict[str, Any], pod: dict[str, Any]) -> None:
    broken = {**link, "status": "DEGRADED", "status_detail": "no bridge on worker-1"}
    world.links.by_id["link-1"] = VirtualLink.model_validate(broken)
    stuck = {**pod, "phase": "Pending", "ready": False, "trouble": "ImagePullBackOff: manifest unknown"}
    world.inventory.resources = [InventoryResource.model_validate(stuck)]
    nodes, _, _ = await graph(world, f"instance={cnf}")
    assert {key: each["text"] for key, each in nodes.items() if each["health"] == "problem"} == {
        "virtual-link:link-1": "no bridge on worker-1", "pod:uid-1": "ImagePullBackOff: manifest unknown",
    }  # fmt: skip
    assert nodes["vim:k8s"]["health"] == "ok"
    # By the rule of trees and lists, also without a text of the cluster.
    for facts, expected in (
        ({"phase": "Failed"}, ("problem", "the phase is Failed")),
        ({"ready": False, "changed_at": datetime.now(UTC).isoformat()}, ("progressing", "it is not ready")),
        ({"watch": "lost"}, ("unknown", "the cluster cannot be watched: lost")),
    ):
        world.inventory.resources = [InventoryResource.model_validate({**pod, **facts})]
        seen = (await graph(world, "vim=k8s"))[0]["pod:uid-1"]
        assert (seen["health"], seen["text"]) == expected
    world.links.by_id["link-1"] = VirtualLink.model_validate(link)
    world.inventory.resources = [InventoryResource.model_validate(pod)]


async def _shows_users(world: World, cnf: str, link: dict[str, Any]) -> None:
    """Links, volumes and regions as people ask for them: with health and users, those that are VNFs by name."""
    users = (f"vnf:{cnf}", *(f"so-{number}" for number in range(12)))
    broken = {
        **link,
        "status": "FAILED",
        "status_detail": "refused\nby the webhook",
        "references": users,
        "use_count": 13,
    }
    # The stand-in finds what it has for no VIM, if none is asked for.
    world.links.by_vim[""] = world.links.by_id["link-2"] = VirtualLink.model_validate({**broken, "id": "link-2"})
    volume = {
        "id": "volume-1", "cloud_region_id": "op/edge", "name": "disk", "phase": "Bound", "size": "1Gi",
        "access_modes": ("ReadWriteOnce",), "volume_mode": "Filesystem", "reclaim": "Retain", "in_use_by": (cnf,),
        "claim": {"namespace": "default", "name": "data"}, "created_at": "t", "updated_at": "t",
    }  # fmt: skip
    world.volumes.by_vim[""] = world.volumes.by_id["volume-1"] = PersistentVolume.model_validate(volume)
    world.regions.add("op/edge", "k8s", status="UNREACHABLE", status_reason="no answer within 10 s")

    async def listed(what: str) -> dict[str, Any]:
        page = (await world.call("GET", f"/kubevnfm/v1/{what}?limit=5")).must(200).json
        assert page["sequence"]
        (item,) = page["items"]
        return dict(item)

    row = await listed("links")
    assert (row["health"], row["text"], row["useCount"], len(row["users"])) == (
        "problem", "refused by the webhook", 13, 10,
    )  # fmt: skip
    shown = (await world.call("GET", "/kubevnfm/v1/links/link-2")).must(200).json
    name = (await world.call("GET", f"/vnflcm/v2/vnf_instances/{cnf}")).must(200).json.get("vnfInstanceName")
    assert (len(shown["users"]), shown["users"][0]["vnfInstanceId"], shown["users"][0].get("name")) == (13, cnf, name)
    row = await listed("volumes")
    assert (row["state"], row["health"], row["claim"], row["users"][0]["vnfInstanceId"]) == (
        "Bound", "ok", "default/data", cnf,
    )  # fmt: skip
    assert (await world.call("GET", "/kubevnfm/v1/volumes/volume-1")).must(200).json["useCount"] == 1
    row = await listed("regions")
    assert (row["id"], row["health"], row["text"]) == ("op/edge", "problem", "no answer within 10 s")
    region = (await world.call("GET", "/kubevnfm/v1/regions/op/edge")).must(200).json
    assert (region["vimId"], region["protectedNamespaces"]) == ("k8s", [])
    for missing in ("links/none", "volumes/none", "regions/op/none"):
        (await world.call("GET", f"/kubevnfm/v1/{missing}")).problem(404)
    for wrong in ("links?state=GONE", "volumes?state=x", "regions?limit=0"):
        (await world.call("GET", f"/kubevnfm/v1/{wrong}")).problem(400)


async def _names_what_is_away(world: World, cnf: str) -> None:
    world.inventory.failure = world.links.failure = ServiceUnavailable("infra-k8s does not answer")
    nodes, _, view = await graph(world, "vim=k8s")
    assert {f"vnf:{cnf}", "vim:k8s", "virtual-link:link-1"} <= set(nodes), "the VNF and its link are stored"
    assert view["away"] == [
        {"part": "virtual-links", "text": "infra-k8s does not answer"}, {"part": "pods", "text": "infra-k8s does not answer"},
    ]  # fmt: skip

    async def away(vim_id: str) -> Any:
        raise ServiceUnavailable("vim-registry does not answer")

    asked, world.vims.get = world.vims.get, away  # type: ignore[method-assign]
    for query in ("vim=k8s", f"instance={cnf}"):
        nodes, _, view = await graph(world, query)
        assert (nodes["vim:k8s"]["name"], f"vnf:{cnf}" in nodes) == ("k8s", True), "the VNF is stored"
        assert {"part": "vim", "text": "vim-registry does not answer"} in view["away"]
    world.vims.get = asked  # type: ignore[method-assign]


async def _joins_definitions_of_a_namespace(
    world: World, cnf: str, attached: dict[str, Any], pod: dict[str, Any]
) -> None:
    """Check a link whose definition has the namespace of the pod in its name."""
    by_namespace = {**attached, "interface": "other", "link": attached["link"] | {"is_definition_by_namespace": True}}
    await world.store.update("vnf_instances", cnf, {"internal/networks": [by_namespace]})
    for namespace, is_there in (("default", True), ("others", False)):
        named = NetworkAddresses(network=f"default/protected-{namespace}", interface="net1", addresses=("10.9.0.7",))
        world.inventory.resources = [InventoryResource.model_validate({**pod, "networks": (named,)})]
        edges = (await graph(world, f"instance={cnf}"))[1]
        assert (("connection-point:uid-1/0", "connects", "virtual-link:link-1") in edges) is is_there, namespace


def test_a_full_graph_takes_nothing_more() -> None:
    """Pods behind the limit cost nothing, and each edge has both of its nodes."""
    found = Graph(2)
    for name in ("a", "b", "c"):
        found.add(TopologyNode(id=name, kind="pod", name=name))
        found.connect(name, "later", "on")
        found.connect("a", name, "has")
    assert (list(found.nodes), found.is_truncated, found.lacks("a"), found.lacks("d")) == (
        ["a", "b"],
        True,
        False,
        True,
    )
    assert [(each.source, each.target) for each in found.edges] == [("a", "a"), ("a", "b")]
