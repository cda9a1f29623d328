"""``additionalParams.capi`` of an instantiate request over HTTP, with twins behind."""

from __future__ import annotations

import pytest
from kubevnfm_events.capi import AwaitCluster
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.lifecycle.workloads.capi import capi_parameters
from worlds.lcm_world import World
from worlds.workload_world import built, sent


async def test_a_cluster_can_be_ready_once_its_api_server_answers(world: World) -> None:
    """Chapter 7, ``ready``."""
    await built(world, ready="initialized")
    assert {each.stage for each in sent(world, AwaitCluster)} == {"initialized"}


@pytest.mark.parametrize("name", ["vim_name", "cluster_name", "cluster_role", "callback_url"])
@pytest.mark.parametrize("text", ["a\r\nb", "a\0b", "a\u2028b", "a" * 2049])
def test_a_text_that_no_call_back_can_repeat_is_refused_with_the_request(name: str, text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        capi_parameters({name: text}, lambda given, place: ())
    assert refusal.value.field == f"additionalParams/capi/{name}"
