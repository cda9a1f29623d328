"""``capi.openstack_vim_id`` of a workload cluster: what is refused, what infra-k8s is asked, and how long the VIM is in use."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.objects import ApplyObjects, DeleteObjects
from worlds.lcm_world import TOKEN, World, sample_request
from worlds.workload_world import APPLY, AWAIT, applied, machines, sent

FIELD = "additionalParams/capi/openstack_vim_id"


@pytest.fixture
async def cluster(world: World) -> World:
    """Return lcm-api with the package and the management cluster; ``vim-1`` is an OpenStack."""
    world.twins.answers[APPLY] = applied()
    world.twins.answers[AWAIT] = machines([0])
    world.vims.add("k8s", "kubernetes")
    await world.sample("capi-workload")
    return world


def request(vim_id: object) -> dict[str, Any]:
    body = sample_request("capi-workload", "instantiate")
    body["additionalParams"]["capi"]["openstack_vim_id"] = vim_id
    return {**body, "vimConnectionInfo": {"management": {"vimId": "k8s", "vimType": "kubernetes"}}}


async def users(world: World, vim_id: str) -> list[str]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    found: list[str] = (await world.call("GET", f"/internal/v1/vims/{vim_id}/users", headers=headers)).json["users"]
    return found


async def test_the_openstack_gives_the_login_and_is_in_use_until_the_termination(cluster: World) -> None:
    """CR-049, CR-117: infra-k8s is asked for the Secret; the VIM cannot be deleted as long as the cluster needs it."""
    instance_id = await cluster.create("capi-workload")
    cluster.twins.waiting.add(AWAIT)
    operation = await cluster.ask(instance_id, "instantiate", request("vim-1"))
    await cluster.twins.has_asked(2)
    assert await users(cluster, "vim-1") == [instance_id]
    await cluster.twins.release()
    await cluster.reached(operation, "COMPLETED")
    (command,) = sent(cluster, ApplyObjects)
    assert command.openstack_vim_id == "vim-1"
    assert await users(cluster, "vim-1") == await users(cluster, "k8s") == [instance_id]
    heal = {"additionalParams": {"capi": {"recreate": True}}}
    await cluster.reached(await cluster.ask(instance_id, "heal", heal), "COMPLETED")
    assert [each.openstack_vim_id for each in sent(cluster, ApplyObjects)] == ["vim-1", "vim-1"]
    assert await users(cluster, "vim-1") == [instance_id]
    operation = await cluster.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"})
    await cluster.reached(operation, "COMPLETED")
    assert await users(cluster, "vim-1") == []


async def test_the_openstack_is_in_use_until_the_remains_of_a_failed_instantiate_are_deleted(cluster: World) -> None:
    """CR-049: fail leaves the login, and its removal, which a new instantiate or DELETE begins, takes it back."""
    instance_id = await cluster.create("capi-workload")
    cluster.twins.failing.add(AWAIT)
    operation = await cluster.ask(instance_id, "instantiate", request("vim-1"))
    await cluster.reached(operation, "FAILED_TEMP")
    (await cluster.lcm("POST", f"/vnf_lcm_op_occs/{operation}/fail")).must(200)
    await cluster.reached(operation, "FAILED")
    assert await users(cluster, "vim-1") == [instance_id]
    (await cluster.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await cluster.twins.has_asked(3)
    await cluster.bus.quiet()
    assert [each.vnf_instance_id for each in sent(cluster, DeleteObjects)] == [instance_id]
    assert await users(cluster, "vim-1") == []


@pytest.mark.parametrize(
    ("vim_id", "status", "said"),
    [
        ("unknown", 422, "no VIM unknown is registered"),
        ("k8s", 422, "an OpenStack expected; VIM k8s is registered with type kubernetes"),
        (5, 400, "a text expected"),
        ("", 400, "a text expected"),
    ],
)
async def test_another_vim_is_refused(cluster: World, vim_id: object, status: int, said: str) -> None:
    """CR-049: before anything is asked, with the name of the field."""
    instance_id = await cluster.create("capi-workload")
    answer = await cluster.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", request(vim_id))
    assert answer.problem(status)["detail"] == f"{FIELD}: {said}"
    assert cluster.twins.commands == []
    assert await users(cluster, "vim-1") == []
