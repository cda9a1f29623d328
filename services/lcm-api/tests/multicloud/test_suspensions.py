"""``/multicloud/v1/cloud-regions/{owner}/{region}/suspension`` over HTTP (multicloud.md MC-139, chapter 8)."""

from __future__ import annotations

from typing import Any

from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_lab.kubernetes.cluster import LabCluster
from worlds.region_world import REGIONS, RegionWorld
from worlds.vim_world import RING, TOKEN

BAD_REASONS: list[Any] = [{}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 1025}, {"reason": 5}, {"reason": None}]


async def test_a_region_is_suspended_and_resumed(world: RegionWorld, cluster: LabCluster) -> None:
    region = f"{REGIONS}/op/edge"
    path = f"{region}/suspension"
    (await world.call("PUT", path, {"reason": "x"})).problem(404)
    made = (await world.region(cluster)).must(201).json
    assert "suspended" not in made
    for answer in (await world.call("GET", path), await world.call("DELETE", path)):
        answer.problem(404)
    for body in BAD_REASONS:
        problem = (await world.call("PUT", path, body)).problem(422)
        assert [error["pointer"] for error in problem["errors"]] == ["/reason"], body
    begun = (await world.call("PUT", path, {"reason": "new disks"})).must(200).json
    assert (begun["by"], begun["reason"], begun["scope"]) == ("anybody", "new disks", "region")
    assert (await world.call("PUT", path, {"reason": "new fans"})).must(200).json == {**begun, "reason": "new fans"}
    assert (await world.call("GET", path)).must(200).json["reason"] == "new fans"
    # As lcm-api and infra-k8s ask, before they change something there.
    owner = HttpCloudRegions(world.registry.url, TOKEN, world.session, RING)
    found = await owner.suspensions()
    assert {vim_id: one.reason for vim_id, one in found.items()} == {made["vim_id"]: "new fans"}
    # Maintenance of the registration itself goes on, and changes nothing of the suspension.
    changed = (await world.call("PATCH", region, {"labels": {"a": "b"}})).must(200).json
    assert changed["suspended"] == {**begun, "reason": "new fans"}
    assert (await world.region(cluster, labels={"a": "c"})).must(200).json["suspended"] == changed["suspended"]
    assert (await world.call("GET", REGIONS)).must(200).json[0]["suspended"]["since"] == begun["since"]
    (await world.call("DELETE", path)).must(204)
    assert await owner.suspensions() == {}
    assert "suspended" not in (await world.call("GET", region)).must(200).json
