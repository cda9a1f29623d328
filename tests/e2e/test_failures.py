"""Failing steps: the reported error, the steps that retry repeats, and that rollback and delete leave nothing behind."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from patience import until
from servers.wirings import deep_in_single, in_six

_JOIN = r'The task join on machine worker\d+ failed: kubeadm join to \S+ ended with exit code 1: ".*"\.'


async def _failed(user: User, operation: str, cause: str, sentence: str) -> dict[str, Any]:
    """Return the ProblemDetails of an operation that must be FAILED_TEMP; ``sentence``: a regular expression for all of its cause."""
    view = await user.rest(operation, timeout_s=300.0)
    assert view["state"] == "FAILED_TEMP", json.dumps(view, indent=1)
    assert (view["cause"]["code"], view["cause"]["isWait"]) == (cause, False), view["cause"]
    assert re.fullmatch(sentence, view["cause"]["text"]), view["cause"]
    assert [each["task"] for each in view["next"]] == ["retry", "rollback", "fail"]
    assert view["next"][0]["text"].startswith(f"{view['cause']['remedy']} Then: Continue at ")
    occurrence = await user.occurrence(operation)
    assert {"retry", "rollback", "fail"} <= set(occurrence["_links"])
    (alarm,) = await _alarms(user, occurrence["vnfInstanceId"], "OPEN")
    assert (alarm["faultType"], alarm["probableCause"]) == ("operation-failed", cause)
    error: dict[str, Any] = occurrence["error"]
    assert error["status"] >= 400
    assert error["detail"]
    return error


async def _alarms(user: User, instance_id: str, state: str) -> list[dict[str, Any]]:
    """Wait until a VNF instance has alarms in this state; return them."""

    async def found() -> list[dict[str, Any]] | None:
        listed = (await user.call("GET", f"/kubevnfm/v1/alarms?object={instance_id}&state={state}")).must(200).json
        return listed["items"] or None

    return await until(found)


async def _is_gone(lab: LabControl, instance_id: str) -> None:
    """Return when no resource in the cloud has the instance's name."""

    async def gone() -> bool | None:
        return not any(instance_id in name for name in await lab.names()) or None

    await until(gone)


@deep_in_single
async def test_a_failed_join_names_step_node_and_cause_and_retry_leaves_ready_nodes_alone(
    user: User, lab: LabControl
) -> None:
    """SEQ-045, API-048, API-053, API-183: the kubeadm calls of the lab are counted by node."""
    await lab.forget_calls()
    cluster_id = await user.create(await user.sample("cluster"))
    request = user.cluster(level="instantiation_level_1")
    # one node at a time: a join that runs while another fails is cancelled, and its node is not ready
    request["additionalParams"]["k8s_cluster_installation_param"]["x_max_parallel_nodes"] = 1
    async with lab.fault("program", "kubeadm join*", times=1, after=1, message="the fault of this test"):
        operation = await user.start(cluster_id, "instantiate", request)
        error = await _failed(user, operation, "machine-task-failed", _JOIN)
    assert error["detail"].startswith("instantiate_end: node worker")
    assert "task join" in error["detail"]
    assert "the fault of this test" in error["detail"]
    assert "the fault of this test" in await user.log(operation)
    assert set(await user.vims()) == {"lab"}
    failed = (await user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json
    assert not [task for node in failed["nodes"] for task in node["tasks"] if task["state"] == "started"]
    before = await lab.calls("program", "kubeadm init")

    view = await user.act(operation, "retry")
    assert view["state"] == "COMPLETED", view
    assert "error" not in await user.occurrence(operation)
    assert len(await _alarms(user, cluster_id, "CLEARED")) == 1
    assert await lab.calls("program", "kubeadm init") == before
    cluster = await lab.cluster_of(cluster_id)
    assert sorted(cluster["joins"].values()) == [1, 1, 1]
    joins = await lab.calls("program", "kubeadm join")
    assert sorted(joins.values()) == [1, 2], "the ready node joined once, the other was tried twice"
    await user.terminate(cluster_id)


async def test_rollback_of_a_failed_instantiate_leaves_nothing(user: User, lab: LabControl) -> None:
    """API-049."""
    cluster_id = await user.create(await user.sample("cluster"))
    async with lab.fault("program", "kubeadm join*"):
        operation = await user.start(cluster_id, "instantiate", user.cluster())
        await _failed(user, operation, "machine-task-failed", _JOIN)
    view = await user.act(operation, "rollback")
    assert view["state"] == "ROLLED_BACK"
    assert (await user.instance(cluster_id))["instantiationState"] == "NOT_INSTANTIATED"
    assert not any(cluster_id in name for name in await lab.names())
    assert set(await user.vims()) == {"lab"}
    await user.do(cluster_id, "instantiate", user.cluster())
    await user.terminate(cluster_id)


async def test_remains_of_a_failed_instantiate_are_listed_and_removed_with_the_instance(
    user: User, lab: LabControl
) -> None:
    """API-050, first half: DELETE removes it in the background."""
    cluster_id = await user.create(await user.sample("cluster"))
    async with lab.fault("program", "kubeadm join*"):
        operation = await user.start(cluster_id, "instantiate", user.cluster())
        await _failed(user, operation, "machine-task-failed", _JOIN)
    view = await user.act(operation, "fail")
    assert view["state"] == "FAILED"
    shown = await user.instance(cluster_id)
    assert shown["instantiationState"] == "NOT_INSTANTIATED"
    occurrence = await user.occurrence(operation)
    servers = {server["id"] for server in (await lab.inventory())["servers"] if cluster_id in server["name"]}
    listed = {each["computeResource"]["resourceId"] for each in occurrence["resourceChanges"]["affectedVnfcs"]}
    assert servers
    assert listed == servers
    await user.delete(cluster_id)
    await _is_gone(lab, cluster_id)


async def test_a_new_instantiate_removes_what_a_given_up_one_left(user: User, lab: LabControl) -> None:
    """API-050, second half."""
    cluster_id = await user.create(await user.sample("cluster"))
    async with lab.fault("program", "kubeadm join*"):
        operation = await user.start(cluster_id, "instantiate", user.cluster())
        await _failed(user, operation, "machine-task-failed", _JOIN)
    await user.act(operation, "fail")
    left = {server["id"] for server in (await lab.inventory())["servers"] if cluster_id in server["name"]}
    view = await user.do(cluster_id, "instantiate", user.cluster())
    assert view["steps"][0]["name"] == "remove_remains"
    now = {server["id"] for server in (await lab.inventory())["servers"] if cluster_id in server["name"]}
    assert len(now) == 2
    assert not now & left
    await user.terminate(cluster_id)


async def test_a_full_quota_is_reported_before_anything_is_created(user: User, lab: LabControl) -> None:
    """Done-list of issue 2: clear error, nothing created; a retry completes once the quota allows it."""
    cluster_id = await user.create(await user.sample("cluster"))
    async with lab.quota(instances=1):
        operation = await user.start(cluster_id, "instantiate", user.cluster())
        sentence = r"The quota of servers in the OpenStack project is used up: 2 wanted, 1 free\."
        error = await _failed(user, operation, "quota-exceeded", sentence)
        assert error["detail"] == "create_resources: quota of servers exceeded: 2 wanted, 1 free"
        assert not any(cluster_id in name for name in await lab.names())
    assert (await user.act(operation, "retry"))["state"] == "COMPLETED"
    await user.terminate(cluster_id)


async def test_a_stack_that_heat_cannot_build_is_reported_with_heats_reason(user: User, lab: LabControl) -> None:
    """No valid host: the reason of the failed server reaches the operator, and rollback removes half a stack."""
    instance_id = await user.create(await user.sample("vm"))
    async with lab.fault("nova", "server_create", message="No valid host was found.", status=500):
        operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
        error = await _failed(
            user, operation, "no-valid-host", r"Nova finds no compute host for the server VDU1.*: none .*\."
        )
    assert "No valid host was found" in error["detail"]
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    await user.delete(instance_id)


async def test_a_wrong_password_of_the_machines_is_reported_with_node_and_address(user: User, lab: LabControl) -> None:
    """Sequences 2.3, 2.4: the login is refused. The response does not contain the password."""
    body = user.cluster()
    body["additionalParams"]["k8s_cluster_installation_param"]["worker_node"]["password"] = "not-the-password"
    cluster_id = await user.create(await user.sample("cluster"))
    operation = await user.start(cluster_id, "instantiate", body)
    sentence = r"Machine worker\d+ refuses the login of user ubuntu: the password or the key is wrong\."
    error = await _failed(user, operation, "ssh-login-refused", sentence)
    assert "worker" in error["detail"]
    assert "ubuntu" in error["detail"], "the user who was refused"
    assert "not-the-password" not in json.dumps(error)
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    await user.delete(cluster_id)


@in_six
async def test_a_vim_that_is_down_for_a_moment_delays_and_does_not_fail(user: User, lab: LabControl) -> None:
    """A retryable error is retried automatically."""
    instance_id = await user.create(await user.sample("vm"))
    async with lab.fault("heat", "*", effect="drop", times=2):
        await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    await user.terminate(instance_id)


async def test_a_machine_that_hangs_holds_one_operation_and_no_other(user: User, lab: LabControl) -> None:
    """A node does not answer for a while: other operations continue, and its own completes once the node answers."""
    cluster_id = await user.create(await user.sample("cluster"))
    instance_id = await user.create(await user.sample("vm"))
    await lab.forget_calls()
    async with lab.fault("program", "kubeadm init", effect="hang"):
        operation = await user.start(cluster_id, "instantiate", user.cluster())
        await lab.called("program", "kubeadm init")
        await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
        running = (await user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json
        assert running["state"] == "PROCESSING"
        started = [
            (node["name"], task["task"])
            for node in running["nodes"]
            for task in node["tasks"]
            if task["state"] == "started"
        ]
        assert [task for _, task in started] == ["init"]
    assert (await user.rest(operation))["state"] == "COMPLETED"
    await user.terminate(instance_id)
    await user.terminate(cluster_id)


async def test_a_failed_terminate_can_be_retried_but_not_rolled_back(user: User, lab: LabControl) -> None:
    """API-044, API-051."""
    instance_id = await user.create(await user.sample("vm"))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    async with lab.fault("heat", "stack_delete", status=403, message="policy says no"):
        operation = await user.start(instance_id, "terminate", GRACEFUL)
        view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP", view
    assert view["cause"]["text"] == "Heat does not allow it: the user of the VIM lacks a role in the project."
    assert [each["task"] for each in view["next"]] == ["retry", "fail"]
    occurrence = await user.occurrence(operation)
    assert "rollback" not in occurrence["_links"]
    (await user.lcm("POST", f"/vnf_lcm_op_occs/{operation}/rollback")).must(404)
    busy = (await user.ask(instance_id, "terminate", GRACEFUL)).must(409)
    assert operation in busy.detail
    assert (await user.act(operation, "retry"))["state"] == "COMPLETED"
    await user.delete(instance_id)


async def test_a_machine_that_cannot_be_deleted_at_first_is_deleted_in_the_end(user: User, lab: LabControl) -> None:
    """A second attempt by Heat often succeeds, so the deletion is retried without a request."""
    instance_id = await user.create(await user.sample("vm"))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    async with lab.fault("nova", "server_delete", message="the hypervisor is away", times=1):
        await user.terminate(instance_id)


@pytest.mark.parametrize("action", ["retry", "rollback", "fail", "unknown"])
async def test_a_task_that_the_state_does_not_allow_is_refused(user: User, action: str) -> None:
    """API-041."""
    instance_id = await user.create(await user.sample("vm"))
    operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
    await user.rest(operation)
    answer = await user.lcm("POST", f"/vnf_lcm_op_occs/{operation}/{action}")
    answer.must(404 if action == "unknown" else 409)
    await user.terminate(instance_id)
