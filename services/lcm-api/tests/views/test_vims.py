"""``/kubevnfm/v1/vims``: VIMs as people and the page ask for them."""

from __future__ import annotations

from typing import Any

from kubevnfm_events.stacks import ResourcesCreated
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import World

VIMS = "/kubevnfm/v1/vims"
NODES = [
    {"name": "m1", "ready": True, "addresses": ["10.10.0.4"], "version": "v1.31.4"},
    {"name": "w1", "ready": True, "addresses": ["10.10.0.5"]},
    {
        "name": "w2", "ready": False, "addresses": ["10.10.0.6"], "since": "2026-11-26T10:00:00Z",
        "reason": "KubeletNotReady: cni plugin not initialized",
    },
]  # fmt: skip
CAPACITY = {"as_of": "2026-11-26T10:00:00.000Z", "nodes": 3, "nodes_ready": 2, "cpu": 12.0, "memory_bytes": 2**34}


async def test_vims_are_listed_with_their_state_and_shown_with_their_nodes(world: World) -> None:
    """And the machines of a cluster have the states of its nodes in its tree."""
    await world.sample("cluster")
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=RESOURCES)
    cluster = await world.create("cluster")
    await world.reached(await world.instantiate(cluster, "cluster"), "COMPLETED")
    stored = await world.store.get("vnf_instances", cluster)
    assert stored is not None
    vim_id = stored.body["internal"]["clusterVimId"]
    quotas = [{"name": "cores", "used": 3, "limit": 20}, {"name": "ram_mib", "used": 512}]
    world.vims.records["vim-1"]["capacity"] = {"as_of": CAPACITY["as_of"], "quotas": quotas}
    world.vims.add(
        vim_id, "kubernetes", name="edge", owner=cluster, capacity=CAPACITY, cluster_nodes=NODES, days_left=200,
        expires_at="2027-06-01T00:00:00Z", expiring="client_certificate", checked_at="2026-11-26T10:00:30.000Z",
        check_ms=3.5, error="no route\nto host", error_at="2026-11-26T09:00:00.000Z",
    )  # fmt: skip
    world.vims.add("old", "kubernetes", days_left=3, expires_at="2026-11-30T00:00:00Z", expiring="bearer_token")
    world.vims.add("gone", "kubernetes", status="UNREACHABLE", status_reason="no answer within 10 s")

    first = (await world.call("GET", f"{VIMS}?limit=3")).must(200).json
    second = (await world.call("GET", first["next"].removeprefix(world.url))).must(200).json
    assert first["sequence"]
    assert "next" not in second
    rows = {each["name"]: each for each in [*first["items"], *second["items"]]}
    assert list(rows) == ["edge", "gone", "lab", "old"]
    assert {name: (row["health"], row.get("text")) for name, row in rows.items()} == {
        "edge": ("problem", "1 of its nodes are not ready"),
        "gone": ("problem", "no answer within 10 s"),
        "lab": ("ok", None),
        "old": ("problem", "its bearer_token ends in 3 days, at 2026-11-30T00:00:00Z"),
    }
    assert (rows["lab"]["vnfCount"], rows["edge"]["vnfCount"]) == (1, 0)
    assert rows["lab"]["capacity"]["quotas"] == quotas
    assert rows["edge"]["capacity"] == {
        "asOf": CAPACITY["as_of"], "nodes": 3, "nodesReady": 2, "cpu": 12.0, "memoryBytes": 2**34,
    }  # fmt: skip
    assert rows["edge"]["lastError"] == "no route to host"
    assert rows["edge"]["credentialsEnd"] == {
        "part": "client_certificate", "at": "2027-06-01T00:00:00Z", "daysLeft": 200,
    }  # fmt: skip
    for query, names in (
        ("type=openstack", ["lab"]),
        ("state=UNREACHABLE", ["gone"]),
        ("name=ed", ["edge"]),
        (f"vnfInstanceId={cluster}", ["edge"]),
    ):
        found = (await world.call("GET", f"{VIMS}?{query}")).must(200).json["items"]
        assert [each["name"] for each in found] == names, query
    owned = (await world.call("GET", f"/v1.0/vims?vnf_instance_id={cluster}&vnf_instance_id=other&fields=id")).must(200)
    assert owned.json == {"vims": [{"id": vim_id}]}
    for query in ("type=aws", "state=GONE", "limit=0", "nextpage_opaque_marker=x"):
        (await world.call("GET", f"{VIMS}?{query}")).problem(400)

    shown = (await world.call("GET", f"{VIMS}/{vim_id}")).must(200).json
    assert [(each["name"], each["ready"]) for each in shown["nodes"]] == [("w2", False), ("m1", True), ("w1", True)]
    assert (await world.call("GET", f"{VIMS}/none")).problem(404)["detail"] == "VIM none does not exist"

    root = (await world.call("GET", f"/kubevnfm/v1/instances/{cluster}/tree")).must(200).json["root"]
    stack = next(each for each in root["children"] if each["kind"] == "stack")
    servers: list[dict[str, Any]] = stack["children"]
    assert [(each["id"], each["nodeState"], each["place"]) for each in servers] == [
        ("server-w2", "NotReady", "w2"), ("server-m1", "Ready", "m1"), ("server-w1", "Ready", "w1"),
    ]  # fmt: skip
    assert servers[0]["text"] == "the node is not ready: KubeletNotReady: cni plugin not initialized"
    assert (servers[0]["since"], root["health"]) == ("2026-11-26T10:00:00Z", "problem")
