"""Workload clusters whose package has a sender of its own: what its scripts are asked, and what a request may say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_events.credentials import SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import CredentialsSender, RunScript, ScriptDone
from kubevnfm_events.vim import RegisterReceived
from packages.package_variants import OTHER_WORKLOAD, changed_package, variant
from worlds.lcm_builders import CREDENTIALS_SENT
from worlds.lcm_world import SAMPLES, World, sample_request
from worlds.workload_world import APPLY, AWAIT, applied, machines, sent

SENDER = "capi-workload-sender"
VIMS = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}


@pytest.fixture
async def cluster(world: World) -> World:
    """Return lcm-api with the package and the management cluster."""
    world.twins.answers[APPLY] = applied()
    world.twins.answers[AWAIT] = machines([0])
    world.vims.add("k8s", "kubernetes")
    await world.sample(SENDER)
    return world


async def built(world: World, **capi: Any) -> str:
    """Return an INSTANTIATED cluster."""
    instance_id = await world.create(SENDER)
    body = sample_request(SENDER, "instantiate")
    body["additionalParams"]["capi"] |= capi
    answer = (
        await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {**body, "vimConnectionInfo": VIMS})
    ).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    return instance_id


async def asked(world: World, instance_id: str, task: str, body: Mapping[str, Any]) -> str:
    answer = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).must(202)
    return str(answer.headers["Location"].rpartition("/")[2])


async def test_the_script_sends_before_the_vim_is_registered_and_erases_after_it_is_removed(cluster: World) -> None:
    """CR-009, CR-077, CR-083, CR-105: one request; no access data are in the message, and the driver sends nothing."""
    instance_id = await built(cluster)
    (script,) = sent(cluster, RunScript)
    sends = script.sender.sends
    assert (script.task, script.file, script.reach) == ("instantiate_end", "Scripts/send_credentials.py", ())
    assert script.given["vnf_instance"]["vimConnectionInfo"]["management"]["accessInfo"] == {}
    assert script.sender == CredentialsSender(
        vim_key="management",
        sends=SendCredentials(
            vnf_instance_id=instance_id,
            vnfd_id=script.package.vnfd_id,
            vim=sends.vim,
            cluster=sends.cluster,
            vim_name=f"workload-{instance_id[:8]}",
        ),
    )
    assert (sends.vim.vim_id, sends.cluster.name) == ("k8s", "workload")
    (register,) = sent(cluster, RegisterReceived)
    assert (register.cluster_uid, register.vim_name) == (CREDENTIALS_SENT.cluster_uid, sends.vim_name)
    instance = (await cluster.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert instance["metadata"]["workloadVimId"] == "vim-2"

    operation = await asked(cluster, instance_id, "terminate", {"terminationType": "GRACEFUL"})
    await cluster.reached(operation, "COMPLETED")
    script = sent(cluster, RunScript)[1]
    withdraws = script.sender.withdraws
    assert (script.task, script.sender.sends) == ("terminate_start", None)
    assert (withdraws.cluster_uid, withdraws.endpoint, withdraws.force) == (
        CREDENTIALS_SENT.cluster_uid, CREDENTIALS_SENT.endpoint, False,
    )  # fmt: skip
    assert cluster.twins.asked()[-4:] == [
        "vim.deregister", "mgmt.run_script", "infra.k8s.delete_objects", "mgmt.forget_instance"
    ]  # fmt: skip
    assert sent(cluster, SendCredentials) == sent(cluster, WithdrawCredentials) == []


async def test_the_arguments_of_the_request_reach_the_script(cluster: World) -> None:
    """CR-069, CR-082, CR-085."""
    url = "https://own.example/hook"
    await built(cluster, register_vim=False, vim_name="edge", vim_default=True, callback_url=url)
    (script,) = sent(cluster, RunScript)
    sends = script.sender.sends
    assert (sends.register_vim, sends.vim_name, sends.vim_default, sends.callback_url) == (False, "edge", True, url)
    assert sent(cluster, RegisterReceived) == []


async def test_a_request_can_leave_the_sending_to_the_driver(cluster: World) -> None:
    """Then the scripts are as those of other CNFs: without a network and without a key."""
    instance_id = await built(cluster, sender="driver", credentials="admin_kubeconfig")
    (sends,) = sent(cluster, SendCredentials)
    assert sends.mode == "admin_kubeconfig"
    operation = await asked(cluster, instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await cluster.reached(operation, "COMPLETED")
    assert len(sent(cluster, WithdrawCredentials)) == 1
    assert [(script.task, script.sender) for script in sent(cluster, RunScript)] == [
        ("instantiate_end", None), ("terminate_start", None),
    ]  # fmt: skip


async def test_a_rollback_has_the_driver_erase_what_the_script_has_sent(cluster: World) -> None:
    """CR-112: also if the script has failed after it had sent; a receiver out of reach does not hold it up."""
    cluster.twins.failing.add("mgmt.run_script")
    instance_id = await cluster.create(SENDER)
    body = {**sample_request(SENDER, "instantiate"), "vimConnectionInfo": VIMS}
    operation = await asked(cluster, instance_id, "instantiate", body)
    await cluster.reached(operation, "FAILED_TEMP")
    (await cluster.lcm("POST", f"/vnf_lcm_op_occs/{operation}/rollback")).must(202)
    await cluster.reached(operation, "ROLLED_BACK")
    (withdraws,) = sent(cluster, WithdrawCredentials)
    assert (withdraws.force, withdraws.cluster_uid) == (True, None)


async def test_a_failed_script_is_retried_with_the_same_facts(cluster: World) -> None:
    """CR-078."""
    cluster.twins.failing.add("mgmt.run_script")
    instance_id = await cluster.create(SENDER)
    body = {**sample_request(SENDER, "instantiate"), "vimConnectionInfo": VIMS}
    operation = await asked(cluster, instance_id, "instantiate", body)
    await cluster.reached(operation, "FAILED_TEMP")
    cluster.twins.failing.clear()
    (await cluster.lcm("POST", f"/vnf_lcm_op_occs/{operation}/retry")).must(202)
    await cluster.reached(operation, "COMPLETED")
    first, second = sent(cluster, RunScript)
    assert first == second
    assert cluster.twins.asked()[-2:] == ["mgmt.run_script", "vim.register_received"]


async def test_a_script_at_the_end_of_a_change_can_send_again(cluster: World) -> None:
    """The receiver then has the facts of the changed cluster; a script at its beginning is as any other."""
    phases = dict.fromkeys(("instantiate_end", "scale_start", "scale_end"), "own")
    package = variant(cluster.folder, "capi-workload", phases=phases)
    await cluster.upload(package)
    instance_id = await cluster.create("capi-workload")
    body = {**sample_request("capi-workload", "instantiate"), "vimConnectionInfo": VIMS}
    body["additionalParams"]["capi"]["vim_default"] = True
    await cluster.reached(await asked(cluster, instance_id, "instantiate", body), "COMPLETED")
    cluster.twins.answers[AWAIT] = machines([0, 1])
    updated = CREDENTIALS_SENT.model_copy(update={"endpoint": "https://192.0.2.11:6443"})
    cluster.twins.answers["mgmt.run_script/scale_end"] = ScriptDone(sent=updated)
    scale = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}
    await cluster.reached(await asked(cluster, instance_id, "scale", scale), "COMPLETED")
    _, start, end = sent(cluster, RunScript)
    assert start.sender is None
    sends = end.sender.sends
    assert (sends.is_rotation, sends.vim_name, sends.vim_default) == (True, f"workload-{instance_id[:8]}", False)
    await cluster.reached(await asked(cluster, instance_id, "terminate", {"terminationType": "GRACEFUL"}), "COMPLETED")
    (withdraws,) = sent(cluster, WithdrawCredentials)
    assert withdraws.endpoint == updated.endpoint, "the driver erases what no script of the package does"


async def test_the_scripts_erase_and_send_when_the_cluster_is_built_again(cluster: World) -> None:
    """CR-009, CR-117: with the facts of the earlier and of the new cluster; the driver does neither."""
    instance_id = await built(cluster)
    since = len(sent(cluster, RunScript))
    heal = {"additionalParams": {"capi": {"recreate": True}}}
    await cluster.reached(await asked(cluster, instance_id, "heal", heal), "COMPLETED")
    erases, sends = sent(cluster, RunScript)[since:]
    assert (erases.task, erases.sender.withdraws.cluster_uid) == ("terminate_start", CREDENTIALS_SENT.cluster_uid)
    assert (sends.task, sends.sender.sends.is_rotation) == ("instantiate_end", False)
    assert sent(cluster, SendCredentials) == sent(cluster, WithdrawCredentials) == []


async def test_a_sender_that_the_package_lacks_by_now_is_named_before_the_cluster_is_deleted(cluster: World) -> None:
    """CR-117: by a change of package."""
    instance_id = await built(cluster)
    await cluster.upload(variant(cluster.folder, "capi-workload", vnfd_id=OTHER_WORKLOAD))
    parameters = {
        "lcm-kubernetes-def-files": sample_request(SENDER, "instantiate")["additionalParams"][
            "lcm-kubernetes-def-files"
        ]
    }
    change = {"vnfdId": OTHER_WORKLOAD, "additionalParams": parameters}
    await cluster.reached(await asked(cluster, instance_id, "change_vnfpkg", change), "COMPLETED")
    heal = {"additionalParams": {"capi": {"recreate": True}}}
    problem = (await cluster.lcm("POST", f"/vnf_instances/{instance_id}/heal", heal)).problem(422)
    assert "additionalParams/capi/recreate: the package sends the credentials, and maps no script" in problem["detail"]


@pytest.mark.parametrize(
    ("sample", "capi", "status", "place", "reason"),
    [
        (SENDER, {"sender": "script"}, 400, "sender", "one of driver, package expected"),
        (SENDER, {"credentials": "service_account"}, 422, "credentials", "decides what it sends"),
        (SENDER, {"cluster_role": "view"}, 422, "cluster_role", "or set sender to driver"),
        ("capi-workload", {"sender": "package"}, 422, "sender", "maps no script to instantiate_end"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_field(
    cluster: World, sample: str, capi: dict[str, Any], status: int, place: str, reason: str
) -> None:
    """CR-005: before anything is asked."""
    if sample != SENDER:
        await cluster.sample(sample)
    instance_id = await cluster.create(sample)
    body = sample_request(sample, "instantiate")
    body["additionalParams"]["capi"] = capi
    answer = await cluster.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {**body, "vimConnectionInfo": VIMS})
    assert f"additionalParams/capi/{place}" in answer.problem(status)["detail"]
    assert reason in answer.detail
    assert cluster.twins.commands == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("../Scripts/send_credentials.py", "../Scripts/absent.py", "absent.py"),
        ("terminate_start:", "operate_start:", "a script is run before and after"),
    ],
)
async def test_a_sender_that_cannot_be_run_is_refused_before_the_cluster_is_built(
    world: World, old: str, new: str, reason: str
) -> None:
    """As other scripts: a file that is missing, and a phase that a CNF does not have."""
    name = f"Definitions/{SENDER}.vnfd.yaml"
    text = (SAMPLES / SENDER / name).read_text(encoding="utf-8").replace(old, new)
    await world.upload(changed_package(world.folder, SENDER, {name: text}))
    world.vims.add("k8s", "kubernetes")
    instance_id = await world.create(SENDER)
    body = {**sample_request(SENDER, "instantiate"), "vimConnectionInfo": VIMS}
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert reason in answer.problem(422)["detail"]
    assert world.twins.commands == []
