"""Instances whose resources were deleted by hand: what they show, which operations lead on, and when the mark ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.stacks import OperateServers, ResourcesChanged, StackDrift, StackFinding, StackResources
from kubevnfm_lcm_api.lifecycle.core.drift import KEY, Drift, after_operation, drift_of, marked
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, StackDeployment
from kubevnfm_sol.lcm import OperationState, OperationType
from kubevnfm_sol.problem import ProblemDetails
from worlds.drift_world import GONE, Watched, watched_world
from worlds.lcm_builders import RESOURCES, a_terminate_draft, an_instance, an_operation

MISSING = StackDrift(state="MISSING")
SCALE_OUT = {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": 1}


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched_world(tmp_path) as found:
        yield found


async def test_a_deleted_stack_is_shown_and_published_until_a_heal_has_built_it_again(watched: Watched) -> None:
    """API-154."""
    world, instance_id = watched.world, await watched.built()
    (command,) = await watched.questions()
    assert command.vim.vim_id == "vim-1"
    (asked,) = command.expected
    assert (asked.vnf_instance_id, asked.stack_id, asked.known) == (instance_id, RESOURCES.stack_id, None)
    assert set(asked.servers) == {server.server_id for server in RESOURCES.servers}

    await watched.find(MISSING)
    mark = await watched.shown(instance_id)
    assert mark is not None
    assert (mark["state"], mark["reason"]) == ("MISSING", GONE)
    found = (await world.lcm("GET", f"/vnf_instances?filter=(eq,metadata/{KEY}/state,MISSING)")).must(200).json
    assert [one["id"] for one in found] == [instance_id]
    ((again,),) = [one.expected for one in await watched.questions()]
    assert again.known == MISSING, "infra-openstack reports only what is not known"

    for task, body in (
        ("scale", SCALE_OUT),
        ("operate", {"changeStateTo": "STOPPED"}),
        ("heal", {"vnfcInstanceId": [RESOURCES.servers[0].vnfc_id]}),
    ):
        refused = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).problem(409)
        assert refused["type"] == "instance-drifted"
        assert GONE in refused["detail"]
    healed = await world.reached(await world.ask(instance_id, "heal", {}))
    assert healed["operationState"] == "COMPLETED"
    assert world.twins.asked()[-3:] == [
        "infra.openstack.delete_resources", "infra.openstack.create_resources", "infra.openstack.scale_resources",
    ]  # fmt: skip
    assert await watched.shown(instance_id) is None
    await world.bus.quiet()
    assert [(one.vnf_instance_id, one.state) for one in watched.events] == [
        (instance_id, "MISSING"),
        (instance_id, "NONE"),
    ]


@pytest.mark.parametrize("kind", ["GRACEFUL", "FORCEFUL"])
async def test_a_terminate_ends_the_drift(watched: Watched, kind: str) -> None:
    instance_id = await watched.built()
    await watched.find(MISSING)
    body = {"terminationType": kind}
    ended = await watched.world.reached(await watched.world.ask(instance_id, "terminate", body))
    assert ended["operationState"] == "COMPLETED"
    assert await watched.shown(instance_id) is None
    assert await watched.questions() == [], "an instance without a stack is not asked about"


async def test_missing_machines_are_named_and_cannot_be_operated_until_they_exist_again(watched: Watched) -> None:
    world, instance_id = watched.world, await watched.built()
    lost = RESOURCES.servers[0]
    await watched.find(StackDrift(state="INCOMPLETE", servers=(lost.server_id,)), "server is gone")
    mark = await watched.shown(instance_id)
    assert mark is not None
    assert (mark["state"], mark["vnfc_ids"]) == ("INCOMPLETE", [lost.vnfc_id])
    refused = (await world.lcm("POST", f"/vnf_instances/{instance_id}/operate", {"changeStateTo": "STOPPED"})).problem(
        409
    )
    assert lost.vnfc_id in refused["detail"]
    await watched.find(None)
    assert await watched.shown(instance_id) is None
    assert [one.state for one in watched.events] == ["INCOMPLETE", "NONE"]


async def test_a_finding_about_an_instance_that_has_changed_since_counts_for_nothing(watched: Watched) -> None:
    world, instance_id = watched.world, await watched.built()
    (command,) = await watched.questions()
    (asked,) = command.expected
    world.twins.waiting.add("infra.openstack.scale_resources")
    operation_id = await world.ask(instance_id, "scale", SCALE_OUT)
    assert await watched.questions() == [], "an operation is running"
    await watched.answer(StackFinding(vnf_instance_id=instance_id, revision=asked.revision, drift=MISSING, reason=GONE))
    assert await watched.shown(instance_id) is None
    await world.twins.release()
    await world.reached(operation_id)
    await watched.answer(StackFinding(vnf_instance_id=instance_id, revision=asked.revision, drift=MISSING, reason=GONE))
    assert await watched.shown(instance_id) is None


async def test_a_request_does_not_notice_that_a_mark_is_written_meanwhile(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instance is written between the check of the request and its claim."""
    instance_id = await watched.built()
    claim = watched.world.store.update
    written: list[str] = []

    async def update(collection: str, id: str, fields: Any, **more: Any) -> Any:
        if "internal/currentOperation" in fields and not written:
            written.append(await watched.find(MISSING))
        return await claim(collection, id, fields, **more)

    monkeypatch.setattr(watched.world.store, "update", update)
    operation_id = await watched.world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    assert (await watched.world.reached(operation_id))["operationState"] == "COMPLETED"
    assert written == [instance_id]


async def test_requests_neither_set_nor_remove_the_mark(watched: Watched) -> None:
    """API-155."""
    world, instance_id = watched.world, await watched.built()
    own = {KEY: {"state": "MISSING"}}
    refused = (await world.lcm("POST", "/vnf_instances", {"vnfdId": "any", "metadata": own})).problem(400)
    assert f"metadata/{KEY}" in refused["detail"]
    (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", {"metadata": own})).problem(400)
    await watched.find(MISSING)
    mark = await watched.shown(instance_id)
    (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", {"metadata": {KEY: None}})).problem(400)
    for metadata in (None, {KEY: mark, "mine": 1}):
        patched = (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", {"metadata": metadata})).must(202)
        operation_id = patched.headers["Location"].rpartition("/")[2]
        assert (await world.reached(operation_id))["operationState"] == "COMPLETED"
        assert await watched.shown(instance_id) == mark


async def test_a_rollback_that_finds_no_stack_leads_out(watched: Watched) -> None:
    """API-154."""
    world, instance_id = watched.world, await watched.built()
    before = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    world.twins.failing.add("infra.openstack.scale_resources")
    world.twins.answers["infra.openstack.restore_resources"] = ResourcesChanged(
        resources=StackResources(stack_id="", stack_name="vnf-1"), is_missing=True
    )
    operation_id = await world.ask(instance_id, "scale", SCALE_OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    rolled_back = await world.reached(operation_id, "ROLLED_BACK")
    assert "resourceChanges" not in rolled_back
    after = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert after == before, "what a heal has to build again"


async def test_the_rollback_of_an_operate_asks_for_the_servers_that_exist(watched: Watched) -> None:
    world, instance_id = watched.world, await watched.built()
    world.twins.failing.add("infra.openstack.operate_servers")
    operation_id = await world.ask(instance_id, "operate", {"changeStateTo": "STOPPED"})
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing.clear()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    forwards, backwards = [one.data for one in world.twins.commands if isinstance(one.data, OperateServers)]
    assert (forwards.existing_only, backwards.existing_only) == (False, True)


async def test_a_heal_after_one_that_left_nothing_builds_what_the_vnf_was_scaled_to(watched: Watched) -> None:
    world, instance_id = watched.world, await watched.built()
    world.twins.failing.add("infra.openstack.create_resources")
    operation_id = await world.ask(instance_id, "heal", {"additionalParams": {"all": True}})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    world.twins.failing.clear()
    await world.reached(await world.ask(instance_id, "heal", {"additionalParams": {"all": True}}))
    restored: Any = world.twins.commands[-1].data
    assert restored.counts == {"VDU1": 1}


def drifted(**drift: Any) -> InstanceRecord:
    deployment = StackDeployment(kind="stack", vim_key="vim1", stack_name="vnf-1", resources=RESOURCES)
    record = an_instance().with_internals(deployments=(deployment,))
    return marked(record, Drift(**{"state": "MISSING", "since": "2030", "reason": GONE, **drift}))


@pytest.mark.parametrize(
    ("operation", "state", "drift", "left"),
    [
        (OperationType.HEAL, OperationState.COMPLETED, {}, None),
        (OperationType.SCALE, OperationState.COMPLETED, {"state": "FAILED"}, None),
        (OperationType.SCALE, OperationState.ROLLED_BACK, {}, "MISSING"),
        (OperationType.HEAL, OperationState.FAILED, {}, "MISSING"),
        (OperationType.MODIFY_INFO, OperationState.COMPLETED, {}, "MISSING"),
        (OperationType.OPERATE, OperationState.COMPLETED, {"state": "FAILED"}, "FAILED"),
        (OperationType.SCALE, OperationState.COMPLETED, {"state": "FAILED", "vnfc_ids": ("vnfc-w1",)}, "INCOMPLETE"),
        (OperationType.HEAL, OperationState.COMPLETED, {"state": "INCOMPLETE", "vnfc_ids": ("replaced",)}, None),
    ],
)
def test_an_operation_ends_the_drift_that_it_has_repaired(
    operation: OperationType, state: OperationState, drift: dict[str, Any], left: str | None
) -> None:
    occ = an_operation(a_terminate_draft(), state=state).occ.model_copy(update={"operation": operation})
    after = drift_of(after_operation(drifted(**drift), occ).vnf.metadata)
    assert (after.state if after is not None else None) == left


@pytest.mark.parametrize("state", [OperationState.FAILED, OperationState.ROLLED_BACK])
def test_an_operation_that_has_found_no_stack_marks_the_drift_at_its_end(state: OperationState) -> None:
    error = ProblemDetails(type="stack-missing", title="-", status=404, detail="scale_resources: no stack")
    occ = an_operation(a_terminate_draft(), state=state).occ.model_copy(update={"error": error})
    after = drift_of(after_operation(marked(drifted(), None), occ).vnf.metadata)
    assert after == Drift(state="MISSING", since=occ.state_entered_time, reason="scale_resources: no stack")


async def test_an_instance_on_a_vim_that_is_not_registered_is_asked_about_too(watched: Watched) -> None:
    """API-154: its access data came with the request."""
    own = {
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "interfaceInfo": {"endpoint": "http://192.0.2.7/identity/v3"},
        "accessInfo": {"username": "u", "password": "p", "project": "x", "userDomain": "d", "projectDomain": "d"},
    }
    world, instance_id = watched.world, await watched.world.create()
    await world.reached(await world.instantiate(instance_id, vimConnectionInfo={"mine": own}), "COMPLETED")
    (command,) = await watched.questions()
    assert command.vim.vim_id is None
    assert [one.vnf_instance_id for one in command.expected] == [instance_id]
    ended = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    assert (await world.reached(ended))["operationState"] == "COMPLETED"
    assert await watched.questions() == []
