"""Changes of a stack with SIGKILL during the request to Heat and while Heat works; nothing is changed twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from callers.user import sample_body
from clouds.holds import Hold
from servers.chaos import Chaos

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

_UPDATE: Final = Hold("asking for the update", "heat", "stack_update", "vnf-{id}*")
SCALE: Final[Sequence[Hold]] = (_UPDATE, Hold("the machine in the making", "nova", "server_create", "vnf-{id}*"))
HEAL: Final[Sequence[Hold]] = (Hold("marking the machine", "heat", "resource_mark_unhealthy"), *SCALE)
RENEWING_WHOLE: Final[Sequence[Hold]] = (
    Hold("the stack going away", "nova", "server_delete", "vnf-{id}*"),
    Hold("asking for the stack", "heat", "stack_create", "vnf-{id}*"),
)
STOP: Final[Sequence[Hold]] = (Hold("stopping", "nova", "server_action", "vnf-{id}*"),)


async def machines(chaos: Chaos, instance_id: str) -> dict[str, Any]:
    """Return the machines in the cloud, after checking that the instance shows the same ones."""
    servers = (await chaos.lab.inventory()).get("servers", [])
    there = {server["id"]: server for server in servers if instance_id in server["name"]}
    info = (await chaos.user.instance(instance_id))["instantiatedVnfInfo"]
    assert {one["computeResource"]["resourceId"] for one in info["vnfcResourceInfo"]} == set(there)
    return there


async def all_changes(chaos: Chaos, target: str) -> None:
    """Instantiate, scale out, heal one machine, stop, start, scale in, heal the whole stack, terminate."""
    user = chaos.user
    instance_id = await user.create(await user.sample("vm"))
    await chaos.run(instance_id, "instantiate", sample_body("vm", "instantiate"), (), target)
    first = set(await machines(chaos, instance_id))

    await chaos.run(instance_id, "scale", sample_body("vm", "scale_out"), SCALE, target)
    both = set(await machines(chaos, instance_id))
    assert len(both) == 2
    assert first < both

    (vnfc,) = [
        one["id"]
        for one in (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
        if one["computeResource"]["resourceId"] in first
    ]
    await chaos.run(instance_id, "heal", {"vnfcInstanceId": [vnfc]}, HEAL, target)
    healed = set(await machines(chaos, instance_id))
    assert len(healed) == 2
    assert healed & both == both - first, "only the named machine was replaced, once"

    await chaos.run(instance_id, "operate", sample_body("vm", "stop"), STOP, target)
    assert {one["status"] for one in (await machines(chaos, instance_id)).values()} == {"SHUTOFF"}
    await chaos.run(instance_id, "operate", sample_body("vm", "start"), (), target)

    await chaos.run(instance_id, "scale", sample_body("vm", "scale_in"), (_UPDATE,), target)
    assert len(await machines(chaos, instance_id)) == 1
    everything = {"additionalParams": {"all": True}}
    await chaos.run(instance_id, "heal", everything, RENEWING_WHOLE, target)
    assert len(await machines(chaos, instance_id)) == 1
    await user.terminate(instance_id)
    assert not any(instance_id in name for name in await chaos.lab.names())


@pytest.mark.deep
@pytest.mark.parametrize("process", ["infra-openstack", "lcm-api"])
async def test_a_process_killed_while_a_stack_is_changed_harms_nothing(six_chaos: Chaos, process: str) -> None:
    """API-061: scale, heal, operate."""
    await all_changes(six_chaos, process)


@pytest.mark.deep
async def test_the_one_process_killed_while_a_stack_is_changed_harms_nothing(single_chaos: Chaos) -> None:
    """API-061: the single node, on its data folder."""
    await all_changes(single_chaos, "kubevnfm")
