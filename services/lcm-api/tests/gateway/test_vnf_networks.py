"""Operations on machines while no network of VNFs is named: refused before anything is created, but a termination."""

from __future__ import annotations

from pathlib import Path

from packages.package_variants import scripted_cluster
from worlds.lcm_world import lcm_world, sample_request

REASON = "the operation logs in to machines over SSH, and the setting vnf_networks is empty"


async def test_a_cluster_is_refused_before_a_machine_is_made_and_a_machine_without_driver_is_not(
    tmp_path: Path,
) -> None:
    async with lcm_world(tmp_path, vnf_networks="") as world:
        await world.sample("cluster")
        path = f"/vnf_instances/{await world.create('cluster')}/instantiate"
        problem = (await world.lcm("POST", path, sample_request("cluster", "instantiate"))).problem(422)
        assert REASON in problem["detail"]
        assert world.twins.commands == []
        await world.sample("vm")
        await world.reached(await world.instantiate(await world.create()), "COMPLETED")


async def test_a_cluster_that_a_script_builds_is_refused_too(tmp_path: Path) -> None:
    async with lcm_world(tmp_path, vnf_networks="") as world:
        await world.upload(scripted_cluster(world.folder))
        path = f"/vnf_instances/{await world.create('cluster')}/instantiate"
        problem = (await world.lcm("POST", path, sample_request("cluster", "instantiate"))).problem(422)
        assert REASON in problem["detail"]
        assert world.twins.commands == []


async def test_after_an_upgrade_a_cluster_is_scaled_once_its_network_is_named_and_terminated_before(
    tmp_path: Path,
) -> None:
    scale = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
    async with lcm_world(tmp_path) as world:
        await world.sample("cluster")
        instance_id = await world.create("cluster")
        await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    async with lcm_world(tmp_path, vnf_networks="") as world:
        problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", scale)).problem(422)
        assert REASON in problem["detail"]
        heal = (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"cause": "x"})).problem(422)
        assert REASON in heal["detail"]
        operation = await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"})
        await world.reached(operation, "COMPLETED")
