"""Change of the package of workload clusters over HTTP, with twins behind: what is refused, what is sent, what is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kubevnfm_events.capi import AwaitCluster, RollOutMachines
from lcm_world import World
from package_variants import CAPI_WORKLOAD
from workload_world import AWAIT, SHOWN, built, machines, sent, shown

ROLL_OUT = {"vnfdId": CAPI_WORKLOAD, "additionalParams": {"capi": {"rollout": True}}}


async def test_a_roll_out_replaces_the_machines_and_nothing_else(world: World) -> None:
    """CR-103, CR-092: the time is stored with the operation, so that a retry sends the same; the VIM stays."""
    instance_id = await built(world)
    before = await shown(world, instance_id)
    world.twins.failing = {"infra.k8s.roll_out_machines"}
    operation_id = await world.ask(instance_id, "change_vnfpkg", ROLL_OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    world.twins.failing = set()
    world.twins.answers[AWAIT] = machines([7])
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")
    first, second = sent(world, RollOutMachines)
    assert (first.roll_out_after, first.cluster.name) == (second.roll_out_after, "workload")
    assert datetime.fromisoformat(first.roll_out_after) <= datetime.now(UTC)
    assert sent(world, AwaitCluster)[-1].made_after == first.roll_out_after
    after = await shown(world, instance_id)
    assert [one["id"] for one in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["cp-0", "md-7"]
    assert {name: before[name] for name in ("vnfdId", "vimConnectionInfo", "metadata")} == {
        name: after[name] for name in ("vnfdId", "vimConnectionInfo", "metadata")
    }
    changed = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json["resourceChanges"]["affectedVnfcs"]
    assert {(one["id"], one["changeType"]) for one in changed} == {("md-0", "REMOVED"), ("md-7", "ADDED")}


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"vnfdId": "another"}, 422, "vnfdId"),
        ({"additionalParams": {"capi": {"rollout": "now"}}}, 400, "additionalParams/capi/rollout"),
        ({"additionalParams": {"capi": [True]}}, 400, "additionalParams/capi"),
        ({"additionalParams": {"capi": {"rollout": True, "vim_name": "x"}}}, 422, "additionalParams/capi/vim_name"),
        ({"additionalParams": {"capi": {"rollout": True}, "namespace": "x"}}, 422, "additionalParams/namespace"),
    ],
)
async def test_a_roll_out_with_anything_else_is_refused_by_field(
    world: World, change: dict[str, Any], status: int, field: str
) -> None:
    """CR-103: before anything is sent."""
    instance_id = await built(world)
    answer = await world.lcm("POST", f"{SHOWN.format(instance_id)}/change_vnfpkg", {**ROLL_OUT, **change})
    assert field in answer.problem(status)["detail"]
    assert not sent(world, RollOutMachines)
