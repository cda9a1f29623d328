"""``additionalParams.capi`` of an instantiate request over HTTP, with twins behind."""

from __future__ import annotations

from kubevnfm_events.capi import AwaitCluster
from lcm_world import World
from workload_world import built, sent


async def test_a_cluster_can_be_ready_once_its_api_server_answers(world: World) -> None:
    """Chapter 7, ``ready``."""
    await built(world, ready="initialized")
    assert {each.stage for each in sent(world, AwaitCluster)} == {"initialized"}
