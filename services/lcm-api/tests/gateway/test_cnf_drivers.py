"""The management drivers of VNFDs: each one runs, or the request that would leave it out is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from lcm_world import World, sample_request
from package_variants import variant

V1_VIM = [{"id": "cluster", "vimId": "VIM_ID", "vimType": "kubernetes"}]


async def created(world: World, sample: str = "cnf", *, phases: Mapping[str, str]) -> str:
    world.vims.add("VIM_ID", "kubernetes")
    onboarded = await world.upload(variant(world.folder, sample, phases=phases))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    return await world.create(sample)


async def ended(world: World, instance_id: str, task: str, body: Mapping[str, Any]) -> str:
    operation = await world.reached(await world.ask(instance_id, task, body))
    return str(operation["operationState"])


@pytest.mark.parametrize("driver", ["mgmt-drivers-kubernetes", "mgmt-drivers-private-registry", "own-script"])
@pytest.mark.parametrize("phase", ["instantiate_end", "terminate_start", "scale_end"])
async def test_a_driver_that_cannot_run_for_a_cnf_is_refused_by_name(world: World, driver: str, phase: str) -> None:
    instance_id = await created(world, phases={phase: driver})
    body = sample_request("cnf", "instantiate")
    path = f"/vnf_instances/{instance_id}/instantiate"
    for answer in (
        await world.lcm("POST", path, body),
        await world.v1("POST", path, {**body, "vimConnectionInfo": V1_VIM}),
    ):
        detail = answer.problem(422)["detail"]
        assert f"maps {phase} to management driver {driver}" in detail
        assert "for CNFs this VNFM knows" in detail
    assert world.twins.commands == []


@pytest.mark.parametrize("sample", ["cnf", "vm"])
async def test_a_phase_whose_driver_has_no_work_is_as_one_without_driver(world: World, sample: str) -> None:
    """``vnflcm_noop`` of Tacker."""
    plain = "ApplyObjects", "DeleteObjects"
    machines = "CreateResources", "ScaleResources", "DeleteResources"
    phases = dict.fromkeys(("instantiate_start", "instantiate_end", "scale_end", "terminate_end"), "vnflcm_noop")
    instance_id = await created(world, sample, phases=phases)
    assert await ended(world, instance_id, "instantiate", sample_request(sample, "instantiate")) == "COMPLETED"
    if sample == "vm":
        scale = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
        assert await ended(world, instance_id, "scale", scale) == "COMPLETED"
    assert await ended(world, instance_id, "terminate", {"terminationType": "FORCEFUL"}) == "COMPLETED"
    sent = tuple(type(command.data).__name__ for command in world.twins.commands)
    assert sent == (plain if sample == "cnf" else machines)
