"""The answers to credentials-receiver: which call-back an instance awaits, at each moment of its operations."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.instances import HttpInstances
from kubevnfm_events.mgmt import RunScript
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.rotation import Rotation
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.workloads.awaited_callbacks import AwaitedCallbacks
from kubevnfm_lcm_api.lifecycle.workloads.callbacks import awaited_by, cluster_uid_of
from worlds.lcm_builders import CREDENTIALS_SENT, NOW, RING
from worlds.lcm_world import TOKEN, World, sample_request
from worlds.stored_operations import OPERATIONS, read_story, story_paths
from worlds.workload_world import APPLY, AWAIT, applied, built, machines

SEND, WITHDRAW, REGISTER = "mgmt.send_credentials", "mgmt.withdraw_credentials", "vim.register_received"
VIMS = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}


async def awaited(world: World, instance_id: str, operation_id: str = "") -> AwaitedCallback | None:
    """Ask as the receiver does."""
    return await HttpInstances(world.url, TOKEN, world.session).awaited(instance_id, operation_id)


async def held(world: World, kind: str) -> str:
    """Return the operation of the command that the twins hold, once it is there."""
    while not (found := [one for one in world.twins.held if type(one.data).routing_key() == kind]):
        await world.twins.has_asked(len(world.twins.commands) + 1)
    return found[0].operationid


async def instantiated(world: World, sample: str = "capi-workload", **capi: Any) -> tuple[str, str]:
    """Start the instantiation of a workload cluster; return its instance and the operation."""
    world.twins.answers |= {APPLY: applied(), AWAIT: machines([0])}
    world.vims.add("k8s", "kubernetes")
    await world.sample(sample)
    instance_id = await world.create(sample)
    parameters = sample_request(sample, "instantiate")["additionalParams"]
    parameters = {**parameters, "capi": {**parameters["capi"], **capi}}
    body = {"vimConnectionInfo": VIMS, "additionalParams": parameters}
    return instance_id, await world.instantiate(instance_id, sample, **body)


async def test_an_instance_awaits_credentials_while_they_are_sent_and_at_no_other_time(world: World) -> None:
    """CR-074: all facts are those of the request and of the Cluster object that infra-k8s has applied."""
    world.twins.waiting |= {SEND, REGISTER}
    instance_id, operation_id = await instantiated(
        world, vim_name="edge", vim_default=True, register_vim=True, sender="driver"
    )
    assert await held(world, SEND) == operation_id
    expected = AwaitedCallback(
        event="CREATED",
        operation_id=operation_id,
        vnfd_id=(await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["vnfdId"],
        management_vim_id="k8s",
        cluster_name="workload",
        cluster_namespace="default",
        cluster_uid="workload",
        register_vim=True,
        vim_name="edge",
        vim_default=True,
    )
    # Named, not named, or with the name of an operation that does not exist: what runs is awaited.
    for named in (operation_id, "", "none"):
        assert await awaited(world, instance_id, named) == expected
    # Another instance, which names the operation of this one; and one that does not exist.
    other = await world.create("capi-workload")
    for stranger in (other, "none", "..", "a/b"):
        assert await awaited(world, stranger, operation_id) is None

    world.twins.waiting.remove(SEND)
    await world.bus.publish(world.twins.answer(world.twins.held.pop()))
    await held(world, REGISTER)
    for named in (operation_id, ""):
        assert await awaited(world, instance_id, named) is None
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert await awaited(world, instance_id, operation_id) is None

    world.twins.waiting.add(WITHDRAW)
    terminate = await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"})
    await held(world, WITHDRAW)
    found = await awaited(world, instance_id, operation_id)
    assert found is not None
    assert (found.event, found.operation_id, found.cluster_uid) == ("DELETED", terminate, CREDENTIALS_SENT.cluster_uid)


async def test_a_script_of_the_package_sends_what_the_operation_says(world: World) -> None:
    """CR-009."""
    world.twins.waiting.add(RunScript.routing_key())
    instance_id, operation_id = await instantiated(world, "capi-workload-sender", register_vim=False)
    await held(world, RunScript.routing_key())
    found = await awaited(world, instance_id, operation_id)
    assert found is not None
    assert (found.event, found.register_vim, found.vim_default) == ("CREATED", False, False)
    assert (found.vim_name, found.cluster_uid) == (f"workload-{instance_id[:8]}", "workload")


async def test_the_clean_up_of_a_deleted_instance_awaits_the_deletion_of_its_credentials(world: World) -> None:
    """CR-072, CR-112: the instance does not exist any more, and credentials that stayed would have no owner."""
    world.twins.failing.add(SEND)
    instance_id, operation_id = await instantiated(world)
    await world.reached(operation_id, "FAILED_TEMP")
    assert await awaited(world, instance_id, operation_id) is None
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    await world.reached(operation_id, "FAILED")
    world.twins.waiting.add(WITHDRAW)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    clean_up = await held(world, WITHDRAW)
    assert clean_up != operation_id
    found = await awaited(world, instance_id, clean_up)
    assert found is not None
    assert (found.event, found.operation_id, found.cluster_uid) == ("DELETED", clean_up, "workload")
    assert await awaited(world, instance_id, "") is None


class SetClock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> Any:
        return self.at


async def test_a_rotation_awaits_its_credentials_until_it_has_ended(world: World) -> None:
    """CR-062."""
    instance_id = await built(world)
    clock = SetClock()
    awaiting = AwaitedCallbacks(world.store, clock)
    assert await awaiting.awaited(instance_id, "") is None
    until = (NOW + timedelta(seconds=130)).isoformat()
    for rotation, is_awaited in (
        (Rotation(id="rotation-1", until=until), True),
        (Rotation(id="rotation-1", until=until, problem="the receiver does not answer"), False),
    ):
        stored = await world.store.get(COLLECTION, instance_id)
        assert stored is not None
        record = InstanceRecord.from_document(stored.body).with_internals(rotation=rotation)
        await world.store.replace(COLLECTION, instance_id, record.document(RING), if_revision=stored.revision)
        found = await awaiting.awaited(instance_id, "rotation-1")
        assert (found is not None) == is_awaited
        if found is not None:
            assert (found.event, found.operation_id, found.vim_default) == ("ROTATED", "rotation-1", False)
            assert (found.cluster_uid, found.vim_name) == (CREDENTIALS_SENT.cluster_uid, f"workload-{instance_id[:8]}")
            clock.at += timedelta(seconds=131)
            assert await awaiting.awaited(instance_id, "rotation-1") is None
            clock.at = NOW


async def test_an_lcm_api_of_an_earlier_version_is_asked_again(world: World) -> None:
    """During an upgrade: it has no such resource, and the sender repeats its request."""
    with pytest.raises(ServiceUnavailable, match="earlier version"):
        await HttpInstances(f"{world.url}/vnflcm", TOKEN, world.session).awaited("instance", "")


SENDERS = {"send_credentials": ("CREATED", "ROTATED"), "run_sender": ("CREATED", "ROTATED", "DELETED"), "withdraw_credentials": ("DELETED",)}  # fmt: skip
STORIES = [path for path in story_paths() if any(f'"{kind}"' in path.read_text(encoding="utf-8") for kind in SENDERS)]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_stored_operations_await_the_call_back_of_their_running_step(path: Path) -> None:
    """An upgrade in the middle of a call-back: what is awaited follows from what an earlier version has stored."""
    documents = [document for case in read_story(path).cases for document in case.documents]
    for record in (OccurrenceRecord.from_document(one.body) for one in documents if one.collection == OPERATIONS):
        draft = SEQUENCES.draft(record.plan, record.draft)
        for planned in record.running:
            command = SEQUENCES.running_command(planned, draft)
            found = awaited_by(command, record.occ.id, cluster_uid=cluster_uid_of(draft))
            is_undoing = planned.state == "undoing"
            expected = ("DELETED",) if is_undoing else SENDERS.get(planned.kind, ())
            assert (found is not None) == bool(planned.kind in SENDERS)
            assert found is None or (found.event in expected and found.cluster_name and found.cluster_namespace)
