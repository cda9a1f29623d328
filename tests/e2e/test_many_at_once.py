"""Many requests at the same time."""

from __future__ import annotations

import asyncio

import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from servers.installations import Installation
from servers.wirings import in_six


async def test_one_of_two_operations_on_one_instance_is_accepted(user: User) -> None:
    """API-043."""
    instance_id = await user.create(await user.sample("vm"))
    body = sample_body("vm", "instantiate")
    answers = await asyncio.gather(*(user.ask(instance_id, "instantiate", body) for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [202, 409, 409, 409, 409]
    accepted = next(answer for answer in answers if answer.status == 202)
    operation = accepted.headers["Location"].rsplit("/", 1)[-1]
    assert (await user.rest(operation))["state"] == "COMPLETED"
    (await user.ask(instance_id, "instantiate", body)).must(409)
    await user.terminate(instance_id)
    (await user.ask(instance_id, "terminate", GRACEFUL)).must(404)


@in_six
@pytest.mark.faults
async def test_retry_and_rollback_at_once_are_one_of_both(user: User, lab: LabControl) -> None:
    """API-042."""
    instance_id = await user.create(await user.sample("vm"))
    async with lab.fault("nova", "server_create", message="No valid host was found."):
        operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
        assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    path = f"/vnf_lcm_op_occs/{operation}"
    answers = await asyncio.gather(*(user.lcm("POST", f"{path}/{task}") for task in ("retry", "rollback")))
    assert sorted(answer.status for answer in answers) == [202, 409]
    state = (await user.rest(operation))["state"]
    assert state in {"COMPLETED", "ROLLED_BACK"}
    if state == "COMPLETED":
        await user.do(instance_id, "terminate", GRACEFUL)
    await user.delete(instance_id)


async def test_many_instances_are_built_and_taken_down_at_once(user: User, lab: LabControl) -> None:
    """API-043: the operations do not wait for one another, and each creates its own stack."""
    vnfd_id = await user.sample("vm")
    made = await asyncio.gather(*(user.create(vnfd_id) for _ in range(10)))
    body = sample_body("vm", "instantiate")
    await asyncio.gather(*(user.do(instance_id, "instantiate", body) for instance_id in made))
    stacks = [stack["name"] for stack in (await lab.inventory())["stacks"]]
    assert sorted(name for name in stacks if name.removeprefix("vnf-") in made) == sorted(f"vnf-{one}" for one in made)
    await asyncio.gather(*(user.terminate(instance_id) for instance_id in made))


async def test_sixteen_clients_create_list_show_and_delete_side_by_side(installation: Installation) -> None:
    """No request fails or returns the instance of another client; `make bench` runs this load for a minute."""
    async with User(installation) as first:
        vnfd_id = await first.sample("vm")

    async def client(number: int) -> None:
        async with User(installation) as user:
            for turn in range(3):
                name = f"client-{number}-{turn}"
                instance_id = await user.create(vnfd_id, vnfInstanceName=name)
                assert (await user.instance(instance_id))["vnfInstanceName"] == name
                query = f"/vnf_instances?filter=(eq,vnfInstanceName,{name})"
                found = (await user.lcm("GET", query)).must(200).json
                assert [each["id"] for each in found] == [instance_id]
                (await user.lcm("GET", "/vnf_instances")).must(200)
                await user.delete(instance_id)
                (await user.lcm("GET", f"/vnf_instances/{instance_id}")).must(404)

    await asyncio.gather(*(client(number) for number in range(16)))
