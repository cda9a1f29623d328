"""The order between a cluster and the CNFs on it, and between a registry and clusters (sequences.md D0, D0r)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events.lcm import InstanceOrphaned
from kubevnfm_events.stacks import PortFacts, ResourcesChanged, ResourcesCreated, ServerFacts, StackResources
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_lcm_api.lifecycle.core.dependencies import KEY
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION
from kubevnfm_store.query import Stored
from worlds.lcm_world import FragileStore, Storage, World, lcm_world, sample_request

GRACEFUL = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}
FORCEFUL = {"terminationType": "FORCEFUL"}
DELETE = "infra.openstack.delete_resources"
APPLY = "infra.k8s.apply_objects"


class Held:
    """Holds the claims of instances, so that two requests pass their checks before one of them is written."""

    def __init__(self, *instance_ids: str) -> None:
        self.arrived = {each: asyncio.Event() for each in instance_ids}
        self.go_on = {each: asyncio.Event() for each in instance_ids}

    async def passes(self, instance_id: str) -> None:
        if instance_id in self.arrived:
            self.arrived[instance_id].set()
            await self.go_on[instance_id].wait()


class ClaimStore(FragileStore):
    """A store whose writes of claims can be held."""

    held = Held()

    async def update(self, collection: str, id: str, fields: JsonMapping, **more: Any) -> Stored:
        if collection == COLLECTION and "internal/currentOperation" in fields:
            await self.held.passes(id)
        return await super().update(collection, id, fields, **more)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world with a cluster's VIM, and the packages of a cluster and of a CNF."""
    async with lcm_world(tmp_path, Storage(kind=ClaimStore)) as world:
        await world.sample("cluster")
        await world.sample("cnf")
        await world.sample("registry")
        world.vims.add("vim-2", "kubernetes")
        yield world


async def a_cluster(world: World) -> str:
    instance_id = await world.create("cluster")
    await world.reached(await world.instantiate(instance_id, "cluster"), "COMPLETED")
    return instance_id


def on_the_cluster() -> Mapping[str, Any]:
    return {"vimConnectionInfo": {"k": {"vimId": "vim-2", "vimType": "ETSINFV.KUBERNETES.V_1"}}}


async def a_cnf(world: World) -> str:
    instance_id = await world.create("cnf")
    await world.reached(await world.instantiate(instance_id, "cnf", **on_the_cluster()), "COMPLETED")
    return instance_id


def sent(world: World, kind: str, instance_id: str) -> int:
    asked = [each for each in world.twins.commands if each.subject == instance_id]
    return sum(type(each.data).routing_key() == kind for each in asked)


async def mark_of(world: World, instance_id: str) -> Any:
    found = [
        (await call("GET", f"/vnf_instances/{instance_id}")).must(200).json.get("metadata", {}).get(KEY)
        for call in (world.lcm, world.v1)
    ]
    assert found[0] == found[1]
    return found[0]


async def test_a_graceful_termination_names_the_cnfs_and_sends_nothing(world: World) -> None:
    """SEQ-040, API-156: also for a CNF that is being instantiated."""
    cluster_id, done = await a_cluster(world), await a_cnf(world)
    world.twins.waiting.add(APPLY)
    begun = await world.create("cnf")
    operation_id = await world.instantiate(begun, "cnf", **on_the_cluster())
    await world.reached(operation_id, "PROCESSING")
    for call in (world.lcm, world.v1):
        problem = (await call("POST", f"/vnf_instances/{cluster_id}/terminate", GRACEFUL)).problem(409)
        assert problem["type"] == "provided-in-use"
        assert {done, begun} <= set(problem["detail"].replace(",", "").replace(":", "").split())
    assert sent(world, DELETE, cluster_id) == 0
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    for cnf_id in (done, begun):
        await world.reached(await world.ask(cnf_id, "terminate", GRACEFUL), "COMPLETED")
    await world.reached(await world.ask(cluster_id, "terminate", GRACEFUL), "COMPLETED")
    assert sent(world, DELETE, cluster_id) == 1


async def test_a_heal_of_the_whole_cluster_is_refused_as_its_termination_is(world: World) -> None:
    """SEQ-041: nothing of the CNFs would be left in the cluster that is built again."""
    cluster_id, cnf_id = await a_cluster(world), await a_cnf(world)
    for call in (world.lcm, world.v1):
        problem = (await call("POST", f"/vnf_instances/{cluster_id}/heal", {})).problem(409)
        assert (problem["type"], cnf_id in problem["detail"]) == ("provided-in-use", True)
        assert "FORCEFUL" not in problem["detail"], "a heal has no such form"
    assert sent(world, DELETE, cluster_id) == 0
    await world.reached(await world.ask(cnf_id, "terminate", GRACEFUL), "COMPLETED")
    world.twins.failing.add(DELETE)
    await world.reached(await world.ask(cluster_id, "heal", {"additionalParams": {"all": True}}), "FAILED_TEMP")
    body = {**sample_request("cnf", "instantiate"), **on_the_cluster()}
    refused = (await world.lcm("POST", f"/vnf_instances/{cnf_id}/instantiate", body)).problem(409)
    assert refused["type"] == "provider-withdraws"


CREATE = "infra.openstack.create_resources"


async def a_registry(world: World) -> str:
    """Return a registry that answers at 10.0.0.5:5000 and 203.0.113.5:5000."""
    floating = PortFacts(
        name="FIP", resource_id="f", resource_type="OS::Neutron::FloatingIP", floating_address="203.0.113.5"
    )
    own = PortFacts(name="PrivateRegistryVDU_CP1", resource_id="p", addresses=("10.0.0.5",))
    machine = ServerFacts(
        vnfc_id="r", name="PrivateRegistryVDU", vdu_id="PrivateRegistryVDU", server_id="r", stack_id="r", ports=(own,)
    )
    stack = StackResources(stack_id="r", stack_name="r", servers=(machine,), ports=(floating,))
    of_clusters = world.twins.answers[CREATE]
    world.twins.answers[CREATE] = ResourcesCreated(resources=stack)
    world.twins.answers["infra.openstack.heal_resources"] = ResourcesChanged(resources=stack)
    try:
        instance_id = await world.create("registry")
        await world.reached(await world.instantiate(instance_id, "registry"), "COMPLETED")
    finally:
        world.twins.answers[CREATE] = of_clusters
    return instance_id


def pulling_from(*servers: str, **more: object) -> dict[str, Any]:
    """Return the body of a cluster's instantiation."""
    body = sample_request("cluster", "instantiate")
    body["additionalParams"]["k8s_cluster_installation_param"]["private_registry_connection_info"] = [
        {"connection_type": "0", "server": server, **more} for server in servers
    ]
    return body


@pytest.mark.parametrize(
    ("server", "more"),
    [
        ("10.0.0.5:5000", {}),
        ("203.0.113.5:5000", {}),
        ("Registry.example:5000", {"hosts_string": "10.0.0.5 registry.example"}),
    ],
)
async def test_a_registry_that_a_cluster_pulls_from_is_not_taken_away(
    world: World, server: str, more: dict[str, object]
) -> None:
    """D0r, API-158: nor built again with other addresses; a heal that keeps them, and FORCEFUL, go on."""
    registry_id, cluster_id, other_id = await a_registry(world), await world.create("cluster"), await a_cluster(world)
    body = pulling_from(server, "192.0.2.1:5000", **more)
    await world.reached(await world.ask(cluster_id, "instantiate", body), "COMPLETED")
    for call in (world.lcm, world.v1):
        problem = (await call("POST", f"/vnf_instances/{registry_id}/terminate", GRACEFUL)).problem(409)
        assert (problem["type"], cluster_id in problem["detail"]) == ("provided-in-use", True)
        assert other_id not in problem["detail"]
    again = (await world.v1("POST", f"/vnf_instances/{registry_id}/heal", {})).problem(409)
    assert (again["type"], cluster_id in again["detail"]) == ("provided-in-use", True)
    assert sent(world, DELETE, registry_id) == 0
    await world.reached(await world.ask(registry_id, "heal", {}), "COMPLETED")

    await world.reached(await world.ask(registry_id, "terminate", FORCEFUL), "COMPLETED")
    mark = await mark_of(world, cluster_id)
    assert (mark["provided"], mark["provider_id"]) == ("registry", registry_id)
    assert await mark_of(world, other_id) is None


async def test_a_cluster_does_not_begin_to_pull_from_a_registry_that_is_being_deleted(world: World) -> None:
    """D0r, API-158: and a cluster that was terminated, or never came to be, does not hold a registry back."""
    registry_id, cluster_id = await a_registry(world), await world.create("cluster")
    body = pulling_from("10.0.0.5:5000")
    world.twins.failing.add(CREATE)
    failed = await world.ask(cluster_id, "instantiate", body)
    await world.reached(failed, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_instances/{registry_id}/terminate", GRACEFUL)).problem(409)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{failed}/rollback")).must(202)
    await world.reached(failed, "ROLLED_BACK")
    world.twins.failing = {DELETE}
    leaving = await world.ask(registry_id, "terminate", GRACEFUL)
    await world.reached(leaving, "FAILED_TEMP")
    refused = (await world.lcm("POST", f"/vnf_instances/{cluster_id}/instantiate", body)).problem(409)
    assert (refused["type"], registry_id in refused["detail"]) == ("provider-withdraws", True)
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{leaving}/retry")).must(202)
    await world.reached(leaving, "COMPLETED")
    await world.reached(await world.ask(cluster_id, "instantiate", body), "COMPLETED")
    await world.reached(await world.ask(cluster_id, "terminate", GRACEFUL), "COMPLETED")
    registry_id = await a_registry(world)
    await world.reached(await world.ask(registry_id, "terminate", GRACEFUL), "COMPLETED")


async def test_an_error_names_some_of_many_users_and_reads_no_more(world: World) -> None:
    cluster_id = await a_cluster(world)
    for number in range(30):
        await world.store.insert(COLLECTION, f"cnf-{number:02}", {"internal": {"vimIds": ["vim-2"]}})
    problem = (await world.lcm("POST", f"/vnf_instances/{cluster_id}/terminate", GRACEFUL)).problem(409)
    assert problem["detail"].count("cnf-") == 20
    assert " and more: " in problem["detail"]


async def test_a_forceful_termination_marks_the_cnfs_and_publishes_an_event_about_each(world: World) -> None:
    """SEQ-040, API-156: before the machines are deleted; each once; a termination of the CNF ends the mark."""
    events: list[InstanceOrphaned] = []

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, InstanceOrphaned)
        events.append(delivery.envelope.data)
        return Ack()

    await world.bus.consume_events("tests.orphans", ["lcm.instance.orphaned"], keep)
    cluster_id = await a_cluster(world)
    cnfs = [await a_cnf(world) for _ in range(2)]
    world.twins.failing.add(DELETE)
    operation_id = await world.ask(cluster_id, "terminate", FORCEFUL)
    await world.reached(operation_id, "FAILED_TEMP")
    await world.bus.quiet()
    marks = [await mark_of(world, cnf_id) for cnf_id in cnfs]
    assert [(mark["provided"], mark["provider_id"]) for mark in marks] == [("cluster", cluster_id)] * 2
    assert sorted((event.vnf_instance_id, event.provider_id) for event in events) == sorted(
        (cnf_id, cluster_id) for cnf_id in cnfs
    )

    # The cluster is being deleted: nothing else begins to use it.
    late = await world.create("cnf")
    body = {**sample_request("cnf", "instantiate"), **on_the_cluster()}
    refused = (await world.lcm("POST", f"/vnf_instances/{late}/instantiate", body)).problem(409)
    assert (refused["type"], cluster_id in refused["detail"]) == ("provider-withdraws", True)

    # Only kubevnfm writes the mark.
    wanted = {"metadata": {KEY: {"provided": "cluster"}}}
    assert KEY in (await world.lcm("PATCH", f"/vnf_instances/{cnfs[0]}", wanted, headers=PATCH)).problem(400)["detail"]
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")
    assert len(events) == 2
    await world.reached(await world.ask(cnfs[0], "terminate", FORCEFUL), "COMPLETED")
    assert await mark_of(world, cnfs[0]) is None
    assert await mark_of(world, cnfs[1]) == marks[1]


PATCH = {"Version": "2.0.0", "Content-Type": "application/merge-patch+json"}


@pytest.mark.parametrize("first", ["terminate", "instantiate", "both"])
async def test_of_a_termination_and_an_instantiation_at_the_same_moment_one_at_most_goes_on(
    world: World, first: str
) -> None:
    """SEQ-040, API-157: both pass the checks of their requests; the second check, when they are granted, decides."""
    cluster_id, cnf_id = await a_cluster(world), await world.create("cnf")
    held = ClaimStore.held = Held(cluster_id, cnf_id)
    world.twins.waiting.update({DELETE, APPLY})
    try:
        asked = {
            "terminate": asyncio.ensure_future(world.ask(cluster_id, "terminate", GRACEFUL)),
            "instantiate": asyncio.ensure_future(world.instantiate(cnf_id, "cnf", **on_the_cluster())),
        }
        instance_of = {"terminate": cluster_id, "instantiate": cnf_id}
        for event in held.arrived.values():
            await event.wait()
        order = ["terminate", "instantiate"] if first != "instantiate" else ["instantiate", "terminate"]
        states = {}
        if first == "both":
            with world.bus.holding():
                for name in order:
                    held.go_on[instance_of[name]].set()
                ids = {name: await asked[name] for name in order}
            for name in order:
                states[name] = await world.reached(ids[name], "PROCESSING", "ROLLED_BACK")
        else:
            for name in order:
                held.go_on[instance_of[name]].set()
                states[name] = await world.reached(await asked[name], "PROCESSING", "ROLLED_BACK")
            assert states[first]["operationState"] == "PROCESSING"
    finally:
        ClaimStore.held = Held()
    refused = {name for name, state in states.items() if state["operationState"] == "ROLLED_BACK"}
    assert refused
    for name in refused:
        assert states[name]["error"]["status"] == 409
    assert (sent(world, DELETE, cluster_id) > 0) == ("terminate" not in refused)
    assert (sent(world, APPLY, cnf_id) > 0) == ("instantiate" not in refused)
    await world.twins.release()
    # A refused operation has released its instance, and what it used or would have taken away.
    for name in ("instantiate", "terminate"):
        if name not in refused:
            await world.reached(await asked[name], "COMPLETED")
    if "terminate" in refused:
        if "instantiate" not in refused:
            await world.reached(await world.ask(cnf_id, "terminate", GRACEFUL), "COMPLETED")
        await world.reached(await world.ask(cluster_id, "terminate", GRACEFUL), "COMPLETED")
    (await world.lcm("DELETE", f"/vnf_instances/{cnf_id}")).must(204)
    (await world.lcm("DELETE", f"/vnf_instances/{cluster_id}")).must(204)


async def test_a_modification_does_not_move_a_cnf_to_a_cluster_that_is_being_deleted(world: World) -> None:
    """SEQ-040, API-159: both pass the checks of their requests; the termination is granted before the CNF names the cluster."""
    cluster_id = await a_cluster(world)
    world.vims.add("vim-3", "kubernetes")
    cnf_id = await world.create("cnf")
    elsewhere = {"vimConnectionInfo": {"k": {"vimId": "vim-3", "vimType": "ETSINFV.KUBERNETES.V_1"}}}
    await world.reached(await world.instantiate(cnf_id, "cnf", **elsewhere), "COMPLETED")
    held = ClaimStore.held = Held(cnf_id)
    world.twins.waiting.add(DELETE)
    try:
        asked = asyncio.ensure_future(world.lcm("PATCH", f"/vnf_instances/{cnf_id}", on_the_cluster(), headers=PATCH))
        await held.arrived[cnf_id].wait()
        leaving = await world.ask(cluster_id, "terminate", GRACEFUL)
        await world.reached(leaving, "PROCESSING")
        held.go_on[cnf_id].set()
        changing = (await asked).must(202).headers["Location"].rpartition("/")[2]
        failed = await world.reached(changing)
    finally:
        ClaimStore.held = Held()
    assert (failed["operationState"], failed["error"]["status"]) == ("FAILED_TEMP", 409)
    assert failed["error"]["type"] == "provider-withdraws"
    seen = len(world.changes)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{changing}/retry")).must(202)
    await world.until(lambda: [c.state for c in world.changes[seen:]] == ["PROCESSING", "FAILED_TEMP"])
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{changing}/rollback")).must(202)
    await world.reached(changing, "ROLLED_BACK")
    shown = (await world.lcm("GET", f"/vnf_instances/{cnf_id}")).must(200).json
    assert shown["vimConnectionInfo"]["k"]["vimId"] == "vim-3"
    await world.twins.release()
    await world.reached(leaving, "COMPLETED")
    # A cluster that goes on holds its CNFs from the request on.
    other_id = await a_cluster(world)
    moved = (await world.lcm("PATCH", f"/vnf_instances/{cnf_id}", on_the_cluster(), headers=PATCH)).must(202)
    await world.reached(moved.headers["Location"].rpartition("/")[2], "COMPLETED")
    problem = (await world.lcm("POST", f"/vnf_instances/{other_id}/terminate", GRACEFUL)).problem(409)
    assert cnf_id in problem["detail"]
